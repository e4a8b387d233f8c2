"""`cost-audit`: shadows per minute, what a second process adds, and what a stack of vertical shadows saves.

Wall time, with one thread per process: how many shadows of each kind one process makes in a minute, and two processes
through joblib's loky. Their efficiency is the rate of two over twice the rate of one; on a machine that does other
things it says more about those. A stack is compared with one process per model in processor time, taking turns.
"""

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from understudy.auditing.shadows import Shadows, fit_shadows
from understudy.data import Panel, simulate_households
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.recipe import Recipe
from understudy.synthesizers.spectral import Spectral
from understudy_bench.audit.stack import Job, train_stack
from understudy_bench.audit.stock import small_vertical, some_windows
from understudy_bench.audit.vertical_shadows import AT_ONCE
from understudy_bench.cells import Cells
from understudy_bench.result import Progress, Row, Stopwatch, result, row

_BUDGET = Guarantee(2.0, 1e-6)
_HOMES, _WINDOWS = 500, 800
_ITERATIONS = {"quick": 100, "target": 300, "full": 1500}
_PER_ARM = {
    "quick": {"spectral": 20, "pets": 4},
    "target": {"spectral": 100, "pets": 20},
    "full": {"spectral": 300, "pets": 60},
}
_TURNS = {"quick": 3, "target": 5, "full": 9}


def cost(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Shadows per minute of three kinds."""
    homes, numbers = simulate_households(_HOMES), _PER_ARM[scale]
    windows, data = some_windows("stock", data_root, _WINDOWS)
    pets = PETS(recipe=Recipe(iterations=2, population=60))
    jobs: dict[str, Callable[[], dict[str, Any]]] = {
        "spectral": partial(_fanned_out, "spectral", _shadows(Spectral(), homes, numbers["spectral"])),
        "pets": partial(_fanned_out, "pets (small)", _shadows(pets, homes, numbers["pets"])),
        "vertical": partial(_stacked, windows, _ITERATIONS[scale], _TURNS[scale]),
    }
    rows = []
    for place, (name, job) in enumerate(jobs.items(), start=1):
        rows.append(cells(f"{scale} {name}", job))
        progress(name, place / len(jobs))
    return result("cost-audit", scale, data, rows, [])


def _shadows(method: Spectral | PETS, homes: Panel, per_arm: int) -> Shadows:
    return Shadows(method=method, panel=homes, target=0, guarantee=_BUDGET, per_arm=per_arm, num_samples=_HOMES)


def _fanned_out(name: str, shadows: Shadows) -> Row:
    """Shadows per minute of one process and of two; each warmed up, so that imports do not count."""
    watch = Stopwatch()
    rates = {workers: _per_minute(shadows, workers) for workers in (1, 2)}
    metrics = {
        "shadows per minute": rates[1],
        "with two processes": rates[2],
        "efficiency": rates[2] / (2 * rates[1]),
    }
    return row(name, metrics, seconds=watch.seconds, load=os.getloadavg()[0], cores=os.cpu_count())


def _per_minute(shadows: Shadows, workers: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        fit_shadows(replace(shadows, per_arm=workers), Path(folder) / "warm", workers=workers)
        watch = Stopwatch()
        fit_shadows(shadows, Path(folder) / "counted", workers=workers)
        return 60 * 2 * shadows.per_arm / watch.seconds


def _stacked(panel: Panel, iterations: int, turns: int) -> Row:
    """Processor seconds of one shadow: trained alone, and as one of a stack."""
    watch, before = Stopwatch(), torch.get_num_threads()
    torch.set_num_threads(1)
    method, guarantee = small_vertical(iterations), Guarantee(math.inf, 1e-5)

    def alone() -> None:
        method.fit(panel, Ledger.in_memory(guarantee, reproduction="a cost"), guarantee=guarantee)

    def together() -> None:
        train_stack(method, panel, [Job(seed=seed, units=np.arange(panel.num_units)) for seed in range(AT_ONCE)])

    try:
        alone()
        seconds: dict[str, list[float]] = {"alone": [], "together": []}
        for _ in range(turns):
            seconds["alone"].append(_processor_seconds(alone))
            seconds["together"].append(_processor_seconds(together) / AT_ONCE)
    finally:
        torch.set_num_threads(before)
    one, stacked = (statistics.median(seconds[kind]) for kind in ("alone", "together"))
    metrics = {"shadows per minute": 60 / one, "in a stack": 60 / stacked, "speedup": one / stacked}
    facts: dict[str, Any] = {"iterations": iterations, "at_once": AT_ONCE, "clock": "processor"}
    return row("vflgan-ts on Stock (small)", metrics, seconds=watch.seconds, **facts)


def _processor_seconds(work: Callable[[], None]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin
