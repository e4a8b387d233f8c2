"""Learners: can boosted trees tell candidate from real, and what does a light forecaster learn from the candidate?

Lopez-Paz and Oquab (2017), arXiv:1610.06545. The recurrent discriminators of the papers often stay near chance on
series that a glance distinguishes; trees on raw values and on summaries seldom do, and their features have names.
A candidate that copies real series makes trees wrong more often than right: its twin, learned from, is on the other
side. |accuracy − 0.5| counts that as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise

import numpy as np
from scipy.stats import rankdata

from understudy.data import Panel
from understudy.data.channels import num_codes
from understudy.data.timegrid import season_steps
from understudy.evaluation.general.values import missing, rounded
from understudy.evaluation.measures import drawn_units, largest, mean_share, run_lengths, spectra
from understudy.evaluation.metric import (
    ERROR_ON_CANDIDATE,
    ERROR_ON_REAL,
    FORECASTS,
    Effort,
    Measured,
    Metric,
    Undefined,
)
from understudy.evaluation.panels import Comparison

_MAX_ALL_PAIRS = 8  # with more channels only neighbours in the schema's order are paired
_EDGE = 1e-6  # of the real range: closer to its ends counts as being there
_TINY = 1e-12
Columns = Iterator[tuple[str, np.ndarray]]


def raw_features(comparison: Comparison, panel: Panel) -> tuple[list[str], np.ndarray]:
    """Returns every value of every step, NaN where not observed, and the static columns. Values as real ones round."""
    panel = rounded(panel, comparison.real)
    steps, channels = range(panel.num_steps), panel.schema.channels
    names = [f"{channel.name} at step {step + 1}" for step in steps for channel in channels]
    return _table([*zip(names, panel.values.reshape(panel.num_series, -1).T, strict=True), *_statics(panel)])


def summary_features(comparison: Comparison, panel: Panel) -> tuple[list[str], np.ndarray]:
    """Returns levels, spread, changes, autocorrelation, rhythm, edges, gaps and pairs of channels.

    Values as real ones round: digits alone would tell unrounded candidates apart, and `resolution` says that already.
    """
    panel = rounded(panel, comparison.real)
    season = season_steps(panel.schema.time, panel.num_steps)
    unit = comparison.numeric_unit(panel).astype(np.float64)
    columns: list[tuple[str, np.ndarray]] = []
    for place, channel in enumerate(comparison.numeric_names):
        of_channel = (*_levels(unit[:, :, place]), *_changes(unit[:, :, place]), *_rhythm(unit[:, :, place], season))
        columns += [(f"{channel}: {name}", values) for name, values in of_channel]
    columns += [*_pairs(unit, comparison.numeric_names), *_categories(panel), *_gaps(panel), *_statics(panel)]
    return _table(columns)


def _levels(x: np.ndarray) -> Columns:
    yield "mean", x.mean(axis=1)
    yield "standard deviation", x.std(axis=1)
    quartiles = np.quantile(x, (0, 0.25, 0.5, 0.75, 1), axis=1)
    yield from zip(("minimum", "lower quartile", "median", "upper quartile", "maximum"), quartiles, strict=True)
    yield from _shape("", x)
    yield "share at the real minimum", (x <= _EDGE).mean(axis=1)
    yield "share at the real maximum", (x >= 1 - _EDGE).mean(axis=1)
    yield "share of different values", 1 - (np.diff(np.sort(x, axis=1), axis=1) == 0).sum(axis=1) / x.shape[1]
    yield "first step", x[:, 0]
    yield "last step", x[:, -1]


def _shape(of_what: str, x: np.ndarray) -> Columns:
    centred, spread = x - x.mean(axis=1, keepdims=True), np.maximum(x.std(axis=1), _TINY)
    yield f"skewness{of_what}", (centred**3).mean(axis=1) / spread**3  # of changes: differs when time runs backwards
    yield f"kurtosis{of_what}", (centred**4).mean(axis=1) / spread**4


def _changes(x: np.ndarray) -> Columns:
    if x.shape[1] < 2:
        return
    change = np.diff(x, axis=1)
    size = np.abs(change)
    yield "mean size of changes", size.mean(axis=1)
    yield "median size of changes", np.median(size, axis=1)
    yield "spread of changes", np.maximum(change.std(axis=1), _TINY)
    yield from _shape(" of changes", change)
    yield "share of steps without change", (change == 0).mean(axis=1)
    yield "largest rise", change.max(axis=1)
    yield "largest fall", change.min(axis=1)
    yield "turning points", (change[:, 1:] * change[:, :-1] < 0).mean(axis=1) if x.shape[1] > 2 else np.zeros(len(x))
    if x.shape[1] > 2:
        yield "memory of the size of changes", _correlation(size[:, :-1], size[:, 1:])


def _rhythm(x: np.ndarray, season: int | None) -> Columns:
    steps = x.shape[1]
    for lag in sorted({lag for lag in (1, 2, 4, season) if lag is not None and lag <= steps // 2}):
        yield f"autocorrelation at lag {lag}", _correlation(x[:, :-lag], x[:, lag:])
    yield "longest stretch above its mean", run_lengths(x > x.mean(axis=1, keepdims=True)).max(axis=1) / steps
    if steps >= 8:
        power = spectra(x[:, :, None])[:, :, 0]
        for name, part in zip(("slow", "middle", "fast"), np.array_split(power, 3, axis=1), strict=True):
            yield f"power of {name} movements", part.sum(axis=1)
        yield "spread of power over frequencies", -(power * np.log(np.maximum(power, _TINY))).sum(axis=1)
    if season is not None:
        whole = x[:, : steps // season * season].reshape(len(x), -1, season)
        yield "spread of the mean season", whole.mean(axis=1).std(axis=1)
        yield "spread around the mean season", (whole - whole.mean(axis=1, keepdims=True)).std(axis=(1, 2))


def _pairs(unit: np.ndarray, names: list[str]) -> Columns:
    channels = list(zip(names, np.moveaxis(unit, 2, 0), strict=True))
    for (first, x), (second, y) in combinations(channels, 2) if len(names) <= _MAX_ALL_PAIRS else pairwise(channels):
        yield f"{first} – {second}: correlation", _correlation(x, y)
        yield f"{first} – {second}: mean difference", (x - y).mean(axis=1)
        yield f"{first} – {second}: size of difference", np.abs(x - y).mean(axis=1)
        if unit.shape[1] > 2:
            yield f"{first} – {second} 1 later", _correlation(x[:, :-1], y[:, 1:])
            yield f"{second} – {first} 1 later", _correlation(y[:, :-1], x[:, 1:])


def _categories(panel: Panel) -> Columns:
    for place, channel in enumerate(panel.schema.channels):
        values, codes = panel.values[:, :, place], num_codes(channel)
        if codes is None:
            continue
        seen = np.maximum((~np.isnan(values)).sum(axis=1), 1)
        for code in range(codes):
            yield f"{channel.name}: share of code {code}", (values == code).sum(axis=1) / seen
        both = ~np.isnan(values[:, 1:]) & ~np.isnan(values[:, :-1])
        yield f"{channel.name}: changes", ((values[:, 1:] != values[:, :-1]) & both).sum(axis=1) / seen


def _gaps(panel: Panel) -> Columns:
    holes = missing(panel)
    for place, channel in enumerate(panel.schema.channels):
        if channel.missing or holes[:, :, place].any():
            yield f"{channel.name}: share missing", holes[:, :, place].sum(axis=1) / panel.lengths
            yield f"{channel.name}: longest gap", run_lengths(holes[:, :, place]).max(axis=1)
    if panel.schema.time.variable_length:
        yield "length", panel.lengths.astype(float)


def _statics(panel: Panel) -> Columns:
    for place, column in enumerate(panel.schema.static):
        yield column.name, panel.static[:, place]


def _correlation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the correlation of each row; 0 where one does not move."""
    x, y = (side - side.mean(axis=1, keepdims=True, dtype=np.float64) for side in (x, y))
    size = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return np.where(size > _TINY, (x * y).sum(axis=1) / np.maximum(size, _TINY), 0.0)


