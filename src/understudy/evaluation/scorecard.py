"""All figures of one evaluation, each with those of other real series and of a control without private data."""

import dataclasses
import html
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np
from rich.console import RenderableType
from rich.text import Text
from threadpoolctl import threadpool_limits

from understudy import display
from understudy.data import Panel
from understudy.data.channels import num_codes
from understudy.evaluation import words
from understudy.evaluation.measures import confidence_interval, prediction_interval
from understudy.evaluation.metric import MATTERS, Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison, Panels
from understudy.evaluation.portraits import extremes
from understudy.files import whole_file
from understudy.synthesizers import Release

_MAX_CHANNELS = 40
_AGAIN_SECONDS = 0.5  # an alarm that a destructor swallowed is repeated


class OutOfTime(BaseException):
    """The deadline has passed. No `except Exception` on the way up may swallow it."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raises `OutOfTime` in the block when `seconds` have passed; None sets no deadline.

    Outside the main thread, and where the system has no alarms, only looks at the clock between figures end the block.
    """
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or not hasattr(signal, "SIGALRM"):
        yield
        return
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise OutOfTime

    before, started = signal.signal(signal.SIGALRM, ring), time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), _AGAIN_SECONDS)
    try:
        yield
    finally:
        armed = False
        remains = max(left - (time.monotonic() - started), 1e-3) if left else 0.0  # the caller's own alarm goes on
        signal.setitimer(signal.ITIMER_REAL, remains, interval)
        signal.signal(signal.SIGALRM, before)


REFERENCE_VALUES = 500 * 48 * 2  # of the panel on which metrics' seconds were measured
FILLINGS = "conditional"  # the suite that judges fillings


def expected_seconds(metric: Metric, num_values: int) -> float:
    """Returns the seconds that a metric is expected to take at quick effort on panels of this many values."""
    seconds = metric.seconds or (20.0 if metric.trained else 0.1)
    return seconds * max(0.2, num_values / REFERENCE_VALUES)


FORMAT = 1
HOLDOUT_LEVEL = 0.999
TOO_LATE = "not measured: the time was up. `--thorough` measures all."
STOPPED = "not measured: stopped before its turn."
Progress = Callable[[str, float], None]
Complete = Callable[[Panels], Panels] | None
INTERNAL = "Internal: these figures were computed from real series and are covered by no guarantee."
_COLUMNS = (">synthetic", ">other real series", ">no private data", "verdict")


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

    def __str__(self) -> str:
        interval = "" if self.low is None or self.high is None else f" [{self.low:.3g}, {self.high:.3g}]"
        return "–" if self.value is None else f"{self.value:.3g}{interval}"


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
        apart = words.worse(self.direction, self.synthetic.value, self.holdout.low, self.holdout.high)
        return None if apart is None else not apart

    @property
    def position(self) -> float | None:
        """0 where it scores as other real series do, 1 where it scores as the control does; None if they coincide."""
        found, held, control = self.synthetic.value, self.holdout.value, self.independent.value
        if found is None or held is None or control is None or np.isclose(held, control):
            return None
        return (found - held) / (control - held)


