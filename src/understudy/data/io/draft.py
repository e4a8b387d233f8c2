"""A first schema from column names and types, for a person to complete. No value is looked at unless allowed."""

import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from understudy.data.dtypes import FLOAT_DTYPES, INTEGER_DTYPES, TEXT_DTYPES, schema_dtype
from understudy.data.io.sources import alike, csv_header, readable, unreadable, without_mark
from understudy.data.io.stores import existing
from understudy.data.schema import CsvFormat, changed_lines, format_value
from understudy.errors import DataError, InputError

PEEKED_ROWS = 1000
STATEMENT = (
    f"the text shape of up to {PEEKED_ROWS} rows of every column: whether all of it reads as whole numbers, numbers, "
    "true/false, timestamps, or none of these. No value, category, bound or count is taken over"
)
_NO_ROW = "# Written from column names and types only; no value was read. Complete what says TODO."
_PEEKED = f"# Peeked: kinds of columns come from a look at {STATEMENT}. This look is not protected by any guarantee."
_HEAD = """\
version = 1
name = {name}
# TODO: how many units there are, from public knowledge; or {{ count_epsilon = 0.1 }} to buy the count.
# population = 10000
columns = {columns}

# Who is protected: everything the table holds about one unit, however many rows that is.
[unit]
kind = "entity"
"""
_TIME = """\
# TODO: distance between two steps, timestamp of the first step, number of steps.
# frequency = "1h"
# start = "2024-01-01T00:00:00"
# steps = 168
"""
_BOUNDS = "# TODO: smallest and largest value there can be, from public knowledge.\n# low = 0\n# high = 1\n"
_CATEGORIES = '# TODO: every category there can be, from public knowledge.\n# categories = ["a", "b"]\n'
_KIND = """\
# TODO: what the column holds; a CSV file does not say. One of
# kind = "continuous"   # then low and high, from public knowledge
# kind = "integer"      # then low and high
# kind = "categorical"  # then categories = ["a", "b"]; under [[static]] if it is the same throughout a series
# kind = "binary"
"""
_BUDGET = """
# TODO: all that may ever be spent on this population. Delta is 1/(100 · population) unless declared.
# [budget]
# epsilon = 3.0
# max_runs = 5
"""
_TIME_NAMES = ("timestamp", "time", "datetime", "date", "date_time", "ts", "when", "day", "hour", "step")
_UNIT_NAMES = (
    *("household", "home", "house", "meter", "patient", "subject", "person", "customer", "client", "user"),
    *("member", "account", "card", "employee", "student", "device", "vehicle", "sensor", "station"),
    *("entity", "unit", "series", "id"),
)


class AlikeColumns(DataError):
    """Many column names follow one pattern and may be identifiers; nothing was written."""


@dataclass(frozen=True, kw_only=True)
class DraftOptions:
    """What a person says about a table before its schema is drafted.

    Attributes:
        csv: Format of the CSV file.
        zone: Time zone of timestamps that carry none.
        unit: Column that says whose rows they are; None picks one by its name.
        time: Column of timestamps; None picks one by its type or name.
        peek: Lets the shape of a CSV file's text decide the kinds of its columns.
        columns_are_public: Lets names that look like identifiers into the draft.
    """

    csv: CsvFormat = field(default_factory=CsvFormat)
    zone: str | None = None
    unit: str | None = None
    time: str | None = None
    peek: bool = False
    columns_are_public: bool = False


