"""The shape of every benchmark's result: one JSON object with rows and controls."""

import resource
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

Progress = Callable[[str, float], None]
Row = dict[str, Any]
SCALES = ("quick", "target", "full")


def row(
    method: str,
    metrics: dict[str, Any],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    unit: str | None = None,
    paper: dict[str, float] | None = None,
    seconds: float = 0.0,
    **facts: Any,
) -> Row:
    """Returns one line of a result; `facts` are further columns. Memory is the process's peak so far."""
    return {
        "method": method,
        "epsilon": epsilon,
        "delta": delta,
        "unit": unit,
        "metrics": metrics,
        "paper": paper or {},
        "seconds": round(seconds, 3),
        "peak_rss_mb": round(peak_rss_mb(), 1),
        **facts,
    }


def result(name: str, scale: str, data: dict[str, Any], rows: Sequence[Row], controls: Sequence[Row]) -> dict[str, Any]:
    """Returns the whole object, with the day on which it was finished: code changes, and so do figures."""
    day = datetime.now(tz=UTC).date().isoformat()
    return {"name": name, "scale": scale, "day": day, "data": data, "rows": list(rows), "controls": list(controls)}


def spread(figures: Sequence[float]) -> dict[str, float]:
    """Returns mean, lowest and highest of repeated measurements."""
    return {"mean": float(np.mean(figures)), "low": float(np.min(figures)), "high": float(np.max(figures))}


def peak_rss_mb() -> float:
    """Returns the most memory this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Elapsed wall time."""
        return time.perf_counter() - self._start
