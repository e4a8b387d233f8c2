"""The one way in: a table, or an array, and its schema become a private panel."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32

from understudy.data.io.arrow import array_values, encode, plain, to_values
from understudy.data.io.checks import Tally, check_units
from understudy.data.io.context import ContextRows, align_context, given_context, require_context
from understudy.data.io.frames import form_of
from understudy.data.io.long import Grid, read_long
from understudy.data.io.sources import Source, open_source, refuse_unknown_columns, require_column
from understudy.data.io.stores import existing, is_array_file
from understudy.data.panel import Panel, broadcast_context
from understudy.data.schema import Schema, column_names, table_columns
from understudy.data.type_checks import require_argument, wrong_column
from understudy.errors import DataError, SchemaError


def read_panel(source: Any, schema: Schema, *, context: Any = None, allow_few_units: bool = False) -> Panel:
    """Reads a table into a private panel, checking everything its schema declares.

    Args:
        source: A path (.csv, .parquet, .arrow, .feather, .npy, .npz), a folder of such tables or the URL of either,
            a data frame (pandas, polars, also lazy), an Arrow table or dataset, a DuckDB relation, or an array
            [series, step, channel]. Levels of a pandas index are columns. `open_table` reads what does not fit in
            memory.
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
    if not isinstance(source, str | Path):
        schema = replace(schema, frame=form_of(source))
    given = given_context(context, schema)
    if isinstance(source, np.ndarray):
        grid = _read_array(source, schema)
    elif is_array_file(source):
        grid = _read_array(existing(Path(source)), schema)
    else:
        grid = grid_of(open_source(source, schema), schema, with_context=given is None)
    tally = Tally(schema)
    tally.add(grid)
    tally.finish(allow_few_units=allow_few_units)
    return panel_of(grid, schema, given)


def panel_of(grid: Grid, schema: Schema, context: ContextRows | np.ndarray | None) -> Panel:
    """Returns the private panel of a grid whose values were checked; without `context` the grid's own is taken."""
    found = grid.context if context is None else context
    require_context(schema, given=found is not None)
    if isinstance(found, ContextRows):
        found = align_context(found, grid.origin, grid.lengths, schema)
    if found is not None and found.ndim == 2:
        found = broadcast_context(found, len(grid.values))
    return Panel(
        schema=schema,
        values=grid.values,
        lengths=grid.lengths,
        unit=grid.unit,
        static=grid.static,
        context=found,
        unit_ids=grid.ids,
    )


def grid_of(opened: Source, schema: Schema, *, with_context: bool) -> Grid:
    """Returns the series of an open table on the declared axis; values are not checked against bounds yet."""
    if schema.time.layout == "wide":
        return _read_wide(opened, schema)
    if schema.unit.kind == "overlapping-window" and schema.unit.column not in opened.columns:
        if schema.static:
            raise SchemaError("Key 'static': windows of one series can't have static columns.", key="static")
        return _read_overlapping_windows(opened, schema)
    in_table = any(channel.name in opened.columns for channel in schema.context)
    return read_long(opened, schema, with_context=with_context and in_table)


def _read_wide(source: Source, schema: Schema) -> Grid:
    """Reads a table with a row per series and a column per channel and step."""
    context, unit = {channel.name for channel in schema.context}, schema.unit.column
    required = {*table_columns(schema), *filter(None, [schema.time.series_column])} - context
    refuse_unknown_columns(source, required | context | set(schema.ignore), required)
    values, static, units = [], [], []
    for batch in source.batches:
        channels = [
            [to_values(batch.column(name), channel) for name in column_names(schema, channel.name)]
            for channel in schema.channels
        ]
        values.append(np.ascontiguousarray(np.transpose(channels)))
        columns = [to_values(batch.column(channel.name), channel) for channel in schema.static]
        static.append(np.array(columns, dtype=np.float32).reshape(-1, batch.num_rows).T)
        if unit is not None:
            units.append(plain(encode(batch.column(unit), unit, schema.unit.dtype)))
    if not values:
        raise DataError(f"{source.name}: the table is empty. Expected rows.")
    grid = _grid_of_series(np.concatenate(values), np.concatenate(static), schema)
    if unit is None:
        return grid
    encoded = pa.concat_arrays(units).dictionary_encode()
    return _by_unit(grid, encoded)


def _grid_of_series(
    values: Float32[np.ndarray, "series step channel"], static: Float32[np.ndarray, "series static"], schema: Schema
) -> Grid:
    """Makes a grid of series that are laid out already, each its own unit."""
    lengths = np.full(len(values), schema.num_steps, dtype=np.int32)
    if schema.time.variable_length:  # a series ends with its last observed step
        observed = ~np.isnan(values).all(axis=2)
        lengths -= np.argmax(observed[:, ::-1], axis=1).astype(np.int32)
        lengths[~observed.any(axis=1)] = 1
    own = np.arange(len(values), dtype=np.int64)
    return Grid(values=values, lengths=lengths, unit=own, static=static, ids=None, origin=np.zeros_like(own))


