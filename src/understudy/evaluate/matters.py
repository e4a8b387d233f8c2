"""What matters in a stand-in: the headline of an evaluation is the worst of these."""

MATTERS = {
    "general.mean": "mean",
    "general.tails": "tails",
    "general.missingness": "gaps",
    "general.forecast_skill": "forecasts",
    "general.trees_summary": "trees on summaries",
    "general.trees_raw": "trees on values",
}
