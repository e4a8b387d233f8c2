"""`structure-…`: what `spectral` keeps of series where units are few, channels are gappy and tails are heavy.

Every row is several fits by secure noise; figures are means with the lowest and the highest. `independent`, which sees
no private data, and other real series stand beside.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ks_2samp

from understudy.data import (
    Continuous,
    Integer,
    Monotone,
    Panel,
    Population,
    PrivacyUnit,
    Schema,
    Time,
    simulate_households,
    simulate_intensive_care,
)
from understudy.evaluation.general.learners import raw_features, summary_features, told_apart
from understudy.evaluation.metric import BRIEF, metrics_of
from understudy.evaluation.panels import Comparison, subsampled
from understudy.evaluation.scorecard import scorecard_of
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.registry import METHODS
from understudy_bench.cells import Cells
from understudy_bench.record.contest import Judge
from understudy_bench.record.data import ARENAS, homes
from understudy_bench.result import Progress, Row, Stopwatch, result, row, spread

_FITS = {"quick": 3, "target": 5, "full": 20}
_SPLITS = {"quick": 9, "target": 9, "full": 30}
_TABLES = ("record-metr-la", "record-pemsd7", "record-electricity", "record-sp500")
_METHODS = ("spectral", "independent")
Figures = dict[str, float]


def _released(train: Panel, method: str, epsilon: float, number: int, seed: int) -> Panel:
    guarantee = Guarantee(epsilon, default_delta(train.num_units))
    private = replace(train, private=True)
    release = METHODS[method]().fit(private, Ledger.in_memory(guarantee), guarantee=guarantee)
    context = None if train.context is None else np.array(train.context[0])
    return release.sample(number, rng=np.random.default_rng(seed), context=context)


def _rows(name: str, method: str, epsilon: float, measure: Callable[[int], Figures], fits: int, **facts: Any) -> Row:
    """Returns the row of several fits."""
    watch = Stopwatch()
    found = [measure(seed) for seed in range(fits)]
    metrics = {one: spread([figures[one] for figures in found]) for one in found[0]}
    asked = 0.0 if method == "independent" else epsilon
    return row(method, metrics, epsilon=asked, unit="entity", seconds=watch.seconds, seeds=fits, dataset=name, **facts)


# --- few units -------------------------------------------------------------------------------------------------------


def few(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Forecasts on the tables of the record whose units are few, by the record's own judge."""
    rows, controls = [], []
    epsilons = (0.5, 1.0, 2.0)
    for place, name in enumerate(_TABLES):
        arena, splits = ARENAS[name](data_root), _SPLITS[scale]
        for method in _METHODS:
            for epsilon in epsilons if method == "spectral" else (1.0,):
                key = f"{scale} {name} {method} {epsilon}"
                measure = partial(_forecast, arena, method, epsilon)
                rows.append(cells(key, partial(_rows, name, method, epsilon, measure, splits)))
        controls.append(
            cells(f"{scale} {name} naive", partial(_rows, name, "naive", 0.0, partial(_naive, arena), splits))
        )
        progress(name, (place + 1) / len(_TABLES))
    return result("structure-few", scale, {"name": "tables of the record"}, rows, controls)


