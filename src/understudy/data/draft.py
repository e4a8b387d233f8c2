"""Schemas that leave facts open: drafting one from column names and types, what is open, and how to fill it in.

No value is looked at unless allowed: bounds, categories, population and budget are for a person to say or to buy.
"""

import difflib
import itertools
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from understudy.data.channels import (
    INTEGER_DTYPES,
    TEXT_DTYPES,
    TIMESTAMP,
    Categorical,
    Channel,
    Continuous,
    Integer,
    drafted,
    schema_dtype,
    undeclared,
)
from understudy.data.io.sources import (
    alike,
    csv_header,
    form_of,
    frame_types,
    open_parquet,
    readable,
    unreadable,
    without_mark,
)
from understudy.data.io.stores import DatabaseTable, File, table_files
from understudy.data.schema import CHANNELS, BudgetDeclaration, CsvFormat, Population, PrivacyUnit, Schema, column_names
from understudy.data.timegrid import Time, chosen_dtype
from understudy.errors import DataError, InputError

Interval = tuple[float, float]
PEEKED_ROWS = 1000
STATEMENT = (
    f"the text shape of up to {PEEKED_ROWS} rows of every column: whether all of it reads as whole numbers, numbers, "
    "true/false, timestamps, or none of these. No value, category, bound or count is taken over"
)
NAMELESS = "population"  # name of a population for which no file stands
_NO_ROW = (
    "# Written from column names and types only; no value was read. Complete what says TODO, from public knowledge."
)
_PEEKED = f"# Peeked: kinds of columns come from a look at {STATEMENT}. This look is not protected by any guarantee."
_AXIS = ("time.frequency", "time.start", "time.steps")
_TIME_NAMES = ("timestamp", "time", "datetime", "date", "date_time", "ts", "when", "day", "hour", "step")
_UNIT_NAMES = (
    *("household", "home", "house", "meter", "patient", "subject", "person", "customer", "client", "user"),
    *("member", "account", "card", "employee", "student", "device", "vehicle", "sensor", "station"),
    *("entity", "unit", "series", "id"),
)


class AlikeColumns(DataError):
    """Many column names follow one pattern and may be identifiers; nothing was written."""


def draft_schema(source: Any, **facts: Any) -> str:
    """Returns the text of a schema that a person has to complete; the arguments are those of `Schema.draft`.

    Loading the draft is refused, naming the first key to fill in.
    """
    peeked = facts.get("peek") and isinstance(source, str | Path) and Path(source).suffix.lower() == ".csv"
    first = f"{_PEEKED} Complete what says TODO, from public knowledge." if peeked else _NO_ROW
    return f"{first}\n{draft(source, **facts).dumps()}"


def draft(
    source: Any,
    *,
    unit: str | None = None,
    time: str | None = None,
    name: str | None = None,
    series: str | None = None,
    static: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    zone: str | None = None,
    csv: CsvFormat | None = None,
    peek: bool = False,
    columns_are_public: bool = False,
) -> Schema:
    """Returns the draft that `Schema.draft` documents."""
    if isinstance(source, np.ndarray):
        return _draft_of_array(source, name or NAMELESS)
    place = table_files(source) if isinstance(source, str | Path) else None
    file, written = None if place is None else place.files[0], csv or CsvFormat()  # the columns of one are those of all
    is_csv = file is not None and file.suffix.lower() == ".csv"
    with unreadable("table" if place is None else place.name):
        arrow = frame_types(source) if file is None else _file_types(file, written)
        names = arrow.names  # decoded only now
    _check_names(names, columns_are_public=columns_are_public)  # before any row is looked at
    if isinstance(file, Path) and is_csv and peek:
        arrow = _peek_types(file, names, written)
    ignore, static = _listed(ignore, names, "ignore"), _listed(static, names, "static")
    arrow = pa.schema([field for field in arrow if field.name not in ignore])
    time = _column_named(time, names, "time") or _pick_time(arrow)
    unit = _column_named(unit, names, "unit") or _pick_unit(arrow, time)
    series = _column_named(series, names, "series")
    columns = [drafted(field) for field in arrow if field.name not in (time, unit, series)]
    if not columns:
        raise DataError("A column besides unit and time is expected, to make series of. Bring a table that has one.")
    steady = [c for c in columns if c.name in static or isinstance(c, Categorical)]
    keys = [key for key, column in (("unit.column", unit), ("time.column", time)) if column is None]
    stored = "string" if unit is None else schema_dtype(arrow.field(unit).type)
    untyped = [f"{c.name}.kind" for c in columns if pa.types.is_null(arrow.field(c.name).type)]
    return Schema(
        name=name or (NAMELESS if place is None else Path(place.name.replace("*", "")).stem),
        population=Population(),
        unit=PrivacyUnit(column=unit, dtype=stored if stored in INTEGER_DTYPES + TEXT_DTYPES else "string"),
        time=_time(time, arrow, zone, series, from_text=is_csv),
        channels=tuple(column for column in columns if column not in steady),
        static=tuple(steady),
        ignore=ignore,
        columns=tuple(arrow.names),
        csv=written if is_csv else CsvFormat(),
        frame=form_of(source),
        undecided=("population", *keys, *_AXIS, *untyped),
    )


