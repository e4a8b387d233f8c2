"""Distances between panels and between frequency tables, as several papers' tables report them."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.spatial.distance import jensenshannon
from scipy.stats import ks_2samp

from understudy.data import Panel
from understudy.evaluation.general.values import (
    channel_spread,
    correlation_gap,
    lag_sums,
    missing_shares,
    profile_gap,
    series_means,
    step_sums,
)
from understudy.evaluation.measures import drawn_units, shares, total_variation

_FLOOR = 1e-10  # added to frequencies before a logarithm is taken
Pair = tuple[np.ndarray, np.ndarray]


def channel_distances(real: Panel, candidate: Panel) -> dict[str, float]:
    """Returns the Kolmogorov–Smirnov distance of observed values, for each channel."""
    return {
        channel.name: _distance(*_seen(real.values[:, :, place], candidate.values[:, :, place]))
        for place, channel in enumerate(real.schema.channels)
    }


def level_distances(real: Panel, candidate: Panel) -> dict[str, float]:
    """Returns the Kolmogorov–Smirnov distance of the series' means, for each channel."""
    return {
        channel.name: _distance(*_seen(*(series_means(panel.values[:, :, place]) for panel in (real, candidate))))
        for place, channel in enumerate(real.schema.channels)
    }


def label_distance(real: Panel, candidate: Panel) -> float:
    """Returns the total variation distance between the frequencies of labels; 0 without a label."""
    if real.schema.label_column is None or real.label is None or candidate.label is None:
        return 0.0
    kinds = len(real.schema.label_column.categories) + 1
    return float(total_variation(*(np.bincount(label + 1, minlength=kinds) for label in (real.label, candidate.label))))


def gap_distance(real: Panel, candidate: Panel) -> float:
    """Returns the Kolmogorov–Smirnov distance of the share of missing values per series."""
    return _distance(*(missing_shares(panel).mean(axis=1) for panel in (real, candidate)))


def length_distance(real: Panel, candidate: Panel) -> float:
    """Returns the Kolmogorov–Smirnov distance of the lengths."""
    return _distance(real.lengths, candidate.lengths)


def autocorrelation_error(real: Panel, candidate: Panel, lags: Sequence[int]) -> float:
    """Returns the mean absolute difference of pooled autocorrelations over channels and lags."""
    totals = (lag_sums(panel.values, lags).sum(axis=0) for panel in (real, candidate))
    return float(np.nanmean(correlation_gap(*totals)))


def profile_error(real: Panel, candidate: Panel) -> float:
    """Returns the mean absolute difference of the mean at each step, in standard deviations of the channel."""
    first, second = (step_sums(panel.values).sum(axis=0, dtype=np.float64) for panel in (real, candidate))
    return float(np.nanmean(profile_gap(first, second, channel_spread(real.values))))


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(ks_2samp(first, second).statistic) if len(first) and len(second) else 1.0


def _seen(real: np.ndarray, candidate: np.ndarray) -> Pair:
    return real[~np.isnan(real)], candidate[~np.isnan(candidate)]


def even_borders(first: np.ndarray, second: np.ndarray, cells: int) -> np.ndarray:
    """Returns the borders of equally wide cells from the least to the greatest value of both pools."""
    pool = np.concatenate([first[~np.isnan(first)], second[~np.isnan(second)]])
    low, high = (float(pool.min()), float(pool.max())) if len(pool) else (0.0, 1.0)
    return np.linspace(low, high if high > low else low + 1.0, cells + 1)


def quantile_cells(values: np.ndarray, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns (borders, means) of cells that hold about equally many values; fewer where values are often equal."""
    seen = values[~np.isnan(values)].astype(np.float64)
    if not len(seen):
        return np.array([0.0, 1.0]), np.zeros(1)
    borders = np.unique(np.quantile(seen, np.linspace(0, 1, cells + 1)))
    borders = borders if len(borders) > 1 else np.array([borders[0], borders[0] + 1])
    place = np.clip(np.searchsorted(borders, seen, side="right") - 1, 0, len(borders) - 2)
    count, total = (np.bincount(place, weights=weights, minlength=len(borders) - 1) for weights in (None, seen))
    return borders, np.where(count > 0, total / np.maximum(count, 1), borders[:-1])


def kullback_leibler(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the divergence KL(first‖second) in nats, every share raised by 1e-10; NaN where a table is empty."""
    p, q = (shares(shares(table) + _FLOOR) for table in (first, second))
    return float(np.sum(p * np.log(p / q)))


def jensen_shannon(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the distance √JSD in base 2, so that it lies in [0, 1]; NaN where a table is empty."""
    return float(jensenshannon(first, second, base=2)) if first.sum() and second.sum() else float("nan")


def bootstrap_mean(contributions: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """Returns replicates of a mean of one contribution per series."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(len(contributions), np.full(len(contributions), 1 / len(contributions)), replicates)
    return np.asarray(counts @ contributions / len(contributions))


def bootstrap(
    statistic: Callable[[np.ndarray, np.ndarray], float], real: Panel, candidate: Panel, replicates: int, seed: int
) -> np.ndarray:
    """Returns the statistic of (rows of real, rows of candidate), units drawn again with replacement."""
    drawn = (drawn_units(panel.unit, replicates, [seed, side]) for side, panel in enumerate((real, candidate)))
    rows = ([np.repeat(np.arange(len(w)), w.astype(int)) for w in weights] for weights in zip(*drawn, strict=True))
    return np.array([statistic(*both) for both in rows])
