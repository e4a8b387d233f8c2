"""Distances of values at each step, and of memory, between real and synthetic series."""

from dataclasses import replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from understudy.evaluation.measures import Aspect, RankedPools, autocorrelations, mean_figure, of_sums
from understudy.evaluation.metric import Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison
from understudy_bench.metrics.distances import bootstrap

MATCHED = 128  # series of each side for the distance of whole steps, as the code released with VFLGAN-TS draws
_NOTHING = "nothing was observed; bring series with fewer gaps."


def step_distance(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """AWD (Eq. 23): the 1-Wasserstein distance of one channel at one step, mean over both, in the real range.

    A step that only real series observe counts as one whole range.
    """
    real, candidate = _scaled(comparison)
    pools = RankedPools.of(*(values.reshape(len(values), 1, -1) for values in (real, candidate)))

    def by_channel(real_weights: np.ndarray, candidate_weights: np.ndarray) -> np.ndarray:
        distances = pools.wasserstein(real_weights, candidate_weights).reshape(real.shape[1:])
        count = np.isfinite(distances).sum(axis=0)
        return np.where(count > 0, np.nansum(distances, axis=0) / np.maximum(count, 1), np.nan)  # Eq. 23

    aspect = Aspect(comparison.numeric_names, by_channel)
    return mean_figure([aspect], comparison, effort, seed, otherwise=_NOTHING)


def joint_step_distance(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """The distance of all channels at a step together, mean over steps, as the released code does for EEG."""
    _scaled(comparison)  # refuses what has no numbers
    values = [comparison.numeric_unit(panel) for panel in (comparison.real, comparison.candidate)]
    size, rng = min(MATCHED, *map(len, values)), np.random.default_rng(seed)

    def matched(*drawn: np.ndarray) -> float:
        rows = [rng.permutation(part)[:size] for part in drawn]
        return wasserstein_nd(*(series[some] for series, some in zip(values, rows, strict=True)))

    return Measured(
        value=matched(*(np.arange(len(series)) for series in values)),
        replicates=bootstrap(matched, comparison.real, comparison.candidate, effort.replicates, seed),
        notes=(f"Exact matching of {size} series of each side, drawn at random; gaps closed by straight lines.",),
    )


def wasserstein_nd(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the mean over steps of the 1-Wasserstein distance of equally many points [series, step, channel]."""
    distances = []
    for step in range(first.shape[1]):
        costs = cdist(first[:, step], second[:, step])
        distances.append(costs[linear_sum_assignment(costs)].mean())
    return float(np.mean(distances))


def memory_difference(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """AADA (Eq. 26): differences of mean autocorrelations, summed over channels and lags up to half the steps.

    Its name says average where the equation sums: the mean is among the parts.
    """
    lags = comparison.real.num_steps // 2
    if lags < 2:
        raise Undefined("series are too short; it needs at least 4 steps.")
    _scaled(comparison)
    found = (autocorrelations(comparison.numeric(p), lags) for p in (comparison.real, comparison.candidate))
    real, candidate = (np.stack([np.nan_to_num(part), ~np.isnan(part)], axis=1) for part in found)
    aspect = of_sums(comparison.numeric_names, real, candidate, _memory_gap)
    mean = mean_figure([aspect], comparison, effort, seed, otherwise=_NOTHING)
    return summed(mean, _num_observed(comparison), lags)


def summed(mean: Measured, number: int, terms: int = 1) -> Measured:
    """Returns the sum of `number` figures from their mean; each of them sums `terms` terms itself."""
    parts = {"mean over all": mean.value / terms, **mean.parts}
    replicates = None if mean.replicates is None else number * mean.replicates
    return replace(mean, value=number * mean.value, replicates=replicates, parts=parts)


def _num_observed(comparison: Comparison) -> int:
    """Returns how many numeric channels the real series have two steps of, one behind the other."""
    observed = ~np.isnan(comparison.numeric(comparison.real))
    return int((observed[:, 1:] & observed[:, :-1]).any(axis=(0, 1)).sum())


def _memory_gap(real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Returns one sum over lags per channel from totals [sum or count, lag, channel]; 1 where only real has pairs."""
    means = [np.divide(total, count, out=np.zeros_like(total), where=count > 0) for total, count in (real, candidate)]
    gaps = np.where(candidate[1] > 0, np.abs(means[0] - means[1]), 1.0)  # Eq. 26
    return np.where((real[1] > 0).any(axis=0), np.where(real[1] > 0, gaps, 0).sum(axis=0), np.nan)


def _scaled(comparison: Comparison) -> tuple[np.ndarray, np.ndarray]:
    """Returns numeric channels in the real range, with gaps."""
    if not comparison.numeric_names:
        raise Undefined("no channel holds numbers; it needs a continuous or an integer one.")
    scale, places = comparison.scale, comparison.scale.numeric
    real, candidate = (
        (comparison.numeric(panel) - scale.low[places]) / scale.width[places]
        for panel in (comparison.real, comparison.candidate)
    )
    return real, candidate


METRICS = (
    Metric(
        name="vertical.awd",
        title="Values at each step: how far mass has to move, in real ranges",
        direction="lower",
        range=(0.0, float("inf")),
        reference="VFLGAN-TS, Eq. 23, AWD",
        measure=step_distance,
    ),
    Metric(
        name="vertical.awd_nd",
        title="All channels at each step together: how far mass has to move",
        direction="lower",
        range=(0.0, float("inf")),
        reference="code released with VFLGAN-TS, for EEG",
        measure=joint_step_distance,
    ),
    Metric(
        name="vertical.aada",
        title="Mean autocorrelations: sum of differences over channels and lags",
        direction="lower",
        range=(0.0, float("inf")),
        reference="VFLGAN-TS, Eq. 26, AADA",
        measure=memory_difference,
    ),
)
