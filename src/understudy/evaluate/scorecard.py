"""All figures of one evaluation, each beside what other real series and a control without private data score."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from understudy.evaluate.comparison import Comparison
from understudy.evaluate.intervals import confidence_interval, prediction_interval
from understudy.evaluate.metric import Effort, Measured, Metric, Undefined
from understudy.evaluate.panels import Panels

FORMAT = 1
HOLDOUT_LEVEL = 0.999
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
    """An evaluation. Internal: every figure was computed from real series."""

    scores: tuple[Score, ...]
    effort: str
    seed: int
    notes: tuple[str, ...]
    format: int = FORMAT
    internal: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Returns the scorecard as JSON has it."""
        facts = dataclasses.asdict(self)
        for line, score in zip(facts["scores"], self.scores, strict=True):
            line |= {"like_real": score.like_real, "position": score.position}
        return facts

    def __getitem__(self, name: str) -> Score:
        return next(score for score in self.scores if score.name == name)


def evaluate(
    panels: Panels, metrics: Sequence[Metric], effort: Effort, *, seed: int = 0, progress: Progress | None = None
) -> Scorecard:
    """Measures every metric; one that fails says so and never loses the others."""
    splits = list(panels.splits(effort.splits, seed))
    scores = []
    with threadpool_limits(limits=1):  # models are small: threads that wait for each other cost more than they bring
        for place, metric in enumerate(metrics):
            if progress is not None:
                progress(metric.title, place / len(metrics))
            scores.append(_score(metric, panels, splits, effort, seed))
    return Scorecard(scores=tuple(scores), effort=effort.name, seed=seed, notes=panels.notes)


def _score(metric: Metric, panels: Panels, splits: list[Comparison], effort: Effort, seed: int) -> Score:
    start = time.perf_counter()
    synthetic = _figure(metric, panels.of(panels.synthetic), effort, seed)
    independent = _figure(metric, panels.of(panels.independent), effort, seed)
    holdout = _holdout_figure(metric, splits[: effort.repeats] if metric.trained else splits, effort, seed)
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
        seconds=round(time.perf_counter() - start, 3),
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


def _holdout_figure(metric: Metric, splits: Sequence[Comparison], effort: Effort, seed: int) -> Figure:
    """Measures real series against other real series, split again and again."""
    once = dataclasses.replace(effort, repeats=1, replicates=0)
    found = [_measured(metric, comparison, once, seed + place) for place, comparison in enumerate(splits)]
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