def some_homes(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Forecasts on simulated homes, a thousand and ten thousand, by the record's own judge."""
    rows, controls = [], []
    for place, number in enumerate((1_000, 10_000)):
        arena = homes(number)
        for epsilon in (0.5, 1.0, 2.0):
            key, measure = f"{scale} {number} {epsilon}", partial(_forecast, arena, "spectral", epsilon)
            name = f"{number} homes"
            rows.append(cells(key, partial(_rows, name, "spectral", epsilon, measure, _FITS[scale])))
        naive = partial(_rows, f"{number} homes", "naive", 0.0, partial(_naive, arena), _FITS[scale])
        controls.append(cells(f"{scale} {number} naive", naive))
        progress(f"{number} homes", (place + 1) / 2)
    return result("structure-homes", scale, {"name": "homes", "simulated": True}, rows, controls)


def _forecast(arena: Any, method: str, epsilon: float, seed: int) -> Figures:
    train, test = arena.split(seed)
    judge = Judge(train, test)
    drawn = _released(train, method, epsilon, min(2_000, arena.num_train), seed)
    found, real = judge.figures(drawn, seed), judge.figures(train, seed)
    return {"ratio": found["tstr_mae"] / real["tstr_mae"], "tstr_mae": found["tstr_mae"], "ks": found["ks"]}


def _naive(arena: Any, seed: int) -> Figures:
    train, test = arena.split(seed)
    judge = Judge(train, test)
    real = judge.figures(train, seed)["tstr_mae"]
    return {name: errors["tstr_mae"] / real for name, errors in judge.naive().items()} | {"train-on-real": real}


# --- gaps, labels and what a classifier learns -----------------------------------------------------------------------


def intensive_care(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Missing shares by channel and hour, distributions, and a classifier of the outcome: 8,000 simulated stays."""
    stays = simulate_intensive_care(12_000)
    train, test = (_population(stays.take_units(np.arange(*ends))) for ends in ((0, 8_000), (8_000, 12_000)))
    rows = []
    for epsilon in (1.0, 2.0, 8.0):
        measure = partial(_stays, train, test, "spectral", epsilon)
        rows.append(cells(f"{scale} {epsilon}", partial(_rows, "icu", "spectral", epsilon, measure, _FITS[scale])))
        progress(f"epsilon {epsilon:g}", len(rows) / 4)
    blind = cells(
        f"{scale} blind",
        partial(_rows, "icu", "independent", 0.0, partial(_stays, train, test, "independent", 2.0), _FITS[scale]),
    )
    real = cells(f"{scale} real", partial(_rows, "icu", "train-on-real", 0.0, partial(_real_stays, train, test), 1))
    return result("structure-icu", scale, {"name": "icu", "simulated": True}, rows, [blind, real])


def _stays(train: Panel, test: Panel, method: str, epsilon: float, seed: int) -> Figures:
    drawn = _released(train, method, epsilon, train.num_units, seed)
    return _beside(train, drawn) | {"auroc": _auroc(drawn, test, seed), **_labels(train, drawn)}


def _real_stays(train: Panel, test: Panel, seed: int) -> Figures:
    halves = train.take_units(np.arange(4_000)), train.take_units(np.arange(4_000, 8_000))
    return _beside(*halves) | {"auroc": _auroc(train, test, seed), **_labels(*halves)}


def _beside(real: Panel, drawn: Panel) -> Figures:
    seen = [~np.isnan(panel.values) for panel in (real, drawn)]
    never = [(~own.any(axis=1)).mean(axis=0) for own in seen]
    names = [channel.name for channel in real.schema.channels]
    distances = [_ks(real.values[:, :, c], drawn.values[:, :, c]) for c in range(len(names))]
    return {
        "missing share, worst channel": float(np.abs(seen[0].mean((0, 1)) - seen[1].mean((0, 1))).max()),
        "missing share, worst channel and hour": float(np.abs(seen[0].mean(0) - seen[1].mean(0)).max()),
        "never measured, worst channel": float(np.abs(never[0] - never[1]).max()),
        "KS, worst channel": max(distances),
        "KS, mean": float(np.mean(distances)),
    }


def _ks(real: np.ndarray, drawn: np.ndarray) -> float:
    first, second = real[~np.isnan(real)], drawn[~np.isnan(drawn)]
    return float(ks_2samp(first, second, method="asymp").statistic) if len(second) else 1.0


def _labels(real: Panel, drawn: Panel) -> Figures:
    """How far apart labels are in a static column, in the table and in the release."""
    gaps = [float(p.static[p.label == 1, 0].mean() - p.static[p.label == 0, 0].mean()) for p in (real, drawn)]
    return {"age between outcomes, off by": abs(gaps[0] - gaps[1])}


def _auroc(train: Panel, test: Panel, seed: int) -> float:
    """Returns the area under the curve of boosted trees on summaries of stays."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    assert train.label is not None
    assert test.label is not None
    if len(np.unique(train.label)) < 2:
        return 0.5
    trees = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.1, max_leaf_nodes=15, random_state=seed)
    trees.fit(_summaries(train), train.label)
    return float(roc_auc_score(test.label, trees.predict_proba(_summaries(test))[:, 1]))


def _summaries(panel: Panel) -> np.ndarray:
    """Returns age, and of each channel its mean, early and late mean, spread, and share observed."""
    values, half = panel.values.astype(np.float64), panel.num_steps // 2
    seen = ~np.isnan(values)

    def mean(part: slice) -> np.ndarray:
        total, number = np.nansum(values[:, part], axis=1), seen[:, part].sum(axis=1)
        return np.where(number > 0, total / np.maximum(number, 1), np.nan)

    middle = mean(slice(None))
    spread_out = np.sqrt(np.nansum((values - middle[:, None]) ** 2, axis=1) / np.maximum(seen.sum(axis=1), 1))
    early, late = mean(slice(0, half)), mean(slice(half, None))
    return np.concatenate([panel.static[:, :1], middle, early, late, spread_out, seen.mean(axis=1)], axis=1)


# --- tails, meters ---------------------------------------------------------------------------------------------------


def tails(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Mean, deviation and largest values: counts of many magnitudes, loads of homes, meters that never fall."""
    jobs: Mapping[str, tuple[Callable[..., Figures], Panel, Panel]] = {
        "sales": (_moments, sales(3_000, 0), sales(3_000, 1)),
        "loads": (_loads, simulate_households(10_000), simulate_households(10_000, seed=8)),
        "meters": (_meters, meters(3_000, 0), meters(1_000, 1)),
    }
    rows, controls = [], []
    for name, (measure, train, test) in jobs.items():
        for epsilon in (1.0, 2.0, 8.0):
            fit = partial(_tail, measure, train, test, "spectral", epsilon)
            key = f"{scale} {name} {epsilon}"
            rows.append(cells(key, partial(_rows, name, "spectral", epsilon, fit, _FITS[scale])))
        second = partial(_without_seed, measure, train, test)
        real = partial(_rows, name, "second real series", 0.0, second, 1)
        controls.append(cells(f"{scale} {name} real", real))
        progress(name, len(controls) / len(jobs))
    return result("structure-tails", scale, {"name": "sales, loads, meters", "simulated": True}, rows, controls)


def _without_seed(measure: Callable[[Panel, Panel, Panel], Figures], train: Panel, test: Panel, seed: int) -> Figures:
    return measure(train, test, test)


def _tail(
    measure: Callable[[Panel, Panel, Panel], Figures], train: Panel, test: Panel, method: str, epsilon: float, seed: int
) -> Figures:
    return measure(train, _released(train, method, epsilon, train.num_units, seed), test)


def sales(number: int, seed: int) -> Panel:
    """Returns daily counts of shops: many zeros, log-normal, one shop in a thousand a hundred times larger."""
    rng, days = np.random.default_rng([seed, number]), 344
    level = rng.normal(2.0, 0.9, (number, 1)) + np.where(np.arange(number)[:, None] % 1000 == 0, np.log(100), 0)
    week = 0.25 * np.sin(2 * np.pi * np.arange(days) / 7 + rng.normal(0, 0.3, (number, 1)))
    values = np.floor(np.exp(level + week + rng.normal(0, 0.6, (number, days)))) * (rng.random((number, days)) > 0.3)
    schema = _schema("sales", Integer("sales", 0, 20_000), days, "1d", number)
    return _panel(schema, np.minimum(values, 20_000))


def meters(number: int, seed: int) -> Panel:
    """Returns four weeks of hourly meters that never turn back."""
    rng, hours = np.random.default_rng([seed, number, 1]), 672
    clock = np.arange(hours)
    shape = 1 + 0.7 * np.sin(2 * np.pi * (clock - 9) / 24) + 0.3 * np.sin(2 * np.pi * clock / 168)
    rate = np.exp(rng.normal(-1.0, 0.6, (number, 1)))
    gain = rate * shape * np.exp(rng.normal(0, 0.5, (number, hours))) * (rng.random((number, hours)) > 0.1)
    values = np.round(rng.uniform(0, 500, (number, 1)) + np.cumsum(gain, axis=1), 1)
    column = Continuous("meter", 0.0, 3_000.0, resolution=0.1)
    schema = replace(_schema("meters", column, hours, "1h", number), constraints=(Monotone("meter"),))
    return _panel(schema, np.minimum(values, 3_000.0))


def _schema(name: str, column: Any, steps: int, frequency: str, number: int) -> Schema:
    time = Time(column="time", steps=steps, frequency=frequency, start="2024-01-01T00:00:00")
    unit = PrivacyUnit(column="unit", dtype="int64")
    return Schema(name=name, population=Population(number), unit=unit, time=time, channels=(column,))


def _panel(schema: Schema, values: np.ndarray) -> Panel:
    return Panel(
        schema=schema,
        values=values[:, :, None].astype(np.float32),
        lengths=np.full(len(values), schema.num_steps, dtype=np.int32),
        unit=np.arange(len(values), dtype=np.int64),
        static=np.zeros((len(values), 0), dtype=np.float32),
    )


def _population(panel: Panel) -> Panel:
    return replace(panel, schema=replace(panel.schema, population=Population(panel.num_units)))


def _moments(real: Panel, drawn: Panel, test: Panel) -> Figures:
    values = [panel.values[:, :, 0].astype(np.float64) for panel in (real, drawn)]
    return {
        "mean over real": float(values[1].mean() / values[0].mean()),
        "deviation over real": float(values[1].std() / values[0].std()),
        "share of zeros, off by": float(abs((values[0] == 0).mean() - (values[1] == 0).mean())),
        "KS": _ks(*values),
    }


def _loads(real: Panel, drawn: Panel, test: Panel) -> Figures:
    loads = [panel.values[:, :, 0][~np.isnan(panel.values[:, :, 0])].astype(np.float64) for panel in (real, drawn)]
    beyond = {
        f"mass from {kw} kW over real": float((loads[1] >= kw).mean() / (loads[0] >= kw).mean()) for kw in (8, 12, 16)
    }
    return {"largest": float(loads[1].max()), **beyond, "mean over real": float(loads[1].mean() / loads[0].mean())}


def _meters(real: Panel, drawn: Panel, test: Panel) -> Figures:
    flat = [float((np.diff(panel.values[:, :, 0], axis=1) == 0).mean()) for panel in (real, drawn)]
    gained = [float(np.median(panel.values[:, -1, 0] - panel.values[:, 0, 0])) for panel in (real, drawn)]
    errors = [[_ahead(panel, test, steps) for steps in (1, 336)] for panel in (real, drawn)]
    return {
        "one step ahead over train-on-real": errors[1][0] / errors[0][0],
        "two weeks ahead over train-on-real": errors[1][1] / errors[0][1],
        "flat steps, off by": abs(flat[0] - flat[1]),
        "median gain over real": gained[1] / gained[0],
    }


def _ahead(train: Panel, test: Panel, steps: int) -> float:
    """Returns the error of a ridge regression of what a meter gains in so many steps on the week before."""
    from sklearn.linear_model import RidgeCV

    def sides(panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        values = panel.values[:, :, 0].astype(np.float64)
        now = 335
        gains = np.diff(values[:, now - 168 : now + 1], axis=1)
        return np.concatenate([gains, gains.sum(axis=1, keepdims=True)], axis=1), values[:, now + steps] - values[
            :, now
        ]

    learned = RidgeCV(np.logspace(-3, 5, 17)).fit(*sides(train))
    features, truth = sides(test)
    return float(np.abs(learned.predict(features) - truth).mean())


# --- what trees see --------------------------------------------------------------------------------------------------


def trees(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """|accuracy − 0.5| of boosted trees that tell a release from real homes, ten thousand of them."""
    everybody = simulate_households(20_000)
    train, test = (_population(everybody.take_units(np.arange(*ends))) for ends in ((0, 10_000), (10_000, 20_000)))
    rows = []
    for epsilon in (2.0, 8.0):
        measure = partial(_trees, train, test, "spectral", epsilon)
        rows.append(cells(f"{scale} {epsilon}", partial(_rows, "homes", "spectral", epsilon, measure, _FITS[scale])))
        progress(f"epsilon {epsilon:g}", len(rows) / 3)
    real = partial(_rows, "homes", "other real homes", 0.0, lambda seed: _apart(train, test, test, seed), 3)
    return result("structure-trees", scale, {"name": "homes", "simulated": True}, rows, [cells(f"{scale} real", real)])


def _trees(train: Panel, test: Panel, method: str, epsilon: float, seed: int) -> Figures:
    return _apart(train, _released(train, method, epsilon, train.num_units, seed), test, seed)


def _apart(train: Panel, drawn: Panel, test: Panel, seed: int) -> Figures:
    compared = Comparison(real=train, candidate=drawn, reference=test, unseen=test)
    rng, found = np.random.default_rng(seed), {}
    for name, features in (("trees on values", raw_features), ("trees on summaries", summary_features)):
        rows = [np.sort(rng.choice(panel.num_series, 2_000, replace=False)) for panel in (train, drawn)]
        first, second = (features(compared, panel)[1][own] for panel, own in zip((train, drawn), rows, strict=True))
        right = told_apart(first, second, (np.arange(2_000), np.arange(2_000)), seed)
        found[name] = abs(float(right.mean()) - 0.5)
    return found


# --- never worse than no private data --------------------------------------------------------------------------------


def against_blind(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """The general suite: 0 where a figure is as of other real series, 1 as of `independent`; above 1 is worse."""
    tables: dict[str, Callable[[], tuple[Panel, Panel]]] = {
        name: partial(lambda name: ARENAS[name](data_root).split(0), name) for name in _TABLES
    }
    tables["homes"] = lambda: _halves(simulate_households(2_000))
    tables["icu"] = lambda: _halves(simulate_intensive_care(2_000))
    rows = []
    for name, make in tables.items():
        train, test = make()
        for epsilon in (0.5, 1.0):
            measure = partial(_positions, train, test, epsilon)
            key = f"{scale} {name} {epsilon}"
            rows.append(cells(key, partial(_rows, name, "spectral", epsilon, measure, _FITS[scale])))
        progress(name, len(rows) / (2 * len(tables)))
    return result("structure-blind", scale, {"name": "six tables"}, rows, [])


def _halves(panel: Panel) -> tuple[Panel, Panel]:
    middle = panel.num_units // 2
    return _population(panel.take_units(np.arange(middle))), panel.take_units(np.arange(middle, panel.num_units))


def _positions(train: Panel, test: Panel, epsilon: float, seed: int) -> Figures:
    drawn = _released(train, "spectral", epsilon, train.num_units, seed)
    effort = replace(BRIEF, replicates=0, splits=3, repeats=1, seconds=None)
    panels = subsampled(replace(train, private=False), drawn, test, effort, seed=seed)
    scores = scorecard_of(panels, metrics_of(["general"]), effort, seed=seed).scores
    return {score.name.removeprefix("general."): float(score.position or 0.0) for score in scores}
