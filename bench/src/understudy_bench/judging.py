"""What may be said of a published figure beside ours: reproduced, better, worse, not comparable, not judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy_bench.results.published import Published

ENOUGH_SEEDS = 3
VERDICTS = ("reproduced", "better", "worse", "not comparable", "not judged")
_HIGHER = ("r2", "auroc", "accuracy", "diversity", "ancestors", "speedup", "tstr_acc")
_FACTS = (
    "strategies",
    "correlation",
    "series",
    "parties",
    "channels",
    "length",
    "num_units",
    "num_series",
    "dimension",
)  # what rows of a method differ by
# Best where other real series are (the control that is named), and not where it is least: noise is part of real ones.
AS_REAL = {"sine_error": "holdout", "corr_meta": "second real series"}
_NAMES = ("dataset", "homes", "model", "engine", "quoted")  # the same in words
_PLACEHOLDERS = ("seconds", "peak_rss_mb", "seed", "metrics", "paper", "seeds", "outlook")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One figure of a paper and ours.

    Attributes:
        low, high: Over seeds.
        epsilon: As certified; None where nothing is promised.
        epsilon_kind: "asked" for or "computed" from published noise, where it is not the certified one.
    """

    benchmark: str
    scale: str
    data: str
    method: str
    metric: str
    paper: float
    mean: float
    low: float
    high: float
    seeds: int
    unit: str | None
    epsilon: float | None
    epsilon_kind: str
    seconds: float
    verdict: str


def figures(result: Mapping[str, Any], apart: str = "", noisy: bool | None = None) -> list[Judged]:
    """Returns our figure beside every one that the rows of a result quote from a paper.

    Args:
        apart: Why they can't be compared, if they can't.
        noisy: Only rows that promise a finite epsilon, or only others; None for all.
    """
    lines = [*result["rows"], *result["controls"]]
    some = [line for line in lines if noisy is None or noisy == _promises(line)]
    return [one for alike in _alike(some) for one in _judged(result, alike, apart)]


def _promises(line: Mapping[str, Any]) -> bool:
    return line.get("epsilon") is not None and bool(np.isfinite(line["epsilon"]))


def verdict(item: Published, found: Sequence[Judged], run: bool) -> str:
    """Returns what may be said of a whole table or figure: of its figures the least favourable."""
    if item.benchmarks and not run:
        return "not judged"
    if not item.benchmarks or item.apart or any(one.verdict == "not comparable" for one in found):
        return "not comparable"
    if not found or any(one.verdict == "not judged" for one in found):
        return "not judged"
    return max((one.verdict for one in found), key=("better", "reproduced", "worse").index)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Figures of ours where a paper prints none, by metric: (mean, lowest, highest)."""

    method: str
    unit: str | None
    epsilon: float | None
    epsilon_kind: str
    seeds: int
    figures: Mapping[str, tuple[float, float, float]]


def shown(result: Mapping[str, Any], metrics: Sequence[str]) -> list[Shown]:
    """Returns some metrics of every row that has any of them."""
    found = []
    for lines in _alike([*result["rows"], *result["controls"]]):
        values = {
            metric: [_values(line["metrics"][metric]) for line in lines]
            for metric in metrics
            if lines[0]["metrics"].get(metric) is not None
        }
        if values:
            first = lines[0]
            spreads = {metric: _joined(some) for metric, some in values.items()}
            seeds = len(lines) if len(lines) > 1 else int(first.get("seeds") or 1)
            promised = first.get("epsilon_certified", first.get("epsilon"))
            found.append(
                Shown(
                    method=_told(first), unit=first.get("unit"), epsilon=promised, epsilon_kind=_kind(first),
                    seeds=seeds, figures=spreads,
                )
            )  # fmt: skip
    return found


def _joined(values: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    return float(np.mean([v[0] for v in values])), min(v[1] for v in values), max(v[2] for v in values)


def _judged(result: Mapping[str, Any], lines: Sequence[Mapping[str, Any]], apart: str) -> Iterable[Judged]:
    first, data = lines[0], result["data"]
    for metric, printed in first.get("paper", {}).items():
        values = [_values(line["metrics"][metric]) for line in lines if metric in line["metrics"]]
        if not values:
            continue
        mean, low, high = _joined(values)
        seeds = len(values) if len(values) > 1 else int(first.get("seeds") or 1)
        said = "not comparable" if apart else _compared(result, metric, printed, (mean, low, high), seeds)
        yield Judged(
            benchmark=result["name"], scale=result["scale"], data=named(data), method=_told(first), metric=metric,
            paper=printed, mean=mean, low=low, high=high, seeds=seeds, unit=first.get("unit"),
            epsilon=first.get("epsilon_certified", first.get("epsilon")), epsilon_kind=_kind(first),
            verdict=said, seconds=sum(line.get("seconds") or 0.0 for line in lines),
        )  # fmt: skip


def _compared(
    result: Mapping[str, Any], metric: str, printed: float, ours: tuple[float, float, float], seeds: int
) -> str:
    mean, low, high = ours
    if seeds < ENOUGH_SEEDS:
        return "not judged"
    if metric in AS_REAL:
        named = [line for line in result["controls"] if line["method"] == AS_REAL[metric]]
        if not named:
            return "not judged"
        real = _values(named[0]["metrics"][metric])[0]
        mean, printed = abs(mean - real), abs(printed - real)
    if abs(mean - printed) <= high - low:
        return "reproduced"
    higher = any(metric.endswith(name) for name in _HIGHER)
    return "better" if (mean > printed) == higher else "worse"


def _values(figure: Any) -> tuple[float, float, float]:
    if isinstance(figure, Mapping):
        return float(figure["mean"]), float(figure["low"]), float(figure["high"])
    return float(figure), float(figure), float(figure)


def _alike(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Groups rows that differ by their seed alone."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for line in rows:
        key = repr(sorted((name, repr(value)) for name, value in line.items() if name not in _PLACEHOLDERS))
        groups.setdefault(key, []).append(line)
    return list(groups.values())


def _kind(line: Mapping[str, Any]) -> str:
    """Says what a row's epsilon is, where it is not the certified one; beside a certificate's status it is."""
    certified = "epsilon_certified" in line or "status" in line
    if certified or not line.get("epsilon") or not _promises(line):
        return ""
    return "computed" if line.get("published_noise") else "asked"


def _told(line: Mapping[str, Any]) -> str:
    """Returns the method, with what else tells its rows apart."""
    facts = (f"{name.removeprefix('num_')} {line[name]:g}" for name in _FACTS if name in line)
    noise = [f"noise {line['noise_multiplier']:g}"] if line.get("published_noise") else []
    return ", ".join([line["method"], *noise, *facts, *(line[name] for name in _NAMES if name in line)])


def named(data: Mapping[str, Any]) -> str:
    """Returns the data's name, and whether it stands in for other data or is simulated."""
    kind = " (stand-in)" if data.get("stand_in") else " (simulated)" if data.get("simulated") else ""
    return f"{data['name']}{kind}" + (f", {data['kept']}" if data.get("kept") else "")
