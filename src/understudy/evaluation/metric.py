"""What a metric is: a pure function of a comparison, with all that a reader needs; and all metrics by suite."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Literal

import numpy as np

from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.evaluation.panels import Comparison


class Undefined(Exception):
    """A metric that these data do not allow. Its text says why, and what would allow it."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work metrics may do. Never decides anything private: scores are internal."""

    name: str
    repeats: int  # trainings of each network, with seeds of their own; their spread is reported
    iteration_cap: int | None  # most optimiser updates of one training; None trains as published
    replicates: int  # bootstrap replicates of figures that need no training
    splits: int  # random splits of real series that say how real data scores against itself
    # Series of each panel, steps of each series, values of each panel that metrics look at; what is left out is noted.
    max_series: int
    max_steps: int | None = None
    max_values: int | None = None
    seconds: float | None = None  # time for all metrics together; None sets no deadline


QUICK = Effort(name="quick", repeats=3, iteration_cap=500, replicates=50, splits=5, max_series=4_000)
BRIEF = replace(QUICK, name="brief", max_series=1_000, max_steps=512, max_values=400_000, seconds=90.0)
PAPER = Effort(name="paper", repeats=10, iteration_cap=None, replicates=200, splits=10, max_series=20_000)
EFFORTS = {effort.name: effort for effort in (QUICK, PAPER)}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One figure, and how far chance alone could have moved it."""

    value: float
    replicates: np.ndarray | None = None  # the same on series drawn again (`bootstrap`) or after training (`repeats`)
    kind: Literal["bootstrap", "repeats"] = "bootstrap"
    parts: Mapping[str, float] = field(default_factory=dict)  # such as one figure per channel
    notes: tuple[str, ...] = ()  # what a reader has to know, such as a subsample


Measure = Callable[["Comparison", Effort, int], Measured]


@dataclass(frozen=True)
class Metric:
    """A named measure."""

    name: str  # stable name, `suite.metric`
    title: str  # what it says, in a few plain words
    reference: str  # where it is defined, with the equation
    measure: Measure  # (comparison, effort, seed) to the figure; raises `Undefined` where the data do not allow it
    _: KW_ONLY
    direction: Literal["lower", "higher", "near"] = "lower"  # what is better; `near`: close to the figure of real data
    range: tuple[float, float] = (0.0, 1.0)  # smallest and largest possible figure
    trained: bool = False  # whether networks are trained inside: slower, repeated less
    splits: int | None = None  # random splits of real series where the effort's are too few for a sharp interval
    seconds: float | None = None  # expected at quick effort on 500 series, 48 steps, 2 channels; None: as usual
    near: float | None = None  # largest figure that may still be called near real, however far away the control is

    @property
    def suite(self) -> str:
        """Name of the suite it belongs to."""
        return self.name.split(".", 1)[0]


ABOVE = (0.0, math.inf)  # range of a figure that has no upper end
OWN = {"general": "understudy.evaluation.general", "conditional": "understudy.evaluation.fillings"}
FORECASTS = "general.forecast_skill"
ERROR_ON_CANDIDATE, ERROR_ON_REAL = "MAE trained on candidate", "MAE trained on real"  # parts of it
MATTERS = {
    "general.mean": "marginal mean",
    "general.tails": "marginal tails",
    "general.missingness": "missingness",
    FORECASTS: "TSTR forecasts",
    "general.trees_summary": "discriminator on summaries",
    "general.trees_raw": "discriminator on values",
}


def metrics_of(names: Sequence[str] = ()) -> tuple[Metric, ...]:
    """Returns the metrics of the named suites, ours or of installed distributions; of all suites if none is named."""
    known = OWN | {
        point.name: point.value for point in entry_points(group="understudy.suites") if point.name not in OWN
    }
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"--suite: one of {', '.join(known)} is expected, got '{unknown[0]}'.")
    return tuple(metric for name in dict.fromkeys(names or known) for metric in import_module(known[name]).METRICS)
