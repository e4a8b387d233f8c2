"""The words of a drafted schema: what is known is written, what a person has to say is marked TODO."""

import pyarrow as pa

from understudy.data.csv_format import COMMAS, CsvFormat
from understudy.data.dtypes import schema_dtype
from understudy.data.io.peek import STATEMENT
from understudy.data.toml import format_value

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
_BOUNDS = """\
# TODO: smallest and largest value there can be, from public knowledge.
# low = 0
# high = 1
"""
_CATEGORIES = """\
# TODO: every category there can be, from public knowledge.
# categories = ["a", "b"]
"""
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


def draft_text(
    title: str,
    arrow: pa.Schema,
    unit: str | None,
    time: str | None,
    *,
    csv: CsvFormat | None,
    zone: str | None,
    peeked: bool,
) -> str:
    """Returns a draft for a table of these columns and types; `csv` is the format of a CSV file."""
    first = f"{_PEEKED} Complete what says TODO.\n" if peeked else f"{_NO_ROW}\n"
    head = first + _HEAD.format(name=format_value(title), columns=format_value(arrow.names))
    columns = [field for field in arrow if field.name not in (time, unit)]
    channels = [_column(field) for field in columns if _is_channel(field.type)]
    static = [_column(field) for field in columns if not _is_channel(field.type)]
    return "".join(
        [
            head,
            _unit(unit, arrow),
            _time(time, arrow, zone, csv is not None),
            _csv(csv or COMMAS),
            *channels,
            *static,
            _BUDGET,
        ]
    )


def _unit(unit: str | None, arrow: pa.Schema) -> str:
    if unit is None:
        return (
            "# TODO: the column that says whose rows they are. Remove its own [[channels]] or [[static]] table below,\n"
            '# because a column is declared once. `understudy init --unit COLUMN` does both.\n# column = "household"\n'
        )
    dtype = schema_dtype(arrow.field(unit).type)
    dtype = dtype if dtype.startswith(("int", "uint", "large", "dict")) else "string"
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


def _csv(csv: CsvFormat) -> str:
    if csv == COMMAS:
        return ""
    declared = {key: getattr(csv, key) for key in ("delimiter", "decimal", "encoding", "missing")}
    lines = [f"{key} = {format_value(value)}\n" for key, value in declared.items() if value != getattr(COMMAS, key)]
    return "".join(["\n# How CSV files of this table are written.\n[csv]\n", *lines])


def _is_channel(arrow: pa.DataType) -> bool:
    """Numbers and booleans may change along a series; text is drafted as static."""
    kinds = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(kind(arrow) for kind in kinds)


def _column(field: pa.Field) -> str:
    dtype = schema_dtype(field.type)
    if pa.types.is_null(field.type):
        return f"\n[[channels]]\nname = {format_value(field.name)}\nmissing = true\n{_KIND}"
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
