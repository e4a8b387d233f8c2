"""The one way in: a table and its schema become a private panel."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from understudy.data.given import require_argument
from understudy.data.io.checks import (
    MIN_UNITS,
    check_lengths,
    check_observed,
    check_units,
    settle_static,
    settle_values,
)
from understudy.data.io.context import ContextRows, align_context, context_rows, is_array_file, read_context
from understudy.data.io.long import Grid, read_long
from understudy.data.io.sources import Source, existing, open_source
from understudy.data.io.wide import read_array, read_overlapping_windows, read_wide
from understudy.data.panel import Panel, broadcast_context
from understudy.data.schema import Schema
from understudy.errors import DataError, SchemaError

__all__ = ["MIN_UNITS", "read_panel"]


def read_panel(source: Any, schema: Schema, *, context: Any = None, allow_few_units: bool = False) -> Panel:
    """Reads a table into a private panel, checking everything its schema declares.

    Args:
        source: A path (.csv, .parquet, .arrow, .feather, .npy, .npz), a folder of such tables or the URL of either,
            an Arrow table, a data frame with the Arrow C stream interface (pandas, polars, duckdb), or an array
            [series, step, channel]. `open_table` reads what does not fit in memory.
        schema: The public contract.
        context: Public context: a table with the time column and the context columns, or an array
            [step, context].
        allow_few_units: Lets fewer than 100 units pass; the caller records the override.

    Privacy:
        Reads private data and releases nothing. Every transformation looks at one series at a time: adding a
        unit leaves the values of all others as they were. That an error was raised depends on the data, so
        errors are for the data holder; they name columns and declared facts, never values, identifiers or
        counts.

    Edge cases:
        An empty table, a single unit, fewer than 100 units, a column that is missing everywhere, duplicate or
        unsorted timestamps and values outside the declared bounds are refused.
    """
    require_argument(schema, Schema, "schema", "Load it first: Schema.load(path).")
    schema.require_declared()
    grid = _read_grid(source, schema, with_context=context is None)
    check_units(grid.unit, schema, allow_few_units=allow_few_units)
    check_lengths(grid.lengths, schema)
    check_observed(settle_values(grid.values, grid.lengths, schema), schema.channels)
    check_observed(settle_static(grid.static, schema), schema.static)
    return panel_of(grid, schema, context)


def panel_of(grid: Grid, schema: Schema, context: Any) -> Panel:
    """Returns the private panel of a grid whose values were checked; `context` as in `read_panel`, or rows of it."""
    return Panel(
        schema=schema,
        values=grid.values,
        lengths=grid.lengths,
        unit=grid.unit,
        static=grid.static,
        context=_context(grid, schema, context),
        unit_ids=grid.ids,
    )


def _read_grid(source: Any, schema: Schema, *, with_context: bool) -> Grid:
    if isinstance(source, np.ndarray):
        return read_array(source, schema)
    if is_array_file(source):
        return read_array(existing(Path(source)), schema)
    return grid_of(open_source(source, schema), schema, with_context=with_context)


def grid_of(opened: Source, schema: Schema, *, with_context: bool) -> Grid:
    """Returns the series of an open table on the declared axis; values are not checked against bounds yet."""
    if schema.time.layout == "wide":
        return read_wide(opened, schema)
    if schema.unit.kind == "overlapping-window" and schema.unit.column not in opened.columns:
        if schema.static:
            raise SchemaError("Key 'static': windows of one series can't have static columns.", key="static")
        return read_overlapping_windows(opened, schema)
    in_table = any(channel.name in opened.columns for channel in schema.context)
    return read_long(opened, schema, with_context=with_context and in_table)


def require_context(schema: Schema, *, given: bool) -> None:
    """Refuses public context that is declared and was not given, and context that is not declared."""
    if given and not schema.context:
        raise DataError("Context was given and the schema declares none. Declare [[context]] columns.", column=None)
    if schema.context and not given:
        raise DataError(
            f"Column '{schema.context[0].name}': public context is declared and was not given. Pass a table "
            "of context by time.",
            column=schema.context[0].name,
        )


def _context(grid: Grid, schema: Schema, source: Any) -> Float32[np.ndarray, "series step context"] | None:
    require_context(schema, given=source is not None or (bool(schema.context) and grid.context is not None))
    if not schema.context:
        return None
    aligned = _aligned_context(grid, schema, source)
    return broadcast_context(aligned, len(grid.values)) if aligned.ndim == 2 else aligned


def _aligned_context(grid: Grid, schema: Schema, source: Any) -> Float32[np.ndarray, "*series step context"]:
    if isinstance(source, np.ndarray) or schema.time.column is None:
        given = read_context(source, schema)
        return given if given.ndim == 2 else _own_contexts(given, grid, schema)
    given_rows = source if isinstance(source, ContextRows) else None
    rows = grid.context if source is None else given_rows or context_rows(source, schema)
    assert rows is not None
    return align_context(rows, grid.origin, grid.lengths, schema)


def _own_contexts(
    contexts: Float32[np.ndarray, "series step context"], grid: Grid, schema: Schema
) -> Float32[np.ndarray, "series step context"]:
    """Brings contexts into the order of the series they belong to.

    Privacy: without this, one unit's presence could move everybody else's context to another series.
    """
    if schema.time.align == "calendar":
        raise DataError("Context: one [step, context] for all is expected: series share a calendar.", column=None)
    if grid.order is None:
        raise DataError(
            "Context: an array per series is expected with an array of series only. Give a long table its context as "
            "a table by time.",
            column=None,
        )
    if len(contexts) != len(grid.order):
        raise DataError("Context: an array with one context per series is expected.", column=None)
    return np.ascontiguousarray(contexts[grid.order])
