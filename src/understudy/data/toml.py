"""The file border: schema.toml ⇄ `Schema`. Every error names the file, the key and what to write."""

import dataclasses
import datetime as dt
import re
import tomllib
from typing import Any

from understudy.data.channels import Binary, Categorical, Continuous, Integer
from understudy.data.constraints import Monotone, NonNegative, Sum, ZeroWhen
from understudy.data.schema import BudgetDeclaration, CsvFormat, Population, PrivacyUnit, Schema
from understudy.data.timegrid import Time, chosen_dtype
from understudy.data.type_checks import wrong_key
from understudy.errors import SchemaError

_CHANNELS: dict[str, Any] = {kind.kind: kind for kind in (Continuous, Integer, Categorical, Binary)}
_CONSTRAINTS: dict[str, Any] = {kind.kind: kind for kind in (NonNegative, Monotone, Sum, ZeroWhen)}
_TABLES: dict[str, Any] = {"unit": PrivacyUnit, "time": Time, "csv": CsvFormat, "budget": BudgetDeclaration}
_GROUPS = {"channels": _CHANNELS, "static": _CHANNELS, "context": _CHANNELS, "constraints": _CONSTRAINTS}
_ALWAYS = {"kind", "name", "low", "high", "categories", "frequency", "start", "steps"}  # written even if default
_NEEDED = {Schema: ("version",), Time: ("frequency", "steps")}  # keys that a file has to hold although Python needs not


def loads(text: str, *, file: str, draft: bool) -> Schema:
    """Reads a schema from TOML text."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of a thousand digits and brackets within brackets
        raise SchemaError(f"{file}: not valid TOML: {error}. Correct that line.", file=file, key=None) from None
    try:
        schema = _schema(document)
        if not draft:
            schema.require_declared()
    except SchemaError as error:
        told = str(error)
        raise SchemaError(f"{file}: {told[:1].lower()}{told[1:]}", file=file, key=error.facts.get("key")) from None
    return schema


def _schema(document: dict[str, Any]) -> Schema:
    if document.get("version", 1) != 1:
        raise wrong_key(
            "version",
            "version 1 is expected. Write the schema again with `understudy init`, or use the release of Understudy "
            "that wrote it.",
        )
    fields = dict(document)
    if "population" in fields:
        population = fields["population"]
        declared = population if isinstance(population, dict) else {"size": population}
        fields["population"] = _made(Population, declared, "population")
    if isinstance(time := fields.get("time"), dict) and isinstance(time.get("start"), dt.date):
        fields["time"] = {**time, "start": time["start"].isoformat()}
    for name in (name for name in _TABLES if name in fields):
        fields[name] = _made(_TABLES[name], fields[name], name)
    for group in (group for group in _GROUPS if group in fields):
        if not isinstance(tables := fields[group], list):
            raise wrong_key(group, f"tables are expected. Write [[{group}]] before each.")
        fields[group] = [_made_of(group, table, place) for place, table in enumerate(tables)]
    made: Schema = _made(Schema, fields, "")
    return made


def _made_of(group: str, table: Any, place: int) -> Any:
    """Makes a column or a constraint, which errors call as its author sees it: channels.load_kw."""
    kinds, table = _GROUPS[group], dict(table) if isinstance(table, dict) else {}
    where = f"{group}.{next(filter(None, map(table.get, ('name', 'channel', 'total'))), place + 1)}"
    kind = table.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise wrong_key(f"{where}.kind", f"one of {', '.join(kinds)} is expected. Declare which it is.")
    return _made(kinds[kind], table, where)


def _made(kind: Any, table: Any, where: str) -> Any:
    """Makes a dataclass of a table of the file: the keys are checked here, what they hold by the dataclass."""
    if not isinstance(table, dict):
        raise wrong_key(where, f"a table is expected. Write [{where}] before its keys.")
    known, prefix = {field.name: field for field in dataclasses.fields(kind)}, where and f"{where}."
    for key in table:
        if key not in known:
            raise wrong_key(prefix + key, f"it is not known{_home(key)}")
    for name, field in known.items():
        optional = field.default is not field.default_factory  # both are MISSING where there is no default
        if name not in table and (not optional or name in _NEEDED.get(kind, ())):
            raise wrong_key(prefix + name, "it is missing. Declare it.")
    return kind(**table)


def _home(word: str) -> str:
    """Says in which tables of the file a key belongs, and what to do about it."""
    homes: dict[str, Any] = {f"under [{name}]": kind for name, kind in _TABLES.items()}
    homes |= {"at the top of the file, before any [table]": Schema}
    homes |= {"under [[channels]], [[static]] or [[context]]": Continuous}
    found = [place for place, kind in homes.items() if word in kind.__dataclass_fields__]
    return f" there. It belongs {' or '.join(found)}: move it." if found else ". Check its spelling or remove it."


def dumps(schema: Schema) -> str:
    """Returns TOML text; keys that hold their default are left out."""
    population = schema.population.size or {"count_epsilon": schema.population.count_epsilon}
    head = {"version": schema.version, "name": schema.name, "population": population}
    head |= {key: getattr(schema, key) for key in ("label", "ignore", "columns") if getattr(schema, key)}
    parts = [_lines(head), "\n[unit]\n" + changed_lines(schema.unit), "\n[time]\n" + changed_lines(schema.time)]
    if schema.csv != CsvFormat():
        parts.append("\n[csv]\n" + changed_lines(schema.csv))
    for group in _GROUPS:
        for item in getattr(schema, group):
            parts.append(f'\n[[{group}]]\nkind = "{item.kind}"\n{changed_lines(item)}')
    if schema.budget is not None:
        parts.append("\n[budget]\n" + changed_lines(schema.budget))
    return "".join(parts)


def changed_lines(item: Any) -> str:
    """Returns the TOML lines of the fields that differ from their defaults, and of those a reader expects."""
    defaults = {field.name: field.default for field in dataclasses.fields(item)}
    if isinstance(item, Time):
        defaults["dtype"] = chosen_dtype(item)
    values = {name: value for name in defaults if (value := getattr(item, name)) is not None}
    return _lines({name: value for name, value in values.items() if name in _ALWAYS or value != defaults[name]})


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
