"""Opens whatever the user has as a stream of Arrow record batches.

Arrow's own error texts quote cells, so every one of them is replaced by a message that names the column only.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.data.io.csv_files import csv_header, declared_kinds, open_csv, readable
from understudy.data.io.stores import TABLE_SUFFIXES, Place, StoredFile, existing, located, table_files
from understudy.data.schema import Schema
from understudy.data.type_checks import wrong_column
from understudy.errors import DataError

BATCH_ROWS = 262_144
_BATCH_CELLS = 2_000_000  # wide tables come in fewer rows at a time
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_MANY_NUMBERED, _MANY_WORDED = 8, 30  # names of one pattern that are taken for identifiers
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Source:
    """A table that is read once, in order."""

    name: str  # what errors call the table
    columns: tuple[str, ...]
    batches: Iterator[pa.RecordBatch]
    from_text: bool = False  # names are a line of text: without a header they are one unit's values

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


@dataclass(frozen=True, repr=False)
class RowRange:
    """Consecutive rows of a Parquet file: the row groups they lie in, rows to skip there, and rows to read."""

    groups: tuple[int, ...]
    skip: int
    count: int

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields these rows of the batches of the row groups."""
        skip, left = self.skip, self.count
        for batch in batches:
            kept = batch.slice(min(skip, batch.num_rows), left)
            skip -= min(skip, batch.num_rows)
            left -= kept.num_rows
            if kept.num_rows:
                yield kept
            if left == 0:
                return


