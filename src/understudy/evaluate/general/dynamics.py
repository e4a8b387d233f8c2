"""How values hang together along time and across channels."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from understudy.data import Panel
from understudy.data.timegrid import hours_of_day, parse_frequency, season_steps
from understudy.evaluate.measures import spectra, total_variation
from understudy.evaluate.metric import ABOVE, Effort, Measured, Undefined, general
from understudy.evaluate.panels import Comparison
from understudy.evaluate.weighted import mean_figure, of_sums

_NUM_LAGS = 12
_CROSS_LAGS = (1, 4)
_HOUR = 3_600_000_000  # microseconds
_TINY = 1e-12
_NO_NUMBERS = "no channel holds numbers."


def lag_sums(values: np.ndarray, lags: Sequence[int]) -> np.ndarray:
    """Returns [series, 2, lag, channel]: sums of products and counts of pairs, lag 0 first."""
    observed = ~np.isnan(values)
    count = np.maximum(observed.sum(axis=1, keepdims=True), 1)
    mean = np.where(observed, values, 0).sum(axis=1, keepdims=True, dtype=np.float64) / count
    centred = np.where(observed, values - mean, 0.0)
    sums = np.empty((len(values), 2, len(lags) + 1, values.shape[2]))
    for place, lag in enumerate((0, *lags)):
        end = values.shape[1] - lag
        sums[:, 0, place] = np.einsum("ntc,ntc->nc", centred[:, :end], centred[:, lag:])
        sums[:, 1, place] = (observed[:, :end] & observed[:, lag:]).sum(axis=1)
    return sums


def correlations_of(totals: np.ndarray) -> np.ndarray:
    moments = totals[0] / np.where(totals[1] > 0, totals[1], np.nan)
    return np.asarray(moments[1:] / np.maximum(moments[0], _TINY))  # nothing moves: no correlation


def correlation_gap(real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    return _mean_known(np.abs(correlations_of(real) - correlations_of(candidate)))


def step_sums(values: np.ndarray) -> np.ndarray:
    """Returns [series, 2, step, channel]: values and whether they were observed."""
    observed = ~np.isnan(values)
    return np.stack([np.where(observed, values, 0), observed], axis=1).astype(np.float32)


def profile_gap(real: np.ndarray, candidate: np.ndarray, spread: np.ndarray) -> np.ndarray:
    means = [totals[0] / np.where(totals[1] > 0, totals[1], np.nan) for totals in (real, candidate)]
    return _mean_known(np.abs(means[0] - means[1]) / spread)


def channel_spread(values: np.ndarray) -> np.ndarray:
    """Returns the standard deviation of each channel, 1 for one that never moves."""
    observed = ~np.isnan(values)
    count = np.maximum(observed.sum(axis=(0, 1)), 1)
    mean = np.where(observed, values, 0).sum(axis=(0, 1), dtype=np.float64) / count
    spread = np.sqrt((np.where(observed, values - mean, 0.0) ** 2).sum(axis=(0, 1)) / count)
    return np.where(spread > _TINY, spread, 1.0)


def _mean_known(gaps: np.ndarray) -> np.ndarray:
    """Returns the mean over the first axis of what is known; NaN where nothing is."""
    known = np.isfinite(gaps)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, gaps, 0).sum(axis=0) / np.maximum(count, 1), np.nan)


def _both(comparison: Comparison) -> list[np.ndarray]:
    return [comparison.numeric(panel) for panel in (comparison.real, comparison.candidate)]


def _autocorrelation(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    lags = _lags(comparison.real)
    real, candidate = (lag_sums(values, lags) for values in _both(comparison))
    aspect = of_sums(comparison.numeric_names, real, candidate, correlation_gap)
    measured = mean_figure([aspect], comparison, effort, seed, otherwise=_NO_NUMBERS)
    return replace(measured, notes=(f"Lags {', '.join(map(str, lags))}.",))


def _lags(panel: Panel) -> list[int]:
    if panel.num_steps < 4:
        raise Undefined("series of at least 4 steps are needed.")
    lags = set(np.rint(np.geomspace(1, panel.num_steps // 2, _NUM_LAGS)).astype(int).tolist())
    return sorted(lags | ({season} if (season := season_steps(panel.schema.time, panel.num_steps)) else set()))


def _profile(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    both, names = _both(comparison), comparison.numeric_names
    spread = channel_spread(both[0])
    real, candidate = (step_sums(values) for values in both)
    gap = partial(profile_gap, spread=spread)
    aspects = [of_sums(names, real, candidate, gap)]
    hours = _hours(comparison.real)
    if hours is not None:
        real, candidate = (
            np.stack([sums[:, :, hours == hour].sum(axis=2) for hour in np.unique(hours)], axis=2)
            for sums in (real, candidate)
        )
        aspects.append(of_sums([f"{name}: by hour" for name in names], real, candidate, gap))
    return mean_figure(aspects, comparison, effort, seed, otherwise=_NO_NUMBERS)


def _hours(panel: Panel) -> np.ndarray | None:
    """Returns the hour of each step where steps have one and the hours come round more than once."""
    time = panel.schema.time
    frequency = parse_frequency(time.frequency)
    daily = time.align == "calendar" and not frequency.months and frequency.microseconds <= _HOUR
    hours = hours_of_day(time, panel.num_steps)
    return hours if daily and panel.num_steps > len(np.unique(hours)) > 1 else None


def _cross(lags: Sequence[int]) -> Callable[[Comparison, Effort, int], Measured]:
    """Returns the measure of correlations between different channels at some lags."""

    def measure(comparison: Comparison, effort: Effort, seed: int) -> Measured:
        names, both = comparison.numeric_names, _both(comparison)
        if len(names) < 2:
            raise Undefined("at least two channels of numbers are needed.")
        usable = [lag for lag in lags if lag <= comparison.real.num_steps // 2]
        middle, spread = np.nan_to_num(_means(both[0])), channel_spread(both[0])
        scaled = [(values - middle) / spread for values in both]
        aspects = []
        for lag in usable:
            chosen = np.triu(np.ones((len(names),) * 2, bool), 1) if lag == 0 else ~np.eye(len(names), dtype=bool)
            real, candidate = (_pair_sums(values, lag, chosen) for values in scaled)
            pairs = [f"{names[i]} – {names[j]}{f' {lag} later' if lag else ''}" for i, j in np.argwhere(chosen)]
            aspects.append(of_sums(pairs, real, candidate, lambda a, b: np.abs(_pearson(a) - _pearson(b))))
        return mean_figure(aspects, comparison, effort, seed, otherwise="no two channels were observed that far apart.")

    return measure


def _means(values: np.ndarray) -> np.ndarray:
    totals = step_sums(values).sum(axis=(0, 2), dtype=np.float64)
    return np.asarray(totals[0] / np.where(totals[1] > 0, totals[1], np.nan))


def _pair_sums(values: np.ndarray, lag: int, chosen: np.ndarray) -> np.ndarray:
    """Returns [series, 6, pair]: Σxy, Σx, Σy, Σx², Σy² and the number of steps where both were observed."""
    end = values.shape[1] - lag
    seen = (~np.isnan(values)).astype(np.float64)
    filled = np.where(np.isnan(values), 0.0, values)
    x, y, x_seen, y_seen = filled[:, :end], filled[:, lag:], seen[:, :end], seen[:, lag:]
    pairs = [(x, y), (x, y_seen), (x_seen, y), (x**2, y_seen), (x_seen, y**2), (x_seen, y_seen)]
    return np.stack([np.matmul(a.transpose(0, 2, 1), b)[:, chosen] for a, b in pairs], axis=1).astype(np.float32)


def _pearson(totals: np.ndarray) -> np.ndarray:
    """Returns the correlation of each pair; 0 where one of them never moves, NaN where they never meet."""
    xy, x, y, xx, yy = totals[:5] / np.where(totals[5] > 0, totals[5], np.nan)
    variances = np.maximum(xx - x**2, 0) * np.maximum(yy - y**2, 0)
    moves = variances > 1e-9  # of standardised channels, in float32
    return np.where(np.isnan(xy), np.nan, np.where(moves, (xy - x * y) / np.sqrt(np.where(moves, variances, 1)), 0.0))


def _spectrum(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    if comparison.real.num_steps < 4:
        raise Undefined("series of at least 4 steps are needed.")
    real, candidate = (spectra(comparison.numeric_unit(panel)) for panel in (comparison.real, comparison.candidate))
    aspect = of_sums(comparison.numeric_names, real, candidate, _spectrum_gap)
    return mean_figure([aspect], comparison, effort, seed, otherwise=_NO_NUMBERS)


def _spectrum_gap(real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Returns total variation per channel: 0 where nothing moves on both sides, 1 where on one side only."""
    still = [totals.sum(axis=0) == 0 for totals in (real, candidate)]
    gap = total_variation(real, candidate)
    return np.where(still[0] & still[1], 0.0, np.where(still[0] | still[1], 1.0, gap))


_DIFFERENCE = "mean absolute difference of pooled correlations"
_CORRELATION = (0.0, 2.0)
METRICS = (
    general(
        "profile", "Mean course by step and by hour", "mean difference in standard deviations", _profile, range=ABOVE
    ),
    general("autocorrelation", "Autocorrelation", _DIFFERENCE, _autocorrelation, range=_CORRELATION),
    general("cross_correlation", "Correlation between channels", _DIFFERENCE, _cross((0,)), range=_CORRELATION),
    general(
        "lagged_correlation", "Correlation between channels some steps apart", _DIFFERENCE, _cross(_CROSS_LAGS),
        range=_CORRELATION,
    ),
    general("spectrum", "Power spectrum", "total variation of mean normalised spectra", _spectrum),
)  # fmt: skip
