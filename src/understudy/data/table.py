"""A table as a list of partitions, each a whole number of units."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from understudy.data.panel import Panel, concatenate
from understudy.data.schema import Schema

_CHUNK_VALUES = 2_000_000


class Partition(Protocol):
    """Some units' series; a handle that can travel, not the series."""

    def panels(self) -> Iterator[Panel]:
        """Yield private panels of whole units, each of a few million values; the same every time."""


@dataclass(frozen=True, eq=False, repr=False)
class Slices:
    """Parts of a panel in memory."""

    parts: tuple[Panel, ...]

    def panels(self) -> Iterator[Panel]:
        """Yield the parts."""
        return iter(self.parts)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Series of a schema, in partitions."""

    schema: Schema
    partitions: tuple[Partition, ...]
    shared_context: np.ndarray | None = None

    @classmethod
    def of(cls, panel: Panel) -> "Table":
        """Return a panel in memory as a table."""
        return cls(panel.schema, (Slices(tuple(_slices(panel))),), panel.shared_context)

    def read(self) -> Panel:
        """Return all series in one panel."""
        return concatenate([panel for partition in self.partitions for panel in partition.panels()])


def _slices(panel: Panel) -> Iterator[Panel]:
    """Yield slices of whole units; a panel without series is one slice."""
    size = max(1, _CHUNK_VALUES // max(1, panel.num_steps * panel.schema.num_channels))
    if panel.num_series <= size:
        yield panel
        return
    begin = 0
    while begin < panel.num_series:
        end = int(np.searchsorted(panel.unit, panel.unit[min(begin + size, panel.num_series) - 1], side="right"))
        yield panel.take_units(np.arange(panel.unit[begin], panel.unit[end - 1] + 1))
        begin = end
