"""Public context: one value per step, known without the private table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Float32, Int64

from understudy.data.io.arrow import array_values, settle_column, to_ticks, to_values
from understudy.data.io.sources import open_source, refuse_unknown_columns
from understudy.data.schema import Schema
from understudy.data.timegrid import Time, parse_frequency, step_ticks
from understudy.data.type_checks import require_column
from understudy.errors import DataError


@dataclass(frozen=True, eq=False)
class ContextRows:
    """Context by time: increasing ticks (numbers of rows without a time column) with one row of values each."""

    ticks: Int64[np.ndarray, " row"]
    values: Float32[np.ndarray, "row context"]


def given_context(source: Any, schema: Schema) -> ContextRows | np.ndarray | None:
    """Reads public context that came with a table; None where the table itself has to hold it, or there is none."""
    if source is None and (schema.time.column is not None or not schema.context):
        return None
    require_context(schema, given=source is not None)
    if not isinstance(source, np.ndarray) and schema.time.column is not None:
        return context_rows(source, schema)
    found = read_context(source, schema)
    if found.ndim != 2:
        raise DataError("Context: one [step, context] for all series is expected, or a table of context by time.")
    return found


def require_context(schema: Schema, *, given: bool) -> None:
    """Refuses public context that is declared and was not given, and context that is not declared."""
    if given and not schema.context:
        raise DataError("Context was given and the schema declares none. Declare [[context]] columns.")
    told = "public context is declared and was not given. Pass a table of context by time."
    for channel in schema.context:
        require_column(given, channel.name, told)


def read_context(
    source: Any, schema: Schema, *, steps: int | None = None, first_step: int = 0
) -> Float32[np.ndarray, "*series step context"]:
    """Returns the public context of `steps` steps (default: all of the schema's) from `first_step` on.

    `source` is a table with the schema's time column and its context columns, or an array [step, context] or
    [series, step, context] that is checked and handed back. `first_step` may lie after the declared start.
    """
    wanted = schema.num_steps if steps is None else steps
    if isinstance(source, np.ndarray):
        array = array_values(source, "context", schema.context)
        if array.ndim not in (2, 3) or array.shape[-2:] != (wanted, len(schema.context)):
            raise DataError(f"Context: an array of {wanted} steps and {len(schema.context)} channels is expected.")
        _settle(array, schema)
        return array
    rows, in_order = context_rows(source, schema), schema.time.column is None
    ticks = np.arange(first_step, first_step + wanted) if in_order else step_ticks(schema.time, wanted, first_step)
    return _on_the_clock(rows, ticks, schema)


def read_context_windows(
    source: Any, schema: Schema, num_windows: int, rng: np.random.Generator
) -> tuple[Float32[np.ndarray, "window step context"], Int64[np.ndarray, "window step"] | None]:
    """Returns stretches of a public table of context, as long as a series and beginning anywhere, and their times.

    For series that start at times of their own: which stretches they met is private, so any are drawn.
    """
    rows, steps = context_rows(source, schema), schema.num_steps
    starts = np.arange(max(len(rows.values) - steps + 1, 0))
    gaps = np.concatenate([[0], np.cumsum(np.diff(rows.ticks) != _width(schema.time))])  # gaps before each row
    starts = starts[gaps[starts + steps - 1] == gaps[starts]]
    if not len(starts):
        raise _not_covered(schema)
    start = rng.choice(starts, num_windows)
    taken = start[:, None] + np.arange(steps)
    found: np.ndarray = rows.values[taken]
    _settle(found, schema)
    return found, None if schema.time.column is None else rows.ticks[taken]


def context_rows(source: Any, schema: Schema) -> ContextRows:
    """Reads a public table of context; columns that the schema does not name are left out."""
    opened = open_source(source, schema)
    names = [channel.name for channel in schema.context]
    time = schema.time.column
    refuse_unknown_columns(opened, set(opened.columns), {*names, *([time] if time else [])})
    return merge_context([context_part(batch, schema) for batch in opened.batches], schema)


def context_part(batch: pa.RecordBatch, schema: Schema) -> ContextRows:
    """Takes the context out of one batch; a timestamp with two different values is refused."""
    columns = [to_values(batch.column(channel.name), channel) for channel in schema.context]
    values = np.stack(columns, axis=1)
    time = schema.time
    ticks = np.arange(len(values)) if time.column is None else to_ticks(batch.column(time.column), time)
    return _one_per_tick(ticks, values, schema)


def merge_context(parts: list[ContextRows], schema: Schema) -> ContextRows:
    """Puts the context of several batches together."""
    if not parts:
        raise DataError("The context table is empty. Expected a row per step.")
    values = np.concatenate([part.values for part in parts])
    in_order = schema.time.column is None
    ticks = np.arange(len(values)) if in_order else np.concatenate([part.ticks for part in parts])
    return _one_per_tick(ticks, values, schema)


def _one_per_tick(ticks: Int64[np.ndarray, " row"], values: np.ndarray, schema: Schema) -> ContextRows:
    unique, first, inverse = np.unique(ticks, return_index=True, return_inverse=True)
    kept = values[first]
    differs = (values != kept[inverse]) & ~(np.isnan(values) & np.isnan(kept[inverse]))
    told = "it is declared public context and has two values at one time. Context is the same for all units: declare"
    told += " the column under [[channels]] or [[static]], where it is protected."
    for index, channel in enumerate(schema.context):
        same = not differs[:, index].any()
        require_column(same, channel.name, told)
    return ContextRows(unique, kept)


def _lookup(rows: ContextRows, ticks: np.ndarray, schema: Schema) -> Float32[np.ndarray, "*series step context"]:
    """Returns the context at the given times; refuses times it does not cover."""
    position = np.searchsorted(rows.ticks, ticks).clip(max=len(rows.ticks) - 1)
    if not np.array_equal(rows.ticks[position], ticks):
        raise _not_covered(schema)
    found: np.ndarray = rows.values[position]
    _settle(found, schema)
    return found


def align_context(
    rows: ContextRows, origin: Int64[np.ndarray, " series"], lengths: np.ndarray, schema: Schema
) -> Float32[np.ndarray, "*series step context"]:
    """Returns [step, context] on a calendar axis, [series, step, context] when each series has its own start.

    Steps beyond a series' end repeat its last context, so that nothing past the end has to be covered.
    """
    if schema.time.align == "calendar":
        return _on_the_clock(rows, step_ticks(schema.time, schema.num_steps), schema)
    step = np.minimum(np.arange(schema.num_steps), lengths[:, None] - 1)
    return _lookup(rows, origin[:, None] + step * _width(schema.time), schema)


def _on_the_clock(rows: ContextRows, ticks: np.ndarray, schema: Schema) -> Float32[np.ndarray, "step context"]:
    """Returns the context at consecutive steps; refuses rows between them, whose place is not ours to choose."""
    between = (rows.ticks > ticks[0]) & (rows.ticks < ticks[-1]) & ~np.isin(rows.ticks, ticks)
    if between.any():
        told = f"The context has rows between steps of {schema.time.frequency}: one row per step is expected. Bring it"
        remedy = "to the frequency of the series, by means or as it suits them."
        raise DataError(f"{told} {remedy}", column=schema.time.column)
    return _lookup(rows, ticks, schema)


def _width(time: Time) -> int:
    width = 1 if time.counts_steps or time.column is None else parse_frequency(time.frequency).microseconds
    if not width:
        told = "Context for series with their own start needs a frequency of fixed length, not months or years."
        raise DataError(told, column=time.column)
    return width


def _settle(values: Float32[np.ndarray, "*series step context"], schema: Schema) -> None:
    for index, channel in enumerate(schema.context):
        settle_column(values[..., index], channel, np.True_)


def _not_covered(schema: Schema) -> DataError:
    told = f"The context does not cover every step of {schema.time.frequency} that is needed. Bring context for the"
    return DataError(f"{told} whole time axis.", column=schema.time.column)
