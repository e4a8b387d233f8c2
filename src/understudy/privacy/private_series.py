"""What a method learns from: partitions of private series, and how far one unit reaches."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any, Generic, TypeVar, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from understudy.data import Panel, Schema
from understudy.data.table import Partition, Table
from understudy.privacy.border import Given, Listed, Statistic, partition_sum
from understudy.privacy.contributions import Contributions
from understudy.workers import Workers, once_each

Found = TypeVar("Found")


class Remembered(Generic[Found]):
    """A function of panels that remembers what it found for each panel as long as that lives; copies remember nothing.

    Tables in memory show the same panels again and again, those on disk new ones every time.
    """

    def __init__(self, function: Callable[[Panel], Found]) -> None:
        self._function = function
        self._found: WeakKeyDictionary[Panel, Found] = WeakKeyDictionary()

    def __call__(self, panel: Panel) -> Found:
        if panel not in self._found:
            self._found[panel] = self._function(panel)
        return self._found[panel]

    def __reduce__(self) -> tuple[Any, ...]:
        return Remembered, (self._function,)


@final
@dataclass(frozen=True, eq=False, repr=False)
class PrivateSeries:
    """Series of units, as a method sees them; `Grant.release` is the way out for sums over them.

    Attributes:
        schema: Contract of what is seen: windows of the series, if the method cuts windows.
        influence: Factor by which one unit's reach exceeds one bounded vector: 1 for entities; for events twice the
            number of windows that one event can touch, because each of those windows changes and does not go away, or
            just that number where the method leaves windows with an empty step out.
        population: Public number of units (or of windows, for events) that counts are compared with.
        by_series: Whether each series is clipped by itself, where events are protected; else each unit.
        whole: Factor by which the bound of a release exceeds that of the part of it which is made here, because other
            parties make the other parts; every part gets the noise of the whole.
        view: What is seen of a panel; None sees all of it.
    """

    table: Table
    schema: Schema
    influence: int
    population: int
    by_series: bool = False
    whole: float = 1.0
    view: Callable[[Panel], Panel] | None = None
    workers: Workers = 1

    @classmethod
    def of(cls, panel: Panel, population: int, *, influence: int = 1, by_series: bool = False) -> "PrivateSeries":
        """Return the series of a panel in memory."""
        return cls(Table.of(panel), panel.schema, influence, population, by_series)

    @property
    def reach(self) -> float:
        """Factor by which one protected unit's reach, in the whole release, exceeds one bounded vector."""
        return self.influence * self.whole

    def without_context(self) -> "PrivateSeries":
        """Return the series without their public context and without constraints, which samples obey anyway."""
        schema = self.schema.without_context()
        return self.seen_as(schema, partial(_without_context, schema))

    def seen_as(self, schema: Schema, view: Callable[[Panel], Panel]) -> "PrivateSeries":
        """Return the same series seen otherwise, each unit by itself."""
        before = self.view
        both = view if before is None else lambda panel: view(before(panel))
        return replace(self, schema=schema, view=Remembered(both))

    @cached_property
    def panel(self) -> Panel:
        """All series in memory, for methods that draw batches of them."""
        whole = self.table.read()
        return whole if self.view is None else self.view(whole)

    @property
    def shared_context(self) -> NDArray[np.float32] | None:
        """Public context [step, context] of all series; None if there is none or each series has its own."""
        if self.table.shared_context is None or not self.schema.context or self.schema.own_contexts:
            return None
        return self.table.shared_context[: self.schema.num_steps]

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """What each series of `panel` weighs: a unit's series share the weight one; those of events weigh one each."""
        number = self.panel.num_series
        if self.by_series or not number:
            return np.ones(number)
        return np.asarray((1.0 / np.bincount(self.panel.unit))[self.panel.unit])

    def given(self, contributions: Contributions) -> Given:
        """Return the units with one vector at hand for each series of `panel`."""
        return Given(contributions, self.reach, None if self.by_series else self.panel.unit)

    def total(self, statistic: Statistic, step: float) -> NDArray[np.int64]:
        """Return the integer sum over all units, each partition counted once; private."""
        of = partial(partition_sum, statistic, step, view=self.view, by_series=self.by_series)
        zero = np.zeros(statistic.shape, dtype=np.int64)
        return reduce(np.add, once_each(of, self.table.partitions, self.workers), zero)

    @property
    def num_units(self) -> int:
        """Number of units; private."""
        return sum(once_each(_num_units, self.table.partitions, self.workers))


Private = PrivateSeries | Given | Listed  # the units that a statistic may be about


def _without_context(schema: Schema, panel: Panel) -> Panel:
    return replace(panel, schema=schema, context=None)


def _num_units(partition: Partition) -> int:
    return sum(panel.num_units for panel in partition.panels())
