"""Data frames come in as Arrow streams and go out in the form they came: index, dtypes, time zone.

No library of frames is imported to read one: what a frame can do tells what it is.
"""

import re
from importlib import import_module
from typing import Any

import pyarrow as pa

from understudy.data.channels import arrow_type, schema_dtype
from understudy.data.schema import FrameForm
from understudy.data.type_checks import wrong_column
from understudy.errors import DataError

_UNNAMED = re.compile(r"index|level_\d+")  # what pandas calls a level of an index that has no name
_HINTS = {
    "dict": "Make a table of it: pyarrow.table(data).",
    "DuckDBPyConnection": "Give a relation: connection.sql(query).",
    "list": "Make a table of it: pyarrow.Table.from_pylist(rows), or numpy.array(series) of numbers.",
    "Series": "Make a frame of it: series.to_frame(), with columns for unit and time.",
    "ndarray": "An array of rows has no column names: make a frame of it.",
    "Tensor": "Give an array: tensor.numpy().",
    "TimeSeries": "Give its frame, with a column for the unit: series.to_dataframe().",
    "TimeSeriesDataFrame": "Give a plain frame: frame.reset_index().",
}


def open_frame(frame: Any, known: frozenset[str] = frozenset()) -> pa.RecordBatchReader:
    """Returns the rows of a frame as an Arrow stream, the levels of an index as columns.

    `known` are the declared columns, which an error may name.

    Privacy: Arrow quotes cells that it can't convert; errors here name declared columns and types only.
    """
    plain = _plain(frame)
    if hasattr(plain, "scanner"):  # a dataset of Arrow
        return plain.scanner().to_reader()
    if not hasattr(plain, "__arrow_c_stream__"):
        raise _no_table(frame)
    try:
        reader = pa.RecordBatchReader.from_stream(plain)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _unconvertible(plain, known) or _no_table(frame) from None
    for name in plain.columns if _is_pandas(plain) else ():
        objects = plain[name].dtype == object and pa.types.is_timestamp(reader.schema.field(name).type)
        # Arrow would read times without a zone as UTC among those that have one
        if objects and len({getattr(time, "tzinfo", None) is None for time in plain[name].dropna()}) > 1:
            raise _mixed(name, known)
    return reader


def frame_types(frame: Any) -> pa.Schema:
    """Returns names and types of a frame's columns without a look at a row; objects of Python have the type null."""
    if type(frame).__module__.startswith("pyarrow") and isinstance(getattr(frame, "schema", None), pa.Schema):
        return frame.schema
    shorten = getattr(frame, "head", None) or getattr(frame, "limit", None)
    return open_frame(frame if shorten is None else shorten(0)).schema


def form_of(frame: Any) -> FrameForm | None:
    """Returns how a pandas frame holds its table; None where Arrow types say it all."""
    if not _is_pandas(frame):
        return None
    empty = frame.head(0)
    plain = _plain(empty)
    levels = plain.columns[: empty.index.nlevels] if plain is not empty and _keeps_index(empty) else ()
    written = pa.schema([(field.name, arrow_type(schema_dtype(field.type))) for field in open_frame(empty).schema])
    default = written.empty_table().to_pandas().dtypes
    found = {str(name): _called(kind) for name, kind in plain.dtypes.items()}
    differing = [
        (name, kind) for name, kind in found.items() if kind in ("object", "category") or kind != str(default[name])
    ]
    form = FrameForm(index=tuple(map(str, levels)), dtypes=tuple(differing))
    return None if form == FrameForm() else form


def in_form(table: pa.Table, form: FrameForm | None) -> Any:
    """Returns a pandas frame of a table, with the index and the dtypes of the frame that was read."""
    frame = table.to_pandas()
    if form is None:
        return frame
    for name, kind in form.dtypes:
        if name in frame.columns:
            frame[name] = _as(frame[name], kind, table.schema.field(name).type)
    index = [name for name in form.index if name in frame.columns]
    if index:
        frame = frame.set_index(index)
        frame.index.names = [None if _UNNAMED.fullmatch(name) else name for name in index]
    return frame


def _called(kind: Any) -> str:
    """Returns what a schema calls a pandas type: its text, but for two that are spelled as others are."""
    if type(kind).__name__ == "ArrowDtype":
        return "ArrowDtype"
    return "ordered category" if getattr(kind, "ordered", False) else str(kind)


def _as(column: Any, kind: str, arrow: pa.DataType) -> Any:
    if kind == "ordered category":
        return column.astype("category").cat.as_ordered()
    return column.astype(import_module("pandas").ArrowDtype(arrow) if kind == "ArrowDtype" else kind)


def _is_pandas(frame: Any) -> bool:
    return hasattr(frame, "reset_index") and hasattr(frame, "iloc") and hasattr(frame, "columns")


def _keeps_index(frame: Any) -> bool:
    """Returns whether the index says something: it has a name, several levels, or times; else it numbers rows."""
    index = frame.index
    return index.nlevels > 1 or index.name is not None or getattr(index.dtype, "kind", "") == "M"


def _plain(frame: Any) -> Any:
    """Returns a frame that has an Arrow stream: collected if it is lazy, its index as columns."""
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        return frame.collect()
    if not _is_pandas(frame):
        return frame
    if getattr(frame.columns, "nlevels", 1) > 1:
        told = "The frame's columns have several levels of names; one name per column is expected."
        raise DataError(f"{told} Bring units into rows (frame.stack()) or join the names.")
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError("The frame's columns are expected to have names, and some are no text. Set frame.columns.")
    if len(set(frame.columns)) < len(frame.columns):
        raise DataError("Two columns of the frame have the same name. Rename or drop one.")
    if not _keeps_index(frame):
        return frame.reset_index(drop=True)
    if set(frame.index.names) & set(frame.columns):
        told = "A level of the frame's index has the name of a column, and one of them is expected."
        raise DataError(f"{told} Drop the index: frame.reset_index(drop=True).")
    return frame.reset_index()


def _unconvertible(frame: Any, known: frozenset[str]) -> DataError | None:
    """Returns the error about the first column of a pandas frame that Arrow can't convert."""
    for name in frame.columns if _is_pandas(frame) else ():
        try:
            pa.array(frame[name], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return _mixed(name, known)
    return None


def _mixed(name: str, known: frozenset[str]) -> DataError:
    mixed = "it mixes types (text and numbers, times with and without a zone) or holds Python objects"
    remedy = "Convert it: pandas.to_numeric(column), or pandas.to_datetime(column, utc=True)."
    told = f"values of one type are expected, and {mixed}. {remedy}"
    return wrong_column(name, told) if name in known else DataError(f"A column that is not declared: {told}")


def _no_table(frame: Any) -> DataError:
    given = type(frame).__name__
    remedy = _HINTS.get(given, "Convert it first, for example with pyarrow.table(…).")
    kinds = "a data frame (pandas, polars, Arrow, DuckDB) with named columns or a numpy array [series, step, channel]"
    return DataError(f"Expected a path, {kinds}, got {given}. {remedy}")
