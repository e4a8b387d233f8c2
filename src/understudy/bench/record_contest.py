"""`record-…`: all methods on one table, at one unit and the same epsilons.

Judged by what a perceptron learns from synthetic series about the last quarter of real ones (`ratio`: its error over
that of one trained on the real series that were learned from), by distributions and by autocorrelations. A method that
refuses a table has a row that says why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.bench.cells import Cells
from understudy.bench.record_data import ARENAS, Arena
from understudy.bench.result import Progress, Row, Stopwatch, result, row, spread
from understudy.data import Panel
from understudy.errors import UnderstudyError
from understudy.evaluate.comparison import Comparison
from understudy.evaluate.general import dynamics, marginals
from understudy.evaluate.naive import naive_errors, season_steps
from understudy.evaluate.networks import deal
from understudy.evaluate.pets.forecast import KNOWN, WATCHED, forecast_errors
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.baselines.aim import Aim
from understudy.synthesizers.registry import METHODS

_LAGS = (1, 2, 6)
_MOST_ITERATIONS, _SAMPLED = 500, 2_000
_CURVED = ("spectral", "pets", "aim", "private-gsd")  # quick enough to see at every epsilon
_REPEATED = (
    *_CURVED,
    "gem",
    "independent",
    "aim, segments",
)  # quick enough to see over many splits, where units are few
_FEW_UNITS = 1_000
_SEGMENTS = "aim, segments"  # the paper's way to make columns of series, beside the default by frequencies
VARIANTS: dict[str, Callable[[], Synthesizer]] = {**METHODS, _SEGMENTS: partial(Aim, cut="segments")}
APART = {
    "vflgan-ts": "needs columns held by several parties",
    "ppem": "needs attributes to hide",
    "ads-gan": "protects nobody, and is refused with a finite budget",
}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How many epsilons and splits.

    Attributes:
        epsilons: Of every method.
        further: Of methods that do not train.
        seeds: Splits of every method.
        more_seeds: Splits of methods that take seconds, where units are few and splits differ much.
    """

    epsilons: tuple[float, ...]
    further: tuple[float, ...] = ()
    seeds: int
    more_seeds: int

    def splits(self, method: str, units: int) -> int:
        """Returns over how many splits of a table a method is seen."""
        return self.more_seeds if method in _REPEATED and units <= _FEW_UNITS else self.seeds


SCALES = {
    "quick": Scale(epsilons=(1.0,), further=(0.5, 2.0, 5.0, 10.0), seeds=3, more_seeds=9),
    "target": Scale(epsilons=(0.5, 1.0, 2.0, 5.0, 10.0), seeds=3, more_seeds=9),
    "full": Scale(epsilons=(0.25, 0.5, 1.0, 2.0, 5.0, 10.0), seeds=10, more_seeds=30),
}


