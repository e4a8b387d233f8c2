"""Values: marginals, gaps, grids and constraints, and their dependence along time and across channels."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from understudy.data import Channel, Panel
from understudy.data.channels import num_codes
from understudy.data.constraints import name_of, violations
from understudy.data.timegrid import hours_of_day, parse_frequency, season_steps
from understudy.evaluation.measures import (
    Aspect,
    around_mean,
    cell_counts,
    kolmogorov_smirnov,
    mean_figure,
    mean_of,
    mean_share,
    of_sums,
    ratio,
    run_lengths,
    spectra,
    total_variation,
    wasserstein,
)
from understudy.evaluation.metric import ABOVE, Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison

NO_NUMBERS = "no channel holds numbers that were observed on both sides."
TAIL = 0.01
_SPLITS = 40
_NEAR_MEAN = 0.1  # mean absolute deviations
_NEAR_TAILS = 0.5  # of a doubling: shares that differ by a factor of 1.4
_SMOOTHING = TAIL / 10  # of all values: smaller shares can't be resolved
_NUM_LAGS = 12
_CROSS_LAGS = (1, 4)
_HOUR = 3_600_000_000  # microseconds
_TINY = 1e-12


def series_means(values: np.ndarray) -> np.ndarray:
    """Returns the mean of what was observed of each series, from [series, step]; NaN where nothing was."""
    return ratio(*_sums(values).T)


def missing_shares(panel: Panel) -> np.ndarray:
    """Returns the share of missing steps within each series' length, [series, channel]."""
    return np.asarray(missing(panel).sum(axis=1) / panel.lengths[:, None])


def missing(panel: Panel) -> np.ndarray:
    """Returns where values are missing within each series' length."""
    return np.isnan(panel.values) & _inside(panel)[:, :, None]


def _inside(panel: Panel) -> np.ndarray:
    return np.arange(panel.num_steps) < panel.lengths[:, None]


def _frequencies(name: str, codes: int, real: np.ndarray, candidate: np.ndarray) -> Aspect:
    """Returns the total variation of two pools of codes [series, value] as an aspect."""
    borders = np.arange(codes + 1) - 0.5
    return of_sums([name], cell_counts(real, borders), cell_counts(candidate, borders), total_variation)


def _column(column: Channel, real: np.ndarray, candidate: np.ndarray) -> Aspect:
    """Returns the distance that fits the column's kind; both lie in [0, 1]."""
    codes = num_codes(column)
    if codes is None:
        return kolmogorov_smirnov(column.name, real, candidate)
    return _frequencies(column.name, codes, real, candidate)


def _channels(comparison: Comparison) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yields each channel of numbers: its name, the real values [series, step] and the candidate's."""
    real, candidate = (comparison.numeric(panel) for panel in (comparison.real, comparison.candidate))
    for place, name in enumerate(comparison.numeric_names):
        yield name, real[:, :, place], candidate[:, :, place]


def _levels(comparison: Comparison) -> Iterator[Aspect]:
    for name, *both in _channels(comparison):
        yield kolmogorov_smirnov(name, *(series_means(values)[:, None] for values in both))


def _categories(comparison: Comparison) -> Iterator[Aspect]:
    for place, channel in enumerate(comparison.real.schema.channels):
        if num_codes(channel) is not None:
            yield _column(channel, comparison.real.values[:, :, place], comparison.candidate.values[:, :, place])


def _static(comparison: Comparison) -> Iterator[Aspect]:
    for place, column in enumerate(comparison.real.schema.static):
        if column.name != comparison.real.schema.label:
            yield _column(column, comparison.real.static[:, [place]], comparison.candidate.static[:, [place]])


def _label(comparison: Comparison) -> Iterator[Aspect]:
    column = comparison.real.schema.label_column
    labels = [label for panel in (comparison.real, comparison.candidate) if (label := panel.label) is not None]
    if column is None or len(labels) < 2:
        raise Undefined("the schema declares no label; name a static column as `label`.")
    pools = (np.where(label < 0, np.nan, label)[:, None] for label in labels)
    yield _frequencies(column.name, len(column.categories), *pools)


def _missingness(comparison: Comparison) -> Iterator[Aspect]:
    """How much is missing per series, how often at each step, and in how long runs."""
    panels = comparison.real, comparison.candidate
    shares, all_holes = [missing_shares(panel) for panel in panels], [missing(panel) for panel in panels]
    for place, channel in enumerate(comparison.real.schema.channels):
        holes = [one[:, :, place] for one in all_holes]
        if channel.missing or any(hole.any() for hole in holes):
            yield kolmogorov_smirnov(f"{channel.name}: share", *(share[:, [place]] for share in shares))
            yield kolmogorov_smirnov(f"{channel.name}: runs", *(_runs(hole) for hole in holes))
            rates = [np.stack([h, _inside(p)], 1).astype(np.float32) for h, p in zip(holes, panels, strict=True)]
            yield of_sums([f"{channel.name}: by step"], rates[0], rates[1], _rate_gap)


