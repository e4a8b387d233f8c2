"""Long tables: a row per series and step.

Batches are reduced to codes, ticks and float32 as they arrive, so memory grows with the panel and not with the text of
the table. Every rule looks at one series at a time, so what happens to one unit never depends on another.
"""

import datetime as dt
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Float32, Int, Int32, Int64

from understudy.data.channels import Channel, Integer, is_event_like
from understudy.data.io.arrow import encode, to_ticks, to_values
from understudy.data.io.context import ContextRows, context_part, merge_context
from understudy.data.io.sources import Source, refuse_unknown_columns
from understudy.data.schema import FALLBACK_SERIES_COLUMN, Schema
from understudy.data.timegrid import Time, start_microseconds, steps_since
from understudy.data.type_checks import wrong_column
from understudy.errors import DataError

_ROWS_AT_A_TIME = 2_000_000


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Grid:
    """Series on the declared axis, laid out as a panel's and not yet checked against bounds."""

    values: Float32[np.ndarray, "series step channel"]
    lengths: Int32[np.ndarray, " series"]
    unit: Int64[np.ndarray, " series"]
    static: Float32[np.ndarray, "series static"]
    ids: np.ndarray | None  # of units
    origin: Int64[np.ndarray, " series"]  # tick of each series' step 0
    context: ContextRows | None = None  # that the table itself holds


@dataclass(frozen=True)
class Roles:
    """Which columns play which part in this table."""

    unit: str | None  # None: all rows are of one series
    series: str | None
    counted: tuple[bool, ...]
    with_context: bool


def read_long(source: Source, schema: Schema, *, with_context: bool) -> Grid:
    """Reads a long table onto the grid; `with_context` takes public context from the table too."""
    columns = roles(source, schema, with_context=with_context)
    batches, context = [], []
    for batch in source.batches:
        batches.append(_compact(batch, schema, columns))
        context += [context_part(batch, schema)] if columns.with_context else []
    if not batches:
        raise DataError(f"{source.name}: the table is empty. Expected rows.")
    rows = pa.Table.from_batches(batches).unify_dictionaries()
    del batches
    series, ids = _codes(rows, "unit")
    unit = np.arange(len(ids), dtype=np.int64)  # of each series
    if columns.series is not None:
        within, names = _codes(rows, "series")
        pairs, series = np.unique(series.astype(np.int64) * len(names) + within, return_inverse=True)
        unit = pairs // len(names)
    if int(np.count_nonzero(series[1:] != series[:-1])) + 1 != len(unit):  # bring the rows of a series together
        order = np.argsort(series, kind="stable")
        numbers = [name for name in rows.column_names if name not in ("unit", "series")]
        series, rows = series[order], pa.table({name: rows.column(name).to_numpy()[order] for name in numbers})
    step, lengths, origin = _place_rows(rows, series, len(unit), schema)
    return Grid(
        values=_scatter(rows, series, step, lengths, schema, columns.counted),
        lengths=lengths,
        unit=unit,
        static=_static(rows, series, len(unit), schema),
        ids=None if columns.unit is None else np.array(ids.to_pylist(), dtype=object),
        origin=origin,
        context=merge_context(context, schema) if context else None,
    )


def unit_column(columns: tuple[str, ...], schema: Schema) -> str | None:
    """Returns the column that distinguishes units; None where every row of a wide table is a unit."""
    if schema.unit.column is not None or schema.time.layout == "wide":
        return schema.unit.column
    return schema.time.series_column or (FALLBACK_SERIES_COLUMN if FALLBACK_SERIES_COLUMN in columns else None)


def roles(source: Source, schema: Schema, *, with_context: bool) -> Roles:
    """Returns which columns play which part, refusing a table with other columns than the schema names."""
    time, unit = schema.time, unit_column(source.columns, schema)
    if unit is None and not (schema.unit.kind == "event" and schema.population.size == 1):
        raise DataError(
            "A long table needs unit.column, which says whose rows they are. Declare it in the schema; or, if the "
            "table is one series of which stretches of time are protected, unit.kind = 'event' and population = 1."
        )
    counted = tuple(c.aggregate == "count" and c.name not in source.columns for c in schema.channels)
    measured = {c.name for c, count in zip(schema.channels, counted, strict=True) if not count}
    context = {c.name for c in schema.context}
    keys = {name for name in (unit, time.series_column, time.column) if name is not None}
    required = keys | measured | {c.name for c in schema.static} | (context if with_context else set())
    refuse_unknown_columns(source, required | context | set(schema.ignore), required)
    series = time.series_column if time.series_column != unit else None
    return Roles(unit, series, counted, with_context and bool(context))


