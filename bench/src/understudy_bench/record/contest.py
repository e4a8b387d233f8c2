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

from understudy.data import Panel
from understudy.errors import UnderstudyError
from understudy.evaluation.panels import Comparison
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.registry import METHODS
from understudy_bench.baselines.aim import Aim
from understudy_bench.baselines.dp_gan import DpGan
from understudy_bench.cells import Cells
from understudy_bench.metrics import distances
from understudy_bench.metrics.naive import naive_errors, season_steps
from understudy_bench.metrics.networks import deal
from understudy_bench.metrics.pets.forecast import KNOWN, WATCHED, forecast_errors
from understudy_bench.record.data import ARENAS, Arena
from understudy_bench.result import Progress, Row, Stopwatch, result, row, spread

_LAGS = (1, 2, 6)
_MOST_ITERATIONS, _SAMPLED = 500, 2_000
_CURVED = ("spectral", "pets", "aim", "private-gsd")  # quick enough to compare at every epsilon
_REPEATED = (
    *_CURVED,
    "gem",
    "independent",
    "aim, segments",
)  # quick enough to see over many splits, where units are few
_FEW_UNITS, _MANY_UNITS = 1_000, 50_000
_CONTROL = "independent"  # the same at every epsilon
_SEGMENTS = "aim, segments"  # the paper's way to make columns of series, beside the default by frequencies
VARIANTS: dict[str, Callable[[], Synthesizer]] = {**METHODS, _SEGMENTS: partial(Aim, cut="segments")}
UNPROTECTED: dict[str, Callable[[], Synthesizer]] = {"ads-gan, not private": partial(DpGan, mode="ads-gan")}
APART = {
    "vflgan-ts": "needs columns held by several parties",
    "ppem": "needs attributes to hide",
    "ads-gan": "protects nobody, and is refused with a finite budget; among the controls it stands without any noise",
}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How many epsilons and splits.

    Attributes:
        epsilons: At which all methods are compared.
        further: Of the curves; with many units those of methods that take seconds.
        seeds: Splits of every method.
        more_seeds: Splits of methods that take seconds, where units are few and splits differ much.
        further_seeds: Splits of methods that train for minutes, at further epsilons: enough for a curve.
    """

    epsilons: tuple[float, ...]
    further: tuple[float, ...] = ()
    seeds: int
    more_seeds: int
    further_seeds: int = 1

    def splits(self, method: str, units: int, epsilon: float) -> int:
        """Returns over how many splits of a table a method is seen; none where a curve would take hours."""
        if epsilon in self.further and method not in _CURVED:
            return 0 if units >= _MANY_UNITS else self.further_seeds
        return self.more_seeds if method in _REPEATED and units <= _FEW_UNITS else self.seeds


SCALES = {
    "quick": Scale(epsilons=(1.0,), further=(0.5, 2.0, 5.0, 10.0), seeds=3, more_seeds=9),
    "target": Scale(epsilons=(0.5, 1.0, 2.0, 5.0, 10.0), seeds=3, more_seeds=9),
    "full": Scale(epsilons=(0.25, 0.5, 1.0, 2.0, 5.0, 10.0), seeds=10, more_seeds=30),
}


def contest(name: str, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Returns a row for every method at every epsilon, over several splits of the entities."""
    arena, work = ARENAS[name](data_root), SCALES[scale]
    most = work.splits(_REPEATED[0], arena.num_train, work.epsilons[0])
    real = cells(f"{scale} real", partial(_real, arena, most))
    wanted = [
        (method, epsilon)
        for epsilon in (*work.epsilons, *work.further)
        for method in VARIANTS
        if method not in APART and (epsilon in work.epsilons or method != _CONTROL)
        if work.splits(method, arena.num_train, epsilon)
    ]
    rows = []
    for place, (method, epsilon) in enumerate(wanted):
        splits = work.splits(method, arena.num_train, epsilon)
        compute = partial(_measured, arena, method, VARIANTS[method], epsilon, splits)
        rows.append(_beside(cells(f"{scale} {method} {epsilon}", compute), real))
        progress(f"{method}, epsilon {epsilon:g}", (place + 1) / (len(wanted) + len(UNPROTECTED)))
    unprotected = [
        cells(f"{scale} {method}", partial(_measured, arena, method, make, np.inf, work.seeds))
        for method, make in UNPROTECTED.items()
    ]
    rows += [row(method, {}, note=why) for method, why in APART.items()]
    controls = [_beside(line, real) for line in (*real["rows"], *unprotected)]
    whole = result(name, scale, {**arena.data, **arena.facts}, rows, controls)
    return {**whole, "notes": [f"{line['method']}: {line['note']}" for line in rows if line.get("note")]}


