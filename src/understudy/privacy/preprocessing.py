"""Facts that a schema does not declare, bought with differential privacy.

Each query is a frozen dataclass with two verbs: `event()` for the spending plan, `run(grant, …)` once it
is paid.
Every unit enters with one value of its own, so its influence does not grow with the length of its series.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.data.panel import Panel
from understudy.data.table import Table
from understudy.errors import InputError
from understudy.privacy.events import ApproximateDP, PureDP
from understudy.privacy.grant import Grant


@dataclass(frozen=True)
class Grid:
    """Public candidates for a bound, evenly spaced, chosen without looking at the data."""

    low: float
    high: float
    points: int = 1001

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InputError("A grid needs finite ends with low below high.")
        if not 2 <= self.points <= 1_000_000:
            raise InputError(f"A grid needs between 2 and a million points, got {self.points}.")

    def candidates(self) -> NDArray[np.float64]:
        """All points in order."""
        return np.linspace(self.low, self.high, self.points)

    @classmethod
    def of_round_numbers(cls, low: float, high: float, *, whole: bool = False) -> "Grid":
        """About a thousand round numbers, from at most `low` to at least `high`.

        >>> Grid.of_round_numbers(0.001, 49.99)
        Grid(low=0.0, high=50.0, points=1001)
        """
        rough = (high - low) / 1000
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough * (1 - 1e-9))
        step = max(1.0, step) if whole else step
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        places = _decimal_places(step)
        return cls(round(first * step, places), round(last * step, places), last - first + 1)

    def rounded(self, point: float) -> float:
        """A point as a person would write it, without the last digits of binary arithmetic."""
        return round(float(point), _decimal_places((self.high - self.low) / (self.points - 1)))


@dataclass(frozen=True)
class Count:
    """How many units there are.

    **Privacy**: one unit moves the count by 1; discrete Laplace noise, epsilon-DP.
    """

    epsilon: float
    label: str = "count"

    def event(self) -> PureDP:
        """What it costs."""
        return PureDP(self.epsilon)

    def run(self, grant: Grant, table: Table) -> int:
        """A number of units, at least 1, usable as the population everything else is derived from."""
        return max(1, grant.count(self.label, table))


@dataclass(frozen=True, kw_only=True)
class ChannelBounds:
    """Bounds that hold for all but a share of the units: low from each unit's minimum, high from its maximum.

    **Privacy**: two quantiles of one value per unit, each half of epsilon.
    """

    channel: str
    epsilon: float
    grid: Grid
    coverage: float = 0.99

    @property
    def label(self) -> str:
        """Label of the charge."""
        return f"bounds of {self.channel}"

    def event(self) -> PureDP:
        """What it costs."""
        return PureDP(self.epsilon / 2, count=2)

    def run(self, grant: Grant, table: Table) -> tuple[float, float]:
        """(low, high) with low below high; the grid's ends if the two noisy quantiles meet."""
        points = self.grid.candidates()
        least, most = (
            np.concatenate([np.zeros(0), *(one_per_unit(panel, self.channel, which) for panel in table.panels())])
            for which in ("min", "max")
        )
        low = grant.quantile(self.label, least, points, 1 - self.coverage)
        high = grant.quantile(self.label, most, points, self.coverage)
        return (low, high) if low < high else (self.grid.low, self.grid.high)


@dataclass(frozen=True)
class CategoryDomain:
    """Which categories occur, for a column whose domain is not public.

    **Privacy**: one category per unit; discrete Laplace counts above a threshold, (epsilon, delta)-DP.
    """

    label: str
    epsilon: float
    delta: float

    def event(self) -> ApproximateDP:
        """What it costs."""
        return ApproximateDP(self.epsilon, self.delta)

    def run(self, grant: Grant, category_one_per_unit: Sequence[str]) -> tuple[str, ...]:
        """Sorted categories; treat everything else as OTHER."""
        return grant.stable_domain(self.label, category_one_per_unit)


def one_per_unit(
    panel: Panel, channel: str, statistic: str, low: float = -math.inf, high: float = math.inf
) -> NDArray[np.float64]:
    """Each unit's own minimum, maximum, mean or mean square (on [0, 1]) of a channel; NaN if it has no value.

    **Privacy**: the result is private, one number per unit, and looks at no other unit.
    """
    values = np.clip(np.asarray(_column(panel, channel), dtype=np.float64), low, high)
    if panel.num_series == 0:
        return np.empty(0, dtype=np.float64)
    starts = np.flatnonzero(np.diff(panel.unit, prepend=-1))
    empty = np.add.reduceat((~np.isnan(values)).sum(axis=1), starts) == 0
    if statistic == "min":
        result = np.minimum.reduceat(np.where(np.isnan(values), np.inf, values).min(axis=1), starts)
    elif statistic == "max":
        result = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values).max(axis=1), starts)
    else:
        scaled = ((values - low) / (high - low)) ** 2 if statistic == "mean square" else values
        number = np.maximum(1, np.add.reduceat((~np.isnan(values)).sum(axis=1), starts))
        result = np.add.reduceat(np.nansum(scaled, axis=1), starts) / number
    return np.asarray(np.where(empty, np.nan, result), dtype=np.float64)


def _column(panel: Panel, name: str) -> NDArray[np.float32]:
    """A channel, or a static column as a channel of one step: [series, step]."""
    channels = [column.name for column in panel.schema.channels]
    static = [column.name for column in panel.schema.static]
    if name in channels:
        return panel.values[:, :, channels.index(name)]
    if name in static:
        return panel.static[:, [static.index(name)]]
    raise InputError(f"There is no channel '{name}'. Channels: {', '.join([*channels, *static])}.")


def _decimal_places(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-6))
