"""`cost-vertical-wire`: what gRPC with mutual TLS adds to an iteration of `vflgan-ts`, two parties on loopback.

Shapes as in `cost-vertical`: Stock (6 attributes) and Energy (28), 24 steps, batches of 64, made-up rows. In one
process all sides compute one after another without a copy; apart, each party is a process and every frame is
serialised, encrypted and sent. Wall time of an iteration (two exchanges), the median over iterations, the two taking
turns; and processor time of all sides together, which a busy machine changes less.
Beside them the rest of Table 6 of VFLGAN-TS for one party: memory, bytes on the wire, time of its whole training.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.errors import InputError
from understudy.federated.transport import GrpcAggregatorLink, Identity, connect, make_identities, serve
from understudy.synthesizers.vflgan_ts.modes import fixed_batches
from understudy.synthesizers.vflgan_ts.protocol import Frame, RunConfig, converse, preside, take_part
from understudy.synthesizers.vflgan_ts.published import Aggregator, Party, Rows
from understudy.synthesizers.vflgan_ts.recipe import Recipe
from understudy.synthesizers.vflgan_ts.updates import PlainUpdate
from understudy_bench.cells import Cells
from understudy_bench.cost.vertical import ATTRIBUTES, BATCH, STEPS, UNITS
from understudy_bench.result import Progress, Row, peak_rss_mb, result, row

_PARTIES = ("first", "second")
_BLOCKS = {"quick": 3, "target": 8, "full": 20}
_ITERATIONS, _WARM_UP = 60, 10  # of a block
FEATURES = 256  # as published
_PATIENCE = 120.0
_ROUNDS = {"stock": 11_600, "energy": 30_800}  # of the paper's training: its bytes in all over its bytes of a round
_PAPER = {"stock": {"memory_mb": 621.0, "round_mb": 1.0}, "energy": {"memory_mb": 731.0, "round_mb": 1.0}}


def wire(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """One process beside one per party (a few minutes)."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows: list[Row] = []
        for place, name in enumerate(ATTRIBUTES, start=1):
            rows += cells(f"{scale} {name}", partial(_measured, name, _BLOCKS[scale]))["rows"]
            progress(name, place / len(ATTRIBUTES))
    finally:
        torch.set_num_threads(before)
    data = {"name": "made up", "sha256": None, "stand_in": False, "simulated": True}
    return result("cost-vertical-wire", scale, data, rows, [])


def _measured(name: str, num_blocks: int) -> dict[str, Any]:
    here, there = _Times(), _Times()
    memory_mb, round_mb = 0.0, _round_mb(name)
    with tempfile.TemporaryDirectory() as folder:
        make_identities(Path(folder) / "keys", _PARTIES, host="127.0.0.1")
        for _ in range(num_blocks):
            _in_one_process(name, here)
            memory_mb = _over_streams(name, Path(folder) / "keys", there)
    metrics = {
        "ms": there.wall_ms,
        "adds": there.wall_ms / here.wall_ms - 1,  # of the exchange in one process
        "processor_ms": there.processor_ms,
        "adds_processor": there.processor_ms / here.processor_ms - 1,
        "round_mb": round_mb,
        "memory_mb": memory_mb,
        "total_gb": round_mb * _ROUNDS[name] / 1e3,
        "training_minutes": there.wall_ms * _ROUNDS[name] / 6e4,
    }
    alone = {"ms": here.wall_ms, "processor_ms": here.processor_ms}
    rows = [
        row("all sides in one process", alone, dataset=name),
        row("a process for each party, gRPC with mutual TLS", metrics, paper=_PAPER[name], dataset=name),
    ]
    return {"rows": rows}


class _Times:
    """What iterations after the warm-up took: wall time each, and processor time of all sides together."""

    def __init__(self) -> None:
        self._wall: list[float] = []
        self._processor: list[float] = []

    @property
    def wall_ms(self) -> float:
        return 1e3 * statistics.median(self._wall)

    @property
    def processor_ms(self) -> float:
        return 1e3 * statistics.median(self._processor)

    def add(self, watch: "_Watch", others: float = 0.0) -> None:
        """Takes a run in, with processor seconds of an iteration at sides that were processes of their own."""
        wall, processor = watch.gaps
        self._wall += wall
        self._processor.append(statistics.fmean(processor) + others)


