"""Values one at a time: distributions, means and tails, categories, gaps and lengths."""

from collections.abc import Callable

import numpy as np

from understudy.data import Channel, Panel
from understudy.data.channels import num_codes
from understudy.evaluate.measures import cell_counts, total_variation
from understudy.evaluate.metric import ABOVE, Effort, Measured, Undefined, general
from understudy.evaluate.panels import Comparison
from understudy.evaluate.weighted import Aspect, kolmogorov_smirnov, mean_figure, of_sums, wasserstein

NO_NUMBERS = "no channel holds numbers that were observed on both sides."


def series_means(values: np.ndarray) -> np.ndarray:
    """Returns the mean of what was observed of each series, from [series, step]; NaN where nothing was."""
    observed = ~np.isnan(values)
    count = observed.sum(axis=1)
    total = np.where(observed, values, 0).sum(axis=1, dtype=np.float64)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def missing_shares(panel: Panel) -> np.ndarray:
    """Returns the share of missing steps within each series' length, [series, channel]."""
    return np.asarray(missing(panel).sum(axis=1) / panel.lengths[:, None])


def missing(panel: Panel) -> np.ndarray:
    """Returns where values are missing within each series' length."""
    inside = np.arange(panel.num_steps) < panel.lengths[:, None]
    return np.isnan(panel.values) & inside[:, :, None]


def frequency_aspect(name: str, codes: int, real: np.ndarray, candidate: np.ndarray) -> Aspect:
    """Returns the total variation of two pools of codes [series, value] as an aspect."""
    borders = np.arange(codes + 1) - 0.5
    return of_sums([name], cell_counts(real, borders), cell_counts(candidate, borders), total_variation)


def column_aspect(column: Channel, real: np.ndarray, candidate: np.ndarray) -> Aspect:
    """Returns the distance that fits the column's kind; both lie in [0, 1]."""
    codes = num_codes(column)
    if codes is None:
        return kolmogorov_smirnov(column.name, real, candidate)
    return frequency_aspect(column.name, codes, real, candidate)


def _of_numbers(
    aspect: Callable[[str, np.ndarray, np.ndarray], Aspect], view: Callable[[np.ndarray], np.ndarray]
) -> Callable[[Comparison, Effort, int], Measured]:
    """Returns the measure of one aspect of every numeric channel; `view` turns [series, step] into the pool."""

    def measure(comparison: Comparison, effort: Effort, seed: int) -> Measured:
        both = [comparison.numeric(panel) for panel in (comparison.real, comparison.candidate)]
        aspects = [
            aspect(name, *(view(values[:, :, place]) for values in both))
            for place, name in enumerate(comparison.numeric_names)
        ]
        return mean_figure(aspects, comparison, effort, seed, otherwise=NO_NUMBERS)

    return measure