def contest(name: str, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Returns a row for every method at every epsilon, over several splits of the entities."""
    arena, work = ARENAS[name](data_root), SCALES[scale]
    real = cells(f"{scale} real", partial(_real, arena, work.splits(_REPEATED[0], arena.num_train)))
    wanted = [(method, epsilon) for epsilon in work.epsilons for method in VARIANTS if method not in APART]
    wanted += [(method, epsilon) for epsilon in work.further for method in _CURVED if method in VARIANTS]
    rows = []
    for place, (method, epsilon) in enumerate(wanted):
        splits = work.splits(method, arena.num_train)
        one = cells(f"{scale} {method} {epsilon}", partial(_measured, arena, method, epsilon, splits))
        rows.append(_beside(one, real))
        progress(f"{method}, epsilon {epsilon:g}", (place + 1) / len(wanted))
    rows += [row(method, {}, note=why) for method, why in APART.items()]
    whole = result(name, scale, {**arena.data, **arena.facts}, rows, [_beside(line, real) for line in real["rows"]])
    return {**whole, "notes": [f"{line['method']}: {line['note']}" for line in rows if line.get("note")]}


def _real(arena: Arena, seeds: int) -> dict[str, Any]:
    """Returns what real series of other entities give, split by split too, and what is said without any."""
    trained: list[dict[str, float]] = []
    said: dict[str, list[dict[str, float]]] = {}
    for seed in range(seeds):
        train, test = arena.split(seed)
        values = _Judge(train, test)
        trained.append(values.figures(train, seed))
        for name, errors in values.naive().items():
            said.setdefault(name, []).append(errors)
    lines = [_row("train-on-real", trained, seeds=seeds)]
    rows = [*lines, *(_row(name, errors, seeds=seeds) for name, errors in said.items())]
    return {"rows": rows, "errors": [one["tstr_mae"] for one in trained]}


def _measured(arena: Arena, method: str, epsilon: float, seeds: int) -> Row:
    watch, found = Stopwatch(), []
    delta = default_delta(arena.num_train)
    guarantee = Guarantee(epsilon, delta)
    try:
        for seed in range(seeds):
            train, test = arena.split(seed)
            release = VARIANTS[method]().fit(train, Ledger.in_memory(guarantee), guarantee=guarantee)
            drawn = release.sample(min(_SAMPLED, arena.num_train), rng=np.random.default_rng(seed))
            found.append(_Judge(train, test).figures(drawn, seed))
    except UnderstudyError as refused:
        return row(method, {}, epsilon=epsilon, delta=delta, unit="entity", seconds=watch.seconds, note=str(refused))
    spent = 0.0 if not VARIANTS[method]().spending_plan(arena.split(0)[0].schema, guarantee).entries else epsilon
    return _row(method, found, epsilon=spent, delta=delta, unit="entity", seconds=watch.seconds, seeds=seeds)


def _row(method: str, found: list[dict[str, float]], **facts: Any) -> Row:
    return row(method, {name: spread([one[name] for one in found]) for name in found[0]}, **facts)


def _beside(line: Row, real: dict[str, Any]) -> Row:
    """Puts the error over that of train-on-real on the same splits into a row."""
    if "tstr_mae" not in line["metrics"]:
        return line
    own, base = line["metrics"]["tstr_mae"]["mean"], float(np.mean(real["errors"][: line["seeds"]]))
    return {**line, "metrics": {**line["metrics"], "ratio": own / base}}


class _Judge:
    """Real series that were learned from, and others to test on."""

    def __init__(self, train: Panel, test: Panel) -> None:
        self._train, self._test = train, test
        real, unseen = self._values(train), self._values(test)
        self._mean, spread = real.mean(axis=(0, 1)), real.std(axis=(0, 1))
        self._spread = np.where(spread > 0, spread, 1)
        self._unseen = (unseen - self._mean) / self._spread

    def _values(self, panel: Panel) -> np.ndarray:
        compared = Comparison(real=self._train, candidate=panel, reference=self._test, unseen=self._test)
        return np.asarray(compared.numeric_unit(panel), dtype=np.float64)

    def figures(self, candidate: Panel, seed: int) -> dict[str, float]:
        """Returns errors and distances of series that stand in for the private ones."""
        series = (self._values(candidate) - self._mean) / self._spread
        train, watched = deal(candidate.unit, (1 - WATCHED, WATCHED), np.random.default_rng(seed))
        mae, rmse = forecast_errors(
            series[train], series[watched], self._unseen, seed=seed, most_iterations=_MOST_ITERATIONS
        )
        return {
            "tstr_mae": mae,
            "tstr_rmse": rmse,
            "ks": float(np.mean(list(marginals.channel_distances(self._test, candidate).values()))),
            "autocorrelation_error": dynamics.autocorrelation_error(self._test, candidate, _LAGS),
        }

    def naive(self) -> dict[str, dict[str, float]]:
        """Returns the errors of forecasts that learn nothing."""
        known = int(KNOWN * self._test.num_steps)
        found = naive_errors(self._unseen, season_steps(self._train.schema.time, self._test.num_steps), known=known)
        return {name: {"tstr_mae": error.mae, "tstr_rmse": float(np.sqrt(error.mse))} for name, error in found.items()}
