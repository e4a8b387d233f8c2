"""Opens whatever the user has as a stream of Arrow record batches.

Arrow's own error texts quote cells, so every one of them is replaced by a message that names the column only.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from understudy.data.channels import Binary, Categorical, Channel
from understudy.data.dtypes import INTEGER_DTYPES
from understudy.data.schema import Schema
from understudy.errors import DataError, MissingData

BATCH_ROWS = 262_144
_BATCH_CELLS = 2_000_000  # wide tables come in fewer rows at a time
TABLE_SUFFIXES = (".csv", ".parquet", ".arrow", ".feather")
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True)
class Source:
    """A table that is read once, in order.

    Attributes:
        name: What errors call the table.
        columns: Its column names.
        batches: Its rows; columns as in `columns`.
        from_text: Whether names are a line of text: without a header they are somebody's values.
    """

    name: str
    columns: tuple[str, ...]
    batches: Iterator[pa.RecordBatch]
    from_text: bool = False

    def spoken(self, place: int, known: set[str]) -> tuple[str, str | None]:
        """Returns what an error calls a column, and its name if that may be told."""
        name = self.columns[place]
        told = name in known or not self.from_text
        return (f"column '{name}'", name) if told else (f"column number {place + 1}", None)


def open_source(source: Any, schema: Schema) -> Source:
    """Opens a path, a table or anything that speaks the Arrow C stream interface."""
    if isinstance(source, str | Path):
        return _open_file(existing(Path(source)), schema)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        columns = tuple(reader.schema.names)
        return Source("table", columns, _guarded((_sliced(batch) for batch in reader), "table", columns))
    raise DataError(
        "Expected a path, an Arrow table, a numpy array [series, step, channel] or a data frame that speaks "
        f"the Arrow C stream interface, got {type(source).__name__}. Convert it first.",
        column=None,
    )


def existing(path: Path) -> Path:
    """Returns the path of a file that is there."""
    if not path.is_file():
        raise MissingData(f"No file at {path}. Check the path.")
    return path


def refuse_unknown_columns(source: Source, known: set[str], required: set[str]) -> None:
    """Refuses a table with columns the schema does not name, without ones it needs, or with a name twice."""
    if required and not required & set(source.columns):
        # Names are not quoted here: without a header line they would be somebody's values.
        raise DataError(
            f"{source.name}: none of the declared columns is there. A line of column names is expected, and "
            "commas between them in a CSV file.",
            column=None,
        )
    for place, name in enumerate(source.columns):
        spoken, told = source.spoken(place, known)
        if source.columns.count(name) > 1:
            raise DataError(f"{source.name}: {spoken} is there twice. Rename or drop one.", column=told)
        if name not in known and not _PANDAS_INDEX.fullmatch(name):
            raise DataError(
                f"{source.name}: {spoken} is not in the schema. Declare it, drop it from the table, "
                "or list it under 'ignore' in the schema.",
                column=told,
            )
    for name in sorted(required - set(source.columns)):
        raise DataError(
            f"{source.name}: column '{name}' is declared in the schema and not in the table. Add it to the "
            "table or remove it from the schema.",
            column=name,
        )


def _open_file(path: Path, schema: Schema) -> Source:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _open_csv(path, schema)
    with unreadable(path.name):
        if suffix == ".parquet":
            # Without pre-buffering and with a small buffer, the file is not held in memory beside the panel.
            file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 16)
            columns = tuple(file.schema_arrow.names)
            kept = [name for name in columns if name not in schema.ignore]
            rows = max(1024, min(BATCH_ROWS, _BATCH_CELLS // max(1, len(kept))))
            batches: Iterator[pa.RecordBatch] = file.iter_batches(rows, columns=kept, use_threads=False)
            return Source(path.name, columns, _guarded(batches, path.name, columns))
        if suffix in (".arrow", ".feather"):
            # A memory map keeps the file's pages out of our own memory.
            opened = pa.ipc.open_file(pa.memory_map(str(path)))
            columns = tuple(opened.schema.names)
            pieces = (_sliced(opened.get_batch(i)) for i in range(opened.num_record_batches))
            return Source(path.name, columns, _guarded(pieces, path.name, columns))
    raise DataError(
        f"{path.name}: a file ending in {', '.join(TABLE_SUFFIXES)}, .npy or .npz is expected. Convert or rename it.",
        column=None,
    )


def _open_csv(path: Path, schema: Schema) -> Source:
    columns = csv_header(path)
    types = _csv_types(schema)
    texts = {str(c) for group in (schema.channels, schema.static) for k in group for c in getattr(k, "categories", ())}
    options = pacsv.ConvertOptions(
        column_types={name: types.get(name, pa.string()) for name in columns},
        strings_can_be_null=True,
        null_values=[text for text in pacsv.ConvertOptions().null_values if text not in texts],
        include_columns=[name for name in columns if name not in schema.ignore],
    )
    declared = {*types, schema.unit.column, schema.time.column, schema.time.series_column}
    told = tuple(name if name in declared else None for name in columns)  # others may be values
    with unreadable(path.name, told):
        reader = pacsv.open_csv(path, convert_options=options, read_options=pacsv.ReadOptions(block_size=1 << 23))
        return Source(path.name, columns, _guarded(iter(reader), path.name, told), from_text=True)


def csv_header(path: Path) -> tuple[str, ...]:
    """Returns the names in a CSV file's first line and reads nothing further than the first block."""
    with path.open("rb") as file:
        head = file.readline()
    if not head.strip():
        raise DataError(f"{path.name}: the table is empty. Expected a line of column names.", column=None)
    with unreadable(path.name):
        return tuple(pacsv.read_csv(pa.BufferReader(head)).column_names)