def _compact(batch: pa.RecordBatch, schema: Schema, columns: Roles) -> pa.RecordBatch:
    """Returns the keys of a batch as dictionaries, its times as ticks and its values as float32."""
    compact: dict[str, pa.Array] = {}
    if columns.unit is not None:
        compact["unit"] = encode(batch.column(columns.unit), columns.unit, schema.unit.dtype)
    else:
        compact["unit"] = pa.array(np.zeros(batch.num_rows, dtype=np.int64)).dictionary_encode()
    if columns.series is not None:
        compact["series"] = encode(batch.column(columns.series), columns.series, "string")
    if schema.time.column is not None:
        compact["ticks"] = pa.array(to_ticks(batch.column(schema.time.column), schema.time))
    for index, channel in enumerate(schema.channels):
        if not columns.counted[index]:
            compact[f"channel {index}"] = pa.array(to_values(batch.column(channel.name), channel))
    for index, channel in enumerate(schema.static):
        compact[f"static {index}"] = pa.array(to_values(batch.column(channel.name), channel))
    return pa.RecordBatch.from_arrays(list(compact.values()), names=list(compact))


def _codes(rows: pa.Table, name: str) -> tuple[Int32[np.ndarray, " row"], pa.Array]:
    """Returns each row's code and what the codes stand for, in the order of their first appearance in the table."""
    chunks = rows.column(name).chunks
    return np.concatenate([chunk.indices.to_numpy() for chunk in chunks]), chunks[0].dictionary


def _static(
    rows: pa.Table, series: Int[np.ndarray, " row"], num_series: int, schema: Schema
) -> Float32[np.ndarray, "series static"]:
    """Returns each series' static row; refuses a column that changes within a series."""
    static = np.empty((num_series, len(schema.static)), dtype=np.float32)
    for index, channel in enumerate(schema.static):
        column = rows.column(f"static {index}").to_numpy()
        static[series, index] = column
        kept = static[series, index]
        if ((column != kept) & ~(np.isnan(column) & np.isnan(kept))).any():
            problem = "it is declared static and changes within a series. Declare it under [[channels]], or correct it."
            raise wrong_column(channel.name, problem)
    return static


def _place_rows(
    rows: pa.Table, series: Int[np.ndarray, " row"], num_series: int, schema: Schema
) -> tuple[Int32[np.ndarray, " row"], Int32[np.ndarray, " series"], Int64[np.ndarray, " series"]]:
    """Returns the step of every row, and the length and the origin of every series.

    Refuses timestamps that go back, repeat or leave the declared axis.
    """
    time = schema.time
    first = np.flatnonzero(np.concatenate([[True], series[1:] != series[:-1]]))
    last = np.append(first[1:], len(series)) - 1
    if time.column is None:  # rows without a time column are consecutive steps
        steps = (np.arange(len(series)) - np.repeat(first, last - first + 1)).astype(np.int32)
        origin = np.zeros(num_series, dtype=np.int64)
        if steps.max() >= time.steps:
            raise _outside(time)
    else:
        ticks = rows.column("ticks").to_numpy()
        _check_order(series, ticks, schema)
        origin = np.full(num_series, 0 if time.counts_steps else start_microseconds(time), dtype=np.int64)
        if time.align == "relative":
            origin[series[first]] = ticks[first]
        steps = _steps(series, ticks, origin, time)
    lengths = np.full(num_series, time.steps, dtype=np.int32)
    if time.variable_length:
        lengths[series[first]] = steps[last] + 1
    return steps, lengths, origin


def _check_order(series: Int[np.ndarray, " row"], ticks: Int64[np.ndarray, " row"], schema: Schema) -> None:
    """Refuses timestamps that go back, and such that repeat unless that is declared."""
    same = series[1:] == series[:-1]
    name = str(schema.time.column)
    if ((ticks[1:] < ticks[:-1]) & same).any():
        raise wrong_column(
            name, "the timestamps of a series are not in order. Sort the table by series and time (sort_values)."
        )
    binned = schema.time.off_grid != "refuse" or all(is_event_like(channel) for channel in schema.channels)
    if not binned and ((ticks[1:] == ticks[:-1]) & same).any():
        raise wrong_column(
            name,
            "a series has the same timestamp twice. Remove the duplicate; or, if rows are events, declare "
            "time.off_grid = 'floor' and an aggregate for each channel.",
        )


