"""Long tables: a row per series and step.

Batches are reduced to small integers and float32 as they arrive, so memory grows with the panel and not with
the text of the table.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from jaxtyping import Float32, Int, Int32, Int64

from understudy.data.channels import is_event_like
from understudy.data.io.arrow import encode, to_ticks, to_values
from understudy.data.io.context import ContextRows, context_part, merge_context
from understudy.data.io.regularise import Placement, merge_shared_steps, place_rows
from understudy.data.io.sources import Source, refuse_unknown_columns
from understudy.data.schema import FALLBACK_SERIES_COLUMN, Schema
from understudy.errors import DataError


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Grid:
    """Series on the declared axis, not yet checked against bounds.

    Attributes:
        values: Laid out as a panel's.
        lengths: Steps of each series.
        unit: Unit of each series.
        static: Static columns.
        ids: Identifier of each unit, None where there is none.
        origin: Tick of each series' step 0.
        context: Context found in the table itself.
        order: Where each series stood in the source, when the source is an array or a wide table.
    """

    values: Float32[np.ndarray, "series step channel"]
    lengths: Int32[np.ndarray, " series"]
    unit: Int64[np.ndarray, " series"]
    static: Float32[np.ndarray, "series static"]
    ids: np.ndarray | None
    origin: Int64[np.ndarray, " series"]
    context: ContextRows | None = None
    order: Int64[np.ndarray, " series"] | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class _Part:
    """One batch, made small. A key is a (unit, series) pair, numbered within the batch."""

    key: Int32[np.ndarray, " row"]
    key_unit: Int32[np.ndarray, " key"]
    units: pa.Array
    key_series: Int32[np.ndarray, " key"] | None
    series: pa.Array | None
    static: Float32[np.ndarray, "key static"]
    ticks: Int64[np.ndarray, " row"] | None
    values: Float32[np.ndarray, "row channel"]
    context: ContextRows | None


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
    parts = [_part(batch, schema, columns) for batch in source.batches if batch.num_rows]
    if not parts:
        raise DataError(f"{source.name}: the table is empty. Expected rows.", column=None)
    series, unit, static, ids = _number_series(parts, schema)
    context = [part.context for part in parts if part.context is not None]
    ticks = None if parts[0].ticks is None else np.concatenate([part.ticks for part in parts])
    rows = [part.values for part in parts]
    del parts
    placement = place_rows(series, ticks, len(unit), schema)
    del ticks
    return Grid(
        values=_scatter(series, placement, rows, schema, columns.counted),
        lengths=placement.lengths,
        unit=unit,
        static=static,
        ids=None if columns.unit is None else ids,
        origin=placement.origin,
        context=merge_context(context, schema) if context else None,
    )


def roles(source: Source, schema: Schema, *, with_context: bool) -> Roles:
    """Returns which columns play which part, refusing a table with other columns than the schema names."""
    time = schema.time
    unit = schema.unit.column or time.series_column or _written_series(source)
    if unit is None and not (schema.unit.kind == "event" and schema.population.size == 1):
        raise DataError(
            "A long table needs unit.column, which says whose rows they are. Declare it in the schema; or, if the "
            "table is one series of which stretches of time are protected, unit.kind = 'event' and population = 1.",
            column=None,
        )
    counted = tuple(c.aggregate == "count" and c.name not in source.columns for c in schema.channels)
    measured = {c.name for c, count in zip(schema.channels, counted, strict=True) if not count}
    context = {c.name for c in schema.context}
    keys = {name for name in (unit, time.series_column, time.column) if name is not None}
    required = keys | measured | {c.name for c in schema.static} | (context if with_context else set())
    refuse_unknown_columns(source, required | context | set(schema.ignore), required)
    series = time.series_column if time.series_column != unit else None
    return Roles(unit, series, counted, with_context and bool(context))


def _written_series(source: Source) -> str | None:
    """Returns the column that we write where the schema has none to tell series apart, if the table has it."""
    return FALLBACK_SERIES_COLUMN if FALLBACK_SERIES_COLUMN in source.columns else None


def _part(batch: pa.RecordBatch, schema: Schema, columns: Roles) -> _Part:
    if columns.unit is None:
        unit_code, units = np.zeros(batch.num_rows, dtype=np.int64), pa.array([0])
    else:
        unit_code, units = encode(batch.column(columns.unit), columns.unit, schema.unit.dtype)
    key, key_unit = unit_code, np.arange(len(units))
    key_series, series = None, None
    if columns.series is not None:
        series_code, series = encode(batch.column(columns.series), columns.series, "string")
        pairs, key = np.unique(unit_code * len(series) + series_code, return_inverse=True)
        key_unit, key_series = pairs // len(series), (pairs % len(series)).astype(np.int32)
    ticks = None if schema.time.column is None else to_ticks(batch.column(schema.time.column), schema.time)
    return _Part(
        key=key.astype(np.int32),
        key_unit=key_unit.astype(np.int32),
        units=units,
        key_series=key_series,
        series=series,
        static=_static_by_key(batch, schema, key, len(key_unit)),
        ticks=ticks,
        values=_row_values(batch, schema, columns.counted),
        context=context_part(batch, schema) if columns.with_context else None,
    )


def _row_values(batch: pa.RecordBatch, schema: Schema, counted: tuple[bool, ...]) -> Float32[np.ndarray, "row channel"]:
    values = np.zeros((batch.num_rows, schema.num_channels), dtype=np.float32)
    for index, channel in enumerate(schema.channels):
        if not counted[index]:
            values[:, index] = to_values(batch.column(channel.name), channel)
    return values


def _static_by_key(
    batch: pa.RecordBatch, schema: Schema, key: Int[np.ndarray, " row"], num_keys: int
) -> Float32[np.ndarray, "key static"]:
    rows = np.empty((batch.num_rows, len(schema.static)), dtype=np.float32)
    for index, channel in enumerate(schema.static):
        rows[:, index] = to_values(batch.column(channel.name), channel)
    return _one_per_group(rows, key, num_keys, schema)


def _one_per_group(
    rows: Float32[np.ndarray, "row static"], group: Int[np.ndarray, " row"], num_groups: int, schema: Schema
) -> Float32[np.ndarray, "group static"]:
    """Returns each group's static row; refuses one that changes within a group."""
    kept = np.empty((num_groups, rows.shape[1]), dtype=np.float32)
    kept[group] = rows
    for index, channel in enumerate(schema.static):
        column, first = rows[:, index], kept[group, index]
        if ((column != first) & ~(np.isnan(column) & np.isnan(first))).any():
            raise DataError(
                f"Column '{channel.name}' is declared static and changes within a series. Declare it under "
                "[[channels]], or make it constant.",
                column=channel.name,
            )
    return kept


