"""`pub2priv-toy`: what context is worth, by its correlation with the private series (Pub2Priv, Table 5)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from understudy.synthesizers import Synthesizer
from understudy.synthesizers.spectral import Spectral
from understudy_bench.cells import Cells
from understudy_bench.data.correlated import simulate_correlated
from understudy_bench.pub2priv.experiment import NO_NOISE, SCALES, Experiment, Scale, methods
from understudy_bench.pub2priv.tables import FEW_RIVALS, drawings, judged
from understudy_bench.result import Progress, Row, result, row, spread

CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
SEEDS = 3
FITS = 3  # of each seed where units are few: one fit differs from the next by more than a correlation of 0.3 is worth
LEAST_TRAINING = 1_000  # of the judges: series are short, and with less nothing can be told apart
# Pub2Priv, Table 5: 100 series, epsilon 1, delta 1e-5.
_PAPER = {
    0.0: {"discriminative": 0.480, "predictive": 0.022},
    0.3: {"discriminative": 0.385, "predictive": 0.020},
    0.6: {"discriminative": 0.450, "predictive": 0.015},
    0.9: {"discriminative": 0.480, "predictive": 0.005},
}
_SETTINGS = ((100, 1.0), (100, NO_NOISE), (5_000, 1.0))  # as in the paper, what noise costs it, and enough series
_STRONGEST = CORRELATIONS[-1]  # of the curve, and of methods that see no context: series are the same at every one
_JUDGED = 400


@dataclass(frozen=True, kw_only=True)
class Case:
    """A method, and what it is fitted to."""

    name: str
    method: Synthesizer
    series: int
    epsilon: float
    correlation: float

    @property
    def published(self) -> bool:
        """Whether Table 5 has it."""
        return self.name == "pub2priv" and (self.series, self.epsilon) == _SETTINGS[0]


def toy(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Series of trend and season whose context is correlated with them by 0, 0.3, 0.6 and 0.9; three seeds."""
    work = _patient(SCALES[scale])
    ours, rivals = _ours(work), _rivals(work)
    found: list[Row] = []
    for case in (*ours, *rivals):
        key = f"{scale} {case.name} {case.series} {case.epsilon} {case.correlation}"
        found.append(cells(key, partial(_row, case, work)))
        progress(f"{case.name}, correlation {case.correlation:g}", len(found) / (len(ours) + len(rivals) + 1))
    second = {correlation: _second(work, correlation, scale, cells) for correlation in CORRELATIONS}
    rows = [judged(line, second[line["correlation"]]) for line in found[: len(ours)]]
    drawn = cells(f"{scale} pictures", partial(drawings, toy_experiment(work, 100, _STRONGEST, 0), ours[0].method))
    data: dict[str, Any] = {"name": "correlated toy", "sha256": None, "stand_in": False, "simulated": True}
    falls, trend = (
        {f"{number} series, epsilon {epsilon:g}": told(rows, number, epsilon) for number, epsilon in _SETTINGS}
        for told in (_falls, predictive_trend)
    )
    controls = [*second.values(), *found[len(ours) :]]
    data |= {"predictive_falls": falls, "predictive_trend": trend}
    return result("pub2priv-toy", scale, data, rows, controls) | {"pictures": drawn}


def _ours(work: Scale) -> list[Case]:
    """The method at every correlation, its curve over epsilon at the strongest, and its ablations."""
    whole, without_context = methods(work).items()
    curve = [(100, epsilon) for epsilon in work.epsilons if (100, epsilon) not in _SETTINGS]
    return [
        *(_case(whole, *setting, correlation) for setting in _SETTINGS for correlation in CORRELATIONS),
        *(_case(whole, *setting, _STRONGEST) for setting in curve),
        _case(without_context, *_SETTINGS[0], _STRONGEST),
    ]


def _rivals(work: Scale) -> list[Case]:
    """`spectral` wherever the method is measured with as many series as in the paper, and what sees no context."""
    number, epsilon = _SETTINGS[0]
    spectral = ("spectral", Spectral())
    return [
        *(_case(spectral, number, epsilon, correlation) for correlation in CORRELATIONS),
        *(_case(spectral, number, other, _STRONGEST) for other in work.epsilons if other != epsilon),
        *(_case(rival, number, epsilon, _STRONGEST) for rival in FEW_RIVALS.items()),
    ]


def _case(named: tuple[str, Synthesizer], series: int, epsilon: float, correlation: float) -> Case:
    return Case(name=named[0], method=named[1], series=series, epsilon=epsilon, correlation=correlation)


def _second(work: Scale, correlation: float, scale: str, cells: Cells) -> Row:
    experiment = toy_experiment(work, 100, correlation, 0)
    compute = partial(experiment.control, "second real series", experiment.second)
    return {**cells(f"{scale} second {correlation}", compute), "correlation": correlation}


def toy_experiment(work: Scale, number: int, correlation: float, seed: int) -> Experiment:
    """Returns the toy's series, and others to judge by; the paper computes each context from its own series."""
    private, real, second = (
        simulate_correlated(size, correlation, seed=10 * seed + part)
        for part, size in enumerate((number, _JUDGED, _JUDGED))
    )
    return Experiment(private=private, real=real, second=second, judge=work.judge)


def _patient(work: Scale) -> Scale:
    """Returns a scale whose judges train at least a while."""
    cap = work.judge.iteration_cap
    return work if cap is None else replace(work, judge=replace(work.judge, iteration_cap=max(cap, LEAST_TRAINING)))


def _row(case: Case, work: Scale) -> Row:
    """Returns one case's figures over three seeds of data and fit."""
    found = [
        toy_experiment(work, case.series, case.correlation, seed).row(
            case.name, case.method, case.epsilon, FITS if case.published else 1
        )
        for seed in range(SEEDS)
    ]
    figures = {name: spread([line["metrics"][name]["mean"] for line in found]) for name in found[0]["metrics"]}
    return row(
        case.name,
        figures,
        epsilon=case.epsilon,
        delta=found[0]["delta"],
        unit=found[0]["unit"],
        paper=_PAPER[case.correlation] if case.published else {},
        seconds=float(np.sum([line["seconds"] for line in found])),
        seeds=SEEDS,
        correlation=case.correlation,
        series=case.series,
        epsilon_certified=max(line["epsilon_certified"] for line in found),
    )


def _falls(rows: Sequence[Row], number: int, epsilon: float) -> bool:
    """Whether the mean predictive error of the method falls with every step of the correlation."""
    means = [line["metrics"]["predictive"]["mean"] for line in _own(rows, number, epsilon)]
    return bool((np.diff(means) < 0).all())


def predictive_trend(rows: Sequence[Row], number: int, epsilon: float) -> dict[str, float]:
    """Returns the rank correlation of the error with the correlation over all seeds, and how often chance is as low."""
    pairs = [(line["correlation"], error) for line in _own(rows, number, epsilon) for error in _errors(line)]
    found = spearmanr(*np.transpose(pairs), alternative="less")
    return {"rank_correlation": float(found.statistic), "p": float(found.pvalue)}


def _own(rows: Sequence[Row], number: int, epsilon: float) -> list[Row]:
    wanted = ("pub2priv", number, epsilon)
    return [line for line in rows if (line["method"], line["series"], line["epsilon"]) == wanted]


def _errors(line: Row) -> list[float]:
    """Returns the errors of the three seeds, of which a row keeps the lowest, the highest and the mean."""
    found = line["metrics"]["predictive"]
    return [found["low"], SEEDS * found["mean"] - found["low"] - found["high"], found["high"]]
