"""`cost-dit`: how fast the transformer samples, and what bounding its condition adds to a private step."""

import resource
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.dit.denoising import Denoising, mirrored_noise
from understudy.synthesizers.dit.method import DiT
from understudy.synthesizers.dit.recipe import Network, Recipe
from understudy.training import DPSGDConfig, PrivateGradient, UnitWindows, adam
from understudy_bench.cells import Cells
from understudy_bench.result import Progress, Row, result, row

STEPS, CHANNELS, DDIM_STEPS = 168, 7, 50
_SERIES = {"quick": (50, 100), "target": (500, 1000), "full": (1000, 2000)}
_ROUNDS = {"quick": 5, "target": 15, "full": 15}
_BATCH = 64
_PAPER = {"bounded": {"over_unbounded": 0.169 / 0.168}}  # DP-aware AdaLN-Zero, Table 18: DP-aware over DP-vanilla


def cost(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Processor seconds on one thread: sampling at two sizes, and a private step with and without bounds."""
    rows = []
    for place, number in enumerate(_SERIES[scale]):
        rows.append(cells(f"{scale} sampling {number}", partial(_sampling, number)))
        progress("sampling", 0.3 * (place + 1))
    steps = cells(f"{scale} steps", partial(_steps, _ROUNDS[scale]))
    data = {"name": "white noise", "sha256": None, "stand_in": False, "simulated": True}
    return result("cost-dit", scale, data, [*rows, steps["bounded"]], [steps["unbounded"]])


def _schema() -> Schema:
    channels = tuple(Continuous(f"c{place}", -4.0, 4.0) for place in range(CHANNELS))
    return Schema(
        name="cost", population=Population(1000), unit=PrivacyUnit(), time=Time(column="when", steps=STEPS),
        channels=channels,
    )  # fmt: skip


def _denoising() -> Denoising:
    memory = np.tile(np.array([0.3, 0.7, 0.5, 0.8, 0.8, 0.5, 0.8])[:, None], CHANNELS)
    return Denoising(autocovariance=memory, season=24, num_channels=CHANNELS, num_classes=1)


def _sampling(number: int) -> Row:
    model = DiT().empty_network(_schema()).train(False)
    shape = (number, STEPS, CHANNELS)
    nothing = np.zeros(shape, dtype=bool)
    rows = {"x": nothing.astype(np.float32), "known": nothing, "hidden": ~nothing, "label": np.zeros(number, np.int64)}
    before, begin = _peak(), time.process_time()
    _denoising().fill(model, rows, mirrored_noise(shape, np.random.default_rng(0)), num_steps=DDIM_STEPS)
    seconds = time.process_time() - begin
    metrics = {"series_per_second": number / seconds, "extra_mb": _peak() - before}
    return row("sampling, DDIM-50", metrics, seconds=seconds, num_series=number)


def _steps(rounds: int) -> dict[str, Row]:
    """Returns the median processor seconds of a private step, the two networks in turn."""
    steps = {name: _step(tightness) for name, tightness in (("bounded", "medium"), ("unbounded", "none"))}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            begin = time.process_time()
            step()
            if turn:  # the first round warms up
                seconds[name].append(time.process_time() - begin)
    ratio = float(np.median(np.array(seconds["bounded"]) / np.array(seconds["unbounded"])))
    return {
        name: row(
            f"private step, {name}",
            {"seconds": float(np.median(own)), "over_unbounded": ratio},
            num_units=_BATCH,
            paper=_PAPER.get(name, {}),
        )
        for name, own in seconds.items()
    }


def _step(tightness: Any) -> Any:
    model = DiT(recipe=Recipe(network=Network(tightness=tightness))).empty_network(_schema())
    rng = np.random.default_rng(0)
    examples = {
        "x": rng.standard_normal((_BATCH, STEPS, CHANNELS)).astype(np.float32),
        "known": np.ones((_BATCH, STEPS, CHANNELS), dtype=bool),
        "label": np.zeros(_BATCH, dtype=np.int64),
    }
    windows = UnitWindows(examples, np.arange(_BATCH), rng)
    plan = DPSGDConfig(sampling_rate=1.0, iterations=1, expected_batch=_BATCH, noise_multiplier=1.0)
    gradient = PrivateGradient(model, plan, NoiseSource.secure())
    optimiser, generator = gradient.flat.optimiser(adam(1e-3)), torch.Generator().manual_seed(0)

    def step() -> None:
        gradient.write(_denoising().loss, windows, np.arange(_BATCH), generator)
        optimiser.step()

    return step


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
