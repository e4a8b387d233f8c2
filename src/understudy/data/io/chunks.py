"""Tables larger than memory, a few million values at a time: every chunk holds whole units."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.data.io.arrow import plain
from understudy.data.io.long import Grid, roles
from understudy.data.io.read import grid_of
from understudy.data.io.regular import read_regular
from understudy.data.io.sources import Source
from understudy.data.schema import FALLBACK_SERIES_COLUMN, Schema
from understudy.errors import DataError

CHUNK_VALUES = 3_000_000  # and a batch more: below what a panel is cut at
_WHOLE_VALUES = 8 * CHUNK_VALUES  # of a file whose rows are not in the order of units, and which is read in one piece
REPARTITION = "`understudy data partition FILE --by-unit --out FOLDER` writes such a folder."


def unit_column(columns: tuple[str, ...], schema: Schema) -> str | None:
    """Returns the column that tells units apart; None where every row of a wide table is a unit."""
    if schema.unit.column is not None or schema.time.layout == "wide":
        return schema.unit.column
    return schema.time.series_column or (FALLBACK_SERIES_COLUMN if FALLBACK_SERIES_COLUMN in columns else None)


def grids(source: Source, schema: Schema, *, with_context: bool) -> Iterator[Grid]:
    """Yields the series of a table whose units have their rows side by side, a chunk of whole units at a time.

    A unit whose rows are not side by side comes several times; `repeated` finds that out.
    """
    in_table = with_context and any(channel.name in source.columns for channel in schema.context)
    columns = roles(source, schema, with_context=in_table) if schema.time.layout == "long" else None
    if columns is not None and columns.unit is None:
        raise DataError(
            f"{source.name}: a table in partitions needs unit.column. Declare it in the schema.", column=None
        )
    for rows in whole_units(source, schema):
        grid = None if columns is None else read_regular(rows, schema, columns)
        if grid is None:
            grid = grid_of(replace(source, batches=iter(rows.to_batches())), schema, with_context=with_context)
        yield grid


def whole_grid(source: Source, schema: Schema, *, with_context: bool) -> Grid:
    """Returns the series of a table whose rows are in any order; refuses one too large to be read in one piece."""
    limited = replace(source, batches=_limited(source.batches, schema, source.name))
    return grid_of(limited, schema, with_context=with_context)


def whole_units(source: Source, schema: Schema) -> Iterator[pa.Table]:
    """Yields the rows of a table in chunks that end where a unit's rows end."""
    column, wanted = unit_column(source.columns, schema), chunk_rows(schema)
    held: list[pa.RecordBatch] = []
    for batch in source.batches:
        held.append(batch)
        if sum(piece.num_rows for piece in held) < wanted:
            continue
        rows = pa.Table.from_batches(held)
        end = rows.num_rows if column is None else _start_of_last(rows.column(column))
        held = rows.slice(end).to_batches()
        if end:
            yield rows.slice(0, end)
    if any(piece.num_rows for piece in held):
        yield pa.Table.from_batches(held)


def chunk_rows(schema: Schema) -> int:
    """Returns the number of rows that hold a chunk of values."""
    per_row = schema.num_channels * (1 if schema.time.layout == "long" else schema.num_steps)
    return max(1, CHUNK_VALUES // per_row)


def _start_of_last(units: pa.ChunkedArray) -> int:
    """Returns the row at which the last unit begins."""
    size, length = 1024, len(units)
    while True:
        tail = plain(units.slice(max(0, length - size)).combine_chunks())
        other = pc.fill_null(pc.not_equal(tail, tail[-1]), True).to_numpy(zero_copy_only=False)
        if other.any() or size >= length:
            return length - len(tail) + (int(np.flatnonzero(other)[-1]) + 1 if other.any() else 0)
        size *= 8


def _limited(batches: Iterator[pa.RecordBatch], schema: Schema, name: str) -> Iterator[pa.RecordBatch]:
    left = chunk_rows(schema) * (_WHOLE_VALUES // CHUNK_VALUES)
    for batch in batches:
        left -= batch.num_rows
        if left < 0:
            raise DataError(
                f"{name}: in a file of this size, the rows of a unit are expected side by side, and they are not. "
                f"{REPARTITION}",
                column=schema.unit.column,
            )
        yield batch
