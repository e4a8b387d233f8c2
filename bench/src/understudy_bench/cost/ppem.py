"""`cost-ppem`: what the penalty of Eq. 18 costs an iteration. `ppem-tests`: Fig. 2 of PPEM."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.synthesizers.ppem.attributes import Partition, Rows
from understudy.synthesizers.ppem.published import (
    CONDITIONAL,
    CRITICAL_VALUE,
    MARGINAL,
    AdversarialTraining,
    generators_of,
    median_bandwidth,
    normalised_discrepancy,
    stein_pairs,
)
from understudy.synthesizers.ppem.recipe import Recipe
from understudy_bench.cells import Cells
from understudy_bench.metrics.stein import ONE_SIDED_CRITICAL_VALUE, studentised_discrepancy
from understudy_bench.result import Progress, Row, result, row

_BATCH, _COLUMNS, _HIDDEN = 128, 30, 5
_ROUNDS = {"quick": 40, "target": 200, "full": 1000}
_SETS = {"quick": 2000, "target": 10_000, "full": 10_000}
_POINTS = 128
# PPEM, section 5.1: five components of equal weight.
_MEANS = np.array([6.9734, 7.1579, 2.4358, 9.2579, 3.0420])
_VARIANCES = np.array([0.2622, 0.9046, 0.4533, 0.0773, 0.7823])


def cost(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Processor time of an iteration of both energies, steps taking turns, one thread (quick: a minute)."""
    rows = [_cost_row(width, _ROUNDS[scale]) for width in (64, 256)]
    progress("iterations", 1.0)
    return result("cost-ppem", scale, {"name": "made up", "sha256": None, "simulated": True}, rows, [])


def _cost_row(width: int, rounds: int) -> Row:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        figures = _timed({name: _iteration(name, width) for name in ("plain", "penalised")}, rounds)
    finally:
        torch.set_num_threads(threads)
    metrics: dict[str, float] = {f"{name}_ms": 1e3 * seconds for name, seconds in figures.items()}
    metrics["penalty_share"] = 1 - figures["plain"] / figures["penalised"]
    return row(f"width {width}", metrics, unit="row", batch=_BATCH)


def _timed(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Returns the median processor time of each step; they take turns, so that all meet the same machine."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            begin = time.process_time()
            step()
            found[name].append(time.process_time() - begin)
    return {name: float(np.median(times[rounds // 5 :])) for name, times in found.items()}


def _iteration(kind: str, width: int) -> Callable[[], None]:
    """Returns one update of both energies, with the penalty or without it."""
    training = _training(width, penalty=0.0 if kind == "plain" else 10.0)
    batch = [torch.from_numpy(rows) for rows in (training.rows.sensitive, training.rows.rest)]
    generator = torch.Generator().manual_seed(0)
    parameters = [weight for energy in training.energies.values() for weight in energy.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=1e-3)

    def update() -> None:
        optimiser.zero_grad()
        training.energy_loss(batch[0], batch[1], generator).backward()
        optimiser.step()

    return update


def _training(width: int, penalty: float) -> AdversarialTraining:
    names = [f"c{place}" for place in range(_COLUMNS)]
    schema = Schema(
        name="cost",
        population=Population(10_000),
        unit=PrivacyUnit(column="row"),
        time=Time(column="step", steps=1),
        channels=tuple(Continuous(name, -4.0, 4.0) for name in names),
    )
    partition = Partition.of(schema, ("+".join(names[:_HIDDEN]),))
    torch.manual_seed(0)
    rows = torch.randn(_BATCH, _COLUMNS).numpy()
    return AdversarialTraining(
        generators=generators_of((MARGINAL, CONDITIONAL), partition, Recipe(width=width), 0),
        partition=partition,
        rows=Rows(rows[:, :_HIDDEN], rows[:, :_HIDDEN].copy(), rows[:, _HIDDEN:].copy()),
        recipe=replace(Recipe(), width=width, batch=_BATCH, penalty=penalty),
        seed=0,
    )


def tests(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Fig. 2: two estimators on the paper's mixture and on random ones, true and false (quick: a minute)."""
    number, rng = _SETS[scale], np.random.default_rng(0)
    rows, shown = [], {}
    for place, (kind, same) in enumerate((("paper", True), ("paper", False), ("random", True), ("random", False))):
        found = _estimates(kind, same, number, rng)
        rates = {f"rejected_{name}": float(np.mean(values > limit)) for name, (values, limit) in found.items()}
        rates["negative_linear"] = float(np.mean(found["studentised"][0] < 0))
        rows.append(row(f"{kind} mixture, {'true' if same else 'other'} score", rates, unit="set", sets=number))
        if kind == "paper":
            shown["true" if same else "other"] = {
                name: np.quantile(values, np.linspace(0, 1, 201)).tolist() for name, (values, _) in found.items()
            }
        progress(kind, (place + 1) / 4)
    data = {"name": "mixtures", "sha256": None, "simulated": True}
    return {**result("ppem-tests", scale, data, rows, []), "ppem_tests": shown}


def _estimates(kind: str, same: bool, number: int, rng: np.random.Generator) -> dict[str, tuple[np.ndarray, float]]:
    """Returns statistics of every set with the critical value: normalised and studentised."""
    parts: dict[str, list[np.ndarray]] = {"normalised": [], "studentised": []}
    for points, scores in _sets(kind, same, number, rng):
        width = median_bandwidth(points)
        pairs = stein_pairs(points, scores, width)
        parts["normalised"].append(normalised_discrepancy(pairs).numpy())
        parts["studentised"].append(studentised_discrepancy(pairs).numpy())
    limits = (CRITICAL_VALUE, ONE_SIDED_CRITICAL_VALUE)
    return {name: (np.concatenate(own), limit) for (name, own), limit in zip(parts.items(), limits, strict=True)}


def _sets(kind: str, same: bool, number: int, rng: np.random.Generator) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields sets [set, point, 1] of mixtures and their scores, a hundred at a time."""
    for _ in range(number // 100):
        means, variances = _mixtures(kind, rng)
        judged = (means, variances) if same else _mixtures("random", rng)
        component = rng.integers(0, 5, (100, _POINTS))
        deviation = np.sqrt(np.take_along_axis(variances, component, 1))
        points = np.take_along_axis(means, component, 1) + deviation * rng.standard_normal(component.shape)
        yield torch.from_numpy(points[:, :, None]), torch.from_numpy(_scores(points, *judged)[:, :, None])


def _mixtures(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if kind == "random":
        return rng.uniform(0, 10, (100, 5)), rng.uniform(0.05, 1, (100, 5))
    return np.tile(_MEANS, (100, 1)), np.tile(_VARIANCES, (100, 1))


def _scores(points: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Returns ∇ log p of mixtures at points [set, point]."""
    pull = means[:, None, :] - points[:, :, None]
    log = -(pull**2) / (2 * variances[:, None]) - np.log(variances[:, None]) / 2
    share = np.exp(log - log.max(axis=2, keepdims=True))
    return np.asarray((share / share.sum(axis=2, keepdims=True) * pull / variances[:, None]).sum(axis=2))
