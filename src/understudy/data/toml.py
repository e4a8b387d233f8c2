"""The file border: schema.toml ⇄ `Schema`. Every error names the file, the key and what to write."""

import dataclasses
import datetime as dt
import re
import tomllib
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from understudy.data.channels import Binary, Categorical, Continuous, Integer
from understudy.data.constraints import Monotone, NonNegative, Sum, ZeroWhen
from understudy.data.schema import SCHEMA_VERSION, BudgetDeclaration, CsvFormat, Population, PrivacyUnit, Schema
from understudy.data.timegrid import Time, chosen_dtype
from understudy.data.type_checks import field_types, fits, wrong_key
from understudy.errors import MissingData, SchemaError

_Kinds = Mapping[str, Any]
_CHANNELS: _Kinds = {kind.kind: kind for kind in (Continuous, Integer, Categorical, Binary)}
_CONSTRAINTS: _Kinds = {kind.kind: kind for kind in (NonNegative, Monotone, Sum, ZeroWhen)}
_TABLES: _Kinds = {"unit": PrivacyUnit, "time": Time, "csv": CsvFormat, "budget": BudgetDeclaration}
_GROUPS = {"channels": _CHANNELS, "static": _CHANNELS, "context": _CHANNELS, "constraints": _CONSTRAINTS}
_ALWAYS = {"kind", "name", "low", "high", "categories", "frequency", "start", "steps"}  # written even if default
_NEEDED = {Schema: ("version",), Time: ("frequency", "steps")}  # keys that a file has to hold although Python needs not
_EXPECTED: dict[Any, str] = {
    "start": "a timestamp such as 2024-01-01T00:00:00, with or without quotes,",
    "population": "a whole number such as 10000, or { count_epsilon = 0.1 } to buy the count,",
    str: "text in quotes",
    int: "a whole number, without quotes,",
    float: "a number, without quotes,",
    bool: "true or false, without quotes,",
    tuple: 'a list in brackets, such as ["a", "b"],',
    typing.Literal: "text in quotes",
}


def load(path: Path, *, draft: bool = False) -> Schema:
    """Reads a schema file."""
    if not path.is_file():
        raise MissingData(f"No schema at {path}. Write one with `understudy init`.")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SchemaError(f"{path}: expected UTF-8 text. Save the file as UTF-8.", file=str(path), key=None) from None
    return loads(text, file=str(path), draft=draft)


