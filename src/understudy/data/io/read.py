"""The one way in: a table and its schema become a private panel."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32

from understudy.data.io.arrow import encode, plain
from understudy.data.io.checks import MIN_UNITS, Tally, check_units
from understudy.data.io.context import ContextRows, align_context, given_context, require_context
from understudy.data.io.long import Grid, read_long
from understudy.data.io.sources import Source, open_source, require_column
from understudy.data.io.stores import existing, is_array_file
from understudy.data.io.wide import read_array, read_overlapping_windows, read_wide
from understudy.data.panel import Panel, broadcast_context
from understudy.data.schema import Schema, column_names
from understudy.data.type_checks import require_argument
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
    given = given_context(context, schema)
    if isinstance(source, np.ndarray):
        grid = read_array(source, schema)
    elif is_array_file(source):
        grid = read_array(existing(Path(source)), schema)
    else:
        grid = grid_of(open_source(source, schema), schema, with_context=given is None)
    tally = Tally(schema)
    tally.add(grid)
    tally.finish(allow_few_units=allow_few_units)
    return panel_of(grid, schema, given)


def panel_of(grid: Grid, schema: Schema, context: ContextRows | np.ndarray | None) -> Panel:
    """Returns the private panel of a grid whose values were checked; without `context` the grid's own is taken."""
    return Panel(
        schema=schema,
        values=grid.values,
        lengths=grid.lengths,
        unit=grid.unit,
        static=grid.static,
        context=_context(grid, schema, context),
        unit_ids=grid.ids,
    )


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


def _context(
    grid: Grid, schema: Schema, given: ContextRows | np.ndarray | None
) -> Float32[np.ndarray, "series step context"] | None:
    found = given if given is not None or not schema.context else grid.context
    require_context(schema, given=found is not None)
    if found is None:
        return None
    if isinstance(found, ContextRows):
        found = align_context(found, grid.origin, grid.lengths, schema)
    elif found.ndim == 3:
        found = _own_contexts(found, grid, schema)
    return broadcast_context(found, len(grid.values)) if found.ndim == 2 else found


def _own_contexts(
    contexts: Float32[np.ndarray, "series step context"], grid: Grid, schema: Schema
) -> Float32[np.ndarray, "series step context"]:
    """Brings contexts into the order of the series they belong to.

    Privacy: without this, one unit's presence could move everybody else's context to another series.
    """
    if schema.time.align == "calendar":
        raise DataError("Context: one [step, context] for all is expected: series share a calendar.")
    if grid.order is None:
        raise DataError(
            "Context: an array per series is expected with an array of series only. Give a long table its context as "
            "a table by time."
        )
    if len(contexts) != len(grid.order):
        raise DataError("Context: an array with one context per series is expected. Bring one for each.")
    return np.ascontiguousarray(contexts[grid.order])


def read_first_categories(source: Any, schema: Schema, column: str) -> tuple[list[str], bool]:
    """Returns each unit's first category as text, and whether the column stores whole numbers.

    For a column whose categories are not declared yet. Units without any category are left out.

    Privacy:
        Reads private data and releases nothing. A unit's category comes from its own rows, in the table's order.
    """
    if is_array_file(source) or isinstance(source, np.ndarray):
        raise DataError(
            f"Column '{column}': an array holds codes and no names. Bring a table (.parquet, .csv, .arrow, .feather).",
            column=column,
        )
    opened, unit = open_source(source, schema), schema.unit.column or schema.time.series_column
    changes = column in [channel.name for channel in schema.channels]
    columns = column_names(schema, column) if changes else [column]
    for name in (*columns, *([] if unit is None else [unit])):
        require_column(opened, name)
    first: dict[Any, str | None] = {}
    whole = False
    for batch in opened.batches:
        if batch.num_rows:
            categories, whole = _texts(batch, columns, column)
            for owner, category in zip(_units(batch, unit, schema, len(first)), categories.to_pylist(), strict=True):
                if first.get(owner) is None:
                    first[owner] = category
    check_units(np.arange(len(first), dtype=np.int64), schema, allow_few_units=False)
    return [category for category in first.values() if category is not None], whole


def _texts(batch: pa.RecordBatch, columns: list[str], column: str) -> tuple[pa.Array, bool]:
    """Returns the first category of each row as text; a row of a wide table has one per step."""
    arrays = [plain(batch.column(name)) for name in columns]
    whole = all(pa.types.is_integer(array.type) for array in arrays)
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    if not whole and not all(any(test(array.type) for test in text) for array in arrays):
        raise DataError(f"Column '{column}': text or whole numbers are expected. Convert the column.", column=column)
    return pc.coalesce(*(array.cast(pa.large_string()) for array in arrays)), whole


def _units(batch: pa.RecordBatch, unit: str | None, schema: Schema, seen: int) -> list[Any]:
    if unit is None:  # every row is its own unit
        return list(range(seen, seen + batch.num_rows))
    dtype = schema.unit.dtype if schema.unit.column else "string"
    found: list[Any] = encode(batch.column(unit), unit, dtype).to_pylist()
    return found