def _runs(holes: np.ndarray) -> np.ndarray:
    """Returns the length of each run of missing steps at its last step, NaN elsewhere; one 0 for a series without."""
    ends = holes & ~np.pad(holes[:, 1:], ((0, 0), (0, 1)))
    runs = np.where(ends, run_lengths(holes), np.nan)
    runs[~holes.any(axis=1), 0] = 0.0
    return runs


def _rate_gap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns the mean difference of the missing rate over steps, of [missing, within] by step."""
    return np.atleast_1d(np.nanmean(np.abs(ratio(*first) - ratio(*second))))


def _lengths(comparison: Comparison) -> Iterator[Aspect]:
    if not comparison.real.schema.time.variable_length:
        raise Undefined("all series have the declared number of steps.")
    lengths = (panel.lengths[:, None].astype(np.float64) for panel in (comparison.real, comparison.candidate))
    yield kolmogorov_smirnov("length", *lengths)


def _mean(comparison: Comparison) -> Iterator[Aspect]:
    for name, real, candidate in _channels(comparison):
        seen = real[~np.isnan(real)].astype(np.float64)
        deviation = float(np.abs(seen - seen.mean()).mean()) if len(seen) else 0.0

        def gap(first: np.ndarray, second: np.ndarray, deviation: float = deviation or 1.0) -> np.ndarray:
            return np.abs(ratio(*first) - ratio(*second)) / deviation

        yield of_sums([name], _sums(real), _sums(candidate), gap)


def _sums(values: np.ndarray) -> np.ndarray:
    """Returns [series, 2]: the sum of what was observed, and how much was."""
    seen = ~np.isnan(values)
    return np.stack([np.where(seen, values, 0).sum(axis=1, dtype=np.float64), seen.sum(axis=1)], axis=1)


def _tails(comparison: Comparison) -> Iterator[Aspect]:
    for name, real, candidate in _channels(comparison):
        seen = real[~np.isnan(real)]
        if len(seen):
            ends = np.quantile(seen, (TAIL, 1 - TAIL)).astype(seen.dtype)
            names = [f"{name}: low", f"{name}: high"]
            first, second = (_counts(values, values <= ends[0], values >= ends[1]) for values in (real, candidate))
            yield of_sums(names, first, second, _tail_gap)


def _counts(values: np.ndarray, *where: np.ndarray) -> np.ndarray:
    """Returns how many values of each series are there, for each place, and how many were observed."""
    return np.stack([part.sum(axis=1) for part in (*where, ~np.isnan(values))], axis=1).astype(np.float64)


def _tail_gap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns by how many doublings the shares of values in the low and in the high tail differ."""
    real, candidate = (ratio(total[:2], total[2]) for total in (first, second))
    return np.asarray(np.abs(np.log2((candidate + _SMOOTHING) / (real + _SMOOTHING))))


_STEPS = tuple(10.0**power for power in range(3, -5, -1))
_ROUNDING = 2.0**-22  # of a value: what float32 may lose


@lru_cache(maxsize=16)
def resolutions(real: Panel) -> tuple[float | None, ...]:
    """Returns for each channel the coarsest power of ten that divides all its values; None if there is none."""
    return tuple(_resolution(real.values[:, :, place]) for place in range(real.schema.num_channels))


def rounded(panel: Panel, real: Panel) -> Panel:
    """Returns the panel with values on the grid of the real ones."""
    values = np.array(panel.values, dtype=np.float64)
    for place, step in enumerate(resolutions(real)):
        if step is not None:
            values[:, :, place] = np.rint(values[:, :, place] / step) * step
    return panel.with_values(values)


def _resolution(values: np.ndarray) -> float | None:
    seen = np.unique(values[~np.isnan(values)]).astype(np.float64)
    if not seen.any():
        return None
    reach = np.abs(seen).max()
    usable = (step for step in _STEPS if reach * _ROUNDING < 0.02 * step)  # finer grids are lost in float32
    return next((step for step in usable if _on_grid(seen, step).all()), None)


def _on_grid(values: np.ndarray, step: float) -> np.ndarray:
    return np.abs(values - np.rint(values / step) * step) <= _ROUNDING * np.abs(values)


def _resolutions(comparison: Comparison) -> Iterator[Aspect]:
    grids = {place: resolutions(comparison.real)[place] for place in comparison.scale.numeric}
    if not any(grids.values()):
        raise Undefined("real values sit on no grid of powers of ten.")
    for place, step in grids.items():
        if step is not None:
            name = f"{comparison.real.schema.channels[place].name}: multiples of {step:g}"
            pools = (panel.values[:, :, place].astype(np.float64) for panel in (comparison.real, comparison.candidate))
            first, second = (_counts(values, _on_grid(values, step)) for values in pools)
            yield of_sums([name], first, second, lambda _, found: ratio(*found))