def loads(text: str, *, file: str = "schema.toml", draft: bool = False) -> Schema:
    """Reads a schema from TOML text."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of a thousand digits and brackets within brackets
        raise SchemaError(f"{file}: not valid TOML: {error}. Correct that line.", file=file, key=None) from None
    try:
        if document.get("version", SCHEMA_VERSION) != SCHEMA_VERSION:
            raise wrong_key(
                "version",
                f"version {SCHEMA_VERSION} is expected. Write the schema again with `understudy init`, or use the "
                "release of Understudy that wrote it.",
            )
        if not draft:
            _refuse_open_bounds(document)
        return _schema(document)
    except SchemaError as error:
        told = str(error)
        raise SchemaError(f"{file}: {told[:1].lower()}{told[1:]}", file=file, key=error.facts.get("key")) from None


def _refuse_open_bounds(document: dict[str, Any]) -> None:
    """Names the first bound or list of categories a draft leaves open, before anything else is said."""
    needs = {"continuous": ("low", "high"), "integer": ("low", "high"), "categorical": ("categories",)}
    for group in ("channels", "static", "context"):
        for place, table in enumerate(_tables(document, group)):
            for bound in needs.get(str(table.get("kind")), ()) if isinstance(table, dict) else ():
                if table.get(bound) in (None, []):
                    key = f"{_place(group, table, place)}.{bound}"
                    raise SchemaError(
                        f"Key '{key}' is not declared. Bounds and categories are public and are never read from the "
                        f"data: write {bound} from public knowledge, or buy it with a DP query.",
                        key=key,
                    )


def _tables(document: dict[str, Any], group: str) -> list[Any]:
    tables = document.get(group, [])
    if not isinstance(tables, list):
        raise wrong_key(group, f"tables are expected. Write [[{group}]] before each.")
    return tables


def _place(group: str, table: Any, place: int) -> str:
    """Names a table of a group as its author sees it: channels.load_kw."""
    names = [table.get(key) for key in ("name", "channel", "total")] if isinstance(table, dict) else []
    return f"{group}.{next(filter(None, names), place + 1)}"


def _schema(document: dict[str, Any]) -> Schema:
    fields = dict(document)
    population = fields.get("population")
    if isinstance(population, dict):
        fields["population"] = _made(Population, population, "population")
    elif type(population) is int:
        fields["population"] = Population(_in_range(population, "population"))
    if isinstance(time := fields.get("time"), dict) and isinstance(time.get("start"), dt.date):
        fields["time"] = {**time, "start": time["start"].isoformat()}
    for name in (name for name in _TABLES if name in fields):
        fields[name] = _made(_TABLES[name], fields[name], name)
    for group in (group for group in _GROUPS if group in fields):
        fields[group] = [_made_of(group, table, place) for place, table in enumerate(_tables(fields, group))]
    schema: Schema = _made(Schema, fields, "")
    return schema


def _made_of(group: str, table: Any, place: int) -> Any:
    """Makes a channel or a constraint of the kind that its table names."""
    where, kinds = _place(group, table, place), _GROUPS[group]
    if not isinstance(table, dict) or not isinstance(kind := table.get("kind"), str) or kind not in kinds:
        raise wrong_key(f"{where}.kind", f"one of {', '.join(kinds)} is expected. Declare which it is.")
    return _made(kinds[kind], {key: value for key, value in table.items() if key != "kind"}, where)


def _made(kind: Any, table: Any, where: str) -> Any:
    """Makes a dataclass of a table of the file, of which keys and types are checked."""
    if not isinstance(table, dict):
        raise wrong_key(where, f"a table is expected. Write [{where}] before its keys.")
    hints, prefix = field_types(kind), where and f"{where}."
    for key, value in table.items():
        if key not in hints:
            raise wrong_key(prefix + key, f"it is not known{_home(key)}")
        given = tuple(value) if isinstance(value, list) else value
        if not fits(_in_range(given, prefix + key), hints[key]):
            raise wrong_key(prefix + key, f"{_expected(key, hints[key])} is expected. Write it that way.")
    for field in dataclasses.fields(kind):
        optional = field.default is not field.default_factory  # both are MISSING where there is no default
        if field.name not in table and (not optional or field.name in _NEEDED.get(kind, ())):
            raise wrong_key(prefix + field.name, "it is missing. Declare it.")
    return kind(**table)


def _in_range(value: Any, key: str) -> Any:
    """Returns a value whose whole numbers TOML promises, and ledgers and arrays hold."""
    numbers = value if isinstance(value, tuple) else (value,)
    if any(isinstance(number, int) and not -(2**63) <= number < 2**63 for number in numbers):
        raise wrong_key(key, "a whole number of at most 64 bits is expected. Write a smaller one.")
    return value


def _expected(key: str, hint: Any) -> str:
    """Says what to write at a key, in words of the file."""
    kinds = (key, hint, typing.get_origin(hint), *typing.get_args(hint))
    return next((_EXPECTED[kind] for kind in kinds if kind in _EXPECTED), "another value")


def _home(word: str) -> str:
    """Says in which tables of the file a key belongs, and what to do about it."""
    homes: dict[str, Any] = {f"under [{name}]": kind for name, kind in _TABLES.items()}
    homes |= {"at the top of the file, before any [table]": Schema}
    homes |= {"under [[channels]], [[static]] or [[context]]": Continuous}
    found = [place for place, kind in homes.items() if word in field_types(kind)]
    return f" there. It belongs {' or '.join(found)}: move it." if found else ". Check its spelling or remove it."


def dumps(schema: Schema) -> str:
    """Returns TOML text; keys that hold their default are left out."""
    head: dict[str, Any] = {"version": schema.version, "name": schema.name}
    head["population"] = schema.population.size or {"count_epsilon": schema.population.count_epsilon}
    head |= {key: getattr(schema, key) for key in ("label", "ignore", "columns") if getattr(schema, key)}
    time = _fields(schema.time)
    if schema.time.dtype == chosen_dtype(schema.time):
        del time["dtype"]
    parts = [_lines(head), "\n[unit]\n" + _lines(_fields(schema.unit)), "\n[time]\n" + _lines(time)]
    if schema.csv != CsvFormat():
        parts.append("\n[csv]\n" + _lines(_fields(schema.csv)))
    for group in _GROUPS:
        for item in getattr(schema, group):
            parts.append(f"\n[[{group}]]\n" + _lines({"kind": item.kind} | _fields(item)))
    if schema.budget is not None:
        parts.append("\n[budget]\n" + _lines(_fields(schema.budget)))
    return "".join(parts)


def _fields(item: Any) -> dict[str, Any]:
    values = {field.name: (getattr(item, field.name), field.default) for field in dataclasses.fields(item)}
    return {
        name: value
        for name, (value, default) in values.items()
        if value is not None and (name in _ALWAYS or value != default)
    }


def _lines(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {format_value(value)}\n" for key, value in table.items())


def format_value(value: Any) -> str:
    """Writes one TOML value.

    >>> format_value({"count_epsilon": 0.1})
    '{ count_epsilon = 0.1 }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        escaped = re.sub(r'["\\]', r"\\\g<0>", value)
        return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda sign: f"\\u{ord(sign[0]):04X}", escaped) + '"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {format_value(item)}" for key, item in value.items()) + " }"
    return "[" + ", ".join(format_value(item) for item in value) + "]"
