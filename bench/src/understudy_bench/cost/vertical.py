"""`cost-vertical`: an iteration of `vflgan-ts` with stacked networks beside one network and one Adam per attribute.

Shapes are those of Stock (6 attributes, 24 steps) and Energy (28), two parties, batches of 64; the rows are made up.
Times are processor time of one thread, the median over iterations, with the engines taking turns: figures of one run
can be divided by each other whatever else the machine does. Beside them Table 6 of VFLGAN-TS: operations, memory,
parameters and bytes of one party.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.modes import Rule, fixed_batches
from understudy.synthesizers.vflgan_ts.protocol import Frame, RunConfig, converse
from understudy.synthesizers.vflgan_ts.published import Aggregator, Party, Rows
from understudy.synthesizers.vflgan_ts.recipe import LATENT, Recipe
from understudy.synthesizers.vflgan_ts.updates import ClippedUpdate, PlainUpdate
from understudy.training.plan import DPSGDConfig
from understudy_bench.cells import Cells
from understudy_bench.cost.vertical_reference import OneByOne
from understudy_bench.result import Progress, Row, result, row

STEPS, UNITS, BATCH = 24, 2000, 64
ATTRIBUTES = {"stock": 6, "energy": 28}
_BLOCKS = {"quick": 4, "target": 12, "full": 30}
_ITERATIONS, _WARM_UP = 20, 5  # of a block
# VFLGAN-TS, Table 6, per participant: operations, parameters, bytes per round and of its training.
_PAPER = {
    "stock": {"forward_mega_flops": 61.95, "parameters_mb": 3.86, "round_mb": 1.0, "total_gb": 11.6},
    "energy": {"forward_mega_flops": 289.75, "parameters_mb": 17.98, "round_mb": 1.0, "total_gb": 30.8},
}
_ROUNDS = {"stock": 11_600, "energy": 30_800}


def cost(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Stacked networks beside one per attribute, sound beside plain, and Table 6 (a few minutes)."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows: list[Row] = []
        for place, name in enumerate(ATTRIBUTES, start=1):
            part = cells(f"{scale} {name}", partial(_measured, name, _BLOCKS[scale]))
            rows += part["rows"]
            progress(name, place / len(ATTRIBUTES))
    finally:
        torch.set_num_threads(before)
    data = {"name": "made up", "sha256": None, "stand_in": False, "simulated": True}
    return result("cost-vertical", scale, data, rows, [])


def _measured(name: str, num_blocks: int) -> dict[str, Any]:
    engines: dict[str, Callable[[], list[float]]] = {
        "one by one": OneByOne(ATTRIBUTES[name], STEPS, UNITS, BATCH, _ITERATIONS).seconds,
        "plain": partial(_stacked_seconds, name, "plain"),
        "sound": partial(_stacked_seconds, name, "sound"),
    }
    seconds: dict[str, list[float]] = {engine: [] for engine in engines}
    for _ in range(num_blocks):
        for engine, measure in engines.items():
            seconds[engine] += measure()[_WARM_UP:]
    middle = {engine: 1e3 * statistics.median(found) for engine, found in seconds.items()}
    reference = row("one network and one Adam per attribute", {"ms": middle["one by one"]}, dataset=name)
    plain = {"ms": middle["plain"], "speedup": middle["one by one"] / middle["plain"], **_table_6(name)}
    sound = {"ms": middle["sound"], "speedup": middle["one by one"] / middle["sound"]}
    sound["over_plain"] = middle["sound"] / middle["plain"]
    rows = [
        reference,
        row("vflgan-ts, plain", plain, paper=_PAPER[name], dataset=name),
        row("vflgan-ts, sound", sound, dataset=name),
    ]
    return {"rows": rows}


def _world(name: str, mode: str, iterations: int) -> tuple[dict[str, Party], Aggregator]:
    """Returns two parties with half of the attributes each, and their aggregator."""
    recipe = Recipe(iterations=iterations, batch=BATCH, learning_rate=2e-4, features=256)
    config = RunConfig(_schema(), recipe, mode, 0)
    plain = Rule(PlainUpdate, PlainUpdate, fixed_batches(BATCH, 0))
    rule = plain if mode == "plain" else _sound_rule(iterations)
    size = (UNITS, ATTRIBUTES[name] // 2, STEPS)
    held = {party: Rows(torch.randn(size), torch.zeros(UNITS, 0)) for party in ("first", "second")}
    parties = {party: Party(party, rows, config, rule.party) for party, rows in held.items()}
    return parties, Aggregator(tuple(parties), config, rule.aggregator, rule.batches, np.ones(1))


def _sound_rule(iterations: int) -> Rule:
    plan = DPSGDConfig(sampling_rate=BATCH / UNITS, iterations=iterations, expected_batch=BATCH, noise_multiplier=1.0)
    noise = NoiseSource.secure()
    update = partial(ClippedUpdate, block=plan.split(3), noise=noise)

    def batches(num_rows: int) -> Iterator[Tensor]:
        return (torch.from_numpy(drawn) for drawn in plan.draw(num_rows, noise))

    return Rule(update, update, batches)


def _stacked_seconds(name: str, mode: str) -> list[float]:
    """Returns the time of each iteration of a short run."""
    parties, aggregator = _world(name, mode, _ITERATIONS)
    started: list[float] = []
    sides = {party: own.side(_ignore) for party, own in parties.items()}
    converse(sides, aggregator.side(lambda iteration: started.append(time.process_time())))
    return list(np.diff([*started, time.process_time()]))


def _table_6(name: str) -> dict[str, float]:
    """Returns what one party costs: operations of a batch, parameters, bytes of a round and of the paper's training."""
    parties, aggregator = _world(name, "plain", 1)
    counted: list[int] = []

    def watch(party: str, frame: Frame) -> None:
        if frame.stage != "greeting" and party == "first":
            counted.append(sum(tensor.nbytes for tensor in frame.tensors.values()))

    converse({party: own.side(_ignore) for party, own in parties.items()}, aggregator.side(_ignore), watch)
    first = parties["first"]
    with FlopCounterMode(display=False) as flops, torch.no_grad():
        made = first.generators(torch.randn(BATCH, LATENT))
        first.discriminators(made)
        first.extractor(made.flatten(1))
    modules = (first.generators, first.discriminators, first.extractor)
    parameters = sum(parameter.numel() for module in modules for parameter in module.parameters())
    round_mb = sum(counted) / 1e6  # M and G of Table 6 are 10⁶ and 10⁹
    return {
        "forward_mega_flops": flops.get_total_flops() / 1e6,  # of one batch through all networks of a party
        "parameters_mb": 4 * parameters / 1e6,
        "round_mb": round_mb * len(parties),
        "total_gb": round_mb * len(parties) * _ROUNDS[name] / 1e3,
    }


def _schema() -> Schema:
    return Schema(
        name="cost",
        population=Population(UNITS),
        unit=PrivacyUnit(column="unit"),
        time=Time(column="time", steps=STEPS),
        channels=(Continuous("value", -1.0, 1.0),),
    )


def _ignore(iteration: int) -> None:
    """Counts nothing."""
