"""How values hang together along time and across channels."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from understudy.data import Panel
from understudy.data.timegrid import hours_of_day, parse_frequency, season_steps
from understudy.evaluate.measures import (
    Aspect,
    around_mean,
    mean_figure,
    mean_of,
    of_sums,
    ratio,
    spectra,
    total_variation,
)
from understudy.evaluate.metric import ABOVE, Effort, Measured, Metric, Undefined
from understudy.evaluate.panels import Comparison

_NUM_LAGS = 12
_CROSS_LAGS = (1, 4)
_HOUR = 3_600_000_000  # microseconds
_TINY = 1e-12
_NO_NUMBERS = "no channel holds numbers."


def lag_sums(values: np.ndarray, lags: Sequence[int]) -> np.ndarray:
    """Returns [series, 2, lag, channel]: sums of products and counts of pairs, lag 0 first."""
    centred, observed = around_mean(values)
    sums = np.empty((len(values), 2, len(lags) + 1, values.shape[2]))
    for place, lag in enumerate((0, *lags)):
        end = values.shape[1] - lag
        sums[:, 0, place] = np.einsum("ntc,ntc->nc", centred[:, :end], centred[:, lag:])
        sums[:, 1, place] = (observed[:, :end] & observed[:, lag:]).sum(axis=1)
    return sums


def correlations_of(totals: np.ndarray) -> np.ndarray:
    moments = ratio(*totals)
    return np.asarray(moments[1:] / np.maximum(moments[0], _TINY))  # nothing moves: no correlation


def correlation_gap(real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    return _mean_known(np.abs(correlations_of(real) - correlations_of(candidate)))


def step_sums(values: np.ndarray) -> np.ndarray:
    """Returns [series, 2, step, channel]: values and whether they were observed."""
    observed = ~np.isnan(values)
    return np.stack([np.where(observed, values, 0), observed], axis=1).astype(np.float32)


def profile_gap(real: np.ndarray, candidate: np.ndarray, spread: np.ndarray) -> np.ndarray:
    return _mean_known(np.abs(ratio(*real) - ratio(*candidate)) / spread)


def channel_spread(values: np.ndarray) -> np.ndarray:
    """Returns the standard deviation of each channel, 1 for one that never moves."""
    centred, observed = around_mean(values.reshape(1, len(values) * values.shape[1], values.shape[2]))
    spread = np.sqrt((centred**2).sum(axis=(0, 1)) / np.maximum(observed.sum(axis=(0, 1)), 1))
    return np.where(spread > _TINY, spread, 1.0)


def _mean_known(gaps: np.ndarray) -> np.ndarray:
    """Returns the mean over the first axis of what is known; NaN where nothing is."""
    known = np.isfinite(gaps)
    return ratio(np.where(known, gaps, 0).sum(axis=0), known.sum(axis=0))


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


def _profile(comparison: Comparison) -> Iterator[Aspect]:
    both, names = _both(comparison), comparison.numeric_names
    gap = partial(profile_gap, spread=channel_spread(both[0]))
    sums = [step_sums(values) for values in both]
    yield of_sums(names, sums[0], sums[1], gap)
    hours = _hours(comparison.real)
    if hours is not None:
        each = np.unique(hours)
        hourly = [np.stack([one[:, :, hours == hour].sum(axis=2) for hour in each], axis=2) for one in sums]
        yield of_sums([f"{name}: by hour" for name in names], hourly[0], hourly[1], gap)


def _hours(panel: Panel) -> np.ndarray | None:
    """Returns the hour of each step where steps have one and the hours come round more than once."""
    time = panel.schema.time
    frequency = parse_frequency(time.frequency)
    daily = time.align == "calendar" and not frequency.months and frequency.microseconds <= _HOUR
    hours = hours_of_day(time, panel.num_steps)
    return hours if daily and panel.num_steps > len(np.unique(hours)) > 1 else None


def _cross(lags: Sequence[int], comparison: Comparison) -> Iterator[Aspect]:
    """Yields correlations between different channels, lag by lag."""
    names, both = comparison.numeric_names, _both(comparison)
    if len(names) < 2:
        raise Undefined("at least two channels of numbers are needed.")
    middle = np.nan_to_num(ratio(*step_sums(both[0]).sum(axis=(0, 2), dtype=np.float64)))
    scaled = [(values - middle) / channel_spread(both[0]) for values in both]
    for lag in lags:
        if lag <= comparison.real.num_steps // 2:
            chosen = np.triu(np.ones((len(names),) * 2, bool), 1) if lag == 0 else ~np.eye(len(names), dtype=bool)
            pairs = [f"{names[i]} – {names[j]}{f' {lag} later' if lag else ''}" for i, j in np.argwhere(chosen)]
            real, candidate = (_pair_sums(values, lag, chosen) for values in scaled)
            yield of_sums(pairs, real, candidate, lambda a, b: np.abs(_pearson(a) - _pearson(b)))


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
    xy, x, y, xx, yy = ratio(totals[:5], totals[5])
    variances = np.maximum(xx - x**2, 0) * np.maximum(yy - y**2, 0)
    moves = variances > 1e-9  # of standardised channels, in float32
    return np.where(np.isnan(xy), np.nan, np.where(moves, (xy - x * y) / np.sqrt(np.where(moves, variances, 1)), 0.0))


def _spectrum(comparison: Comparison) -> Iterator[Aspect]:
    if comparison.real.num_steps < 4:
        raise Undefined("series of at least 4 steps are needed.")
    real, candidate = (spectra(comparison.numeric_unit(panel)) for panel in (comparison.real, comparison.candidate))
    yield of_sums(comparison.numeric_names, real, candidate, _spectrum_gap)


def _spectrum_gap(real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Returns total variation per channel: 0 where nothing moves on both sides, 1 where on one side only."""
    still = [totals.sum(axis=0) == 0 for totals in (real, candidate)]
    gap = total_variation(real, candidate)
    return np.where(still[0] & still[1], 0.0, np.where(still[0] | still[1], 1.0, gap))


_DIFFERENCE = "mean absolute difference of pooled correlations"
_NEVER_MEET = "no two channels were observed that far apart."
_correlation = partial(Metric, reference=_DIFFERENCE, range=(0.0, 2.0))
METRICS = (
    Metric(
        "general.profile", "Mean course by step and by hour", "mean difference in standard deviations",
        mean_of(_profile, _NO_NUMBERS), range=ABOVE,
    ),
    _correlation("general.autocorrelation", "Autocorrelation", measure=_autocorrelation),
    _correlation(
        "general.cross_correlation", "Correlation between channels",
        measure=mean_of(partial(_cross, (0,)), _NEVER_MEET),
    ),
    _correlation(
        "general.lagged_correlation", "Correlation between channels some steps apart",
        measure=mean_of(partial(_cross, _CROSS_LAGS), _NEVER_MEET),
    ),
    Metric(
        "general.spectrum", "Power spectrum", "total variation of mean normalised spectra",
        mean_of(_spectrum, _NO_NUMBERS),
    ),
)  # fmt: skip
