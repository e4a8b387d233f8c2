"""Opens whatever the user has as a stream of Arrow record batches, and brings tables back in a frame's form.

Arrow's own error texts quote cells, so every one of them is replaced by a message that names declared facts only. No
library of frames is imported to read one: what a frame can do tells what it is.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from understudy.data.channels import INTEGER_DTYPES, Binary, Categorical, Channel, arrow_type, schema_dtype
from understudy.data.io.stores import TABLE_SUFFIXES, DatabaseTable, File, StoredFile, table_files
from understudy.data.schema import CsvFormat, FrameForm, Schema, column_names, table_columns
from understudy.data.type_checks import require_column, wrong_column
from understudy.errors import DataError

BATCH_ROWS = 262_144
_BATCH_CELLS = 2_000_000  # wide tables come in fewer rows at a time
_ROW_NUMBERS = re.compile(r"__index_level_\d+__")
_MANY_NUMBERED, _MANY_WORDED = 8, 30  # names of one pattern that are taken for identifiers
_WORD = re.compile(r"[^\W_]+")
_BLOCK_BYTES = 1 << 23
_OTHER_DELIMITERS = (";", "\t", "|", ",")
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
_Kinds = dict[str, tuple[pa.DataType, str]]  # how declared columns of text are read, and in words


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
    if not isinstance(source, str | Path):
        declared = frozenset((*table_columns(schema), *(c.name for c in schema.context)))
        reader = open_frame(source, declared)
        return Source("table", tuple(reader.schema.names), _checked(reader, unreadable("table")))
    name, files, _ = table_files(source)
    first = open_file(files[0], schema, name=name)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.batches
        for file in files[1:]:
            opened = open_file(file, schema, name=name)
            require_same_columns(first, opened, schema)
            yield from opened.batches

    return Source(name, first.columns, batches(), first.from_text)


def refuse_unknown_columns(source: Source, known: set[str], required: set[str]) -> None:
    """Refuses a table with columns the schema does not name, without ones it needs, or with a name twice."""
    missing = sorted(required - set(source.columns))
    if required and len(missing) == len(required):
        # Names are not quoted here: without a header line they would be values of a unit.
        told = "none of the declared columns is there. A line of column names is expected, as the schema declares them"
        signs = " and separated by csv.delimiter of the schema (a comma unless declared)" if source.from_text else ""
        raise DataError(f"{source.name}: {told}{signs}.")
    for place, name in enumerate(source.columns):
        spoken, told_name = source.spoken(place, known, required)
        if source.columns.count(name) > 1:
            raise DataError(f"{source.name}: {spoken} is there twice. Rename or drop one.", column=told_name)
        if name not in known and not _ROW_NUMBERS.fullmatch(name):
            also = f" Declared and not in the table: column '{missing[0]}'." if missing else ""
            told = "is not in the schema. Declare it, drop it from the table, or list it under 'ignore' in the schema."
            raise DataError(f"{source.name}: {spoken} {told}{also}", column=told_name)
    for name in missing:
        told = f"it is declared in the schema and not in the table ({source.name}). Add it, or remove the declaration."
        told += "" if source.from_text else " A level of a data frame's index counts as a column if it has a name."
        raise wrong_column(name, told)


def require_once(source: Source, name: str) -> None:
    """Refuses a table that has not exactly one column of a declared name."""
    told = f"it is expected once in {source.name}, as the schema declares. Add, rename or drop it."
    require_column(source.columns.count(name) == 1, name, told)


def alike(names: Iterable[str]) -> frozenset[str]:
    """Returns the names that share their pattern with enough others that they may be identifiers of people.

    >>> sorted(alike(f"MT_{number:03d}" for number in range(9)))[:2], alike(["load_kw", "solar_kw"])
    (['MT_000', 'MT_001'], frozenset())
    """
    patterns = {name: _WORD.sub(lambda word: "#" if any(map(str.isdigit, word[0])) else "a", name) for name in names}
    sizes = Counter(patterns.values())
    many = {pattern for pattern, size in sizes.items() if size >= (_MANY_NUMBERED if "#" in pattern else _MANY_WORDED)}
    return frozenset(name for name, pattern in patterns.items() if pattern in many)


def require_same_columns(first: Source, other: Source, schema: Schema) -> None:
    """Refuses a file of a folder with other columns than another one."""
    if (set(first.columns) ^ set(other.columns)) - set(schema.ignore):
        raise DataError(f"{first.name}: the same columns are expected in every file of the folder. Make them alike.")


def open_file(
    file: File, schema: Schema, *, name: str | None = None, rows: RowRange | None = None, only: str | None = None
) -> Source:
    """Opens one file of a table, which errors call `name`; `rows` of a Parquet file, and `only` a column, if given."""
    name, suffix = name or file.name, file.suffix.lower()
    if isinstance(file, DatabaseTable):
        columns = tuple(file.types().names)
        kept = [column for column in columns if column not in schema.ignore and only in (None, column)]
        return Source(name, columns, _checked(file.rows(schema, kept), nullcontext()))
    if suffix == ".csv":
        columns, kinds = csv_header(file, schema.csv, name), _csv_kinds(schema)
        guard = readable(name, schema.csv, [(one, kinds[one][1]) if one in kinds else None for one in columns])
        return Source(name, columns, _checked(_open_csv(file, schema, columns, kinds, only), guard), from_text=True)
    with unreadable(name):
        if suffix == ".parquet":
            return _open_parquet(file, name, schema, rows, only)
        if suffix in (".arrow", ".feather"):
            # A memory map keeps the file's pages out of our own memory.
            sink = pa.memory_map(str(file)) if isinstance(file, Path) else file.open("rb")
            opened = pa.ipc.open_file(sink)
            pieces = (opened.get_batch(place) for place in range(opened.num_record_batches))
            return Source(name, tuple(opened.schema.names), _checked(pieces, unreadable(name)))
    endings = ", ".join(TABLE_SUFFIXES)
    raise DataError(f"{name}: a file ending in {endings}, .npy or .npz is expected. Convert or rename it.")


def open_parquet(file: File, **options: Any) -> pq.ParquetFile:
    """Opens a Parquet file so that it is not held in memory together with what is made of it."""
    # Without pre-buffering and with a small buffer, the file is read as its rows are asked for.
    handle = file.open("rb") if isinstance(file, StoredFile) else file
    return pq.ParquetFile(handle, pre_buffer=False, buffer_size=1 << 16, **options)


def _open_parquet(
    file: Path | StoredFile, name: str, schema: Schema, rows: RowRange | None, only: str | None
) -> Source:
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
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError):  # KeyError: a Parquet file with two schemas
        told = "the file can't be read as a table. It may be damaged or of another format."
        raise DataError(f"{name}: {told} Write it again; names and text have to be UTF-8.") from None


def csv_header(path: Path | StoredFile, written: CsvFormat, name: str | None = None) -> tuple[str, ...]:
    """Returns the names in the first line of a CSV file, which errors call `name`; reads no more than one block."""
    name = name or path.name
    with readable(name, written):
        with path.open(encoding=without_mark(written.encoding), newline="") as file:
            head = str(file.readline())
        if not head.strip():
            raise DataError(f"{name}: the table is empty. Expected a line of column names.")
        parsing = pacsv.ParseOptions(delimiter=written.delimiter)
        names = tuple(pacsv.read_csv(pa.BufferReader(head.encode()), parse_options=parsing).column_names)
    seen = next((sign for sign in _OTHER_DELIMITERS if len(names) == 1 and sign in names[0]), None)
    if seen is not None:
        told = f"columns separated by {spelled(written.delimiter)} are expected, and the first line has one with"
        remedy = f"Write delimiter = {spelled(seen)} under [csv] of the schema, or give --delimiter."
        raise DataError(f"{name}: {told} {spelled(seen)} in it. {remedy}")
    return names


def _open_csv(
    path: Path | StoredFile, schema: Schema, columns: tuple[str, ...], kinds: _Kinds, only: str | None
) -> Iterator[pa.RecordBatch]:
    """Yields the rows; types come from the schema, so that they never depend on what the first rows happen to hold."""
    written = schema.csv
    texts = {str(c) for group in (schema.channels, schema.static) for k in group for c in getattr(k, "categories", ())}
    nulls = [*pacsv.ConvertOptions().null_values, *written.missing]
    options = pacsv.ConvertOptions(
        column_types={name: kinds[name][0] if name in kinds else pa.string() for name in columns},
        strings_can_be_null=True,
        null_values=[text for text in nulls if text not in texts],
        include_columns=[name for name in columns if name not in schema.ignore and only in (None, name)],
        decimal_point=written.decimal,
    )
    reading = pacsv.ReadOptions(block_size=_BLOCK_BYTES, encoding=without_mark(written.encoding))
    parsing = pacsv.ParseOptions(delimiter=written.delimiter)
    file = path if isinstance(path, Path) else path.open("rb")
    yield from pacsv.open_csv(file, read_options=reading, convert_options=options, parse_options=parsing)


@contextmanager
def readable(name: str, written: CsvFormat, kinds: Sequence[tuple[str, str] | None] = ()) -> Iterator[None]:
    """Turns what Arrow says about a CSV file that it can't read into a message that quotes nothing of it."""
    try:
        yield
    except UnicodeError:
        raise _wrong_encoding(name, written) from None
    except (pa.ArrowException, OSError) as error:
        raise _explained(str(error), name, written, kinds) from None