def _by_unit(grid: Grid, units: pa.DictionaryArray) -> Grid:
    """Brings the series of a unit side by side; units are numbered in the order of their first appearance."""
    unit = units.indices.to_numpy().astype(np.int64)
    order = np.argsort(unit, kind="stable")
    rows: Any = order if (np.diff(unit) < 0).any() else slice(None)
    return replace(
        grid,
        values=grid.values[rows],
        lengths=grid.lengths[rows],
        unit=unit[rows],
        static=grid.static[rows],
        ids=np.array(units.dictionary.to_pylist(), dtype=object),
    )


def _read_array(source: np.ndarray | Path, schema: Schema) -> Grid:
    """Reads an array [series, step, channel], or a .npy or .npz file of it.

    A .npz file has `values` and may have `lengths`, `unit` (whole numbers) and `static`.
    """
    arrays = {"values": source} if isinstance(source, np.ndarray) else _load_arrays(source)
    values = array_values(arrays["values"], "values", schema.channels)
    if values.shape[1:] != (schema.num_steps, schema.num_channels):
        raise DataError(
            f"Array: [series, step, channel] with {schema.num_steps} steps and {schema.num_channels} "
            "channels is expected, as the schema declares. Reshape it."
        )
    static = array_values(arrays.get("static", np.empty((len(values), 0))), "static", schema.static)
    if static.shape != (len(values), len(schema.static)):
        raise DataError("Array: the schema declares static columns; bring them as `static` in a .npz file.")
    grid = _grid_of_series(values, static, schema)
    if "lengths" in arrays:
        grid = replace(grid, lengths=arrays["lengths"].astype(np.int32))
    if "unit" not in arrays:
        return grid
    unit = arrays["unit"]
    if unit.shape != (len(values),) or unit.dtype.kind not in "iu":
        raise DataError("Array `unit`: one whole number per series is expected. Number the units.", column="unit")
    return _by_unit(grid, pa.array(unit).dictionary_encode())


def _load_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"values": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded}
    except (ValueError, OSError, EOFError, KeyError):
        raise DataError(
            f"{path.name}: not a readable numpy file. Write it again with numpy.save or numpy.savez."
        ) from None
    if "values" not in arrays:
        raise DataError(f"{path.name}: an array named `values` is expected. Name it in numpy.savez.", column="values")
    return arrays


def _read_overlapping_windows(source: Source, schema: Schema) -> Grid:
    """Reads one long series and cuts it into windows at every step, each its own unit.

    Reproduces what papers do. It protects no person: a person in the series is in many windows.
    """
    names = {channel.name for channel in schema.channels}
    known = names | {schema.time.column or ""} | set(schema.ignore)
    refuse_unknown_columns(source, known, names)
    rows = [
        np.stack([to_values(batch.column(channel.name), channel) for channel in schema.channels], axis=1)
        for batch in source.batches
    ]
    if not rows or sum(len(piece) for piece in rows) <= schema.num_steps:
        raise DataError(
            f"{source.name}: more rows than the declared steps are expected. Add rows, or declare fewer steps."
        )
    # The last possible window is left out, as in the papers whose window counts this has to match.
    views = np.lib.stride_tricks.sliding_window_view(np.concatenate(rows), schema.num_steps, axis=0)[:-1]
    windows = np.ascontiguousarray(np.moveaxis(views, 1, 2))
    return _grid_of_series(windows, np.empty((len(windows), 0), dtype=np.float32), schema)


def read_first_categories(source: Any, schema: Schema, column: str) -> tuple[list[str], bool]:
    """Returns each unit's first category as text, and whether the column stores whole numbers.

    For a column whose categories are not declared yet. Units without any category are left out.

    Privacy:
        Reads private data and releases nothing. A unit's category comes from its own rows, in the table's order.
    """
    if is_array_file(source) or isinstance(source, np.ndarray):
        raise wrong_column(column, "an array holds codes and no names. Bring a table (.parquet, .csv, .arrow).")
    opened, unit = open_source(source, schema), schema.unit.column or schema.time.series_column
    dtype = schema.unit.dtype if schema.unit.column else "string"
    changes = column in [channel.name for channel in schema.channels]
    columns = column_names(schema, column) if changes else [column]
    for name in (*columns, *([] if unit is None else [unit])):
        require_column(opened, name)
    first: dict[Any, str | None] = {}
    whole = False
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    for batch in opened.batches:
        arrays = [plain(batch.column(name)) for name in columns]  # a row of a wide table has a category per step
        whole = all(pa.types.is_integer(array.type) for array in arrays)
        if not whole and not all(any(test(array.type) for test in text) for array in arrays):
            raise wrong_column(column, "text or whole numbers are expected. Convert the column.")
        categories = pc.coalesce(*(array.cast(pa.large_string()) for array in arrays)).to_pylist()
        rows = range(len(first), len(first) + batch.num_rows)  # each its own unit where no column names units
        owners = rows if unit is None else encode(batch.column(unit), unit, dtype).to_pylist()
        for owner, category in zip(owners, categories, strict=True):
            if first.get(owner) is None:
                first[owner] = category
    check_units(len(first), len(first), schema, allow_few_units=False)
    return [category for category in first.values() if category is not None], whole