def _number_series(
    parts: list[_Part], schema: Schema
) -> tuple[Int32[np.ndarray, " row"], Int64[np.ndarray, " series"], Float32[np.ndarray, "series static"], np.ndarray]:
    """Numbers units and series over all batches, units in the order they first appear."""
    unit_codes, ids = _global_codes([part.units for part in parts])
    key_unit = _concatenate_keys(unit_codes, parts, "units", "key_unit")
    if parts[0].series is None:
        key_series, unit = key_unit, np.arange(len(ids), dtype=np.int64)
    else:
        series_codes, series_ids = _global_codes([part.series for part in parts if part.series is not None])
        within = _concatenate_keys(series_codes, parts, "series", "key_series")
        pairs, key_series = np.unique(key_unit.astype(np.int64) * len(series_ids) + within, return_inverse=True)
        unit = pairs // len(series_ids)
    static = _one_per_group(np.concatenate([part.static for part in parts]), key_series, len(unit), schema)
    starts = np.cumsum([0, *(len(part.key_unit) for part in parts)])
    rows = [key_series[start + part.key].astype(np.int32) for start, part in zip(starts, parts, strict=False)]
    return np.concatenate(rows), unit, static, np.array(ids.to_pylist(), dtype=object)


def _global_codes(pieces: list[pa.Array]) -> tuple[Int32[np.ndarray, " key"], pa.Array]:
    encoded = pa.concat_arrays(pieces).dictionary_encode()
    return encoded.indices.to_numpy(), encoded.dictionary


def _concatenate_keys(
    codes: Int32[np.ndarray, " local"], parts: list[_Part], values: str, index: str
) -> Int32[np.ndarray, " key"]:
    starts = np.cumsum([0, *(len(getattr(part, values)) for part in parts)])
    return np.concatenate([codes[start + getattr(part, index)] for start, part in zip(starts, parts, strict=False)])


def _scatter(
    series: Int32[np.ndarray, " row"],
    placement: Placement,
    rows: list[np.ndarray],
    schema: Schema,
    counted: tuple[bool, ...],
) -> Float32[np.ndarray, "series step channel"]:
    lengths = placement.lengths
    values = np.full((len(lengths), schema.num_steps, schema.num_channels), np.nan, dtype=np.float32)
    for index, channel in enumerate(schema.channels):
        if is_event_like(channel):  # a step without rows had no events
            values[:, :, index] = np.where(np.arange(schema.num_steps) < lengths[:, None], 0.0, np.nan)
    if placement.shared_steps or any(counted):
        together = np.concatenate(rows)
        if placement.order is not None:
            series, together = series[placement.order], together[placement.order]
        series, step, together = merge_shared_steps(series, placement, together, schema.channels, counted)
        values[series, step] = together
        return values
    step = placement.step
    if placement.order is not None:
        step = np.empty_like(placement.step)
        step[placement.order] = placement.step
    begin = 0
    while rows:  # each batch is let go of as soon as it is placed
        batch = rows.pop(0)
        end = begin + len(batch)
        values[series[begin:end], step[begin:end]] = batch
        begin = end
    return values