def _explained(told: str, name: str, written: CsvFormat, kinds: Sequence[tuple[str, str] | None]) -> DataError:
    if "invalid UTF8" in told:
        return _wrong_encoding(name, written)
    form = f"{name}: columns separated by {spelled(written.delimiter)}, in {written.encoding}, are expected"
    if re.search(r"Expected \d+ columns, got \d+", told):
        told = (
            "a row has more or fewer than the first line. If numbers have decimal commas, or text holds the delimiter"
        )
        remedy = "save the file with another delimiter or with quotes, and declare both signs under [csv]"
        return DataError(f"{form}, and {told}, {remedy}.")
    match = re.search(r"CSV column #(\d+)", told)
    kind = kinds[int(match[1])] if match and int(match[1]) < len(kinds) else None
    if kind is None:
        return DataError(f"{form}, and it can't be read so. Save it again, or declare its format under [csv].")
    column, expected = kind
    other = "," if written.decimal == "." else "."
    sign = f"If its decimal sign is '{other}', write decimal = \"{other}\" under [csv]. " * ("decimal" in expected)
    missing = 'If a word stands for missing values, list it as missing = ["?"] under [csv]'
    told = f"{expected} are expected in {name}, as declared, and it holds other text. {sign}{missing}"
    return wrong_column(column, f"{told}; else convert the column or declare another kind.")


