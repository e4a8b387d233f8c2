"""Long tables as this package writes them: whole units in order, a row for every step. They are only cut to shape."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32

from understudy.data.io.arrow import encode, to_ticks, to_values
from understudy.data.io.context import ContextRows
from understudy.data.io.long import Grid, Roles
from understudy.data.schema import Channel, Schema
from understudy.data.timegrid import step_ticks
from understudy.errors import DataError


def read_regular(rows: pa.Table, schema: Schema, roles: Roles) -> Grid | None:
    """Returns the series of rows that need no sorting and have no gap in time; None of rows that may need either.

    The grid is the one that `read_long` returns; it reads, and refuses, all rows for which this returns None.
    """
    steps, time = schema.num_steps, schema.time
    simple = roles.series is None and not any(roles.counted) and time.column is not None and time.align == "calendar"
    if not simple or roles.unit is None or not rows.num_rows or rows.num_rows % steps:
        return None
    ticks = step_ticks(time, steps)
    units = rows.column(roles.unit).combine_chunks()
    if not _changes_every(units, steps) or not _ticks_repeat(rows, ticks, schema):
        return None
    static = _per_series(rows, schema.static, steps)
    context = _per_step(rows, schema) if roles.with_context else None
    if static is None or (roles.with_context and context is None):
        return None
    series = rows.num_rows // steps
    return Grid(
        values=_stacked(rows, schema.channels, steps),
        lengths=np.full(series, steps, dtype=np.int32),
        unit=np.arange(series, dtype=np.int64),
        static=static,
        ids=_first_of_each(units, steps, roles.unit, schema.unit.dtype),
        origin=np.full(series, ticks[0], dtype=np.int64),
        context=None if context is None else ContextRows(ticks, context),
    )


def _changes_every(units: pa.Array, steps: int) -> bool:
    """Tells whether identifiers stay the same for `steps` rows and then change."""
    codes = units.indices if pa.types.is_dictionary(units.type) else units
    if units.null_count or codes.null_count:
        return False
    changed = pc.not_equal(codes[1:], codes[:-1]).to_numpy(zero_copy_only=False)
    return bool(changed[steps - 1 :: steps].all()) and int(changed.sum()) == len(units) // steps - 1


def _ticks_repeat(rows: pa.Table, ticks: np.ndarray, schema: Schema) -> bool:
    try:
        found = to_ticks(rows.column(str(schema.time.column)).combine_chunks(), schema.time)
    except DataError:
        return False
    return bool((found.reshape(-1, len(ticks)) == ticks).all())


def _stacked(rows: pa.Table, channels: tuple[Channel, ...], steps: int) -> Float32[np.ndarray, "series step channel"]:
    """Returns the columns side by side, `steps` rows to a series."""
    values = np.empty((rows.num_rows // steps, steps, len(channels)), dtype=np.float32)
    for index, channel in enumerate(channels):
        values[:, :, index] = to_values(rows.column(channel.name).combine_chunks(), channel).reshape(-1, steps)
    return values


def _per_series(
    rows: pa.Table, channels: tuple[Channel, ...], steps: int
) -> Float32[np.ndarray, "series static"] | None:
    """Returns one row of static columns for each series; None if one changes within a series."""
    stacked = _stacked(rows, channels, steps)
    first = stacked[:, :1]
    same = (stacked == first) | (np.isnan(stacked) & np.isnan(first))
    return np.ascontiguousarray(stacked[:, 0]) if same.all() else None


def _per_step(rows: pa.Table, schema: Schema) -> Float32[np.ndarray, "step context"] | None:
    """Returns the public context of all series; None if series differ in it."""
    stacked = _stacked(rows, schema.context, schema.num_steps)
    same = (stacked == stacked[:1]) | (np.isnan(stacked) & np.isnan(stacked[:1]))
    return stacked[0] if same.all() else None


def _first_of_each(units: pa.Array, steps: int, column: str, dtype: str) -> np.ndarray:
    """Returns the identifier of each unit, as `read_long` does."""
    codes, names = encode(units.take(pa.array(np.arange(0, len(units), steps))), column, dtype)
    return np.array(names.take(pa.array(codes)).to_pylist(), dtype=object)
