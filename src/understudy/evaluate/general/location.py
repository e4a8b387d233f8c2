"""Means and tails of each channel: the worst channel counts, and many random splits make the interval sharp."""

import numpy as np

from understudy.evaluate.comparison import Comparison
from understudy.evaluate.general.marginals import NO_NUMBERS
from understudy.evaluate.metric import Effort, Measured, Metric
from understudy.evaluate.weighted import Aspect, mean_figure, of_sums

TAIL = 0.01
_SPLITS = 40
_NEAR_MEAN = 0.1  # mean absolute deviations
_NEAR_TAILS = 0.5  # of a doubling: shares that differ by a factor of 1.4
_SMOOTHING = TAIL / 10  # of all values: shares that small can't be told apart


def _mean(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    aspects = []
    for name, (real, candidate) in _channels(comparison):
        seen = real[~np.isnan(real)].astype(np.float64)
        deviation = float(np.abs(seen - seen.mean()).mean()) if len(seen) else 0.0
        aspects.append(_mean_aspect(name, real, candidate, deviation or 1.0))
    return mean_figure(aspects, comparison, effort, seed, otherwise=NO_NUMBERS, summary=np.nanmax)


def _mean_aspect(name: str, real: np.ndarray, candidate: np.ndarray, deviation: float) -> Aspect:
    def gap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        means = [total[0] / total[1] if total[1] > 0 else np.nan for total in (first, second)]
        return np.atleast_1d(np.abs(means[0] - means[1]) / deviation)

    return of_sums([name], _sums(real), _sums(candidate), gap)


def _sums(values: np.ndarray) -> np.ndarray:
    """Returns [series, 2]: the sum of what was observed, and how much was."""
    seen = ~np.isnan(values)
    return np.stack([np.where(seen, values, 0).sum(axis=1, dtype=np.float64), seen.sum(axis=1)], axis=1)


def _tails(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    aspects = []
    for name, (real, candidate) in _channels(comparison):
        seen = real[~np.isnan(real)]
        if len(seen):
            ends = np.quantile(seen, (TAIL, 1 - TAIL)).astype(seen.dtype)
            names = [f"{name}: low", f"{name}: high"]
            aspects.append(of_sums(names, _beyond(real, *ends), _beyond(candidate, *ends), _tail_gap))
    return mean_figure(aspects, comparison, effort, seed, otherwise=NO_NUMBERS, summary=np.nanmax)


def _beyond(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Returns [series, 3]: how many values lie at or below `low`, at or above `high`, and how many there are."""
    return np.stack([(values <= low).sum(1), (values >= high).sum(1), (~np.isnan(values)).sum(1)], 1).astype(float)


def _tail_gap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns by how many doublings the shares of values in the low and in the high tail differ."""
    shares = [total[:2] / total[2] if total[2] > 0 else np.full(2, np.nan) for total in (first, second)]
    return np.asarray(np.abs(np.log2((shares[1] + _SMOOTHING) / (shares[0] + _SMOOTHING))))


def _channels(comparison: Comparison) -> list[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    both = [comparison.numeric(panel) for panel in (comparison.real, comparison.candidate)]
    return [(name, (both[0][:, :, place], both[1][:, :, place])) for place, name in enumerate(comparison.numeric_names)]


METRICS = (
    Metric(
        name="general.mean",
        title="Mean of the worst channel: distance in mean absolute deviations",
        direction="lower",
        range=(0.0, float("inf")),
        reference="|mean of candidate − mean of real| / mean |real − mean of real|, largest over channels",
        measure=_mean,
        splits=_SPLITS,
        near=_NEAR_MEAN,
    ),
    Metric(
        name="general.tails",
        title="Tails of the worst channel: doublings of the share beyond the real 1 % and 99 %",
        direction="lower",
        range=(0.0, float("inf")),
        reference="|log2| of the ratio of shares beyond the real quantiles, largest over channels and sides",
        measure=_tails,
        splits=_SPLITS,
        near=_NEAR_TAILS,
    ),
)