def _broken(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    panel, rules = comparison.candidate, comparison.real.schema.constraints
    if not rules:
        raise Undefined("the schema declares no constraints.")
    broken = []
    for place in range(panel.num_series):
        one = slice(place, place + 1)
        context = None if panel.context is None else panel.context[one]
        broken.append(violations(panel.values[one], panel.schema, context=context))
    share = np.array([bool(names) for names in broken], dtype=float)
    parts = {rule: float(np.mean([rule in names for names in broken])) for rule in map(name_of, rules)}
    return mean_share(share, panel.unit, effort, seed, parts=parts)


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
    """Returns autocorrelations [lag, channel] from `lag_sums` over series; 0 where nothing moves."""
    moments = ratio(*totals)
    return np.asarray(moments[1:] / np.maximum(moments[0], _TINY))


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
    measured = mean_figure([aspect], comparison, effort, seed, otherwise=NO_NUMBERS)
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


_KS = "two-sample Kolmogorov–Smirnov statistic"
_TV = "total variation distance of frequencies"
_DIFFERENCE = "mean absolute difference of pooled correlations"
_NEVER_MEET = "no two channels were observed that far apart."
_worst_channel = partial(Metric, range=ABOVE, splits=_SPLITS, seconds=0.3)
_correlation = partial(Metric, reference=_DIFFERENCE, range=(0.0, 2.0))
METRICS = (
    _worst_channel(
        "general.mean", "Marginal mean, worst channel",
        "difference of means in mean absolute deviations of the real values, largest over channels",
        mean_of(_mean, NO_NUMBERS, summary=np.nanmax), near=_NEAR_MEAN,
    ),
    _worst_channel(
        "general.tails", "Marginal tails, worst channel",
        "|log2| of the ratio of shares beyond the real 1 % and 99 % quantiles, largest over channels and sides",
        mean_of(_tails, NO_NUMBERS, summary=np.nanmax), near=_NEAR_TAILS,
    ),
    Metric(
        "general.values_ks", "Marginal KS", f"{_KS} of all values, mean over channels",
        mean_of(lambda comparison: (kolmogorov_smirnov(*one) for one in _channels(comparison)), NO_NUMBERS),
    ),
    Metric(
        "general.values_wasserstein", "Marginal Wasserstein distance",
        "1-Wasserstein distance of all values in real standard deviations, mean over channels",
        mean_of(lambda comparison: (wasserstein(*one) for one in _channels(comparison)), NO_NUMBERS), range=ABOVE,
    ),
    Metric("general.levels_ks", "KS of the series' means", f"{_KS}, mean over channels", mean_of(_levels, NO_NUMBERS)),
    Metric(
        "general.categories", "Categorical channels: total variation", _TV,
        mean_of(_categories, "no channel holds categories."),
    ),
    Metric(
        "general.static", "Static columns: marginal KS or total variation", f"{_KS}; {_TV} for categories",
        mean_of(_static, "the schema declares no static columns but a label."),
    ),
    Metric("general.label", "Label distribution: total variation", _TV, mean_of(_label, "no series has a label.")),
    Metric(
        "general.missingness", "Missingness: share, run lengths and rate by step",
        f"{_KS} of shares and of run lengths; mean difference of rates by step",
        mean_of(_missingness, "nothing is missing, and nothing may be."),
    ),
    Metric("general.lengths", "KS of the series' lengths", _KS, mean_of(_lengths, "there are no series.")),
    Metric(
        "general.resolution", "Share of values on the measurement grid",
        "share of values that are multiples of the coarsest power of ten of which all real values are",
        mean_of(_resolutions, "the candidate has no values in these channels."), direction="higher",
    ),
    Metric(
        "general.constraints", "Constraint violations",
        "share of series with at least one violated constraint of the schema", _broken,
    ),
    Metric(
        "general.profile", "Mean profile by step and by hour of day",
        "mean difference of the mean course, in real standard deviations", mean_of(_profile, NO_NUMBERS), range=ABOVE,
    ),
    _correlation("general.autocorrelation", "Autocorrelation error", measure=_autocorrelation),
    _correlation(
        "general.cross_correlation", "Cross-correlation error", measure=mean_of(partial(_cross, (0,)), _NEVER_MEET)
    ),
    _correlation(
        "general.lagged_correlation", "Lagged cross-correlation error",
        measure=mean_of(partial(_cross, _CROSS_LAGS), _NEVER_MEET),
    ),
    Metric(
        "general.spectrum", "Power spectral density: total variation", "total variation of mean normalised spectra",
        mean_of(_spectrum, NO_NUMBERS),
    ),
)  # fmt: skip
