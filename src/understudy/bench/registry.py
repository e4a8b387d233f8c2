"""All benchmarks by name: each takes (scale, data folder, progress, finished parts) and returns one JSON object."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from understudy.bench.cells import Cells
from understudy.bench.result import Progress


def _spectral_stock(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Stock windows: error of a forecaster trained on synthetic windows (target: about 5 minutes)."""
    from understudy.bench.spectral_windows import stock

    return stock(scale, data_root, progress, cells)


def _spectral_energy(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Energy windows: error of a forecaster trained on synthetic windows (target: about 6 minutes)."""
    from understudy.bench.spectral_windows import energy

    return energy(scale, data_root, progress, cells)


def _spectral_households(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Simulated homes, entity level: marginals, categories, gaps, lengths and dynamics (target: about 10 minutes)."""
    from understudy.bench.spectral_households import households

    return households(scale, data_root, progress, cells)


def _cost_scale(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Seconds and peak memory of `spectral` from Parquet at 10⁴, 10⁵ and 10⁶ series (target: a few minutes)."""
    from understudy.bench.cost_scale import scale_cost

    return scale_cost(scale, data_root, progress, cells)


def _cost_dpsgd(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Private step over non-private step of five networks, beside Opacus (target: about 20 minutes)."""
    from understudy.bench.cost_dpsgd import MODELS, run

    parts = []
    for place, model in enumerate(MODELS, start=1):
        parts.append(cells(f"{scale} {model}", partial(run, scale, data_root, (model,))))
        progress(model, place / len(MODELS))
    rows, controls = ([line for part in parts for line in part[kind]] for kind in ("rows", "controls"))
    return {**parts[0], "rows": rows, "controls": controls}


def _metrics_catch(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Which metric catches which fake of simulated homes, and none that sees other real ones (quick: 6 minutes)."""
    from understudy.bench.metrics_catch import caught

    return caught(scale, data_root, progress, cells)


def _cost_voting(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Tiled nearest neighbours beside scikit-learn's brute force (target: a minute)."""
    from understudy.bench.pets_cost import voting

    return voting(scale, data_root, progress, cells)


def _cost_pets(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Seconds of an iteration of `pets` beside the encoder passes it can't avoid (target: a few minutes)."""
    from understudy.bench.pets_cost import evolution

    return evolution(scale, data_root, progress, cells)


BENCHMARKS: dict[str, Callable[[str, Path | None, Progress, Cells], dict[str, Any]]] = {
    "spectral-stock": _spectral_stock,
    "spectral-energy": _spectral_energy,
    "spectral-households": _spectral_households,
    "cost-scale": _cost_scale,
    "cost-dpsgd": _cost_dpsgd,
    "metrics-catch": _metrics_catch,
    "cost-voting": _cost_voting,
    "cost-pets": _cost_pets,
}