def with_facts(
    schema: Schema,
    *,
    population: int | Population | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    categories: Mapping[str, Any] | None = None,
    kinds: Mapping[str, str] | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    context: tuple[str, ...] = (),
    unit: str | None = None,
    time: str | None = None,
    budget: float | BudgetDeclaration | None = None,
    **facts: Any,
) -> Schema:
    """Returns the schema that `Schema.with_facts` documents."""
    named = {"population": population, "unit.column": unit, "time.column": time}
    decided = {key for key, given in named.items() if given}
    axis = {key: facts.pop(key) for key in Time.__dataclass_fields__ if key in facts}
    changes: dict[str, Any] = _schema_fields(facts)
    if population is not None:
        changes["population"] = population if isinstance(population, Population) else Population(population)
    if budget is not None:
        declared = budget if isinstance(budget, BudgetDeclaration) else BudgetDeclaration(epsilon=float(budget))
        changes["budget"] = declared
    told: dict[str, dict[str, Any]] = {name: dict(more) for name, more in (columns or {}).items()}
    for name, ends in (bounds or {}).items():
        if not isinstance(ends, tuple | list) or len(ends) != 2:
            raise InputError(f"bounds: (low, high) is expected for '{name}', got {type(ends).__name__}. Give both.")
        told.setdefault(name, {}).update(low=ends[0], high=ends[1])
    for name, listed in (categories or {}).items():
        if isinstance(listed, str | bytes | int | float):
            raise InputError(f'categories: a list of all categories is expected for \'{name}\'. Write ["a", "b"].')
        told.setdefault(name, {}).update(categories=tuple(listed))
    kinds = {**dict.fromkeys(categories or {}, "categorical"), **(kinds or {})}
    decided |= {f"{name}.kind" for name in (*(bounds or {}), *kinds)} | {f"time.{key}" for key in axis}
    taken = (unit, time, *changes.get("ignore", ()))
    groups = _told_columns(schema, told, kinds, context)
    changes |= {group: tuple(c for c in columns if c.name not in taken) for group, columns in groups.items()}
    if unit is not None:
        changes["unit"] = replace(schema.unit, column=unit)
    axis |= {} if time is None else {"column": time}
    # a dtype that was chosen for the old axis is chosen again
    again = {"dtype": "auto"} if schema.time.dtype == chosen_dtype(schema.time) else {}
    changes["time"] = changed = replace(schema.time, **{**again, **axis})
    decided |= {"time.start"} if changed.counts_steps or changed.align == "relative" else set()
    changes["columns"] = tuple(name for name in schema.columns if name not in changes.get("ignore", ()))
    return replace(schema, **changes, undecided=tuple(k for k in schema.undecided if k not in decided))


def still_open(schema: Schema) -> tuple[str, ...]:
    """Returns the columns of which a draft leaves bounds, categories or the kind open."""
    columns = (*schema.channels, *schema.static, *schema.context)
    return tuple(c.name for c in columns if undeclared(c) or f"{c.name}.kind" in schema.undecided)


def private_column(schema: Schema, name: str) -> Channel:
    """Returns the channel or static column of that name."""
    columns = {column.name: column for column in (*schema.channels, *schema.static)}
    if name not in columns:
        raise InputError(f"Column: one of {', '.join(columns)} is expected, got '{name}'.{_nearest(name, columns)}")
    return columns[name]


