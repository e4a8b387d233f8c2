"""Wide tables (a row per series), numpy arrays, and long tables cut into overlapping windows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from jaxtyping import Float, Float32, Int32

from understudy.data.channels import Continuous
from understudy.data.io.arrow import encode, plain, to_values
from understudy.data.io.long import Grid
from understudy.data.io.sources import Source, refuse_unknown_columns
from understudy.data.schema import Schema, column_names, table_columns
from understudy.errors import DataError


def read_wide(source: Source, schema: Schema) -> Grid:
    """Reads a table with a row per series and a column per channel and step."""
    context = {channel.name for channel in schema.context}
    required = {*table_columns(schema), *filter(None, [schema.time.series_column])} - context
    refuse_unknown_columns(source, required | context | set(schema.ignore), required)
    batches = [_wide_batch(batch, schema) for batch in source.batches if batch.num_rows]
    if not batches:
        raise DataError(f"{source.name}: the table is empty. Expected rows.")
    values, static = (np.concatenate([batch[place] for batch in batches]) for place in (0, 1))
    units = [batch[2] for batch in batches if batch[2] is not None]
    if not units:
        return grid_of_series(values, schema, static=static)
    encoded = pa.concat_arrays(units).dictionary_encode()
    unit, ids = encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
    order = np.argsort(unit, kind="stable")
    if (np.diff(unit) < 0).any():  # bring the series of a unit side by side
        values, static, unit = values[order], static[order], unit[order]
    return grid_of_series(values, schema, static=static, unit=unit, ids=np.array(ids, dtype=object), order=order)


def _wide_batch(
    batch: pa.RecordBatch, schema: Schema
) -> tuple[Float32[np.ndarray, "row step channel"], Float32[np.ndarray, "row static"], pa.Array | None]:
    values = np.empty((batch.num_rows, schema.num_steps, schema.num_channels), dtype=np.float32)
    for index, channel in enumerate(schema.channels):
        for step, name in enumerate(column_names(schema, channel.name)):
            values[:, step, index] = to_values(batch.column(name), channel)
    static = np.empty((batch.num_rows, len(schema.static)), dtype=np.float32)
    for index, channel in enumerate(schema.static):
        static[:, index] = to_values(batch.column(channel.name), channel)
    if schema.unit.column is None:
        return values, static, None
    return values, static, plain(encode(batch.column(schema.unit.column), schema.unit.column, schema.unit.dtype))


def grid_of_series(
    values: Float32[np.ndarray, "series step channel"],
    schema: Schema,
    *,
    static: Float32[np.ndarray, "series static"],
    unit: np.ndarray | None = None,
    ids: np.ndarray | None = None,
    lengths: Int32[np.ndarray, " series"] | None = None,
    order: np.ndarray | None = None,
) -> Grid:
    """Makes a grid of series that are laid out already; each is its own unit unless told otherwise."""
    if lengths is None:
        lengths = np.full(len(values), schema.num_steps, dtype=np.int32)
        if schema.time.variable_length:  # a series ends with its last observed step
            lengths[:] = 1
            for step in range(schema.num_steps):
                lengths[~np.isnan(values[:, step]).all(axis=1)] = step + 1
    own = np.arange(len(values), dtype=np.int64)
    return Grid(
        values=values,
        lengths=lengths,
        unit=own if unit is None else unit,
        static=static,
        ids=ids,
        origin=np.zeros(len(values), dtype=np.int64),
        order=own if order is None else order.astype(np.int64),
    )


def read_array(source: np.ndarray | Path, schema: Schema) -> Grid:
    """Reads an array [series, step, channel], or a .npy or .npz file of it.

    A .npz file has `values` and may have `lengths`, `unit` (whole numbers) and `static`.
    """
    arrays = {"values": source} if isinstance(source, np.ndarray) else _load_arrays(source)
    values = _numbers(arrays["values"], "values")
    if values.ndim != 3 or values.shape[1:] != (schema.num_steps, schema.num_channels):
        raise DataError(
            f"Array: [series, step, channel] with {schema.num_steps} steps and {schema.num_channels} "
            "channels is expected, as the schema declares. Reshape it."
        )
    static = _numbers(arrays.get("static", np.empty((len(values), 0))), "static")
    if static.shape != (len(values), len(schema.static)):
        raise DataError(
            "Array: the schema declares static columns; bring them as `static` in a .npz file.", column=None
        )
    _refuse_fractions(values, schema, "channels")
    _refuse_fractions(static, schema, "static")
    lengths = arrays.get("lengths")
    grid = grid_of_series(values, schema, static=static, lengths=None if lengths is None else lengths.astype(np.int32))
    return grid if "unit" not in arrays else _by_unit(grid, arrays["unit"])


def _load_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"values": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded}
    except (ValueError, OSError, EOFError, KeyError):
        raise DataError(f"{path.name}: not a readable numpy file. It may be damaged.") from None
    if "values" not in arrays:
        raise DataError(f"{path.name}: an array named `values` is expected in a .npz file.", column="values")
    return arrays


def _numbers(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind not in "fiub":
        raise DataError(f"Array `{name}`: numbers are expected. Convert it.", column=name)
    if np.isinf(array).any():
        raise DataError(f"Array `{name}` holds an infinite value. Remove it or make it missing (NaN).", column=name)
    largest = np.finfo(np.float32).max
    return np.clip(array, -largest, largest).astype(np.float32) if array.dtype.kind == "f" else array.astype(np.float32)


def _refuse_fractions(values: np.ndarray, schema: Schema, group: str) -> None:
    for index, channel in enumerate(getattr(schema, group)):
        column = values[..., index]
        if not isinstance(channel, Continuous) and not np.array_equal(np.rint(column), column, equal_nan=True):
            raise DataError(
                f"Column '{channel.name}': whole numbers or category codes are expected.", column=channel.name
            )


def _by_unit(grid: Grid, unit: np.ndarray) -> Grid:
    if unit.shape != (len(grid.values),) or unit.dtype.kind not in "iu":
        raise DataError("Array `unit`: one whole number per series is expected.", column="unit")
    _, first, code = np.unique(unit, return_index=True, return_inverse=True)
    appearance = np.argsort(np.argsort(first))[code]
    order = np.argsort(appearance, kind="stable")
    return replace(
        grid,
        values=grid.values[order],
        lengths=grid.lengths[order],
        unit=appearance[order].astype(np.int64),
        static=grid.static[order],
        ids=unit[np.sort(first)].astype(object),
        order=order.astype(np.int64),
    )


def read_overlapping_windows(source: Source, schema: Schema) -> Grid:
    """Reads one long series and cuts it into windows at every step, each its own unit.

    Reproduces what papers do. It protects no person: a person in the series is in many windows.
    """
    names = {channel.name for channel in schema.channels}
    known = names | {schema.time.column or ""} | set(schema.ignore)
    refuse_unknown_columns(source, known, names)
    rows: list[Float[np.ndarray, "row channel"]] = [
        np.stack([to_values(batch.column(channel.name), channel) for channel in schema.channels], axis=1)
        for batch in source.batches
        if batch.num_rows
    ]
    if not rows or sum(len(piece) for piece in rows) <= schema.num_steps:
        raise DataError(f"{source.name}: more rows than the declared steps are expected.")
    # The last possible window is left out, as in the papers whose window counts this has to match.
    views = np.lib.stride_tricks.sliding_window_view(np.concatenate(rows), schema.num_steps, axis=0)[:-1]
    windows = np.ascontiguousarray(np.moveaxis(views, 1, 2))
    return grid_of_series(windows, schema, static=np.empty((len(windows), len(schema.static)), dtype=np.float32))
