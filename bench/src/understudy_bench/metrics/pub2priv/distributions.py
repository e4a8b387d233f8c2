"""How changes from step to step, and memory, are distributed over the series."""

import numpy as np

from understudy.evaluation.measures import Aspect, RankedPools, autocorrelations, mean_figure
from understudy.evaluation.metric import Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison

MOST_LAGS = 30
_NO_PAIRS = "no two neighbouring steps were observed; bring series with fewer gaps."


def returns_distance(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """KS_R: Kolmogorov–Smirnov distance of first differences, pooled over series and steps; mean over channels."""
    _require_numbers(comparison, 2)
    pools = RankedPools.of(*(np.diff(comparison.numeric(p), axis=1) for p in (comparison.real, comparison.candidate)))
    aspect = Aspect(comparison.numeric_names, pools.kolmogorov)
    return mean_figure([aspect], comparison, effort, seed, otherwise=_NO_PAIRS)


def autocorrelation_distance(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """KS_AR: for each lag, the distance of the autocorrelations of all series and channels; mean over lags."""
    _require_numbers(comparison, 4)
    lags = min(MOST_LAGS, comparison.real.num_steps // 4)
    found = (autocorrelations(comparison.numeric(p), lags) for p in (comparison.real, comparison.candidate))
    pools = RankedPools.of(*(correlations.transpose(0, 2, 1) for correlations in found))
    aspect = Aspect([f"lag {lag}" for lag in range(1, lags + 1)], pools.kolmogorov)
    return mean_figure([aspect], comparison, effort, seed, otherwise=_NO_PAIRS)


def _require_numbers(comparison: Comparison, steps: int) -> None:
    if not comparison.numeric_names:
        raise Undefined("no channel holds numbers; it needs a continuous or an integer one.")
    if comparison.real.num_steps < steps:
        raise Undefined(f"series are too short; it needs at least {steps} steps.")


METRICS = (
    Metric(
        name="pub2priv.ks_returns",
        title="Changes from step to step: distance of distributions",
        direction="lower",
        range=(0.0, 1.0),
        reference="Pub2Priv, App. F, KS_R",
        measure=returns_distance,
    ),
    Metric(
        name="pub2priv.ks_autocorrelation",
        title="Autocorrelations of series: distance of distributions",
        direction="lower",
        range=(0.0, 1.0),
        reference="Pub2Priv, App. F, KS_AR; lags 1 to a quarter of the steps, at most 30",
        measure=autocorrelation_distance,
    ),
)
