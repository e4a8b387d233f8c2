"""`cost-judges`: an update of the recurrent network that judges series, with our GRU and with torch's, in turn."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from understudy_bench.cells import Cells
from understudy_bench.metrics.networks import Recurrent, seeded, train_iterations
from understudy_bench.result import Progress, Row, result, row, spread

_SIZES = ((52, 1), (100, 1), (168, 2), (360, 4))  # steps and channels: electricity, toy, homes, portfolios
_BATCH, _HIDDEN, _UPDATES = 128, 8, 3
_ROUNDS = {"quick": 5, "target": 15, "full": 15}


def cost(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Processor seconds of an update of a judge at every step, one thread; `speedup` is the ratio in one run."""
    rows = []
    for place, (steps, channels) in enumerate(_SIZES, start=1):
        rows.append(cells(f"{scale} {steps}", partial(_compared, steps, channels, _ROUNDS[scale])))
        progress(f"{steps} steps", place / len(_SIZES))
    data = {"name": "uniform noise", "sha256": None, "stand_in": False, "simulated": True}
    return result("cost-judges", scale, data, [part["ours"] for part in rows], [part["torch"] for part in rows])


def _compared(steps: int, channels: int, rounds: int) -> dict[str, Row]:
    """Returns the rows of both, measured alternately; each round gives one ratio."""
    seconds: dict[str, list[float]] = {"ours": [], "torch": []}
    for _ in range(rounds):
        for name in seconds:
            seconds[name].append(_update_seconds(name == "torch", steps, channels))
    ratios = [theirs / ours for ours, theirs in zip(seconds["ours"], seconds["torch"], strict=True)]
    told = {"ours": f"ours, {channels} × {steps}", "torch": f"nn.GRU, {channels} × {steps}"}
    figures = {"ours": {"speedup": {**spread(ratios), "mean": float(np.median(ratios))}}, "torch": {}}
    return {
        name: row(told[name], {"update_seconds": spread(taken), **figures[name]}, seconds=sum(taken))
        for name, taken in seconds.items()
    }


def _update_seconds(torchs_own: bool, steps: int, channels: int) -> float:
    with seeded(0):
        model: nn.Module = Recurrent("gru", inputs=channels, hidden=_HIDDEN, outputs=1, every_step=True)
        if torchs_own:
            model.set_submodule("recurrent", nn.GRU(channels, _HIDDEN, batch_first=True))
        series = torch.rand(_BATCH, steps, channels)
        train_iterations(model, lambda: model(series).square().mean(), 1)  # what is set up once is not counted
        begin = time.process_time()
        train_iterations(model, lambda: model(series).square().mean(), _UPDATES)
        return (time.process_time() - begin) / _UPDATES
