"""`spectral-stock` and `spectral-energy`: forecasting with a model that saw synthetic windows only.

As in VFLGAN-TS each overlapping window counts as a unit, which protects no person; the certificate says so. Windows
are split 80/20 at random, the method is fitted to the larger part, and an LSTM(64) forecasts the 24th step. Values are
scaled by the extremes of the public file for the error only; the method works with the declared bounds, which are
round numbers chosen after looking at the public file's extremes.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.data import Panel, Population
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.base import Synthesizer
from understudy.synthesizers.registry import METHODS
from understudy_bench.cells import Cells
from understudy_bench.data.datasets import load_windows
from understudy_bench.metrics.forecasting import forecast_error, persistence_error
from understudy_bench.result import Progress, Row, Stopwatch, result, row, spread

EPSILONS = (1.0, 2.0, 10.0)
# VFLGAN-TS, Table 4: MAE of DPVFLGAN-TS trained on synthetic and tested on real, and on real for both.
_PAPER = {
    "stock": {2.0: {"tstr_mae": 0.126, "trtr_mae": 0.050}, 10.0: {"tstr_mae": 0.109, "trtr_mae": 0.050}},
    "energy": {2.0: {"tstr_mae": 0.186, "trtr_mae": 0.062}, 10.0: {"tstr_mae": 0.169, "trtr_mae": 0.062}},
}


@dataclass(frozen=True)
class _Effort:
    repeats: int
    epochs: dict[str, int]


_EFFORT = {
    "quick": _Effort(1, {"stock": 40, "energy": 6}),
    "target": _Effort(3, {"stock": 100, "energy": 20}),
    "full": _Effort(10, {"stock": 100, "energy": 20}),
}


def stock(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Stock windows: error of a forecaster trained on synthetic windows (minutes; target: about 15)."""
    return _run("stock", scale, data_root, progress, cells)


def energy(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Energy windows: error of a forecaster trained on synthetic windows (minutes; target: about 30)."""
    return _run("energy", scale, data_root, progress, cells)


def _run(name: str, scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    panel, info = load_windows(name, data_root)
    effort = _EFFORT[scale]
    low, high = panel.values.min(axis=(0, 1)), panel.values.max(axis=(0, 1))
    splits = [_split(panel, seed) for seed in range(effort.repeats)]
    work = _Work(name, effort, low, high)
    real = cells(
        f"{scale} real",
        lambda: {"errors": [work.error(train.values, test, seed) for seed, (train, test) in enumerate(splits)]},
    )["errors"]
    progress("train on real", 0.2)
    rows = []
    for place, epsilon in enumerate(EPSILONS):
        rows.append(cells(f"{scale} spectral {epsilon}", partial(work.row, "spectral", epsilon, splits, real)))
        progress(f"spectral, epsilon {epsilon:g}", 0.2 + 0.6 * (place + 1) / len(EPSILONS))
    controls = [
        row(
            "train-on-real",
            {"tstr_mae": spread(real), "trtr_mae": spread(real), "ratio": 1.0},
            unit=work.unit,
        ),
        row(
            "persistence",
            {"tstr_mae": spread([persistence_error(work.scaled(test.values)) for _, test in splits])},
        ),
        cells(f"{scale} independent", partial(work.row, "independent", 0.0, splits[:1], real[:1])),
    ]
    facts = {"name": name, "sha256": info.sha256, "stand_in": info.stand_in, "epochs": effort.epochs[name]}
    return result(f"spectral-{name}", scale, facts, rows, controls)


@dataclass(frozen=True)
class _Work:
    """One dataset's measuring."""

    name: str
    effort: _Effort
    low: np.ndarray
    high: np.ndarray
    unit: str = "overlapping-window"

    def scaled(self, values: np.ndarray) -> np.ndarray:
        """Returns values between the extremes of the public file."""
        return (values - self.low) / (self.high - self.low)

    def error(self, values: np.ndarray, test: Panel, seed: int) -> float:
        """Returns the forecaster's error on real windows after training on `values`."""
        epochs = self.effort.epochs[self.name]
        return forecast_error(self.scaled(values), self.scaled(test.values), epochs=epochs, seed=seed)

    def row(self, method: str, epsilon: float, splits: list[tuple[Panel, Panel]], real: list[float]) -> Row:
        """Fits, samples as many windows as there are, and measures."""
        watch, errors, fitting = Stopwatch(), [], 0.0
        delta = default_delta(splits[0][0].num_units)
        for seed, (train, test) in enumerate(splits):
            fit = Stopwatch()
            synthetic = _sample(METHODS[method](), train, epsilon, delta, seed)
            fitting += fit.seconds / len(splits)
            errors.append(self.error(synthetic.values, test, seed))
        metrics = {
            "tstr_mae": spread(errors),
            "trtr_mae": spread(real),
            "ratio": float(np.mean(errors) / np.mean(real)),
            "fit_and_sample_seconds": fitting,
        }
        paper = _PAPER[self.name].get(epsilon, {})
        return row(method, metrics, epsilon=epsilon, delta=delta, unit=self.unit, paper=paper, seconds=watch.seconds)


def _split(panel: Panel, seed: int) -> tuple[Panel, Panel]:
    order = np.random.default_rng(seed).permutation(panel.num_units)
    cut = int(0.8 * panel.num_units)
    train, test = panel.take_units(order[:cut]), panel.take_units(order[cut:])
    return replace(train, schema=replace(train.schema, population=Population(cut))), test


def _sample(method: Synthesizer, train: Panel, epsilon: float, delta: float, seed: int) -> Panel:
    guarantee = Guarantee(epsilon or 1.0, delta)
    release = method.fit(train, Ledger.in_memory(guarantee, population=train.schema.population.size))
    return release.sample(train.num_series, rng=np.random.default_rng(seed))
