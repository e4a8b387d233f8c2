"""`cost-pub2priv`: private steps of the published denoiser by length and channels (Pub2Priv, Tables 6 and 7).

500 series in batches of 32 for 100 epochs are 1,563 steps; 20 are timed, private and ordinary ones in turn, processor
time of one thread, and the rest follows. Peak memory is that of a fresh process which takes a few private steps.
"""

import json
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch

from understudy.synthesizers.pub2priv.published import ConditionalDenoiser
from understudy_bench.cells import Cells
from understudy_bench.cost.dpsgd import _peak_kib
from understudy_bench.cost.dpsgd_engines import ENGINES, PLAIN, Step
from understudy_bench.cost.dpsgd_models import Workload, squared_error
from understudy_bench.result import Progress, Row, result, row

STEPS_OF_A_RUN = 100 * 500 // 32 + 1
SIZES = ((1, 100), (1, 200), (1, 300), (2, 100), (3, 100), (3, 300))  # channels, length
MOST_OVER_PLAIN, MOST_BEYOND_LINE = 1.25, 1.25
_BATCH, _KNOWLEDGE, _TIMED, _MEMORY_STEPS = 32, 128, 20, 2
_WIDTH = {"quick": 64, "target": 256, "full": 256}
# Table 6, seconds on a GPU machine; Table 7, megabytes of GPU memory (a second column "2 x 100" is left out).
_PAPER = {
    (1, 100): {"run_seconds": 136.0, "peak_mb": 1208.0},
    (1, 200): {"run_seconds": 142.0, "peak_mb": 1564.0},
    (1, 300): {"run_seconds": 201.0, "peak_mb": 5764.0},
    (2, 100): {"peak_mb": 1422.0},
    (3, 100): {"peak_mb": 2748.0},
}


def cost(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Seconds and memory of private steps of the published denoiser (quick: width 64; target: width 256)."""
    width, rows = _WIDTH[scale], []
    for place, (channels, length) in enumerate(SIZES, start=1):
        rows.append(cells(f"{scale} {channels} {length}", partial(_measured, width, channels, length)))
        progress(f"{channels} x {length}", place / len(SIZES))
    data = {"name": "random tensors", "sha256": None, "stand_in": False, "width": width, "steps": STEPS_OF_A_RUN}
    return result("cost-pub2priv", scale, data | {"memory_beyond_line": beyond_line(rows)}, rows, [])


def beyond_line(rows: list[Row]) -> dict[str, Any]:
    """Says how far memory leaves the line in length x channels that the smallest and the largest size span."""
    points = sorted((line["channels"] * line["length"], line["metrics"]["peak_mb"]) for line in rows)
    (low, first), (high, last) = points[0], points[-1]
    ratios = [memory / (first + (last - first) * (size - low) / (high - low)) for size, memory in points]
    return {"most": max(ratios), "least": min(ratios), "holds": max(ratios) <= MOST_BEYOND_LINE}


def _measured(width: int, channels: int, length: int) -> Row:
    """Times steps in turn, so that both kinds meet the same neighbours on the machine."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    steps: dict[str, Step] = {name: ENGINES[name](_workload(width, channels, length)) for name in (PLAIN, "ours")}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(_TIMED + 1):
        for name, step in steps.items():
            begin = time.process_time()
            step()
            times[name].append(time.process_time() - begin)
    private, plain = (statistics.median(times[name][1:]) for name in ("ours", PLAIN))
    metrics = {
        "step_seconds": private,
        "over_non_private": private / plain,
        "run_seconds": private * STEPS_OF_A_RUN,
        "peak_mb": _peak_of_another(width, channels, length),
    }
    found = row("pub2priv", metrics, unit="entity", paper=_PAPER.get((channels, length), {}))
    seconds = round(time.perf_counter() - started, 1)
    holds = metrics["over_non_private"] <= MOST_OVER_PLAIN
    return {**found, "seconds": seconds, "channels": channels, "length": length, "holds": holds}


def _workload(width: int, channels: int, length: int) -> Workload:
    torch.manual_seed(0)
    model = ConditionalDenoiser(condition=_KNOWLEDGE, width=width)
    x, z = torch.randn(_BATCH, length, channels), torch.randn(_BATCH, length, _KNOWLEDGE)
    return Workload(model, (x, torch.randint(400, (_BATCH,)), z), torch.randn_like(x), squared_error)


def _peak_of_another(width: int, channels: int, length: int) -> float:
    command = [sys.executable, "-m", "understudy_bench.cost.pub2priv", str(width), str(channels), str(length)]
    return float(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def _child(width: int, channels: int, length: int) -> float:
    torch.set_num_threads(1)
    step = ENGINES["ours"](_workload(width, channels, length))
    for _ in range(_MEMORY_STEPS):
        step()
    return round(_peak_kib() * 1024 / 1e6, 1)


if __name__ == "__main__":
    print(json.dumps(_child(*map(int, sys.argv[1:]))))
