"""What every panel must pass before it is handed out, whatever table it came from.

Messages name columns and declared facts. They never quote a value, an identifier or a count.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float32, Int32, Int64

from understudy.data.channels import Channel, Continuous, Integer
from understudy.data.panel import row_chunks
from understudy.data.schema import Schema
from understudy.errors import DataError

MIN_UNITS = 100


def check_units(unit: Int64[np.ndarray, " series"], schema: Schema, *, allow_few_units: bool) -> None:
    """Refuses an empty table, one unit, too few units, and a unit with too many series."""
    num_units = check_series_per_unit(unit, schema)
    check_enough_units(num_units, len(unit), schema, allow_few_units=allow_few_units)


def check_series_per_unit(unit: Int64[np.ndarray, " series"], schema: Schema) -> int:
    """Refuses a unit with more series than declared; returns the number of units, which is private."""
    counts = np.bincount(unit)
    if (counts > schema.unit.max_series).any():
        raise DataError(
            f"A unit has more series than the declared unit.max_series = {schema.unit.max_series}. Raise it "
            "(one unit may then weigh more, and the same budget buys less), or keep fewer series per unit.",
            column=schema.unit.column,
        )
    return len(counts)


def check_enough_units(num_units: int, num_series: int, schema: Schema, *, allow_few_units: bool) -> None:
    """Refuses an empty table, one unit and too few units."""
    if num_units == 0:
        raise DataError("The table is empty. Expected rows.", column=None)
    if schema.unit.kind == "event":
        _check_events(num_series, schema, allow_few_units=allow_few_units)
        return
    if num_units < 2:
        raise DataError(
            "The table holds a single unit: nobody can be hidden in it. Check unit.column, bring more units, or "
            "protect stretches of time in one series: unit.kind = 'event'.",
            column=schema.unit.column,
        )
    if num_units < MIN_UNITS and not allow_few_units:
        raise DataError(
            f"The table holds fewer than {MIN_UNITS} units, too few for useful private output. Bring more "
            "units, or read with allow_few_units (the override is recorded).",
            column=schema.unit.column,
        )


def _check_events(num_series: int, schema: Schema, *, allow_few_units: bool) -> None:
    """Refuses too few stretches to hide one in; they may all be of one series."""
    stretches = num_series * -(-schema.num_steps // schema.unit.event_steps)
    if stretches < MIN_UNITS and not allow_few_units:
        raise DataError(
            f"The table holds fewer than {MIN_UNITS} stretches of unit.event_steps = {schema.unit.event_steps} steps, "
            "too few for useful private output. Bring longer or more series, or read with allow_few_units (the "
            "override is recorded).",
            column=schema.unit.column,
        )


def check_lengths(lengths: Int32[np.ndarray, " series"], schema: Schema) -> None:
    """Refuses series shorter than declared."""
    shortest = schema.time.min_steps
    if shortest is not None and len(lengths) and lengths.min() < shortest:
        raise DataError(
            f"A series is shorter than the declared time.min_steps = {shortest}. Lower it, or drop short series.",
            column=schema.time.column,
        )


def settle_values(
    values: Float32[np.ndarray, "series step channel"], lengths: Int32[np.ndarray, " series"], schema: Schema
) -> Bool[np.ndarray, " channel"]:
    """Checks bounds and missing values in place, clips where that is declared; returns which channels were observed."""
    observed = np.zeros(schema.num_channels, dtype=bool)
    steps = np.arange(values.shape[1])
    for rows in row_chunks(values):
        inside = steps < lengths[rows, None]
        for index, channel in enumerate(schema.channels):
            observed[index] |= settle_column(values[rows, :, index], channel, inside)
    return observed


def settle_static(static: Float32[np.ndarray, "series static"], schema: Schema) -> Bool[np.ndarray, " static"]:
    """Checks static columns in place, as `settle_values` does for channels; returns which were observed."""
    inside = np.ones(len(static), dtype=bool)
    observed = [settle_column(static[:, index], channel, inside) for index, channel in enumerate(schema.static)]
    return np.array(observed, dtype=bool)


def check_observed(observed: Bool[np.ndarray, " column"], columns: Sequence[Channel]) -> None:
    """Refuses a column without any value."""
    for channel, seen in zip(columns, observed, strict=True):
        if not seen:
            raise DataError(
                f"Column '{channel.name}' is missing everywhere. Drop it from the schema, or bring its values.",
                column=channel.name,
            )


def settle_column(column: np.ndarray, channel: Channel, inside: np.ndarray) -> bool:
    """Checks one column in place; returns whether anything was observed."""
    missing = np.isnan(column)
    if not channel.missing and (missing & inside).any():
        raise DataError(
            f"Column '{channel.name}' has a missing value and is declared without. Set missing = true in "
            "the schema, or fill the gap from public knowledge.",
            column=channel.name,
        )
    low, high = (np.float32(bound) for bound in channel.bounds)
    outside = (column < low) | (column > high)
    if outside.any():
        if isinstance(channel, Continuous | Integer) and channel.out_of_bounds == "clip":
            np.clip(column, low, high, out=column)
        else:
            raise DataError(
                f"Column '{channel.name}' leaves its declared bounds [{channel.bounds[0]:g}, "
                f"{channel.bounds[1]:g}]. "
                "Bounds are public and are not read from the data: widen them in the schema, or set "
                'out_of_bounds = "clip".',
                column=channel.name,
            )
    return not bool(missing.all())