def _categories(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    aspects = [
        column_aspect(channel, comparison.real.values[:, :, place], comparison.candidate.values[:, :, place])
        for place, channel in enumerate(comparison.real.schema.channels)
        if num_codes(channel) is not None
    ]
    return mean_figure(aspects, comparison, effort, seed, otherwise="no channel holds categories.")


def _static(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    schema = comparison.real.schema
    aspects = [
        column_aspect(column, comparison.real.static[:, [place]], comparison.candidate.static[:, [place]])
        for place, column in enumerate(schema.static)
        if column.name != schema.label
    ]
    return mean_figure(
        aspects, comparison, effort, seed, otherwise="the schema declares no static columns but a label."
    )


def _label(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    column = comparison.real.schema.label_column
    if column is None or comparison.real.label is None or comparison.candidate.label is None:
        raise Undefined("the schema declares no label; name a static column as `label`.")
    pools = (
        np.where(label < 0, np.nan, label)[:, None] for label in (comparison.real.label, comparison.candidate.label)
    )
    aspect = frequency_aspect(column.name, len(column.categories), *pools)
    return mean_figure([aspect], comparison, effort, seed, otherwise="no series has a label.")


def _missingness(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """How much is missing per series, how often at each step, and in how long runs."""
    holes = [missing(panel) for panel in (comparison.real, comparison.candidate)]
    shares = [missing_shares(panel) for panel in (comparison.real, comparison.candidate)]
    steps = np.arange(comparison.real.num_steps)
    inside = [(steps < panel.lengths[:, None]) for panel in (comparison.real, comparison.candidate)]
    aspects = []
    for place, channel in enumerate(comparison.real.schema.channels):
        if not (channel.missing or any(hole[:, :, place].any() for hole in holes)):
            continue
        aspects.append(kolmogorov_smirnov(f"{channel.name}: share", *(share[:, [place]] for share in shares)))
        aspects.append(kolmogorov_smirnov(f"{channel.name}: runs", *(_runs(hole[:, :, place]) for hole in holes)))
        rates = (np.stack([hole[:, :, place], within], 1) for hole, within in zip(holes, inside, strict=True))
        aspects.append(_rate_aspect(f"{channel.name}: by step", *rates))
    return mean_figure(aspects, comparison, effort, seed, otherwise="nothing is missing, and nothing may be.")


def _runs(holes: np.ndarray) -> np.ndarray:
    """Returns the length of each run of missing steps at its last step, NaN elsewhere; one 0 for a series without."""
    length = np.zeros(holes.shape)
    for step in range(holes.shape[1]):
        length[:, step] = np.where(holes[:, step], 1 + (length[:, step - 1] if step else 0), 0)
    ends = holes & ~np.pad(holes[:, 1:], ((0, 0), (0, 1)))
    runs = np.where(ends, length, np.nan)
    runs[~holes.any(axis=1), 0] = 0.0
    return runs


def _rate_aspect(name: str, real: np.ndarray, candidate: np.ndarray) -> Aspect:
    """Returns the mean difference of the missing rate over steps; rows are [missing, within], [series, 2, step]."""

    def figures(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        rates = [np.where(table[1] > 0, table[0] / np.maximum(table[1], 1), np.nan) for table in (first, second)]
        return np.atleast_1d(np.nanmean(np.abs(rates[0] - rates[1])))

    return of_sums([name], real.astype(np.float32), candidate.astype(np.float32), figures)


def _lengths(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    if not comparison.real.schema.time.variable_length:
        raise Undefined("all series have the declared number of steps.")
    lengths = (panel.lengths[:, None].astype(np.float64) for panel in (comparison.real, comparison.candidate))
    aspect = kolmogorov_smirnov("length", *lengths)
    return mean_figure([aspect], comparison, effort, seed, otherwise="there are no series.")


def _as_is(values: np.ndarray) -> np.ndarray:
    return values


def _level(values: np.ndarray) -> np.ndarray:
    return series_means(values)[:, None]


_KS = "two-sample Kolmogorov–Smirnov statistic"


TAIL = 0.01
_SPLITS = 40
_NEAR_MEAN = 0.1  # mean absolute deviations
_NEAR_TAILS = 0.5  # of a doubling: shares that differ by a factor of 1.4
_SMOOTHING = TAIL / 10  # of all values: smaller shares can't be resolved


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
    general(
        "mean",
        "Mean of the worst channel: distance in mean absolute deviations",
        "|mean of candidate − mean of real| / mean |real − mean of real|, largest over channels",
        _mean, range=ABOVE, splits=_SPLITS, near=_NEAR_MEAN,
    ),
    general(
        "tails",
        "Tails of the worst channel: doublings of the share beyond the real 1 % and 99 %",
        "|log2| of the ratio of shares beyond the real quantiles, largest over channels and sides",
        _tails, range=ABOVE, splits=_SPLITS, near=_NEAR_TAILS,
    ),
    general(
        "values_ks", "Values of each channel: distance of distributions", _KS, _of_numbers(kolmogorov_smirnov, _as_is)
    ),
    general(
        "values_wasserstein", "Values of each channel: how far mass has to move, in standard deviations",
        "1-Wasserstein distance", _of_numbers(wasserstein, _as_is), range=ABOVE,
    ),
    general("levels_ks", "Means of series: distance of distributions", _KS, _of_numbers(kolmogorov_smirnov, _level)),
    general("categories", "Frequencies of categories in channels", "total variation distance", _categories),
    general("static", "Static columns: distance of distributions", f"{_KS}; total variation for categories", _static),
    general("label", "Frequencies of labels", "total variation distance", _label),
    general("missingness", "Gaps: how many, where, how long", f"{_KS}; mean difference of rates by step", _missingness),
    general("lengths", "Lengths of series: distance of distributions", _KS, _lengths),
)  # fmt: skip
