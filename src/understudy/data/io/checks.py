"""What every panel must pass, whatever table it came from; errors name columns and declared facts, never a value."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.data.channels import Channel, Continuous, Integer
from understudy.data.panel import row_chunks
from understudy.data.schema import Schema
from understudy.data.type_checks import wrong_column
from understudy.errors import DataError

if TYPE_CHECKING:
    from understudy.data.io.long import Grid

MIN_UNITS = 100


@dataclass(eq=False, repr=False)
class Tally:
    """Checks series as they come, and takes note of what only all of them together can tell; private."""

    schema: Schema
    num_units: int = 0
    num_series: int = 0

    def __post_init__(self) -> None:
        self.channels = np.zeros(self.schema.num_channels, dtype=bool)  # which of them hold any value
        self.static = np.zeros(len(self.schema.static), dtype=bool)

    def add(self, grid: "Grid") -> None:
        """Checks series of whole units; clips their values where that is declared."""
        schema, steps = self.schema, np.arange(grid.values.shape[1])
        counts = np.bincount(grid.unit)
        self.num_units += len(counts)
        self.num_series += len(grid.unit)
        if (counts > schema.unit.max_series).any():
            raise DataError(
                f"A unit has more series than the declared unit.max_series = {schema.unit.max_series}. Raise it "
                "(one unit may then weigh more, and the same budget buys less), or keep fewer series per unit.",
                column=schema.unit.column,
            )
        shortest = schema.time.min_steps
        if shortest is not None and len(grid.lengths) and grid.lengths.min() < shortest:
            told = f"A series is shorter than the declared time.min_steps = {shortest}. Lower it, or drop short series."
            raise DataError(told, column=schema.time.column)
        for rows in row_chunks(grid.values):
            inside = steps < grid.lengths[rows, None]
            for index, channel in enumerate(schema.channels):
                self.channels[index] |= settle_column(grid.values[rows, :, index], channel, inside)
        for index, channel in enumerate(schema.static):
            column = grid.static[:, index]
            self.static[index] |= settle_column(column, channel, np.ones(column.shape, dtype=bool))

    def merge(self, other: "Tally") -> None:
        """Takes in what was noted of other units."""
        self.num_units += other.num_units
        self.num_series += other.num_series
        self.channels |= other.channels
        self.static |= other.static

    def finish(self, *, allow_few_units: bool) -> None:
        """Checks what all series together have to obey."""
        check_units(self.num_units, self.num_series, self.schema, allow_few_units=allow_few_units)
        columns = (*self.schema.channels, *self.schema.static)
        for channel, observed in zip(columns, (*self.channels, *self.static), strict=True):
            if not observed:
                raise wrong_column(channel.name, "missing everywhere. Drop it from the schema, or bring its values.")


def check_units(num_units: int, num_series: int, schema: Schema, *, allow_few_units: bool) -> None:
    """Refuses an empty table, one unit and too few units."""
    event_steps, protected, what = schema.unit.event_steps, num_units, "units"
    if num_units == 0:
        raise DataError("The table is empty. Expected rows.")
    if schema.unit.kind == "event":
        protected = num_series * -(-schema.num_steps // event_steps)
        what = f"stretches of unit.event_steps = {event_steps} steps"
    elif num_units < 2:
        raise DataError(
            "The table holds a single unit: nobody can be hidden in it. Check unit.column, bring more units, or "
            "protect stretches of time in one series: unit.kind = 'event'.",
            column=schema.unit.column,
        )
    if protected < MIN_UNITS and not allow_few_units:
        raise DataError(
            f"The table holds fewer than {MIN_UNITS} {what}, too few for useful private output. Bring more, or read "
            "with allow_few_units (the override is recorded).",
            column=schema.unit.column,
        )


def settle_column(column: np.ndarray, channel: Channel, inside: np.ndarray) -> bool:
    """Checks one column in place; returns whether anything was observed."""
    missing = np.isnan(column)
    if not channel.missing and (missing & inside).any():
        raise wrong_column(
            channel.name,
            "it has a missing value and is declared without. Set missing = true in the schema, or fill the gap from "
            "public knowledge.",
        )
    low, high = (np.float32(bound) for bound in channel.bounds)
    outside = (column < low) | (column > high)
    if outside.any():
        if isinstance(channel, Continuous | Integer) and channel.out_of_bounds == "clip":
            np.clip(column, low, high, out=column)
        else:
            raise wrong_column(
                channel.name,
                f"it leaves its declared bounds [{channel.bounds[0]:g}, {channel.bounds[1]:g}]. Bounds are public and "
                'are not read from the data: widen them in the schema, or set out_of_bounds = "clip".',
            )
    return not bool(missing.all())