def _steps(
    series: Int[np.ndarray, " row"], ticks: Int64[np.ndarray, " row"], origin: Int64[np.ndarray, " series"], time: Time
) -> Int32[np.ndarray, " row"]:
    """Returns each row's step, a few rows at a time, so that the large table has no large working copies."""
    steps = np.empty(len(ticks), dtype=np.int32)
    for begin in range(0, len(ticks), _ROWS_AT_A_TIME):
        rows = slice(begin, begin + _ROWS_AT_A_TIME)
        start = origin[series[rows]] if time.align == "relative" else int(origin[0])
        found, on_grid = steps_since(ticks[rows], start, time)
        if not on_grid:
            counted_from = time.start if time.align == "calendar" else "the start of each series"
            raise wrong_column(
                str(time.column),
                f"a timestamp lies between two steps of {time.frequency} counted from {counted_from}. Put the "
                f"timestamps on the grid, or declare time.off_grid = 'floor' or 'nearest'.{_about_zones(time)}",
            )
        if found.min() < 0 or found.max() >= time.steps:
            raise _outside(time)
        steps[rows] = found
    return steps


def _about_zones(time: Time) -> str:
    """Says how timestamps with and without an offset are compared with the start, where that may be the cause."""
    if time.counts_steps or time.align == "relative":
        return ""
    if time.zone is not None:
        return f" Timestamps without an offset are read as times of time.zone = '{time.zone}'."
    if dt.datetime.fromisoformat(time.start).tzinfo is not None:
        return " time.start has an offset: if the timestamps have none, write it without, or declare their time.zone."
    return (
        " Timestamps with a time zone or an offset are compared in UTC, as which time.start is read: write its offset "
        f"(such as {time.start}+01:00), or declare time.zone."
    )


def _outside(time: Time) -> DataError:
    if time.align == "relative" or time.column is None:
        problem = f"a series is longer than the declared {time.steps} steps. Raise time.steps or cut the series."
        return DataError(f"Column '{time.column or 'time'}': {problem}", column=time.column)
    return wrong_column(
        time.column,
        f"a timestamp lies outside the declared {time.steps} steps of {time.frequency} from {time.start}. Raise "
        f"time.steps, move time.start, or drop the rows.{_about_zones(time)}",
    )


def _scatter(
    rows: pa.Table,
    series: Int[np.ndarray, " row"],
    step: Int32[np.ndarray, " row"],
    lengths: Int32[np.ndarray, " series"],
    schema: Schema,
    counted: tuple[bool, ...],
) -> Float32[np.ndarray, "series step channel"]:
    """Puts every row at its step; several rows of one step become one, by each channel's declared aggregate."""
    begins = np.concatenate([[True], (series[1:] != series[:-1]) | (step[1:] != step[:-1])])
    first = None if begins.all() and not any(counted) else np.flatnonzero(begins)
    if first is not None:
        size = np.diff(np.append(first, len(series)))
        series, step = series[first], step[first]
    values = np.full((len(lengths), schema.num_steps, schema.num_channels), np.nan, dtype=np.float32)
    for index, channel in enumerate(schema.channels):
        if is_event_like(channel):  # a step without rows had no events
            values[:, :, index] = np.where(np.arange(schema.num_steps) < lengths[:, None], 0.0, np.nan)
        if counted[index]:  # rows, which need no column of their own
            values[series, step, index] = size
            continue
        column = rows.column(f"channel {index}").to_numpy()
        values[series, step, index] = column if first is None else _aggregate(column, first, channel)
    return values


def _aggregate(
    values: Float32[np.ndarray, " row"], first: Int64[np.ndarray, " merged"], channel: Channel
) -> np.ndarray:
    """Makes the rows of one step one; `first` is where the rows of each step begin."""
    missing = np.isnan(values)
    if channel.aggregate in ("max", "min"):
        pick = np.fmax if channel.aggregate == "max" else np.fmin
        return np.asarray(pick.reduceat(values, first))
    if channel.aggregate == "last":
        latest = np.maximum.reduceat(np.where(missing, -1, np.arange(len(values))), first)
        return np.where(latest < 0, np.float32(np.nan), values[latest])
    observed = np.add.reduceat((~missing).astype(np.int64), first)
    total = np.add.reduceat(np.where(missing, 0.0, values.astype(np.float64)), first)
    if channel.aggregate == "mean":
        total = total / np.maximum(observed, 1)
        total = np.rint(total) if isinstance(channel, Integer) else total
    return np.where(observed == 0, np.nan, total)