def _table(columns: list[tuple[str, np.ndarray]]) -> tuple[list[str], np.ndarray]:
    return [name for name, _ in columns], np.stack([values for _, values in columns], axis=1).astype(np.float32)


FOLDS = 5
_MAX_SERIES = 2_000
_MAX_FEATURES = 300
_TOP = 12
_NEAR = 0.1  # an accuracy of 60 %
Features = Callable[[Comparison, Panel], tuple[list[str], np.ndarray]]


def told_apart(first: np.ndarray, second: np.ndarray, units: tuple[np.ndarray, np.ndarray], seed: int) -> np.ndarray:
    """Returns whether each row was put on its side by trees that learned from other units: `first`, then `second`.

    Args:
        first, second: Feature tables [row, feature], equally many rows; NaN where a feature is missing.
        units: Unit of each row; all rows of a unit are learned from, or none.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    rng, table = np.random.default_rng(seed), np.concatenate([first, second])
    side, seen = np.repeat([0, 1], [len(first), len(second)]), ~np.isnan(table).all(axis=0)
    if not seen.any():
        return side == 0
    trees = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.15, max_leaf_nodes=15, max_bins=63, early_stopping=False, random_state=seed
    )
    folds = PredefinedSplit(np.concatenate([_folds(unit, rng) for unit in units]))
    return np.asarray(cross_val_predict(trees, table[:, seen], side, cv=folds) == side)


def _folds(unit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns the fold of each series, dealt at random; the series of one unit stay together."""
    units, place = np.unique(unit, return_inverse=True)
    return rng.permutation(np.arange(len(units)) % FOLDS)[place]