def with_fields(schema: Schema, changes: Mapping[str, Mapping[str, Any]]) -> Schema:
    """Returns the schema with other fields in some private columns."""
    told: dict[str, Any] = _told_columns(schema, changes, {}, ())
    return replace(schema, **told)


def with_bounds(schema: Schema, bounds: Mapping[str, Interval]) -> Schema:
    """Returns the schema with these bounds, which values beyond them are clipped to."""
    changes = {name: {"low": low, "high": high, "out_of_bounds": "clip"} for name, (low, high) in bounds.items()}
    return with_fields(schema, changes)


def reading_schema(schema: Schema, bounds: Mapping[str, Interval]) -> Schema:
    """Returns a schema to read the table with: `bounds` filled in; open and public columns left out."""
    known = with_bounds(replace(schema, label=None, constraints=(), columns=()), bounds)
    left = set(still_open(known))
    channels, static = (tuple(c for c in group if c.name not in left) for group in (known.channels, known.static))
    left_out = [column.name for column in (*known.static, *known.context) if column not in static]
    left_out += [name for c in known.channels if c not in channels for name in column_names(known, c.name)]
    if not channels:
        if schema.time.layout == "wide":
            raise InputError("Every channel of this wide table is still open. Declare or buy the bounds of one first.")
        # a channel that needs no column of its own
        channels = (Integer("rows of the table", 0, 2**24, aggregate="count", out_of_bounds="clip"),)
    undecided = tuple(key for key in known.undecided if not key.endswith(".kind"))
    ignore = (*known.ignore, *left_out)
    return replace(known, channels=channels, static=static, context=(), ignore=ignore, undecided=undecided)


def _told_columns(
    schema: Schema, told: Mapping[str, Any], kinds: Mapping[str, str], context: tuple[str, ...]
) -> dict[str, tuple[Channel, ...]]:
    """Returns the groups of columns with what a person says of some; `context` names columns that are public."""
    groups: dict[str, tuple[Channel, ...]] = {name: getattr(schema, name) for name in ("channels", "static", "context")}
    names = [column.name for columns in groups.values() for column in columns]
    for name in (*told, *kinds, *context):
        if name not in names:
            raise InputError(f"'{name}' is not a column of the schema: {', '.join(names)}.{_nearest(name, names)}")
    for group, columns in groups.items():
        groups[group] = tuple(_told(c, told.get(c.name, {}), kinds.get(c.name)) for c in columns)
    public = tuple(c for c in groups["channels"] + groups["static"] if c.name in context)
    kept = {group: tuple(c for c in groups[group] if c not in public) for group in ("channels", "static")}
    return {**kept, "context": groups["context"] + public}


def _told(column: Channel, told: Mapping[str, Any], kind: str | None) -> Channel:
    """Returns a column with other fields, of another kind if one is given."""
    if kind is not None and kind not in CHANNELS:
        raise InputError(f"kinds: one of {', '.join(CHANNELS)} is expected for '{column.name}', got '{kind}'.")
    for key in told:
        if key not in CHANNELS[kind or column.kind].__dataclass_fields__:
            raise InputError(
                f"Column '{column.name}' is {kind or column.kind}, and such a column has no '{key}'. Leave it out, or "
                f'say what the column holds: kinds={{"{column.name}": "…"}}, one of {", ".join(CHANNELS)}.'
            )
    if kind is None:
        return replace(column, **told)
    shared = {"name": column.name, "missing": column.missing, "party": column.party}
    numbers = kind == "categorical" and not any(isinstance(item, str) for item in told.get("categories", ("",)))
    again = CHANNELS[kind] is not type(column) or (numbers and column.dtype in TEXT_DTYPES)
    kept = {} if again else {"dtype": column.dtype}
    made: Channel = CHANNELS[kind](**{**shared, **kept, **told})
    return made


def _schema_fields(facts: dict[str, Any]) -> dict[str, Any]:
    allowed = ("name", "label", "constraints", "ignore", "csv")
    known = (*allowed, *Time.__dataclass_fields__, *(with_facts.__kwdefaults__ or {}))
    for key in facts:
        if key not in allowed:
            raise InputError(f"with_facts: '{key}' is no fact of a schema.{_nearest(key, known)}")
    return {key: tuple(value) if key in ("constraints", "ignore") else value for key, value in facts.items()}


