"""A first schema from column names and types, for a person to complete. No value is looked at."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.data.dtypes import schema_dtype
from understudy.data.io.sources import csv_header, existing, unreadable
from understudy.data.toml import format_value
from understudy.errors import DataError

_TIME_NAMES = ("timestamp", "time", "datetime", "date", "date_time", "ts", "when", "day", "hour", "step")
_UNIT_NAMES = (
    *("household", "home", "house", "meter", "patient", "subject", "person", "customer", "client", "user"),
    *("member", "account", "card", "employee", "student", "device", "vehicle", "sensor", "station"),
    *("entity", "unit", "series", "id"),
)

_HEAD = """\
# Written from column names and types only; no value was read. Complete what says TODO.
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
_BOUNDS = """\
# TODO: smallest and largest value there can be, from public knowledge.
# low = 0
# high = 1
"""
_CATEGORIES = """\
# TODO: every category there can be, from public knowledge.
# categories = ["a", "b"]
"""
_BUDGET = """
# TODO: all that may ever be spent on this population. Delta is 1/(100 · population) unless declared.
# [budget]
# epsilon = 3.0
# max_runs = 5
"""


def draft_schema(source: Any, *, name: str | None = None) -> str:
    """Returns the text of a schema that a person has to complete.

    Names and types decide what is what; bounds, categories, population and budget are left open, because
    nothing may be read from the data for free. Loading the draft is refused, naming the first bound to fill
    in.

    Privacy:
        Reads a file's header or schema and no rows. A CSV file has no types, so all its columns are drafted
        as continuous channels.
    """
    path = existing(Path(source)) if isinstance(source, str | Path) else None
    with unreadable("table" if path is None else path.name):
        arrow = _types_only(source if path is None else path)
        names = arrow.names  # decoded only now
    if len(set(names)) != len(names):  # not quoted: without a header line they are somebody's values
        raise DataError("Two columns of the table have the same name. Rename or drop one.", column=None)
    if any(map(_is_a_fraction, names)):  # whole numbers and dates may be the steps of a wide table
        raise DataError(
            "A column is called by a number with a decimal point: a header line with names is expected, and this seems "
            "to be somebody's row. Add one.",
            column=None,
        )
    title = name or ("population" if path is None else path.stem)
    time = _pick_time(arrow)
    unit = _pick_unit(arrow, time)
    head = _HEAD.format(name=format_value(title), columns=format_value(names))
    columns = [field for field in arrow if field.name not in (time, unit)]
    channels = [_column(field) for field in columns if _is_channel(field.type)]
    static = [_column(field) for field in columns if not _is_channel(field.type)]
    return "".join([head, _unit(unit, arrow), _time(time, arrow), *channels, *static, _BUDGET])


def _is_a_fraction(name: str) -> bool:
    whole, point, rest = name.strip().removeprefix("-").partition(".")
    return bool(point) and (whole + rest).isdigit()


def _types_only(source: Any) -> pa.Schema:
    if isinstance(source, Path):
        return _file_types(source)
    if isinstance(source, pa.Table | pa.RecordBatch):
        return source.schema
    if hasattr(source, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(source).schema
    raise DataError("Expected a path or a data frame that speaks the Arrow C stream interface.", column=None)


def _file_types(path: Path) -> pa.Schema:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return pa.schema([(name, pa.float64()) for name in csv_header(path)])
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
    exact = [
        name for wanted in _UNIT_NAMES for name in names if name.lower() in (wanted, f"{wanted}_id", f"{wanted}id")
    ]
    ending = [name for name in names if name.lower().endswith(("_id", "_key", "_number"))]
    return next(iter([*exact, *ending]), None)


def _unit(unit: str | None, arrow: pa.Schema) -> str:
    if unit is None:
        return '# TODO: the column that says whose rows they are.\n# column = "household"\n'
    dtype = schema_dtype(arrow.field(unit).type)
    dtype = dtype if dtype.startswith(("int", "uint", "large", "dict")) else "string"
    return f"column = {format_value(unit)}\ndtype = {format_value(dtype)}\n"


def _time(time: str | None, arrow: pa.Schema) -> str:
    if time is None:
        hint = '# TODO: the time column; or layout = "wide" for a table with a row per series.\n'
        return f'\n[time]\n{hint}# column = "timestamp"\n{_TIME}'
    dtype = schema_dtype(arrow.field(time).type)
    dtype = "string" if dtype.startswith(("float", "large", "dict")) else dtype
    return f"\n[time]\ncolumn = {format_value(time)}\ndtype = {format_value(dtype)}\n{_TIME}"


def _is_channel(arrow: pa.DataType) -> bool:
    """Numbers and booleans may change along a series; text is drafted as static."""
    kinds = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(kind(arrow) for kind in kinds)


def _column(field: pa.Field) -> str:
    dtype = schema_dtype(field.type)
    if pa.types.is_boolean(field.type):
        return _block("channels", "binary", field.name, "bool", "")
    if not _is_channel(field.type):
        dtype = dtype if dtype in ("large_string", "dictionary") else "string"
        return _block("static", "categorical", field.name, dtype, _CATEGORIES)
    if pa.types.is_integer(field.type):
        return _block("channels", "integer", field.name, dtype, _BOUNDS)
    return _block("channels", "continuous", field.name, dtype if "float" in dtype else "float64", _BOUNDS)


def _block(group: str, kind: str, name: str, dtype: str, todo: str) -> str:
    head = f'\n[[{group}]]\nkind = "{kind}"\nname = {format_value(name)}\ndtype = {format_value(dtype)}\n'
    return f"{head}missing = true\n{todo}"
