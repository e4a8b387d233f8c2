"""The papers' experiments re-run, baselines, the papers' metrics and cost benchmarks of Understudy."""
