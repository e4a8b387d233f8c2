"""What privacy costs: one DP-SGD step ÷ one ordinary step of the same network, batch and optimiser.

CPU time of one thread, all engines interleaved in one process and rotated every round, medians over rounds. A
DP step is forward, backward, clip, secure noise and Adam. Peak memory is that of a fresh process per engine.
Inputs are random tensors: the cost does not depend on their values.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from understudy_bench.cells import Cells
from understudy_bench.cost import dpsgd_engines as engines
from understudy_bench.cost.dpsgd_models import MODELS, Workload
from understudy_bench.result import Progress, result

NAME = "cost-dpsgd"
ROUNDS = {"quick": 3, "target": 9, "full": 21}  # at least; cheap networks get more
_MOST_ROUNDS = 10  # times the above
_ROUND_SECONDS = 1.0  # a round cheaper than this is repeated
_BLOCK_SECONDS = 0.02  # short steps are timed many at a time
_MEMORY_STEPS = 3

Step = Callable[[], None]


def all_models(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """The benchmark: one finished part for each network."""
    parts = []
    for place, model in enumerate(MODELS, start=1):
        parts.append(cells(f"{scale} {model}", partial(run, scale, data_root, (model,))))
        progress(model, place / len(MODELS))
    rows, controls = ([line for part in parts for line in part[kind]] for kind in ("rows", "controls"))
    return result(NAME, scale, parts[0]["data"], rows, controls)


def run(scale: str, data_root: Path | None = None, models: tuple[str, ...] = tuple(MODELS)) -> dict[str, Any]:
    """Returns the whole result as one JSON object.

    Args:
        scale: "quick", "target" or "full": how many rounds.
        data_root: not used; random tensors need no files.
        models: which of the networks to measure.
    """
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    controls: list[dict[str, Any]] = []
    for model in models:
        started = time.perf_counter()
        times, missing = _measure(MODELS[model], ROUNDS[scale])
        memory = {engine: peak_rss_mb(model, engine) for engine in times if engine != engines.AGAIN}
        private = [engine for engine in engines.PRIVATE if engine in times]
        seconds = (time.perf_counter() - started) / (1 + len(private))  # they take turns
        controls.append(_control(model, times, memory, seconds))
        rows += [_row(model, engine, times, memory, seconds) for engine in private]
        rows += [_missing_row(model, engine, reason) for engine, reason in missing.items()]
    data = {"name": "random tensors", "sha256": None, "stand_in": False}
    return result(NAME, scale, data, rows, controls)


def _measure(make: Callable[[], Workload], rounds: int) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Returns CPU seconds per step of every engine and round, and why an engine is missing."""
    steps: dict[str, Step] = {}
    missing: dict[str, str] = {}
    for engine, build in engines.ENGINES.items():
        try:
            steps[engine] = build(make())
        except engines.Unavailable as reason:
            missing[engine] = str(reason)
    repeats = _repeats(steps[engines.PLAIN])
    times: dict[str, list[float]] = {engine: [] for engine in steps}
    begin = time.process_time()
    for step in steps.values():
        for _ in range(repeats):
            step()
    rounds *= min(_MOST_ROUNDS, math.ceil(_ROUND_SECONDS / (time.process_time() - begin)))
    order = list(steps)
    for turn in range(rounds):
        for engine in order[turn % len(order) :] + order[: turn % len(order)]:
            begin = time.process_time()
            for _ in range(repeats):
                steps[engine]()
            times[engine].append((time.process_time() - begin) / repeats)
    return times, missing


def _repeats(step: Step) -> int:
    for _ in range(3):
        step()
    begin = time.process_time()
    step()
    return max(1, round(_BLOCK_SECONDS / max(time.process_time() - begin, 1e-6)))


def _ratio(times: Mapping[str, list[float]], engine: str) -> dict[str, Any]:
    """Ratio of medians, with the 5th and 95th percentile over resampled rounds."""
    private, plain = np.array(times[engine]), np.array(times[engines.PLAIN])
    rng = np.random.default_rng(0)
    picks = rng.integers(0, len(plain), size=(2000, len(plain)))
    spread = np.median(private[picks], axis=1) / np.median(plain[picks], axis=1)
    low, high = np.quantile(spread, [0.05, 0.95])
    middle = statistics.median(times[engine]) / statistics.median(times[engines.PLAIN])
    return {"ratio": {"mean": round(middle, 3), "low": round(float(low), 3), "high": round(float(high), 3)}}


def _row(
    model: str, engine: str, times: Mapping[str, list[float]], memory: Mapping[str, float], seconds: float
) -> dict[str, Any]:
    metrics = {
        **_ratio(times, engine),
        "step_ms": round(1e3 * statistics.median(times[engine]), 3),
        "non_private_step_ms": round(1e3 * statistics.median(times[engines.PLAIN]), 3),
        "peak_rss_mb": memory[engine],
        "non_private_peak_rss_mb": memory[engines.PLAIN],
        "memory_ratio": round(memory[engine] / memory[engines.PLAIN], 3),
    }
    return _labelled(model, engine) | {
        "metrics": metrics,
        "seconds": round(seconds, 1),
        "peak_rss_mb": memory[engine],
    }


def _control(model: str, times: dict[str, list[float]], memory: dict[str, float], seconds: float) -> dict[str, Any]:
    """The non-private step against a second copy of itself: 1 but for the noise of the clock."""
    cost = {"metrics": _ratio(times, engines.AGAIN), "seconds": round(seconds, 1), "peak_rss_mb": memory[engines.PLAIN]}
    return _labelled(model, engines.PLAIN) | {"method": "non-private"} | cost


def _missing_row(model: str, engine: str, reason: str) -> dict[str, Any]:
    return _labelled(model, engine) | {"metrics": {}, "missing": reason, "seconds": 0.0, "peak_rss_mb": None}


def _labelled(model: str, engine: str) -> dict[str, Any]:
    nothing: dict[str, Any] = {"epsilon": None, "delta": None, "unit": None, "paper": {}}
    return {"method": "dp-sgd", "model": model, "engine": engine, **nothing}


def peak_rss_mb(model: str, engine: str) -> float:
    """Returns the peak resident memory of a fresh process that takes a few steps."""
    command = [sys.executable, "-m", "understudy_bench.cost.dpsgd", "--memory", model, engine]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.strip().splitlines()[-1])


def _memory_of_this_process(model: str, engine: str) -> float:
    torch.set_num_threads(1)
    step = engines.ENGINES[engine](MODELS[model]())
    for _ in range(_MEMORY_STEPS):
        step()
    return round(_peak_kib() / 1024, 1)


def _peak_kib() -> int:
    """Peak of this program alone; the usual ru_maxrss also remembers the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(arguments: list[str] | None = None) -> None:
    """Prints the result as JSON."""
    parser = argparse.ArgumentParser(prog="python -m understudy_bench.cost.dpsgd", description=__doc__)
    parser.add_argument("--scale", choices=tuple(ROUNDS), default="quick")
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument("--out", type=Path, help="write the JSON there as well")
    parser.add_argument("--memory", nargs=2, metavar=("MODEL", "ENGINE"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.memory:
        print(_memory_of_this_process(*options.memory))
        return
    text = json.dumps(run(options.scale, models=tuple(options.models)), indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
