"""A panel goes back into the user's columns, order, dtypes and timestamps."""

import codecs
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from jaxtyping import Float32, Float64, Int64

from understudy.data.channels import TEXT_DTYPES, Categorical, Channel, Continuous, arrow_type
from understudy.data.panel import Panel
from understudy.data.schema import FALLBACK_SERIES_COLUMN, Schema, column_names, table_columns
from understudy.data.timegrid import Time, chosen_dtype, step_ticks, steps_per_day
from understudy.data.type_checks import require_argument, require_path
from understudy.errors import InputError
from understudy.files import whole_file

_BATCH_ROWS = 1_000_000


def panel_to_arrow(panel: Panel) -> pa.Table:
    """Returns the panel as a table like the one its schema describes.

    Units get their own identifiers back if the panel kept them, else 0, 1, 2, … (text: "synthetic-000001").

    Privacy: writes every value it is given. For a private panel the table is as private as the panel.
    """
    return pa.Table.from_batches(_batches(panel), schema=_arrow_schema(panel.schema))


def write_panel(panel: Panel, path: str | Path, *, with_context: bool = False, first_unit: int = 0) -> Path:
    """Writes .csv, .parquet, .arrow, .feather, .npz or .npy; the file appears whole or not at all.

    Args:
        with_context: Write a long table's public context too, although the user's table has it elsewhere: series made
            for a context are of little use without it.
        first_unit: Number of the first unit, where units have no identifiers of their own: for a table in several
            files. Arrays (.npz, .npy) hold no such numbers.

    Privacy: as `panel_to_arrow`. A file of private series is its owner's only.
    """
    require_argument(panel, Panel, "panel", "Read or sample one first.")
    require_path(path, "write_panel: path")
    target = Path(path)
    schema = panel.schema
    if with_context and panel.context is not None and schema.time.layout == "long":
        listed = table_columns(schema)
        more = tuple(channel.name for channel in schema.context if channel.name not in listed)
        panel = replace(panel, schema=replace(schema, columns=(*listed, *more)))
    writer = _WRITERS.get(target.suffix.lower())
    if writer is None:
        raise InputError(f"{target.name}: a name ending in {', '.join(_WRITERS)} is expected. Rename the file.")
    try:
        with whole_file(target) as draft:
            if panel.private:
                draft.touch(mode=0o600)
            writer(panel, draft, first_unit)
    except OSError as error:
        told = f"can't be written ({error.strerror or 'write failed'}). Free space or choose another folder."
        raise InputError(f"{target.name}: {told}") from error
    return target


def _write_csv(panel: Panel, path: Path, first_unit: int) -> None:
    written, types = panel.schema.csv, _arrow_schema(panel.schema)
    plain = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in types]
    commas = [written.decimal == "," and pa.types.is_floating(field.type) for field in plain]
    text = pa.schema([f.with_type(pa.string()) if comma else f for f, comma in zip(plain, commas, strict=True)])
    options = pacsv.WriteOptions(quoting_style="needed", delimiter=written.delimiter)
    with pacsv.CSVWriter(str(path), text, write_options=options) as writer:
        for batch in _batches(panel, first_unit):
            columns = [
                pc.replace_substring(column.cast(pa.string()), ".", ",") if comma else column.cast(field.type)
                for column, field, comma in zip(batch.columns, plain, commas, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=text))
    if codecs.lookup(written.encoding).name not in ("utf-8", "ascii"):
        _recode(path, written.encoding)


def _recode(path: Path, encoding: str) -> None:
    """Turns a file of UTF-8 into the declared encoding."""
    recoded = path.with_name(f"{path.name}.recoded")
    try:
        with path.open(encoding="utf-8", newline="") as given, recoded.open("w", encoding=encoding, newline="") as out:
            shutil.copyfileobj(given, out)
    except UnicodeEncodeError:
        told = f"csv.encoding = '{encoding}' can't write a name or a category of the schema. Declare 'utf-8', or write"
        raise InputError(f"{told} another format such as .parquet.") from None
    recoded.replace(path)