def _wrong_encoding(name: str, written: CsvFormat) -> DataError:
    usual = "UTF-8" if without_mark(written.encoding) == "utf-8-sig" else written.encoding
    remedy = "--encoding of `understudy init`, encoding = 'latin-1', 'cp1252' or 'utf-16' under [csv] in the schema"
    told = f"text in {usual} is expected, and the file holds other bytes. Save it as UTF-8, or declare its encoding"
    return DataError(f"{name}: {told}: {remedy}.")


def spelled(sign: str) -> str:
    """Writes a delimiter so that a person can see it."""
    return '"\\t"' if sign == "\t" else f'"{sign}"'


def without_mark(encoding: str) -> str:
    """Returns the encoding in which a byte order mark before UTF-8 text is no part of the first name."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig") else encoding


def _csv_kinds(schema: Schema) -> _Kinds:
    text, whole = (pa.string(), "text"), (pa.int64(), "whole numbers")
    numbers = (pa.float64(), f"numbers with the decimal sign '{schema.csv.decimal}'")

    def kind(channel: Channel) -> tuple[pa.DataType, str]:
        if isinstance(channel, Categorical):
            return whole if channel.dtype in INTEGER_DTYPES else text
        return (pa.bool_(), "true or false, or 0 or 1,") if isinstance(channel, Binary) else numbers

    unit, time = schema.unit, schema.time
    keys = {unit.column: unit.dtype in INTEGER_DTYPES, time.column: time.counts_steps, time.series_column: False}
    kinds = {name: whole if numbered else text for name, numbered in keys.items() if name is not None}
    kinds |= {channel.name: kind(channel) for channel in (*schema.static, *schema.context)}
    for channel in schema.channels:
        kinds |= dict.fromkeys(column_names(schema, channel.name), kind(channel))
    return kinds


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