def alone(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns |AUC − 0.5| of each single feature: 0 says nothing, 0.5 separates all rows. Missing ranks lowest."""
    table = np.concatenate([first, second])
    ranks = rankdata(np.where(np.isnan(table), -np.inf, table), axis=0)[: len(first)].sum(axis=0)
    area = (ranks - len(first) * (len(first) + 1) / 2) / (len(first) * len(second))
    return np.asarray(np.abs(area - 0.5))


def _measure(features: Features, comparison: Comparison, effort: Effort, seed: int) -> Measured:
    panels = comparison.real, comparison.candidate
    number = min(_MAX_SERIES, *(panel.num_series for panel in panels))
    rng = np.random.default_rng(seed)
    rows = [_rows(panel, number, rng) for panel in panels]
    (names, first), (_, second) = (features(comparison, panel) for panel in panels)
    columns = np.arange(len(names))
    if effort.max_values is not None and len(names) > _MAX_FEATURES:  # time grows with their number
        columns = np.sort(rng.choice(len(names), _MAX_FEATURES, replace=False))
    tables = first[rows[0]][:, columns], second[rows[1]][:, columns]
    units = panels[0].unit[rows[0]], panels[1].unit[rows[1]]
    right = told_apart(*tables, units, seed).astype(float)
    both = np.concatenate([units[0], units[1] + panels[0].num_units])
    parts = largest([f"alone: {names[column]}" for column in columns], alone(*tables), _TOP)
    note = (
        f"{number} series of each side, {FOLDS} folds by unit, {len(columns)} of {len(names)} features. Parts: "
        "|AUC − 0.5| of the most telling single features."
    )
    accuracy = mean_share(right, both, effort, seed, parts=parts, notes=(note,))
    assert accuracy.replicates is not None
    return replace(accuracy, value=abs(accuracy.value - 0.5), replicates=np.abs(accuracy.replicates - 0.5))


def _rows(panel: Panel, number: int, rng: np.random.Generator) -> np.ndarray:
    """Returns that many series, unit by unit in random order."""
    order = rng.permutation(panel.num_units)[panel.unit]
    return np.sort(np.argsort(order, kind="stable")[:number])


_MAX_LAGS = 12
_MAX_ROWS = 40_000
_RIDGE = 1e-4  # of the mean variance of the lags, each row


@dataclass(frozen=True, eq=False, kw_only=True)
class _Windows:
    """Steps to be forecast one step ahead, with the steps before them; gaps before are closed by straight lines."""

    lags: np.ndarray  # [row, feature]: the steps before in all channels, and the step a season before
    truth: np.ndarray  # [row, channel]
    counted: np.ndarray  # [row, channel]: whether the step was observed
    naive: dict[str, np.ndarray]  # forecasts [row, channel] by name
    series: np.ndarray  # of each row

    @classmethod
    def of(cls, comparison: Comparison, panel: Panel, lags: int, season: int | None, seed: int) -> "_Windows":
        unit = comparison.numeric_unit(panel).astype(np.float64)
        seen = ~np.isnan(comparison.numeric(panel))
        seen[:, : max(lags, season or 1)] = False  # too early to be forecast
        series, step = np.nonzero(seen.any(axis=2))
        rows = np.sort(np.random.default_rng(seed).permutation(len(series))[:_MAX_ROWS])
        series, step = series[rows], step[rows]
        past = [unit[series, step - lag] for lag in (*range(1, lags + 1), *([season] if season else []))]
        naive = {"persistence": past[0]} | ({"seasonal naive": past[-1]} if season else {})
        before, truth = np.concatenate(past, axis=1), unit[series, step]
        return cls(lags=before, truth=truth, counted=seen[series, step], naive=naive, series=series)

    def forecast(self, other: "_Windows", weights: np.ndarray) -> np.ndarray:
        """Forecasts `other` by ridge regression of the change since the step before: it shrinks towards persistence."""
        from sklearn.linear_model import Ridge

        of_row = weights[self.series] + 1e-12
        penalty = _RIDGE * of_row.sum() * self.lags.var(axis=0).mean()
        change = self.truth - self.naive["persistence"]
        learned = Ridge(alpha=max(float(penalty), 1e-12)).fit(self.lags, change, sample_weight=of_row)
        return np.asarray(other.naive["persistence"] + learned.predict(other.lags).reshape(other.truth.shape))

    def error(self, forecast: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Returns the mean absolute error of each channel, series weighted."""
        counted = self.counted * weights[self.series, None]
        total = (np.abs(forecast - self.truth) * counted).sum(axis=0)
        return np.asarray(total / np.maximum(counted.sum(axis=0), 1e-12))


def _forecast_skill(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    steps = comparison.real.num_steps
    if steps < 4 or not comparison.numeric_names:
        raise Undefined("channels of numbers with at least 4 steps are needed.")
    season, lags = season_steps(comparison.real.schema.time, steps), min(_MAX_LAGS, steps // 2)
    panels = comparison.candidate, comparison.real, comparison.reference
    candidate, real, test = (_Windows.of(comparison, panel, lags, season, seed) for panel in panels)
    if not all(len(side.series) for side in (candidate, real, test)):
        raise Undefined("too few steps were observed to forecast from.")
    once = [np.ones(panel.num_series) for panel in panels]
    naive = {name: test.error(forecast, once[2]) for name, forecast in test.naive.items()}
    best = min(naive, key=lambda name: float(naive[name].sum()))
    if not naive[best].sum() > 0:
        raise Undefined("every series stays at rest: the naive forecast is never wrong.")

    def errors(side: _Windows, learned: np.ndarray, tested: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return test.error(side.forecast(test, learned), tested), test.error(test.naive[best], tested)

    drawn = [drawn_units(p.unit, effort.replicates, seed + i) for i, p in enumerate((panels[0], panels[2]))]
    found, on_real = errors(candidate, once[0], once[2]), errors(real, once[1], once[2])
    return Measured(
        value=_skill(*found),
        replicates=np.array([_skill(*errors(candidate, *weights)) for weights in zip(*drawn, strict=True)]),
        parts={
            "skill when trained on real": _skill(*on_real),
            ERROR_ON_CANDIDATE: float(found[0].mean()),
            ERROR_ON_REAL: float(on_real[0].mean()),
            **{f"MAE {name}": float(error.mean()) for name, error in naive.items()},
            **{f"skill: {n}": _skill(e, b) for n, e, b in zip(comparison.numeric_names, *found, strict=True) if b > 0},
        },
        notes=(
            f"Ridge regression on {lags} lags of all channels, one step ahead, tested on real series that neither side "
            f"learned from, in units of the real range; at most {_MAX_ROWS} rows of each side. Against {best}, the "
            "better of the naive forecasts.",
        ),
    )


def _skill(error: np.ndarray, naive: np.ndarray) -> float:
    return 1 - float(error.sum() / max(float(naive.sum()), 1e-12))


_REFERENCE = "classifier two-sample test, arXiv:1610.06545, section 3, by boosted trees: |accuracy − 0.5|"
_trees = partial(Metric, reference=_REFERENCE, range=(0.0, 0.5), near=_NEAR)
METRICS = (
    _trees(
        "general.trees_raw", "Boosted trees told real from synthetic by every value (C2ST)",
        measure=partial(_measure, raw_features), seconds=3.4,
    ),
    _trees(
        "general.trees_summary", "Boosted trees told real from synthetic by summaries (C2ST)",
        measure=partial(_measure, summary_features), seconds=2.7,
    ),
    Metric(
        FORECASTS, "Forecasting skill, trained on synthetic and tested on real series (TSTR)",
        "1 − MAE / MAE of the better of persistence and seasonal naive; ridge regression",
        _forecast_skill, direction="higher", range=(float("-inf"), 1.0), seconds=0.3,
    ),
)  # fmt: skip