def _write_batches(panel: Panel, path: Path, first_unit: int, *, opened: Callable[..., Any] = pa.ipc.new_file) -> None:
    with opened(str(path), _arrow_schema(panel.schema)) as writer:
        for batch in _batches(panel, first_unit):
            writer.write_batch(batch)


def _write_arrays(panel: Panel, path: Path, first_unit: int, *, only_values: bool = False) -> None:
    with path.open("wb") as sink:  # numpy would add an ending to a name
        if only_values:
            np.save(sink, panel.values)
        else:
            np.savez(sink, values=panel.values, lengths=panel.lengths, unit=panel.unit, static=panel.static)


_WRITERS: dict[str, Callable[[Panel, Path, int], None]] = {
    ".csv": _write_csv,
    ".parquet": partial(_write_batches, opened=pq.ParquetWriter),
    ".arrow": _write_batches,
    ".feather": _write_batches,
    ".npz": _write_arrays,
    ".npy": partial(_write_arrays, only_values=True),
}


def _arrow_schema(schema: Schema) -> pa.Schema:
    """Returns the columns of the table that is written, and their types."""
    time, unit, names = schema.time, schema.unit.column, table_columns(schema)
    if time.layout == "long" and unit is None and time.series_column is None:
        names = (FALLBACK_SERIES_COLUMN, *names)
    types: dict[str | None, str] = {time.series_column or FALLBACK_SERIES_COLUMN: "int64"}
    types |= {channel.name: channel.dtype for channel in (*schema.static, *schema.context)}
    types |= {unit: schema.unit.dtype, time.column: time.dtype}
    for channel in schema.channels:
        types |= dict.fromkeys(column_names(schema, channel.name), channel.dtype)
    return pa.schema([(name, arrow_type(types[name])) for name in names])


