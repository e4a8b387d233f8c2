"""How far synthetic series are from real ones, one simple aspect at a time. Output is internal: it reads real data."""

import numpy as np
from scipy.stats import ks_2samp

from understudy.data import Panel


def channel_distances(real: Panel, synthetic: Panel) -> dict[str, float]:
    """Returns the Kolmogorov–Smirnov distance of observed values, for each channel."""
    distances = {}
    for place, channel in enumerate(real.schema.channels):
        pools = (panel.values[:, :, place].ravel() for panel in (real, synthetic))
        first, second = (pool[~np.isnan(pool)] for pool in pools)
        distances[channel.name] = _distance(first, second)
    return distances


def level_distances(real: Panel, synthetic: Panel) -> dict[str, float]:
    """Returns the Kolmogorov–Smirnov distance of the series' means, for each channel."""
    distances = {}
    for place, channel in enumerate(real.schema.channels):
        first, second = (_series_means(panel.values[:, :, place]) for panel in (real, synthetic))
        distances[channel.name] = _distance(first, second)
    return distances


def label_distance(real: Panel, synthetic: Panel) -> float:
    """Returns the total variation distance between the frequencies of labels."""
    column = real.schema.label_column
    if column is None or real.label is None or synthetic.label is None:
        return 0.0
    kinds = len(column.categories) + 1
    first, second = (np.bincount(label + 1, minlength=kinds) / len(label) for label in (real.label, synthetic.label))
    return float(np.abs(first - second).sum() / 2)


def gap_distance(real: Panel, synthetic: Panel) -> float:
    """Returns the Kolmogorov–Smirnov distance of the share of missing steps per series."""
    first, second = (_gap_shares(panel) for panel in (real, synthetic))
    return _distance(first, second)


def length_distance(real: Panel, synthetic: Panel) -> float:
    """Returns the Kolmogorov–Smirnov distance of the lengths."""
    return _distance(real.lengths, synthetic.lengths)


def autocorrelation_error(real: Panel, synthetic: Panel, lags: tuple[int, ...]) -> float:
    """Returns the mean absolute difference of pooled autocorrelations over channels and lags."""
    first, second = (_autocorrelations(panel.values, lags) for panel in (real, synthetic))
    return float(np.nanmean(np.abs(first - second)))


def profile_error(real: Panel, synthetic: Panel) -> float:
    """Returns the mean absolute difference of the mean at each step, in standard deviations of the channel."""
    first, second = (np.nanmean(panel.values, axis=0, dtype=np.float64) for panel in (real, synthetic))
    spread = np.nanstd(real.values, axis=(0, 1), dtype=np.float64)
    return float(np.nanmean(np.abs(first - second) / np.maximum(spread, 1e-12)))


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(ks_2samp(first, second).statistic) if len(first) and len(second) else 1.0


def _series_means(values: np.ndarray) -> np.ndarray:
    observed = ~np.isnan(values)
    count = observed.sum(1)
    total = np.where(observed, values, 0).sum(1, dtype=np.float64)
    return (total / np.maximum(count, 1))[count > 0]


def _gap_shares(panel: Panel) -> np.ndarray:
    inside = np.arange(panel.num_steps) < panel.lengths[:, None]
    missing = np.isnan(panel.values) & inside[:, :, None]
    return missing.sum(axis=(1, 2)) / (panel.lengths * panel.schema.num_channels)


def _autocorrelations(values: np.ndarray, lags: tuple[int, ...]) -> np.ndarray:
    """Returns [lag, channel], each series around its own mean, pairs with a missing end left out."""
    with np.errstate(invalid="ignore"):
        centred = values - np.nanmean(values, axis=1, keepdims=True)
    size = np.nanmean(centred**2, axis=(0, 1))
    products = [np.nanmean(centred[:, :-lag] * centred[:, lag:], axis=(0, 1)) for lag in lags]
    return np.stack(products) / np.maximum(size, 1e-12)