def draft_schema(source: Any, *, name: str | None = None, options: DraftOptions | None = None) -> str:
    """Returns the text of a schema that a person has to complete.

    Names and types decide what is what; bounds, categories, population and budget are left open, because
    nothing may be read from the data for free. Loading the draft is refused, naming the first key to fill in.

    Privacy:
        Reads a file's header or schema and no rows. A CSV file has no types, so the kinds of its columns are left open;
        with `options.peek` the shape of its text decides, and the draft says so. Column names go into the draft: where
        many follow one pattern they may be people's, and `AlikeColumns` is raised unless they are said to be public.
    """
    options = options or DraftOptions()
    path = existing(Path(source)) if isinstance(source, str | Path) else None
    is_csv = path is not None and path.suffix.lower() == ".csv"
    peeked = options.peek and is_csv
    with unreadable("table" if path is None else path.name):
        if path is not None:
            arrow = _file_types(path, options.csv)
        elif hasattr(source, "__arrow_c_stream__"):
            arrow = pa.RecordBatchReader.from_stream(source).schema
        else:
            raise DataError("Expected a path or a data frame that speaks the Arrow C stream interface.")
        names = arrow.names  # decoded only now
    _check_names(names, options)  # before any row is looked at
    if path is not None and peeked:
        arrow = _peek_types(path, names, options.csv)
    time = _chosen(options.time, names, "--time") or _pick_time(arrow)
    unit = _chosen(options.unit, names, "--unit") or _pick_unit(arrow, time)
    title = name or ("population" if path is None else path.stem)
    first = f"{_PEEKED} Complete what says TODO.\n" if peeked else f"{_NO_ROW}\n"
    head = first + _HEAD.format(name=format_value(title), columns=format_value(arrow.names))
    written = is_csv and options.csv != CsvFormat()
    csv = f"\n# How CSV files of this table are written.\n[csv]\n{changed_lines(options.csv)}" if written else ""
    columns = [_column(field) for field in arrow if field.name not in (time, unit)]
    columns.sort(key=lambda column: "[[channels]]" not in column)
    return "".join([head, _unit(unit, arrow), _time(time, arrow, options.zone, is_csv), csv, *columns, _BUDGET])


def _check_names(names: list[str], options: DraftOptions) -> None:
    """Refuses names that may be private values or identifiers, without quoting or counting them."""
    if len(set(names)) != len(names):
        raise DataError("Two columns of the table have the same name. Rename or drop one.")
    if not all(name.strip() for name in names):
        raise DataError("A column of the table has no name. Name or drop it (data frames save row numbers that way).")
    # whole numbers and dates may be the steps of a wide table
    if any(re.fullmatch(r"-?(\d+\.\d*|\.\d+)", name.strip()) for name in names):
        raise DataError(
            "A header line with names is expected, and a column is called by a decimal number. Add the line."
        )
    if alike(names) and not options.columns_are_public:
        raise AlikeColumns(
            "Many column names follow one pattern. If there is a column per person, the names are identifiers, and a "
            "schema is public: bring a table with a row per person and step, or with a row per person. If the names "
            "are public (steps, sensors), give --columns-are-public."
        )


def _chosen(column: str | None, names: list[str], option: str) -> str | None:
    if column is not None and column not in names:
        raise InputError(
            f"{option}: the name of a column of the table is expected, got '{column}'. Check its spelling."
        )
    return column


def _file_types(path: Path, written: CsvFormat) -> pa.Schema:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return pa.schema([(name, pa.null()) for name in csv_header(path, written)])
    if suffix == ".parquet":
        return pq.read_schema(path)
    if suffix in (".arrow", ".feather"):
        return pa.ipc.open_file(pa.memory_map(str(path))).schema
    raise DataError(f"{path.name}: .csv, .parquet, .arrow or .feather is expected. Convert it.")


def _pick_time(arrow: pa.Schema) -> str | None:
    typed = [field.name for field in arrow if pa.types.is_temporal(field.type)]
    named = [name for wanted in _TIME_NAMES for name in arrow.names if name.lower() == wanted]
    return next(iter([*typed, *named]), None)


def _pick_unit(arrow: pa.Schema, time: str | None) -> str | None:
    names = [name for name in arrow.names if name != time]
    patterns = ("{}", "{}_id", "{}id", "{} id", "id_{}", "id {}")
    spellings = [[pattern.format(word) for pattern in patterns] for word in _UNIT_NAMES]
    exact = [name for spelled in spellings for name in names if name.lower() in spelled]
    ending = [n for n in names if n.lower().endswith(("_id", "_key", "_number")) or n.endswith(("ID", "Id"))]
    return next(iter([*exact, *ending]), None)