def _csv_types(schema: Schema) -> dict[str, pa.DataType]:
    """Types come from the schema, so that they never depend on what the first rows happen to hold."""
    time = schema.time
    types = {channel.name: _csv_type(channel) for channel in (*schema.channels, *schema.static, *schema.context)}
    if time.layout == "wide":
        for channel in schema.channels:
            types |= {time.wide_column(channel.name, step): _csv_type(channel) for step in range(time.steps)}
    if schema.unit.column is not None and schema.unit.dtype in INTEGER_DTYPES:
        types[schema.unit.column] = pa.int64()
    if time.column is not None and time.counts_steps:
        types[time.column] = pa.int64()
    return types


def _csv_type(channel: Channel) -> pa.DataType:
    if isinstance(channel, Categorical):
        return pa.int64() if channel.dtype in INTEGER_DTYPES else pa.string()
    return pa.bool_() if isinstance(channel, Binary) else pa.float64()


def _sliced(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Cuts a large in-memory batch so that working copies stay small."""
    return [batch.slice(begin, BATCH_ROWS) for begin in range(0, batch.num_rows, BATCH_ROWS)]


def _guarded(batches: Any, name: str, columns: tuple[str | None, ...]) -> Iterator[pa.RecordBatch]:
    with unreadable(name, columns):
        for item in batches:
            for batch in item if isinstance(item, list) else [item]:
                batch.validate(full=True)  # Arrow believes a file's offsets: in a damaged one they lead anywhere
                yield batch


@contextmanager
def unreadable(name: str, columns: tuple[str | None, ...] = ()) -> Iterator[None]:
    """Turns what Arrow says about a file that it can't read into a message that quotes nothing."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        match = re.search(r"CSV column #(\d+)", str(error))
        column = columns[int(match.group(1))] if match and int(match.group(1)) < len(columns) else None
        if column is not None:
            message = f"{name}: column '{column}' holds text that can't be read as its declared kind. Put it right."
        else:
            message = (
                f"{name}: the file can't be read as a table. It may be damaged or of another format. Write it anew; "
                "names and text have to be UTF-8."
            )
        raise DataError(message, column=column) from None