def open_source(source: Any, schema: Schema) -> Source:
    """Opens a path or URL of a file or a folder, a table, or anything that speaks the Arrow C stream interface."""
    if isinstance(source, str | Path | StoredFile):
        place = located(source)
        return _open_folder(place, schema) if place.is_dir() else open_file(existing(place), schema)
    if hasattr(source, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(source)
        except pa.ArrowException:
            given = type(source).__name__
            raise DataError(f"Expected a table with named columns, got {given}. Convert it first.") from None
        columns = tuple(reader.schema.names)
        return Source("table", columns, _checked(reader, unreadable("table")))
    raise DataError(
        "Expected a path, an Arrow table, a numpy array [series, step, channel] or a data frame that speaks "
        f"the Arrow C stream interface, got {type(source).__name__}. Convert it first."
    )


def refuse_unknown_columns(source: Source, known: set[str], required: set[str]) -> None:
    """Refuses a table with columns the schema does not name, without ones it needs, or with a name twice."""
    missing = sorted(required - set(source.columns))
    if required and len(missing) == len(required):
        # Names are not quoted here: without a header line they would be values of a unit.
        raise DataError(
            f"{source.name}: none of the declared columns is there. A line of column names is expected, as the schema "
            "declares them"
            + (" and separated by csv.delimiter of the schema (a comma unless declared)." if source.from_text else ".")
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
        told = f"it is declared in the schema and not in the table ({source.name}). Add it, or remove the declaration."
        raise wrong_column(name, told)


def require_column(source: Source, name: str) -> None:
    """Refuses a table that has not exactly one column of a declared name."""
    if source.columns.count(name) != 1:
        raise wrong_column(
            name, f"it is expected once in {source.name}, as the schema declares. Add, rename or drop it."
        )


def alike(names: Iterable[str]) -> frozenset[str]:
    """Returns the names that share their pattern with enough others that they may be identifiers of people.

    >>> sorted(alike(f"MT_{number:03d}" for number in range(9)))[:2], alike(["load_kw", "solar_kw"])
    (['MT_000', 'MT_001'], frozenset())
    """
    patterns = {name: _WORD.sub(lambda word: "#" if any(map(str.isdigit, word[0])) else "a", name) for name in names}
    sizes = Counter(patterns.values())
    return frozenset(
        name
        for name, pattern in patterns.items()
        if sizes[pattern] >= (_MANY_NUMBERED if "#" in pattern else _MANY_WORDED)
    )


def _open_folder(folder: Place, schema: Schema) -> Source:
    """Opens the files of a folder as one table, one after the other; their columns have to be the same."""
    files = table_files(folder)
    first = open_file(files[0], schema, name=folder.name)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.batches
        for file in files[1:]:
            opened = open_file(file, schema, name=folder.name)
            require_same_columns(first, opened, schema)
            yield from opened.batches

    return Source(folder.name, first.columns, batches(), first.from_text)


def require_same_columns(first: Source, other: Source, schema: Schema) -> None:
    """Refuses a file of a folder with other columns than another one."""
    if (set(first.columns) ^ set(other.columns)) - set(schema.ignore):
        raise DataError(f"{first.name}: the same columns are expected in every file of the folder. Make them alike.")


def open_file(
    file: Place, schema: Schema, *, name: str | None = None, rows: RowRange | None = None, only: str | None = None
) -> Source:
    """Opens one file of a table, which errors call `name`; `rows` of a Parquet file, and `only` a column, if given."""
    name, suffix = name or file.name, file.suffix.lower()
    if suffix == ".csv":
        columns = csv_header(file, schema.csv, name)
        guard = readable(name, schema.csv, declared_kinds(schema, columns))
        return Source(name, columns, _checked(open_csv(file, schema, columns, only), guard), from_text=True)
    with unreadable(name):
        if suffix == ".parquet":
            return _open_parquet(file, name, schema, rows, only)
        if suffix in (".arrow", ".feather"):
            # A memory map keeps the file's pages out of our own memory.
            sink = pa.memory_map(str(file)) if isinstance(file, Path) else file.open("rb")
            opened = pa.ipc.open_file(sink)
            pieces = (opened.get_batch(place) for place in range(opened.num_record_batches))
            return Source(name, tuple(opened.schema.names), _checked(pieces, unreadable(name)))
    raise DataError(
        f"{name}: a file ending in {', '.join(TABLE_SUFFIXES)}, .npy or .npz is expected. Convert or rename it."
    )


def open_parquet(file: Place, **options: Any) -> pq.ParquetFile:
    """Opens a Parquet file so that it is not held in memory together with what is made of it."""
    # Without pre-buffering and with a small buffer, the file is read as its rows are asked for.
    handle = file if isinstance(file, Path) else file.open("rb")
    return pq.ParquetFile(handle, pre_buffer=False, buffer_size=1 << 16, **options)


def _open_parquet(file: Place, name: str, schema: Schema, rows: RowRange | None, only: str | None) -> Source:
    opened = open_parquet(file)
    columns = tuple(opened.schema_arrow.names)
    if columns.count(schema.unit.column or "") == 1:  # each identifier is decoded once, not in every row
        opened = open_parquet(file, metadata=opened.metadata, read_dictionary=[schema.unit.column])
    kept = [column for column in columns if column not in schema.ignore and only in (None, column)]
    size = max(1024, min(BATCH_ROWS, _BATCH_CELLS // max(1, len(kept))))
    groups = None if rows is None else list(rows.groups)
    batches: Iterator[pa.RecordBatch] = opened.iter_batches(size, row_groups=groups, columns=kept, use_threads=False)
    return Source(name, columns, _checked(batches if rows is None else rows.of(batches), unreadable(name)))


def _checked(batches: Iterable[pa.RecordBatch], guard: AbstractContextManager[None]) -> Iterator[pa.RecordBatch]:
    """Yields the rows in batches so small that working copies of them stay small."""
    with guard:
        for batch in batches:
            batch.validate(full=True)  # Arrow believes a file's offsets: in a damaged one they lead anywhere
            yield from (batch.slice(begin, BATCH_ROWS) for begin in range(0, batch.num_rows, BATCH_ROWS))


@contextmanager
def unreadable(name: str) -> Iterator[None]:
    """Turns what Arrow says about a file that it can't read into a message that quotes nothing."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise DataError(
            f"{name}: the file can't be read as a table. It may be damaged or of another format. Write it again; names "
            "and text have to be UTF-8."
        ) from None
