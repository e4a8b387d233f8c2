"""`pub2priv-toy`: what context is worth, by its correlation with the private series (paper 000, Table 5)."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.bench.cells import Cells
from understudy.bench.pub2priv_experiment import NO_NOISE, SCALES, TRAINED, Experiment, Scale, methods
from understudy.bench.result import Progress, Row, result, row, spread
from understudy.data.correlated import simulate_correlated
from understudy.synthesizers.pub2priv import Pub2Priv

CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
SEEDS = 3
FITS = 3  # of each seed where units are few: one fit differs from the next by more than a correlation of 0.3 is worth
LEAST_TRAINING = 1_000  # of the judges: series are short, and with less nothing can be told apart
# Paper 000, Table 5: 100 series, epsilon 1, delta 1e-5.
_PAPER = {
    0.0: {"discriminative": 0.480, "predictive": 0.022},
    0.3: {"discriminative": 0.385, "predictive": 0.020},
    0.6: {"discriminative": 0.450, "predictive": 0.015},
    0.9: {"discriminative": 0.480, "predictive": 0.005},
}
_SETTINGS = ((100, 1.0), (100, NO_NOISE), (5_000, 1.0))  # as in the paper, what noise costs it, and enough series
_JUDGED = 400


def toy(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Series of trend and season whose context is correlated with them by 0, 0.3, 0.6 and 0.9; three seeds."""
    work = _patient(SCALES[scale])
    method = methods(work)["pub2priv"]
    rows: list[Row] = []
    controls: list[Row] = []
    for place, (number, epsilon) in enumerate(_SETTINGS):
        for step, correlation in enumerate(CORRELATIONS):
            compute = partial(_row, method, work, number, epsilon, correlation)
            rows.append(cells(f"{scale} {number} {epsilon} {correlation}", compute))
            progress(f"{number} series, correlation {correlation:g}", (place + step / 4) / len(_SETTINGS))
    for correlation in CORRELATIONS:
        experiment = toy_experiment(work, 100, correlation, 0)
        compute = partial(experiment.control, "second real series", experiment.second)
        controls.append({**cells(f"{scale} second {correlation}", compute), "correlation": correlation})
    data = {"name": "correlated toy", "sha256": None, "stand_in": False, "simulated": True}
    falls = {f"{number} series, epsilon {epsilon:g}": _falls(rows, number, epsilon) for number, epsilon in _SETTINGS}
    return result("pub2priv-toy", scale, data | {"predictive_falls": falls}, rows, controls)


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


def _row(method: Pub2Priv, work: Scale, number: int, epsilon: float, correlation: float) -> Row:
    """Returns one setting's figures over three seeds of data and fit."""
    as_published = (number, epsilon) == _SETTINGS[0]
    trained, fits = (TRAINED, FITS) if as_published else (("predictive",), 1)
    found = [
        toy_experiment(work, number, correlation, seed).row("pub2priv", method, epsilon, fits, trained)
        for seed in range(SEEDS)
    ]
    figures = {name: spread([line["metrics"][name]["mean"] for line in found]) for name in found[0]["metrics"]}
    return row(
        "pub2priv",
        figures,
        epsilon=epsilon,
        delta=found[0]["delta"],
        unit=found[0]["unit"],
        paper=_PAPER[correlation] if as_published else {},
        seconds=float(np.sum([line["seconds"] for line in found])),
        seeds=SEEDS,
        correlation=correlation,
        series=number,
        epsilon_certified=max(line["epsilon_certified"] for line in found),
    )


def _falls(rows: list[Row], number: int, epsilon: float) -> bool:
    """Whether the mean predictive error falls with every step of the correlation."""
    means = [r["metrics"]["predictive"]["mean"] for r in rows if (r["series"], r["epsilon"]) == (number, epsilon)]
    return bool((np.diff(means) < 0).all())