def _peek_types(path: Path, columns: list[str], written: CsvFormat) -> pa.Schema:
    """Returns a type per column of a CSV file: whole numbers, numbers, true/false, timestamps or text.

    Privacy:
        Looks at private rows without noise: the answer, a type per column, is not protected. Callers ask first and
        record that it happened.
    """
    options = pacsv.ConvertOptions(
        null_values=[*pacsv.ConvertOptions().null_values, *written.missing],
        strings_can_be_null=True,
        decimal_point=written.decimal,
    )
    with readable(path.name, written):
        with path.open(encoding=without_mark(written.encoding), newline="") as file:
            text = "".join(itertools.islice(file, PEEKED_ROWS + 1))
        parsing = pacsv.ParseOptions(delimiter=written.delimiter)
        rows = pacsv.read_csv(pa.BufferReader(text.encode()), parse_options=parsing, convert_options=options)
    return pa.schema([(name, _shape(rows.column(place))) for place, name in enumerate(columns)])


def _shape(column: pa.ChunkedArray) -> pa.DataType:
    """Returns one of five types, or null for a column without any text."""
    if column.null_count == len(column):
        return pa.null()
    if any(fits(column.type) for fits in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)):
        return column.type
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return pa.timestamp("s")
    try:
        pc.cast(column, pa.timestamp("us", tz="UTC"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.string()
    return pa.timestamp("s")


def _unit(unit: str | None, arrow: pa.Schema) -> str:
    if unit is None:
        return (
            "# TODO: the column that says whose rows they are. Remove its own [[channels]] or [[static]] table below,\n"
            '# because a column is declared once. `understudy init --unit COLUMN` does both.\n# column = "household"\n'
        )
    dtype = schema_dtype(arrow.field(unit).type)
    dtype = dtype if dtype in INTEGER_DTYPES + TEXT_DTYPES else "string"
    return f"column = {format_value(unit)}\ndtype = {format_value(dtype)}\n"


def _time(time: str | None, arrow: pa.Schema, zone: str | None, from_text: bool) -> str:
    local = "" if zone is None else f"zone = {format_value(zone)}\n"
    if time is None:
        hint = '# TODO: the time column, without a [[channels]] table below; or layout = "wide" for a row per series.\n'
        return f'\n[time]\n{hint}# column = "timestamp"\n{local}{_TIME}'
    dtype = schema_dtype(arrow.field(time).type)
    dtype = "string" if dtype.startswith(("float", "large", "dict")) or (from_text and "time" in dtype) else dtype
    stored = f"dtype = {format_value(dtype)}\n" if zone is None or dtype.startswith(("int", "uint")) else local
    return f"\n[time]\ncolumn = {format_value(time)}\n{stored}{_TIME}"


def _column(field: pa.Field) -> str:
    """Drafts numbers and booleans as channels, which may change along a series, and text as static."""
    name = format_value(field.name)
    if pa.types.is_null(field.type):
        return f"\n[[channels]]\nname = {name}\nmissing = true\n{_KIND}"
    drafted = (
        (pa.types.is_boolean, "channels", "binary", ("bool",), ""),
        (pa.types.is_integer, "channels", "integer", INTEGER_DTYPES, _BOUNDS),
        (pa.types.is_floating, "channels", "continuous", FLOAT_DTYPES, _BOUNDS),
        (pa.types.is_decimal, "channels", "continuous", FLOAT_DTYPES, _BOUNDS),
        (lambda _: True, "static", "categorical", TEXT_DTYPES, _CATEGORIES),
    )
    _, group, kind, dtypes, todo = next(row for row in drafted if row[0](field.type))
    dtype = schema_dtype(field.type)
    dtype = format_value(dtype if dtype in dtypes else dtypes[0])
    return f'\n[[{group}]]\nkind = "{kind}"\nname = {name}\ndtype = {dtype}\nmissing = true\n{todo}'
