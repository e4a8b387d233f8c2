"""All figures of one evaluation, each beside what other real series and a control without private data score."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from understudy.evaluate.comparison import Comparison
from understudy.evaluate.deadline import OutOfTime, check, deadline
from understudy.evaluate.intervals import confidence_interval, prediction_interval
from understudy.evaluate.matters import MATTERS
from understudy.evaluate.metric import Effort, Measured, Metric, Undefined
from understudy.evaluate.numbers import numbers
from understudy.evaluate.panels import Panels
from understudy.evaluate.workload import FILLINGS, Workload, expected_seconds

FORMAT = 1
HOLDOUT_LEVEL = 0.999
TOO_LATE = "not measured: the time was up. `--thorough` measures all."
STOPPED = "not measured: stopped before its turn."
Progress = Callable[[str, float], None]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number of a scorecard; `problem` says why there is none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    how: str = ""
    parts: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class Score:
    """One metric's figures: for the synthetic series, for other real series, for the control."""

    name: str
    suite: str
    title: str
    direction: Literal["lower", "higher", "near"]
    range: tuple[float, float]
    reference: str
    synthetic: Figure
    holdout: Figure
    independent: Figure
    seconds: float
    near: float | None = None

    @property
    def like_real(self) -> bool | None:
        """Whether the synthetic figure is no worse than those of other real series; None where that is unknown."""
        found, held = self.synthetic.value, self.holdout
        if found is None or held.low is None or held.high is None:
            return None
        beyond = {"lower": found > held.high, "higher": found < held.low, "near": not held.low <= found <= held.high}
        return not beyond[self.direction]

    @property
    def position(self) -> float | None:
        """0 where it scores as other real series do, 1 where it scores as the control does; None if they coincide."""
        figures = [figure.value for figure in (self.synthetic, self.holdout, self.independent)]
        if any(figure is None for figure in figures):
            return None
        found, held, control = (float(figure) for figure in figures if figure is not None)
        return None if np.isclose(held, control) else (found - held) / (control - held)


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """An evaluation. Internal: every figure was computed from real series.

    Attributes:
        numbers: Mean and extremes of real and synthetic values by channel.
        missing: Names of the metrics that were not measured because the time was up or the work was stopped.
    """

    scores: tuple[Score, ...]
    effort: str
    seed: int
    notes: tuple[str, ...]
    numbers: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    format: int = FORMAT
    internal: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Returns the scorecard as JSON has it."""
        facts = dataclasses.asdict(self)
        for line, score in zip(facts["scores"], self.scores, strict=True):
            line |= {"like_real": score.like_real, "position": score.position}
        return facts

    @property
    def stopped(self) -> bool:
        """Whether the work was stopped before its end; a deadline that passed does not count."""
        return any(score.synthetic.problem == STOPPED for score in self.scores)

    def __getitem__(self, name: str) -> Score:
        return next(score for score in self.scores if score.name == name)


def evaluate(
    panels: Panels,
    metrics: Sequence[Metric],
    effort: Effort,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    complete: Callable[[Panels], Panels] | None = None,
    stopping: tuple[type[BaseException], ...] = (),
) -> Scorecard:
    """Measures every metric, what is cheap or matters first; one that fails never loses the others.

    Args:
        progress: Takes what is measured and the share of the whole time that has passed, as far as can be told.
        complete: Adds fillings to the panels; called before the first metric of `conditional`.
        stopping: Exceptions that end the work and keep what was measured, as the effort's deadline does.
    """
    found: dict[str, Score] = {}
    why = TOO_LATE
    try:
        with deadline(effort.seconds), threadpool_limits(limits=1):  # threads that wait cost more than they bring
            _measure_all(found, panels, metrics, effort, seed, progress, complete)
    except OutOfTime:
        pass
    except stopping:
        why = STOPPED
    scores = tuple(found.get(metric.name) or _unmeasured(metric, why) for metric in metrics)
    missing = tuple(metric.name for metric in metrics if metric.name not in found)
    noted = (f"{len(missing)} of {len(metrics)} rows were {why}",) if missing else ()
    return Scorecard(
        scores=scores, effort=effort.name, seed=seed, notes=(*panels.notes, *noted), missing=missing,
        numbers=numbers(panels.real, panels.synthetic),
    )  # fmt: skip


def in_order(metrics: Sequence[Metric]) -> list[Metric]:
    """Returns what is cheap first; what matters may cost thirty times as much to be as early."""
    return sorted(metrics, key=lambda m: expected_seconds(m, 1) * (0.035 if m.name in MATTERS else 1.0))


def _measure_all(
    found: dict[str, Score],
    panels: Panels,
    metrics: Sequence[Metric],
    effort: Effort,
    seed: int,
    progress: Progress | None,
    complete: Callable[[Panels], Panels] | None,
) -> None:
    """Puts one score after the other into `found`, so that those that are done outlive an exception."""
    start = time.monotonic()
    end = None if effort.seconds is None else start + effort.seconds
    ordered, splits = in_order(metrics), list(panels.splits(effort.splits, seed))
    work = Workload.of(ordered, panels.real.values.size)
    for metric in ordered:
        begun = time.monotonic()

        def tick(share: float, metric: Metric = metric, begun: float = begun) -> None:
            check(end)
            if progress is not None:
                now = time.monotonic()
                left = work.seconds_left(metric.name, share, now - begun)
                left = left if end is None else min(left, end - now)
                progress(metric.title, (now - start) / max(now - start + left, 1e-9))

        tick(0.0)
        if complete is not None and metric.name in FILLINGS:
            panels, complete = complete(panels), None
        found[metric.name] = _score(metric, panels, splits, effort, seed, tick)
        work.done(metric.name, time.monotonic() - begun)


def _unmeasured(metric: Metric, why: str) -> Score:
    none = Figure(problem=why)
    return _row(metric, none, none, none, 0.0)


def _score(
    metric: Metric, panels: Panels, splits: list[Comparison], effort: Effort, seed: int, tick: Callable[[float], None]
) -> Score:
    start = time.perf_counter()
    own: Iterable[Comparison] = splits[: effort.repeats] if metric.trained else splits
    parts = (2 * effort.repeats + len(splits[: effort.repeats])) if metric.trained else 2 + len(splits)
    weight = effort.repeats if metric.trained else 1
    if metric.splits is not None and metric.splits > effort.splits > 1:
        own, parts = panels.splits(metric.splits, seed), 2 + metric.splits
    synthetic = _figure(metric, panels.of(panels.synthetic), effort, seed)
    tick(weight / parts)
    independent = _figure(metric, panels.of(panels.independent), effort, seed)
    tick(2 * weight / parts)
    holdout = _holdout_figure(metric, own, effort, seed, lambda done: tick((2 * weight + done) / parts))
    return _row(metric, synthetic, holdout, independent, round(time.perf_counter() - start, 3))


def _row(metric: Metric, synthetic: Figure, holdout: Figure, independent: Figure, seconds: float) -> Score:
    return Score(
        name=metric.name,
        suite=metric.suite,
        title=metric.title,
        direction=metric.direction,
        range=metric.range,
        reference=metric.reference,
        synthetic=synthetic,
        holdout=holdout,
        independent=independent,
        seconds=seconds,
        near=metric.near,
    )


def _figure(metric: Metric, comparison: Comparison, effort: Effort, seed: int) -> Figure:
    measured = _measured(metric, comparison, effort, seed)
    if isinstance(measured, str):
        return Figure(problem=measured)
    low, high = confidence_interval(measured, metric.range) or (None, None)
    number = 0 if measured.replicates is None else len(measured.replicates)
    how = {"bootstrap": f"95 %, {number} bootstrap replicates", "repeats": f"95 %, {number} trainings"}[measured.kind]
    return Figure(
        value=measured.value,
        low=low,
        high=high,
        how=how if low is not None else "no interval",
        parts=dict(measured.parts),
        notes=measured.notes,
    )


def _holdout_figure(
    metric: Metric, splits: Iterable[Comparison], effort: Effort, seed: int, tick: Callable[[float], None]
) -> Figure:
    """Measures real series against other real series, split again and again."""
    once = dataclasses.replace(effort, repeats=1, replicates=0)
    found = []
    for place, comparison in enumerate(splits):
        found.append(_measured(metric, comparison, once, seed + place))
        tick(place + 1)
    problems = [measured for measured in found if isinstance(measured, str)]
    if problems:
        return Figure(problem=problems[0])
    figures = np.array([measured.value for measured in found if isinstance(measured, Measured)])
    low, high = prediction_interval(figures, metric.range, HOLDOUT_LEVEL) if len(figures) > 1 else (None, None)
    return Figure(
        value=float(figures.mean()),
        low=low,
        high=high,
        how=f"{100 * HOLDOUT_LEVEL:g} % of one more split, from {len(figures)} random splits of real series",
    )


def _measured(metric: Metric, comparison: Comparison, effort: Effort, seed: int) -> Measured | str:
    """Returns the figure, or in words why there is none."""
    try:
        with np.errstate(invalid="ignore", divide="ignore"):
            measured = metric.measure(comparison, effort, seed)
    except Undefined as reason:
        return str(reason)
    except Exception as problem:  # one metric's failure must not lose the others; the kind says where to look
        return f"failed ({type(problem).__name__}). The other metrics are not affected; please report it."
    if not np.isfinite(measured.value):
        return "undefined: the figure is not finite for these series."
    return measured
