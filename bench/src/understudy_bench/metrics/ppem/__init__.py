"""`ppem`: the metrics of PPEM. Kernel tests, linear models that learn from the candidate, single attributes."""

from understudy_bench.metrics.ppem import attributes, discrepancies, models

METRICS = (*discrepancies.METRICS, *models.METRICS, *attributes.METRICS)
