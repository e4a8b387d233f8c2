"""`spectral-households`: simulated homes at three population sizes, protected as entities."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from understudy.data import Panel, Population, simulate_households
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.registry import METHODS
from understudy_bench.cells import Cells
from understudy_bench.metrics import distances as panel_distances
from understudy_bench.result import Progress, Row, Stopwatch, result, row

_SIZES = {"quick": (1_000, 10_000), "target": (1_000, 10_000, 100_000), "full": (1_000, 10_000, 100_000)}
_EPSILONS = (1.0, 2.0)
_LAGS = (1, 2, 6, 24)


def households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes, entity level: marginals, categories, gaps, lengths and dynamics (a few minutes)."""
    rows: list[Row] = []
    controls: list[Row] = []
    sizes = _SIZES[scale]
    for place, size in enumerate(sizes):
        homes = simulate_households(2 * size)
        real, holdout = homes.take_units(np.arange(size)), homes.take_units(np.arange(size, 2 * size))
        real = replace(real, schema=replace(real.schema, population=Population(size)))
        rows += [cells(f"{size} spectral {epsilon}", partial(_fit, real, "spectral", epsilon)) for epsilon in _EPSILONS]
        controls.append(row("holdout", distances(real, holdout), unit="entity", num_units=size))
        controls.append(cells(f"{size} independent", partial(_fit, real, "independent", 0.0)))
        progress(f"{size} homes", (place + 1) / len(sizes))
    data = {"name": "households", "sha256": None, "stand_in": False, "simulated": True}
    return result("spectral-households", scale, data, rows, controls)


def distances(real: Panel, synthetic: Panel) -> dict[str, float]:
    """Returns every distance of the benchmark; all are zero for a perfect stand-in."""
    return {
        **{f"ks_{name}": figure for name, figure in panel_distances.channel_distances(real, synthetic).items()},
        **{f"level_ks_{name}": figure for name, figure in panel_distances.level_distances(real, synthetic).items()},
        "tariff_total_variation": panel_distances.label_distance(real, synthetic),
        "gaps_ks": panel_distances.gap_distance(real, synthetic),
        "lengths_ks": panel_distances.length_distance(real, synthetic),
        "autocorrelation_error": panel_distances.autocorrelation_error(real, synthetic, _LAGS),
        "profile_error": panel_distances.profile_error(real, synthetic),
    }


def _fit(real: Panel, method: str, epsilon: float) -> Row:
    watch, size = Stopwatch(), real.num_units
    guarantee = Guarantee(epsilon or 1.0, default_delta(size))
    release = METHODS[method]().fit(real, Ledger.in_memory(guarantee, population=size))
    fitted = watch.seconds
    synthetic = release.sample(size, rng=np.random.default_rng(0))
    metrics = distances(real, synthetic)
    return row(
        method,
        {**metrics, "fit_seconds": fitted},
        epsilon=epsilon,
        delta=guarantee.delta,
        unit="entity",
        seconds=watch.seconds,
        num_units=size,
    )
