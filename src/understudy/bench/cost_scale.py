"""`cost-scale`: seconds and memory of reading a Parquet table and fitting `spectral`, as the table grows.

Each size runs in a process of its own, so that its peak memory is its own.
"""

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from understudy.bench.cells import Cells
from understudy.bench.result import Progress, Row, Stopwatch, peak_rss_mb, result, row
from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time, read_panel
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.registry import METHODS

STEPS, CHANNELS = 24, 4
_SIZES = {
    "quick": (10_000, 100_000),
    "target": (10_000, 100_000, 1_000_000),
    "full": (10_000, 100_000, 1_000_000),
}
_CHUNK = 20_000


def scale_cost(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Seconds and peak memory of `spectral` at 10⁴, 10⁵ (and 10⁶) series of 24 steps and 4 channels."""
    rows, controls, sizes = [], [], _SIZES[scale]
    with tempfile.TemporaryDirectory() as folder:
        for place, size in enumerate(sizes):
            part = cells(str(size), partial(_both, Path(folder) / f"{size}.parquet", size))
            rows.append(part["spectral"])
            controls.append(part["independent"])
            progress(f"{size} series", (place + 1) / len(sizes))
    data = {"name": "random-walks", "sha256": None, "stand_in": False, "simulated": True}
    return result("cost-scale", scale, data, rows, controls)


def _both(table: Path, size: int) -> dict[str, Row]:
    """Measures the method and the control on one table."""
    _write_table(table, size)
    try:
        return {method: _measure(table, size, method) for method in ("spectral", "independent")}
    finally:
        table.unlink()


def schema_for(size: int) -> Schema:
    """Returns the public contract of the simulated walks."""
    return Schema(
        name="walks",
        population=Population(size),
        unit=PrivacyUnit(column="walk", dtype="int64"),
        time=Time(column="hour", frequency="1h", steps=STEPS, dtype="int32"),
        channels=tuple(Continuous(f"c{place}", -20.0, 20.0, dtype="float32") for place in range(CHANNELS)),
    )


def _write_table(path: Path, size: int) -> None:
    """Writes a long table of random walks, a few thousand series at a time."""
    writer = None
    for begin in range(0, size, _CHUNK):
        count = min(_CHUNK, size - begin)
        rng = np.random.default_rng([7, begin])
        steps = rng.standard_normal((count, STEPS, CHANNELS), dtype=np.float32)
        walks = np.clip(np.cumsum(steps, axis=1) * 0.5 + rng.standard_normal((count, 1, CHANNELS)), -20, 20)
        columns = {
            "walk": np.repeat(np.arange(begin, begin + count), STEPS),
            "hour": np.tile(np.arange(STEPS, dtype=np.int32), count),
            **{f"c{place}": walks[:, :, place].astype(np.float32).ravel() for place in range(CHANNELS)},
        }
        chunk = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, chunk.schema)
        writer.write_table(chunk)
    if writer is not None:
        writer.close()


def _measure(table: Path, size: int, method: str) -> Row:
    command = [sys.executable, "-m", "understudy.bench.cost_scale", str(table), str(size), method]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    facts = json.loads(answer.stdout)
    metrics = {
        "read_seconds": facts["read"],
        "fit_seconds": facts["fit"],
        "microseconds_per_series": 1e6 * (facts["read"] + facts["fit"]) / size,
    }
    epsilon = 2.0 if method == "spectral" else 0.0
    line = row(method, metrics, epsilon=epsilon, delta=default_delta(size), unit="entity", num_series=size)
    return {
        **line,
        "seconds": round(facts["read"] + facts["fit"], 3),
        "peak_rss_mb": round(facts["peak_rss_mb"], 1),
    }


def _child(table: str, size: int, method: str) -> dict[str, float]:
    watch = Stopwatch()
    panel = read_panel(Path(table), schema_for(size))
    read = watch.seconds
    guarantee = Guarantee(2.0, default_delta(size))
    METHODS[method]().fit(panel, Ledger.in_memory(guarantee, population=size))
    return {"read": read, "fit": watch.seconds - read, "peak_rss_mb": peak_rss_mb()}


if __name__ == "__main__":
    print(json.dumps(_child(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
