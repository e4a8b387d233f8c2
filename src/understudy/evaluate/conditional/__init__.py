"""`conditional`: what paper 003 measures. Distributions and spectra of values; errors of fillings if there are any."""

from understudy.evaluate.conditional import distributions, fillings

METRICS = (*fillings.METRICS, *distributions.METRICS)