def _real(arena: Arena, seeds: int) -> dict[str, Any]:
    """Returns what real series of other entities give, split by split too, and what is said without any."""
    trained: list[dict[str, float]] = []
    said: dict[str, list[dict[str, float]]] = {}
    for seed in range(seeds):
        train, test = arena.split(seed)
        values = Judge(train, test)
        trained.append(values.figures(train, seed))
        for name, errors in values.naive().items():
            said.setdefault(name, []).append(errors)
    lines = [_row("train-on-real", trained, seeds=seeds)]
    rows = [*lines, *(_row(name, errors, seeds=seeds) for name, errors in said.items())]
    return {"rows": rows, "errors": [one["tstr_mae"] for one in trained]}


def _measured(arena: Arena, name: str, method: Callable[[], Synthesizer], epsilon: float, seeds: int) -> Row:
    watch, found, certified = Stopwatch(), [], []
    delta = default_delta(arena.num_train)
    guarantee = Guarantee(epsilon, delta)
    facts: dict[str, Any] = {"delta": delta, "unit": "entity"}
    try:
        for seed in range(seeds):
            train, test = arena.split(seed)
            release = method().fit(train, Ledger.in_memory(guarantee), guarantee=guarantee)
            drawn = release.sample(min(_SAMPLED, arena.num_train), rng=np.random.default_rng(seed))
            found.append(Judge(train, test).figures(drawn, seed))
            certified.append(release.certificate.epsilon)
    except UnderstudyError as refused:
        return row(name, {}, epsilon=epsilon, seconds=watch.seconds, note=str(refused), **facts)
    most = max(certified)
    facts |= {"seconds": watch.seconds, "seeds": seeds, "errors": [one["tstr_mae"] for one in found]}
    if not np.isfinite(most):
        return _row(name, found, **facts)
    return _row(name, found, epsilon=epsilon if most else 0.0, epsilon_certified=most, **facts)


def _row(method: str, found: list[dict[str, float]], **facts: Any) -> Row:
    return row(method, {name: spread([one[name] for one in found]) for name in found[0]}, **facts)


def _beside(line: Row, real: dict[str, Any]) -> Row:
    """Puts the error over that of train-on-real on the same splits into a row, and its range split by split."""
    if "tstr_mae" not in line["metrics"]:
        return line
    base = np.array(real["errors"][: line["seeds"]])
    metrics = {**line["metrics"], "ratio": line["metrics"]["tstr_mae"]["mean"] / float(base.mean())}
    if "errors" in line:
        metrics["split_ratio"] = spread((np.array(line["errors"]) / base).tolist())
    return {**{name: fact for name, fact in line.items() if name != "errors"}, "metrics": metrics}


class Judge:
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
            "ks": float(np.mean(list(distances.channel_distances(self._test, candidate).values()))),
            "autocorrelation_error": distances.autocorrelation_error(self._test, candidate, _LAGS),
        }

    def naive(self) -> dict[str, dict[str, float]]:
        """Returns the errors of forecasts that learn nothing."""
        known = int(KNOWN * self._test.num_steps)
        found = naive_errors(self._unseen, season_steps(self._train.schema.time, self._test.num_steps), known=known)
        return {name: {"tstr_mae": error.mae, "tstr_rmse": float(np.sqrt(error.mse))} for name, error in found.items()}