@dataclass(frozen=True, eq=False, kw_only=True)
class Judged:
    """What a scorecard is about. Internal: it holds real series."""

    release: Release | None  # None for series made elsewhere
    synthetic: Panel  # as released; `panels` may hold fewer series
    panels: Panels


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """An evaluation, which shows itself in a notebook. Internal: every figure was computed from real series."""

    scores: tuple[Score, ...]
    effort: str
    seed: int
    notes: tuple[str, ...]
    numbers: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # names of metrics not measured: the time was up, or the work was stopped
    format: int = FORMAT
    internal: bool = True
    judged: Judged | None = field(default=None, repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Returns the scorecard as JSON has it."""
        facts = dataclasses.asdict(dataclasses.replace(self, judged=None))
        del facts["judged"]
        for line, score in zip(facts["scores"], self.scores, strict=True):
            line |= {"like_real": score.like_real, "position": score.position}
        return facts

    @property
    def headline(self) -> dict[str, Any]:
        """The worst verdict of what matters, what is apart from real series, and a sentence about all checks."""
        return words.headline(self.as_dict())

    @property
    def stopped(self) -> bool:
        """Whether the work was stopped before its end; a deadline that passed does not count."""
        return any(score.synthetic.problem == STOPPED for score in self.scores)

    def __getitem__(self, name: str) -> Score:
        return next(score for score in self.scores if score.name == name)

    def __repr__(self) -> str:
        return f"Scorecard({len(self.scores) - len(self.missing)} checks: {self.headline['sentence']})"

    def show(self) -> None:
        """Prints the scorecard: the headline, means and extremes, and every figure between its neighbours."""
        display.show(self.parts())

    def parts(self) -> list[RenderableType]:
        """Returns what `show` prints."""
        head, columns = self.headline, ("", ">mean", ">minimum", ">1 %", ">99 %", ">maximum")
        ends = [
            (f"{name}: {side}", *(f"{value:.4g}" for value in found.values()))
            for name, sides in self.numbers.items()
            for side, found in sides.items()
        ]
        suites = [display.table("", *_COLUMNS, rows=rows, title=suite) for suite, rows in self.rows().items()]
        missing = [f"Not measured: {', '.join(self.missing)}."] if self.missing else []
        told = (Text(INTERNAL, style="bold"), Text(head["sentence"], style="bold"), head["worst"])
        return [*told, *self.notes, display.table(*columns, rows=ends, title="numbers"), *suites, *missing]

    def rows(self) -> dict[str, list[tuple[str, ...]]]:
        """Returns by suite: each check's title, its figures as text, and its verdict or why it has none."""
        found: dict[str, list[tuple[str, ...]]] = {}
        for score, line in zip(self.scores, self.as_dict()["scores"], strict=True):
            if score.name not in self.missing:
                figures = (str(one) for one in (score.synthetic, score.holdout, score.independent))
                told = score.synthetic.problem or words.verdict(line)
                found.setdefault(score.suite, []).append((score.title, *figures, told))
        return found

    def _repr_html_(self) -> str:
        rows = [row for rows in self.rows().values() for row in rows if row[-1] in words.COUNTED]
        said = html.escape(self.headline["sentence"])
        return f"<p><strong>{said}</strong><br>{INTERNAL}</p>{display.html_table(('', *_COLUMNS), rows)}"

    def report(self, path: str | Path, *, interactive: bool = False) -> None:
        """Writes the HTML page of this evaluation, readable by its owner only: it shows real series.

        Args:
            interactive: Embed a script by which figures zoom; the page still asks nothing of a network.
        """
        from understudy.report.page import render
        from understudy.report.record import make_record

        with whole_file(Path(path), replace=False) as draft:
            draft.touch(mode=0o600)
            draft.write_text(render(make_record(self), interactive=interactive), encoding="utf-8")


def scorecard_of(
    panels: Panels,
    metrics: Sequence[Metric],
    effort: Effort,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    complete: Complete = None,
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
            for score in _scores(panels, metrics, effort, seed, progress, complete):
                found[score.name] = score
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
        numbers=_numbers(panels.real, panels.synthetic),
    )  # fmt: skip


def _numbers(real: Panel, synthetic: Panel) -> dict[str, dict[str, dict[str, float]]]:
    """Returns by channel of numbers, then `real` or `synthetic`: mean, minimum, 1 %, 99 % and maximum."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for place, channel in enumerate(real.schema.channels):
        if num_codes(channel) is None and len(found) < _MAX_CHANNELS:
            sides = (("real", real), ("synthetic", synthetic))
            found[channel.name] = {side: extremes(panel.values[:, :, place]) for side, panel in sides}
    return found


def in_order(metrics: Sequence[Metric]) -> list[Metric]:
    """Returns what is cheap first; what matters may cost thirty times as much to be as early."""
    return sorted(metrics, key=lambda m: expected_seconds(m, 1) * (0.035 if m.name in MATTERS else 1.0))


def _scores(
    panels: Panels, metrics: Sequence[Metric], effort: Effort, seed: int, progress: Progress | None, complete: Complete
) -> Iterator[Score]:
    """Yields one score after the other."""
    start, done = time.monotonic(), 0.0
    ordered, splits = in_order(metrics), list(panels.splits(effort.splits, seed))
    expected = {metric.name: expected_seconds(metric, panels.real.values.size) for metric in ordered}
    for metric in ordered:

        def tick(share: float, metric: Metric = metric, done: float = done) -> None:
            passed = (time.monotonic() - start) / (effort.seconds or np.inf)
            if passed >= 1:
                raise OutOfTime
            if progress is not None:
                progress(metric.title, max(passed, (done + share * expected[metric.name]) / sum(expected.values())))

        tick(0.0)
        if complete is not None and metric.suite == FILLINGS:
            panels, complete = complete(panels), None
        yield _score(metric, panels, splits, effort, seed, tick)
        done += expected[metric.name]


def _score(
    metric: Metric, panels: Panels, splits: list[Comparison], effort: Effort, seed: int, tick: Callable[[float], None]
) -> Score:
    start = time.perf_counter()
    weight = effort.repeats if metric.trained else 1
    own: Iterable[Comparison] = splits[: effort.repeats] if metric.trained else splits
    number = min(len(splits), effort.repeats) if metric.trained else len(splits)
    if metric.splits is not None and metric.splits > effort.splits > 1:
        own, number = panels.splits(metric.splits, seed), metric.splits

    def passed(done: float) -> None:
        tick(done / (2 * weight + number))

    synthetic = _or_problem(lambda: _figure(metric, panels.of(panels.synthetic), effort, seed))
    passed(weight)
    independent = _or_problem(lambda: _figure(metric, panels.of(panels.independent), effort, seed))
    passed(2 * weight)
    holdout = _or_problem(lambda: _holdout_figure(metric, own, effort, seed, lambda done: passed(2 * weight + done)))
    return _row(metric, synthetic, holdout, independent, round(time.perf_counter() - start, 3))


def _row(metric: Metric, synthetic: Figure, holdout: Figure, independent: Figure, seconds: float) -> Score:
    names = ("name", "suite", "title", "direction", "range", "reference", "near")
    facts = {name: getattr(metric, name) for name in names}
    return Score(**facts, synthetic=synthetic, holdout=holdout, independent=independent, seconds=seconds)


def _or_problem(make: Callable[[], Figure]) -> Figure:
    """Returns the figure, or in words why there is none."""
    try:
        with np.errstate(invalid="ignore", divide="ignore"):
            return make()
    except Undefined as reason:
        return Figure(problem=str(reason))
    except Exception as problem:  # one metric's failure must not lose the others; the kind says where to look
        kind = type(problem).__name__
        return Figure(problem=f"failed ({kind}). The other metrics are not affected; please report it.")


def _measured(metric: Metric, comparison: Comparison, effort: Effort, seed: int) -> Measured:
    measured = metric.measure(comparison, effort, seed)
    if not np.isfinite(measured.value):
        raise Undefined("undefined: the figure is not finite for these series.")
    return measured


def _figure(metric: Metric, comparison: Comparison, effort: Effort, seed: int) -> Figure:
    measured = _measured(metric, comparison, effort, seed)
    low, high = confidence_interval(measured, metric.range) or (None, None)
    again = {"bootstrap": "bootstrap replicates", "repeats": "trainings"}[measured.kind]
    how = "no interval" if low is None or measured.replicates is None else f"95 %, {len(measured.replicates)} {again}"
    parts = dict(measured.parts)
    return Figure(value=measured.value, low=low, high=high, how=how, parts=parts, notes=measured.notes)


def _holdout_figure(
    metric: Metric, splits: Iterable[Comparison], effort: Effort, seed: int, tick: Callable[[float], None]
) -> Figure:
    """Measures real series against other real series, split again and again."""
    once, found = dataclasses.replace(effort, repeats=1, replicates=0), []
    for place, comparison in enumerate(splits):
        found.append(_measured(metric, comparison, once, seed + place).value)
        tick(place + 1)
    low, high = prediction_interval(np.array(found), metric.range, HOLDOUT_LEVEL) if len(found) > 1 else (None, None)
    how = f"{100 * HOLDOUT_LEVEL:g} % of one more split, from {len(found)} random splits of real series"
    return Figure(value=float(np.mean(found)), low=low, high=high, how=how)
