"""`cost-scale`: seconds and memory of `spectral` as the table grows, in memory and from partitions on disk.

Each size runs in a process of its own, so that its peak memory is its own. Tables in partitions are opened, checked and
read again for every release, by one process or by several.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from joblib.externals.loky import get_reusable_executor

from understudy.data import Continuous, Panel, Population, PrivacyUnit, Schema, Table, Time, open_table, read_panel
from understudy.privacy.budget import Guarantee, default_delta
from understudy.privacy.ledger import Ledger
from understudy.synthesizers.registry import METHODS
from understudy_bench.cells import Cells
from understudy_bench.result import Progress, Row, Stopwatch, peak_rss_mb, result, row

STEPS, CHANNELS = 24, 4
_CHUNK = 20_000
_PARTITION = 250_000  # series in a file


@dataclass(frozen=True)
class Shape:
    """One table: how many series of how many steps and channels, in memory or in partitions read by some processes."""

    series: int
    steps: int = STEPS
    channels: int = CHANNELS
    workers: int = 0  # 0 reads the whole table into memory

    @property
    def name(self) -> str:
        """Such as 1000000x24x2 by 2."""
        table = f"{self.series}x{self.steps}x{self.channels}"
        return table if not self.workers else f"{table} by {self.workers}"


_WHOLE = [Shape(size) for size in (10_000, 100_000, 1_000_000)]
_LARGE = [
    Shape(1_000_000, 24, 2, 1),
    Shape(1_000_000, 24, 2, 2),
    Shape(10_000_000, 24, 2, 2),
    Shape(1_000_000, 168, 2, 2),
]
_SHAPES = {
    "quick": [*_WHOLE[:2], Shape(100_000, 24, 2, 1), Shape(100_000, 24, 2, 2)],
    "target": [*_WHOLE, *_LARGE],
    "full": [*_WHOLE, *_LARGE],
}


def scale_cost(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Seconds and peak memory of `spectral` at 10⁴ to 10⁶ series in memory, and up to 10⁷ from partitions."""
    rows, controls, shapes = [], [], _SHAPES[scale]
    with tempfile.TemporaryDirectory() as folder:
        for place, shape in enumerate(shapes):
            part = cells(shape.name, partial(_both, Path(folder) / str(place), shape))
            rows.append(part["spectral"])
            controls.append(part["independent"])
            progress(shape.name, (place + 1) / len(shapes))
    data = {"name": "random-walks", "sha256": None, "stand_in": False, "simulated": True}
    return result("cost-scale", scale, data, rows, controls)


def _both(folder: Path, shape: Shape) -> dict[str, Row]:
    """Measures the method and the control on one table."""
    folder.mkdir()
    write_table(folder, shape)
    try:
        return {method: _measure(folder, shape, method) for method in ("spectral", "independent")}
    finally:
        for file in folder.iterdir():
            file.unlink()


def schema_for(size: int, steps: int = STEPS, channels: int = CHANNELS) -> Schema:
    """Returns the public contract of the simulated walks."""
    return Schema(
        name="walks",
        population=Population(size),
        unit=PrivacyUnit(column="walk", dtype="int64"),
        time=Time(column="hour", frequency="1h", steps=steps, dtype="int32"),
        channels=tuple(Continuous(f"c{place}", -20.0, 20.0, dtype="float32") for place in range(channels)),
    )


def write_table(folder: Path, shape: Shape) -> None:
    """Writes long tables of random walks, one file or partitions, a few thousand series at a time."""
    per_file = _PARTITION if shape.workers else shape.series
    for place, first in enumerate(range(0, shape.series, per_file)):
        writer = None
        for chunk in _walks(first, min(first + per_file, shape.series), shape):
            writer = writer or pq.ParquetWriter(folder / f"{place:04d}.parquet", chunk.schema)
            writer.write_table(chunk)
        if writer is not None:
            writer.close()


def _walks(first: int, last: int, shape: Shape) -> Iterator[pa.Table]:
    for begin in range(first, last, _CHUNK):
        count = min(_CHUNK, last - begin)
        rng = np.random.default_rng([7, begin])
        steps = rng.standard_normal((count, shape.steps, shape.channels), dtype=np.float32)
        walks = np.clip(np.cumsum(steps, axis=1) * 0.5 + rng.standard_normal((count, 1, shape.channels)), -20, 20)
        columns = {
            "walk": np.repeat(np.arange(begin, begin + count), shape.steps),
            "hour": np.tile(np.arange(shape.steps, dtype=np.int32), count),
            **{f"c{place}": walks[:, :, place].astype(np.float32).ravel() for place in range(shape.channels)},
        }
        yield pa.table(columns)


def _measure(folder: Path, shape: Shape, method: str) -> Row:
    numbers = [str(number) for number in (shape.series, shape.steps, shape.channels, shape.workers)]
    command = [sys.executable, "-m", "understudy_bench.cost.scale", str(folder), *numbers, method]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    facts = json.loads(answer.stdout)
    metrics = {
        "read_seconds": facts["read"],
        "fit_seconds": facts["fit"],
        "microseconds_per_series": 1e6 * (facts["read"] + facts["fit"]) / shape.series,
        "steps": float(shape.steps),
        "channels": float(shape.channels),
        "processes": float(max(1, shape.workers)),
    }
    epsilon, size = 2.0 if method == "spectral" else 0.0, shape.series
    line = row(method, metrics, epsilon=epsilon, delta=default_delta(size), unit="entity", num_series=size)
    return {
        **line,
        "seconds": round(facts["read"] + facts["fit"], 3),
        "peak_rss_mb": round(facts["peak_rss_mb"], 1),
    }


def _child(folder: Path, shape: Shape, method: str) -> dict[str, float]:
    watch, schema = Stopwatch(), schema_for(shape.series, shape.steps, shape.channels)
    table: Panel | Table = (
        open_table(folder, schema, workers=shape.workers)
        if shape.workers
        else read_panel(folder / "0000.parquet", schema)
    )
    read = watch.seconds
    guarantee = Guarantee(2.0, default_delta(shape.series))
    ledger = Ledger.in_memory(guarantee, population=shape.series)
    METHODS[method]().fit(table, ledger, workers=max(1, shape.workers))
    fit = watch.seconds - read
    if shape.workers > 1:
        get_reusable_executor().shutdown(wait=True)  # whose memory is known when they have ended
    return {"read": read, "fit": fit, "peak_rss_mb": max(peak_rss_mb(), _children_rss_mb())}


def _children_rss_mb() -> float:
    """Returns the most memory that one of the processes started here has held, in MB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    place, *numbers, named = sys.argv[1:]
    print(json.dumps(_child(Path(place), Shape(*map(int, numbers)), named)))