def _nearest(name: str, known: Any) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean '{found[0]}'?" if found else ""


def _column_named(column: str | None, names: list[str], option: str) -> str | None:
    if column is not None and column not in names:
        near = _nearest(column, [] if alike(names) else names)
        told = f"{option} (--{option}): the name of a column of the table is expected, got '{column}'.{near}"
        raise InputError(f"{told} A level of a frame's index counts as a column if it has a name.")
    return column


def _listed(given: tuple[str, ...], names: list[str], option: str) -> tuple[str, ...]:
    given = (given,) if isinstance(given, str) else tuple(given)
    for column in given:
        _column_named(column, names, option)
    return given


def _check_names(names: list[str], *, columns_are_public: bool) -> None:
    """Refuses names that may be private values or identifiers, without quoting or counting them."""
    if len(set(names)) != len(names):
        raise DataError("Two columns of the table have the same name. Rename or drop one.")
    if not all(name.strip() for name in names):
        raise DataError("A column of the table has no name. Name or drop it (data frames save row numbers that way).")
    # whole numbers and dates may be the steps of a wide table
    if any(re.fullmatch(r"-?(\d+\.\d*|\.\d+)", name.strip()) for name in names):
        told = "A header line with names is expected, and a column is called by a decimal number. Add the line."
        raise DataError(told)
    if alike(names) and not columns_are_public:
        raise AlikeColumns(
            "Many column names follow one pattern. If there is a column per person, the names are identifiers, and a "
            "schema is public: bring a table with a row per person and step (frame.melt() or frame.stack() makes one). "
            "If the names are public (steps, sensors), give --columns-are-public, or columns_are_public=True."
        )


def _draft_of_array(array: np.ndarray, name: str) -> Schema:
    """Returns the draft of an array [series, step, channel], whose axes are public and whose numbers are not."""
    if array.ndim != 3 or 0 in array.shape[1:]:
        told = f"An array [series, step, channel] is expected, got one of {array.ndim} axes."
        raise DataError(f"{told} For one channel write array[:, :, None].")
    _, steps, channels = array.shape
    whole = array.dtype.kind in "iub"
    kind: Any = Integer if whole else Continuous
    return Schema(
        name=name,
        population=Population(),
        unit=PrivacyUnit(),
        time=Time(layout="wide", steps=steps),
        channels=tuple(kind(f"channel_{place}", missing=not whole) for place in range(channels)),
        undecided=("population", "time.frequency"),
    )


def _file_types(file: File, written: CsvFormat) -> pa.Schema:
    """Returns names and types of the columns; looks at no row."""
    if isinstance(file, DatabaseTable):
        return file.types()
    suffix = file.suffix.lower()
    if suffix == ".csv":
        return pa.schema([(name, pa.null()) for name in csv_header(file, written)])
    if suffix == ".parquet":
        return open_parquet(file).schema_arrow
    if suffix in (".arrow", ".feather"):
        with file.open("rb") as opened:
            return pa.ipc.open_file(opened).schema
    raise DataError(f"{file.name}: .csv, .parquet, .arrow or .feather is expected. Convert it.")


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
    nulls = [*pacsv.ConvertOptions().null_values, *written.missing]
    options = pacsv.ConvertOptions(null_values=nulls, strings_can_be_null=True, decimal_point=written.decimal)
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


def _time(time: str | None, arrow: pa.Schema, zone: str | None, series: str | None, *, from_text: bool) -> Time:
    """Returns a time axis of which only the column, its type and its zone are decided."""
    axis: dict[str, Any] = {"column": time, "steps": 1, "zone": zone, "series_column": series}
    if time is None:
        return Time(**axis)
    dtype = schema_dtype(arrow.field(time).type)
    stamp = TIMESTAMP.fullmatch(dtype)
    if stamp and stamp.group(2) not in (None, "UTC", "Etc/UTC") and not from_text:
        return Time(**{**axis, "zone": zone or stamp.group(2), "dtype": dtype})
    if dtype == "date32":
        return Time(**axis, frequency="1d", dtype=dtype)
    if dtype in INTEGER_DTYPES or (zone is None and stamp and not from_text):
        return Time(**axis, dtype=dtype)
    return Time(**axis, dtype="auto" if zone else "string")