class _Watch:
    """Looks at both clocks before every iteration."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, float]] = []

    def look(self, iteration: int = 0) -> None:
        self._seen.append((time.perf_counter(), time.process_time()))

    @property
    def gaps(self) -> tuple[list[float], list[float]]:
        """Wall and processor seconds of each iteration after the warm-up."""
        pairs = list(pairwise(self._seen))[_WARM_UP:]
        return [b[0] - a[0] for a, b in pairs], [b[1] - a[1] for a, b in pairs]


def _in_one_process(name: str, times: _Times) -> None:
    parties, aggregator = _world(name)
    watch = _Watch()
    converse({party: own.side(_ignore) for party, own in parties.items()}, aggregator.side(watch.look))
    watch.look()
    times.add(watch)


def _over_streams(name: str, keys: Path, times: _Times) -> float:
    """Runs a block apart and returns the most memory that a party held, in MB."""
    _, aggregator = _world(name)
    link, watch = GrpcAggregatorLink(_PARTIES, _PATIENCE), _Watch()
    with serve(link, Identity.load(keys / "aggregator"), "127.0.0.1:0", len(_PARTIES)) as port:
        running = [_party_process(name, party, keys, port) for party in _PARTIES]
        preside(aggregator.side(watch.look), link.gather, link.scatter)
        watch.look()
        heard = [process.communicate(timeout=_PATIENCE) for process in running]
    if any(process.returncode for process in running):
        raise InputError(f"A party's process failed: {heard[0][1].decode()[-500:]}")
    told = [json.loads(out) for out, _ in heard]
    times.add(watch, sum(one["processor_seconds"] for one in told))
    return float(told[0]["memory_mb"])


def _party_process(name: str, party: str, keys: Path, port: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", __name__, name, party, str(keys / party), str(port)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _be_a_party(name: str, party: str, keys: str, port: str) -> None:
    torch.set_num_threads(1)
    own = _world(name)[0][party]
    watch = _Watch()
    with connect(Identity.load(Path(keys)), f"127.0.0.1:{port}", _PATIENCE) as link:
        take_part(own.side(watch.look), link.exchange)
        watch.look()
    print(json.dumps({"memory_mb": peak_rss_mb(), "processor_seconds": statistics.fmean(watch.gaps[1])}))


def _world(name: str) -> tuple[dict[str, Party], Aggregator]:
    """Returns two parties with half of the attributes each, and their aggregator, without noise."""
    schema = Schema(
        name="wire",
        population=Population(UNITS),
        unit=PrivacyUnit(column="unit"),
        time=Time(column="time", steps=STEPS),
        channels=(Continuous("value", -1.0, 1.0),),
    )
    recipe = Recipe(iterations=_ITERATIONS, batch=BATCH, learning_rate=2e-4, features=FEATURES)
    config = RunConfig(schema, recipe, "plain", 0)
    size = (UNITS, ATTRIBUTES[name] // len(_PARTIES), STEPS)
    held = {party: Rows(torch.randn(size), torch.zeros(UNITS, 0)) for party in _PARTIES}
    parties = {party: Party(party, rows, config, PlainUpdate) for party, rows in held.items()}
    return parties, Aggregator(_PARTIES, config, PlainUpdate, fixed_batches(BATCH, 0), np.ones(1))


def _round_mb(name: str) -> float:
    """Returns the bytes of all frames of one iteration, headers included."""
    parties, aggregator = _world(name)
    sizes: list[int] = []

    def watch(party: str, frame: Frame) -> None:
        if frame.iteration == 2:  # the first one lacks the answer to the one before
            sizes.append(len(frame.to_bytes()))

    converse({party: own.side(_ignore) for party, own in parties.items()}, aggregator.side(_ignore), watch)
    return sum(sizes) / 1e6  # M of Table 6 is 10⁶


def _ignore(iteration: int) -> None:
    """Counts nothing."""


if __name__ == "__main__":
    _be_a_party(*sys.argv[1:])
