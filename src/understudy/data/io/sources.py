"""Opens whatever the user has as a stream of Arrow record batches.

Arrow's own error texts quote cells, so every one of them is replaced by a message that names the column only.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.data.alike import alike
from understudy.data.io.csv_files import csv_header, declared_kinds, open_csv, readable
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

    def spoken(self, place: int, known: set[str], required: set[str]) -> tuple[str, str | None]:
        """Returns what an error calls a column, and its name if that may be told.

        Privacy: in a line of text that lacks declared names, or after the last of them, a name may be a private value;
        one that follows the pattern of many others may be an identifier. Such names are not quoted.
        """
        name = self.columns[place]
        if name in known:
            return f"column '{name}'", name
        before = self.columns[place - 1] if place else ""
        where = f"column number {place + 1}" + (f", after '{before}'," if before in known else "")
        whole_header = required <= set(self.columns) and bool(required & set(self.columns[place:]))
        if self.from_text and not whole_header:
            return f"{where} (not named here: it may be a value)", None
        if name in alike(self.columns):
            return f"{where} (not named here: many names follow its pattern, as identifiers do)", None
        return (f"column '{name}'", name) if name.strip() else (f"{where} which has no name,", None)


def open_source(source: Any, schema: Schema) -> Source:
    """Opens a path, a table or anything that speaks the Arrow C stream interface."""
    if isinstance(source, str | Path):
        return _open_file(existing(Path(source)), schema)
    if hasattr(source, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(source)
        except pa.ArrowException:
            raise DataError(
                f"Expected a table with named columns, got {type(source).__name__}. Convert it first.", column=None
            ) from None
        columns = tuple(reader.schema.names)
        return Source("table", columns, _guarded((_sliced(batch) for batch in reader), "table"))
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
    missing = sorted(required - set(source.columns))
    if required and len(missing) == len(required):
        # Names are not quoted here: without a header line they would be somebody's values.
        raise DataError(
            f"{source.name}: none of the declared columns is there. A line of column names is expected, as the schema "
            "declares them"
            + (" and separated by csv.delimiter of the schema (a comma unless declared)." if source.from_text else "."),
            column=None,
        )
    for place, name in enumerate(source.columns):
        spoken, told = source.spoken(place, known, required)
        if source.columns.count(name) > 1:
            raise DataError(f"{source.name}: {spoken} is there twice. Rename or drop one.", column=told)
        if name not in known and not _PANDAS_INDEX.fullmatch(name):
            also = f" Declared and not in the table: column '{missing[0]}'." if missing else ""
            raise DataError(
                f"{source.name}: {spoken} is not in the schema. Declare it, drop it from the table, "
                f"or list it under 'ignore' in the schema.{also}",
                column=told,
            )
    for name in missing:
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
            return Source(path.name, columns, _guarded(batches, path.name))
        if suffix in (".arrow", ".feather"):
            # A memory map keeps the file's pages out of our own memory.
            opened = pa.ipc.open_file(pa.memory_map(str(path)))
            columns = tuple(opened.schema.names)
            pieces = (_sliced(opened.get_batch(i)) for i in range(opened.num_record_batches))
            return Source(path.name, columns, _guarded(pieces, path.name))
    raise DataError(
        f"{path.name}: a file ending in {', '.join(TABLE_SUFFIXES)}, .npy or .npz is expected. Convert or rename it.",
        column=None,
    )


def _open_csv(path: Path, schema: Schema) -> Source:
    columns = csv_header(path, schema.csv)
    kinds = declared_kinds(schema, columns)
    with readable(path.name, schema.csv, kinds):
        rows = _checked(open_csv(path, schema, columns), readable(path.name, schema.csv, kinds))
        return Source(path.name, columns, rows, from_text=True)


def _sliced(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Cuts a large in-memory batch so that working copies stay small."""
    return [batch.slice(begin, BATCH_ROWS) for begin in range(0, batch.num_rows, BATCH_ROWS)]


def _guarded(batches: Any, name: str) -> Iterator[pa.RecordBatch]:
    return _checked(batches, unreadable(name))


def _checked(batches: Any, guard: AbstractContextManager[None]) -> Iterator[pa.RecordBatch]:
    with guard:
        for item in batches:
            for batch in item if isinstance(item, list) else [item]:
                batch.validate(full=True)  # Arrow believes a file's offsets: in a damaged one they lead anywhere
                yield batch


@contextmanager
def unreadable(name: str) -> Iterator[None]:
    """Turns what Arrow says about a file that it can't read into a message that quotes nothing."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise DataError(
            f"{name}: the file can't be read as a table. It may be damaged or of another format. Write it again; names "
            "and text have to be UTF-8.",
            column=None,
        ) from None
