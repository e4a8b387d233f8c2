"""`ppem`: what paper 002 measures. Kernel tests, linear models that learn from the candidate, single attributes."""

from understudy.evaluate.ppem import attributes, discrepancies, models

METRICS = (*discrepancies.METRICS, *models.METRICS, *attributes.METRICS)
