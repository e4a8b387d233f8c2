"""A first schema from column names and types, for a person to complete. No value is looked at unless allowed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.data.alike import alike
from understudy.data.csv_format import COMMAS, CsvFormat
from understudy.data.io.csv_files import csv_header
from understudy.data.io.draft_text import draft_text
from understudy.data.io.peek import peek_types
from understudy.data.io.sources import existing, unreadable
from understudy.errors import DataError, InputError

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

    csv: CsvFormat = COMMAS
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
    with unreadable("table" if path is None else path.name):
        arrow = _types_only(source if path is None else path, options)
        names = arrow.names  # decoded only now
    _check_names(names, options)
    time = _chosen(options.time, names, "--time") or _pick_time(arrow)
    unit = _chosen(options.unit, names, "--unit") or _pick_unit(arrow, time)
    title = name or ("population" if path is None else path.stem)
    is_csv = path is not None and path.suffix.lower() == ".csv"
    peeked = options.peek and is_csv
    return draft_text(title, arrow, unit, time, csv=options.csv if is_csv else None, zone=options.zone, peeked=peeked)


def _check_names(names: list[str], options: DraftOptions) -> None:
    """Refuses names that may be private values or identifiers, without quoting or counting them."""
    if len(set(names)) != len(names):
        raise DataError("Two columns of the table have the same name. Rename or drop one.", column=None)
    if not all(name.strip() for name in names):
        raise DataError(
            "A column of the table has no name. Give it one, or drop it (data frames save row numbers that way).",
            column=None,
        )
    if any(map(_is_a_fraction, names)):  # whole numbers and dates may be the steps of a wide table
        raise DataError(
            "A column is called by a number with a decimal point: a header line with names is expected, and this seems "
            "to be somebody's row. Add one.",
            column=None,
        )
    if alike(names) and not options.columns_are_public:
        raise AlikeColumns(
            "Many column names follow one pattern. If there is a column per person, the names are identifiers, and a "
            "schema is public: bring a table with a row per person and step, or with a row per person. If the names "
            "are public (steps, sensors), give --columns-are-public.",
            column=None,
        )


def _is_a_fraction(name: str) -> bool:
    whole, point, rest = name.strip().removeprefix("-").partition(".")
    return bool(point) and (whole + rest).isdigit()


def _chosen(column: str | None, names: list[str], option: str) -> str | None:
    if column is not None and column not in names:
        raise InputError(
            f"{option}: the name of a column of the table is expected, got '{column}'. Check its spelling."
        )
    return column


def _types_only(source: Any, options: DraftOptions) -> pa.Schema:
    if isinstance(source, Path):
        return _file_types(source, options)
    if isinstance(source, pa.Table | pa.RecordBatch):
        return source.schema
    if hasattr(source, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(source).schema
    raise DataError("Expected a path or a data frame that speaks the Arrow C stream interface.", column=None)


def _file_types(path: Path, options: DraftOptions) -> pa.Schema:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        names = csv_header(path, options.csv)
        _check_names(list(names), options)  # before any row is looked at
        return (
            peek_types(path, names, options.csv) if options.peek else pa.schema([(name, pa.null()) for name in names])
        )
    if suffix == ".parquet":
        return pq.read_schema(path)
    if suffix in (".arrow", ".feather"):
        return pa.ipc.open_file(pa.memory_map(str(path))).schema
    raise DataError(f"{path.name}: .csv, .parquet, .arrow or .feather is expected. Convert it.", column=None)


def _pick_time(arrow: pa.Schema) -> str | None:
    typed = [field.name for field in arrow if pa.types.is_temporal(field.type)]
    named = [name for wanted in _TIME_NAMES for name in arrow.names if name.lower() == wanted]
    return next(iter([*typed, *named]), None)


def _pick_unit(arrow: pa.Schema, time: str | None) -> str | None:
    names = [name for name in arrow.names if name != time]
    exact = [name for wanted in _UNIT_NAMES for name in names if name.lower() in _with_id(wanted)]
    ending = [
        name for name in names if name.lower().endswith(("_id", "_key", "_number")) or name.endswith(("ID", "Id"))
    ]
    return next(iter([*exact, *ending]), None)


def _with_id(word: str) -> tuple[str, ...]:
    return (word, f"{word}_id", f"{word}id", f"{word} id", f"id_{word}", f"id {word}")