def _batches(panel: Panel, first_unit: int = 0) -> Iterator[pa.RecordBatch]:
    """Yields the table in pieces of whole series, so that writing needs little memory."""
    long = panel.schema.time.layout == "long"
    size, arrow = max(1, _BATCH_ROWS // (panel.num_steps if long else 1)), _arrow_schema(panel.schema)
    for begin in range(0, panel.num_series, size):
        rows = slice(begin, min(begin + size, panel.num_series))
        columns = _columns(panel, rows, first_unit)
        yield pa.RecordBatch.from_arrays([columns[name] for name in arrow.names], schema=arrow)


def _columns(panel: Panel, rows: slice, first_unit: int) -> dict[str, pa.Array]:
    schema = panel.schema
    if schema.time.layout == "wide":
        columns = _series_columns(panel, rows, first_unit)
        for index, channel in enumerate(schema.channels):
            for place, name in enumerate(column_names(schema, channel.name)):
                columns[name] = _to_arrow(np.ascontiguousarray(panel.values[rows, place, index]), channel)
        return columns
    inside = np.arange(panel.num_steps) < panel.lengths[rows, None]
    series, step = (pa.array(index) for index in np.nonzero(inside))
    columns = {name: array.take(series) for name, array in _series_columns(panel, rows, first_unit).items()}
    if schema.time.column is not None:
        ticks = step_ticks(schema.time, panel.num_steps) if panel.ticks is None else panel.ticks[rows][inside]
        moments = _moments(ticks, schema.time)
        columns[schema.time.column] = moments.take(step) if panel.ticks is None else moments
    for index, channel in enumerate(schema.channels):
        columns[channel.name] = _to_arrow(panel.values[rows, :, index][inside], channel)
    for index, channel in enumerate(schema.context):
        if channel.name in schema.columns:  # as in the user's table
            blank = np.full(int(inside.sum()), np.nan, dtype=np.float32)
            public = blank if panel.context is None else panel.context[rows, :, index][inside]
            columns[channel.name] = _to_arrow(public, channel)
    return columns


def _series_columns(panel: Panel, rows: slice, first_unit: int) -> dict[str, pa.Array]:
    """Columns with one value per series: identifiers and static columns."""
    schema, unit = panel.schema, panel.unit[rows]
    columns = {c.name: _to_arrow(panel.static[rows, i], c) for i, c in enumerate(schema.static)}
    if schema.unit.column is not None:
        dtype, numbers = schema.unit.dtype, (unit + first_unit).tolist()
        names = [f"synthetic-{number + 1:06}" for number in numbers] if dtype in TEXT_DTYPES else numbers
        named = names if panel.unit_ids is None else panel.unit_ids[unit].tolist()
        columns[schema.unit.column] = pa.array(named).cast(arrow_type(dtype))
    first = np.searchsorted(panel.unit, unit, side="left")
    within = np.arange(panel.num_series)[rows] + (first_unit if schema.unit.column is None else -first)
    columns[schema.time.series_column or FALLBACK_SERIES_COLUMN] = pa.array(within)
    return columns


def _moments(ticks: Int64[np.ndarray, " row"], time: Time) -> pa.Array:
    """Returns ticks as the table has its times."""
    if time.dtype == "string" and time.zone is None:
        daily = not (ticks % 86_400_000_000).any() and steps_per_day(time) < 2
        measure: Any = "D" if daily else arrow_type(chosen_dtype(time)).unit
        return pa.array(np.datetime_as_string(ticks.view("datetime64[us]"), unit=measure).tolist())
    if time.dtype == "string":  # ISO 8601 with the offset of the declared zone
        measured = pa.timestamp(arrow_type(chosen_dtype(time)).unit, tz=time.zone)
        moments = pa.array(ticks).cast(pa.timestamp("us", tz=time.zone)).cast(measured, safe=False)
        return pc.strftime(moments, format="%Y-%m-%dT%H:%M:%S%z")
    counted = pa.array(ticks)
    if not time.counts_steps:
        counted = counted.cast(pa.timestamp("us", tz="UTC" if ", tz=" in time.dtype else None))
    written = counted.cast(arrow_type(time.dtype), safe=False)
    if not written.cast(counted.type, safe=False).equals(counted):  # the axis fits; a context's own times may not
        told = (
            f"Column '{time.column}': time.dtype = '{time.dtype}' can't hold the times of these steps. Declare a finer"
        )
        raise InputError(f"{told} or wider dtype in the schema, or bring context whose times it holds.")
    return written


def _to_arrow(values: Float32[np.ndarray, " row"], channel: Channel) -> pa.Array:
    missing, target = np.isnan(values), arrow_type(channel.dtype)
    if isinstance(channel, Categorical):
        codes = pa.array(np.where(missing, 0, values).astype(np.int32), mask=missing)
        spelled = pa.array(list(channel.categories))  # text or whole numbers
        coded: Any = pa.DictionaryArray.from_arrays(codes, spelled)
        return coded if pa.types.is_dictionary(target) else coded.cast(spelled.type).cast(target)
    low, high = channel.bounds
    if not isinstance(channel, Continuous):
        rounded = np.rint(np.where(missing, 0, values).astype(np.float64).clip(low, high))
        return pa.array(rounded.astype(channel.dtype), mask=missing)
    numbers = values if channel.dtype == "float32" else shortest_decimal(values)
    return pa.array(np.clip(numbers, low, high), mask=missing).cast(target)


def shortest_decimal(values: Float32[np.ndarray, " row"]) -> Float64[np.ndarray, " row"]:
    """Returns the float64 with the fewest decimal digits that is the same float32.

    A table that held 0.1 gets 0.1 back, and not 0.10000000149011612.

    >>> shortest_decimal(np.array([0.1, 21.37], dtype=np.float32)).tolist()
    [0.1, 21.37]
    """
    return np.asarray(pa.array(values).cast(pa.string()).cast(pa.float64()))
