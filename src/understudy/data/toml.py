"""The file border: schema.toml ⇄ `Schema`.

Pydantic models (toml_tables) mirror the file and are used only here; inside the package a schema is a frozen
dataclass. Every error names the file, the key and what to write.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydantic

from understudy.data.channels import Binary, Categorical, Channel, Continuous, Integer
from understudy.data.constraint_kinds import Constraint, Monotone, NonNegative, Sum, ZeroWhen
from understudy.data.csv_format import CsvFormat
from understudy.data.schema import SCHEMA_VERSION, BudgetDeclaration, Population, Schema
from understudy.data.timegrid import Time, chosen_dtype
from understudy.data.toml_tables import BudgetTable, ContinuousTable, CsvTable, SchemaTable, TimeTable, UnitTable
from understudy.data.units import PrivacyUnit
from understudy.errors import MissingData, SchemaError

_KINDS: dict[str, type[Channel]] = {
    "continuous": Continuous,
    "integer": Integer,
    "categorical": Categorical,
    "binary": Binary,
}
_CONSTRAINTS: dict[str, type[Constraint]] = {
    "non-negative": NonNegative,
    "monotone": Monotone,
    "sum": Sum,
    "zero-when": ZeroWhen,
}


_EXPECTED = {
    "start": "a timestamp such as 2024-01-01T00:00:00, with or without quotes,",
    "population": "a whole number such as 10000, or { count_epsilon = 0.1 } to buy the count,",
}
_TYPES = {
    "string": "text in quotes",
    "int": "a whole number, without quotes,",
    "float": "a number, without quotes,",
    "bool": "true or false, without quotes,",
    "list": 'a list in brackets, such as ["a", "b"],',
    "model": "a table",
}
_INSIDE = ("constrained-int", "str", "int", "datetime", "date", "PopulationTable")  # members of a union, no keys


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
        raise SchemaError(f"{file}: not valid TOML: {error}. Put that line right.", file=file, key=None) from None
    if document.get("version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise SchemaError(
            f"{file}: key 'version': version {SCHEMA_VERSION} is expected. Write the schema anew with "
            "`understudy init`, or use the release of Understudy that wrote it.",
            file=file,
            key="version",
        )
    if not draft:
        _refuse_open_bounds(document, file)
    try:
        return _to_schema(SchemaTable.model_validate(document))
    except pydantic.ValidationError as error:
        raise _explained(error, document, file) from None
    except SchemaError as error:
        key = error.facts.get("key")
        raise SchemaError(f"{file}: {_lower_first(str(error))}", file=file, key=key) from None


def _refuse_open_bounds(document: dict[str, Any], file: str) -> None:
    """Names the first bound or list of categories a draft leaves open, before anything else is said."""
    needs = {"continuous": ("low", "high"), "integer": ("low", "high"), "categorical": ("categories",)}
    tables = [
        (group, table)
        for group in ("channels", "static", "context")
        for table in _tables(document, group)
        if isinstance(table, dict)
    ]
    for group, table in tables:
        for bound in needs.get(str(table.get("kind")), ()):
            if table.get(bound) in (None, []):
                key = f"{group}.{table.get('name', '?')}.{bound}"
                raise SchemaError(
                    f"{file}: key '{key}' is not declared. Bounds and categories are public and are never "
                    f"read from the data: write {bound} from public knowledge, or buy it with a DP query.",
                    file=file,
                    key=key,
                )


def _tables(document: dict[str, Any], group: str) -> list[Any]:
    tables = document.get(group, [])
    return tables if isinstance(tables, list) else []


def _explained(error: pydantic.ValidationError, document: dict[str, Any], file: str) -> SchemaError:
    first = error.errors(include_url=False, include_input=False)[0]
    key = _key(first["loc"], document)
    if first["type"] == "union_tag_not_found":
        key = f"{key}.kind"
    return SchemaError(f"{file}: key '{key}': {_remedy(first, key)}.", file=file, key=key)


def _remedy(problem: Mapping[str, Any], key: str) -> str:
    """Says what to write at a key, in words of the file and not of the library that checks it."""
    kind, word = problem["type"], key.rpartition(".")[2]
    if kind == "missing":
        return "it is missing; declare it"
    if kind == "extra_forbidden":
        homes = _homes(word)
        return f"it is not known there; {homes}" if homes else "it is not known; check its spelling or remove it"
    if kind.startswith("union_tag"):
        allowed = _CONSTRAINTS if key.startswith("constraints.") else _KINDS
        return f"one of the kinds {', '.join(allowed)} is expected; declare which it is"
    expected = _EXPECTED.get(word) or _TYPES.get(kind.removesuffix("_type").removesuffix("_parsing"))
    return f"{expected} is expected" if expected else f"{_lower_first(problem['msg'])}; write it that way"


def _homes(word: str) -> str:
    """Says in which tables of the file a key belongs; empty for a key that is nowhere."""
    tables: dict[str, type[pydantic.BaseModel]] = {
        "at the top of the file, before any [table]": SchemaTable,
        "under [unit]": UnitTable,
        "under [time]": TimeTable,
        "under [csv]": CsvTable,
        "under [budget]": BudgetTable,
        "under [[channels]], [[static]] or [[context]]": ContinuousTable,
    }
    found = [place for place, table in tables.items() if word in table.model_fields]
    return f"it belongs {' or '.join(found)}: move it" if found else ""


def _key(location: tuple[int | str, ...], document: dict[str, Any]) -> str:
    """Writes a place in the file as the user sees it: channels.load_kw.low."""
    words: list[str] = []
    for position, word in enumerate(location):
        if isinstance(word, int) and position == 1:
            table = _tables(document, str(location[0]))[word]
            named = isinstance(table, dict) and (table.get("name") or table.get("channel") or table.get("total"))
            words.append(str(named or word + 1))
        elif not (position == 2 and word in {**_KINDS, **_CONSTRAINTS}) and (position == 0 or word not in _INSIDE):
            words.append(str(word))
    return ".".join(words)


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _to_schema(table: SchemaTable) -> Schema:
    population = table.population
    time = table.time.model_dump()
    if not isinstance(time["start"], str):
        time["start"] = time["start"].isoformat()
    return Schema(
        version=table.version,
        name=table.name,
        population=Population(population) if isinstance(population, int) else Population(**population.model_dump()),
        unit=PrivacyUnit(**table.unit.model_dump()),
        time=Time(**time),
        channels=tuple(_to_channel(item) for item in table.channels),
        static=tuple(_to_channel(item) for item in table.static),
        context=tuple(_to_channel(item) for item in table.context),
        label=table.label,
        constraints=tuple(_to_constraint(item) for item in table.constraints),
        budget=None if table.budget is None else BudgetDeclaration(**table.budget.model_dump()),
        ignore=tuple(table.ignore),
        columns=tuple(table.columns),
        csv=CsvFormat(**table.csv.model_dump()),
    )


def _to_channel(table: pydantic.BaseModel) -> Channel:
    fields = table.model_dump()
    return _KINDS[fields.pop("kind")](**fields)


def _to_constraint(table: pydantic.BaseModel) -> Constraint:
    fields = table.model_dump()
    return _CONSTRAINTS[fields.pop("kind")](**fields)


def dumps(schema: Schema) -> str:
    """Returns TOML text; keys that hold their default are left out."""
    head: dict[str, Any] = {"version": schema.version, "name": schema.name}
    population = schema.population
    head["population"] = population.size or {"count_epsilon": population.count_epsilon}
    head |= {key: getattr(schema, key) for key in ("label", "ignore", "columns") if getattr(schema, key)}
    always = {"kind", "name", "low", "high", "categories", "frequency", "start", "steps"}
    parts = [_lines(head), "\n[unit]\n" + _lines({"kind": schema.unit.kind} | _fields(schema.unit, always))]
    time = _fields(schema.time, always)
    if schema.time.dtype == chosen_dtype(schema.time):
        del time["dtype"]
    parts.append("\n[time]\n" + _lines(time))
    if schema.csv != CsvFormat():
        parts.append("\n[csv]\n" + _lines(_fields(schema.csv, set())))
    for group in ("channels", "static", "context", "constraints"):
        for item in getattr(schema, group):
            parts.append(f"\n[[{group}]]\n" + _lines({"kind": item.kind} | _fields(item, always)))
    if schema.budget is not None:
        parts.append("\n[budget]\n" + _lines(_fields(schema.budget, always)))
    return "".join(parts)


def _fields(item: Any, always: set[str]) -> dict[str, Any]:
    present = {}
    for field in dataclasses.fields(item):
        value = getattr(item, field.name)
        if value is not None and (field.name in always or value != field.default):
            present[field.name] = value
    return present


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
        return '"' + "".join(_escape(character) for character in value) + '"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {format_value(item)}" for key, item in value.items()) + " }"
    return "[" + ", ".join(format_value(item) for item in value) + "]"


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if ord(character) < 0x20 or ord(character) == 0x7F:
        return f"\\u{ord(character):04X}"
    return character
