"""All figures of one evaluation, each with those of other real series and of a control without private data."""

import dataclasses
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from understudy.data import Panel
from understudy.data.channels import num_codes
from understudy.evaluate.metric import MATTERS, Effort, Measured, Metric, Undefined
from understudy.evaluate.panels import Comparison, Panels
from understudy.evaluate.weighted import confidence_interval, prediction_interval

MAX_CHANNELS = 40


def numbers(real: Panel, synthetic: Panel) -> dict[str, dict[str, dict[str, float]]]:
    """Returns by channel of numbers, then `real` or `synthetic`: mean, least, 1 %, 99 % and greatest value.

    Privacy: internal. The figures of real series are exact.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for place, channel in enumerate(real.schema.channels):
        if num_codes(channel) is None and len(found) < MAX_CHANNELS:
            sides = (("real", real), ("synthetic", synthetic))
            found[channel.name] = {side: _of(panel.values[:, :, place]) for side, panel in sides}
    return found


def _of(values: np.ndarray) -> dict[str, float]:
    seen = values[~np.isnan(values)].astype(np.float64)
    if not len(seen):
        return {}
    low, high = np.quantile(seen, (0.01, 0.99))
    ends = {"least": seen.min(), "1 %": low, "99 %": high, "greatest": seen.max()}
    return {"mean": float(seen.mean()), **{name: float(value) for name, value in ends.items()}}


_AGAIN_SECONDS = 0.5  # an alarm that a destructor swallowed is repeated


class OutOfTime(BaseException):
    """The deadline has passed. No `except Exception` on the way up may swallow it."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raises `OutOfTime` in the block when `seconds` have passed; None sets no deadline.

    Outside the main thread, and where the system has no alarms, `check` alone ends the block.
    """
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or not hasattr(signal, "SIGALRM"):
        yield
        return
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    started, (left, interval) = (
        time.monotonic(),
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), _AGAIN_SECONDS),
    )
    try:
        yield
    finally:
        armed = False
        remains = max(left - (time.monotonic() - started), 1e-3) if left else 0.0
        signal.setitimer(signal.ITIMER_REAL, remains, interval)
        signal.signal(signal.SIGALRM, before)


def check(end: float | None) -> None:
    """Raises `OutOfTime` if the moment `end` of the monotonic clock has passed."""
    if end is not None and time.monotonic() >= end:
        raise OutOfTime


REFERENCE_VALUES = 500 * 48 * 2  # of the panel on which the seconds below were measured
_SECONDS = {
    "general.trees_raw": 3.4,
    "general.trees_summary": 2.7,
    "general.forecast_skill": 0.3,
    "general.mean": 0.3,
    "general.tails": 0.3,
    "general.copied_warped": 1.1,
}
FILLINGS = "conditional"  # the suite that judges fillings
_FILLING_SECONDS = 4.0  # with the time to make the fillings
_OTHERS = {True: 20.0, False: 0.1}  # by whether networks are trained


def expected_seconds(metric: Metric, num_values: int) -> float:
    """Returns the seconds that a metric is expected to take at quick effort on panels of this many values."""
    usual = _FILLING_SECONDS if metric.suite == FILLINGS else _OTHERS[metric.trained]
    seconds = _SECONDS.get(metric.name, usual)
    return seconds * max(0.2, num_values / REFERENCE_VALUES)


@dataclass
class Workload:
    """The metrics still to be measured, and how much slower or faster than expected the others were.

    Attributes:
        ahead: Expected seconds by metric's name, in the order of the work.
        kinds: Whether each metric trains networks; what one kind took says little about the other.
    """

    ahead: dict[str, float]
    kinds: dict[str, bool]
    taken: dict[bool, tuple[float, float]] = field(default_factory=dict)  # by kind: seconds expected, seconds taken

    @classmethod
    def of(cls, metrics: Sequence[Metric], num_values: int) -> "Workload":
        """Returns the work of all metrics on panels of this many values."""
        ahead = {metric.name: expected_seconds(metric, num_values) for metric in metrics}
        return cls(ahead=ahead, kinds={metric.name: metric.trained for metric in metrics})

    def done(self, name: str, seconds: float) -> None:
        """Takes note of what a metric took."""
        expected, taken = self.taken.get(self.kinds[name], (0.0, 0.0))
        self.taken[self.kinds[name]] = (expected + self.ahead.pop(name), taken + seconds)

    def seconds_left(self, current: str | None = None, share: float = 0.0, spent: float = 0.0) -> float:
        """Returns the expected seconds of all that is still ahead.

        Args:
            current: The metric at work, of which `share` is done after `spent` seconds.
        """
        left = sum(seconds * self._factor(self.kinds[name]) for name, seconds in self.ahead.items() if name != current)
        if current is None:
            return left
        usual = self.ahead[current] * self._factor(self.kinds[current])
        return left + (spent * (1 - share) / share if share > 0 else max(usual - spent, 0.0))

    def _factor(self, kind: bool) -> float:
        expected, taken = self.taken.get(kind, (0.0, 0.0))
        return taken / expected if expected > 0 else 1.0


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
    none = Figure(problem=why)
    scores = tuple(found.get(metric.name) or _row(metric, none, none, none, 0.0) for metric in metrics)
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
        if complete is not None and metric.suite == FILLINGS:
            panels, complete = complete(panels), None
        found[metric.name] = _score(metric, panels, splits, effort, seed, tick)
        work.done(metric.name, time.monotonic() - begun)


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
