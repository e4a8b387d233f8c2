"""The schema as a form: fields that explain themselves, and the way from a form to a schema and back.

Nothing is validated here: a form becomes the text of a schema file, and the library says what is wrong with it.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from understudy.data import Schema
from understudy.errors import SchemaError
from understudy.files import whole_file

Document = dict[str, Any]
GROUPS = {
    "channels": "private, changes along a series",
    "static": "private, one value per series",
    "context": "public, known without this table",
    "ignore": "left out",
}
KINDS = ("continuous", "integer", "categorical", "binary")
_NUMBERS = ("low", "high", "resolution")
_COLUMN_KEYS = ("kind", "low", "high", "categories", "resolution", "out_of_bounds", "aggregate")


@dataclass(frozen=True)
class Field:
    """One key of the schema as a person meets it: what it is, an example, and what follows from it."""

    key: str
    label: str
    example: str
    consequence: str
    choices: Sequence[str] = ()
    number: bool = False


def _fields() -> dict[str, tuple[Field, ...]]:
    """Returns the fields by the section that they stand in, as `fields.toml` has them."""
    found: dict[str, tuple[Field, ...]] = {}
    text = (files("understudy.app") / "fields.toml").read_text(encoding="utf-8")
    for told in tomllib.loads(text)["fields"]:
        section = told.pop("section")
        found[section] = (*found.get(section, ()), Field(**told))
    return found


FIELDS = _fields()


def read_document(path: Path) -> Document:
    """Returns a schema file as nested dicts; also a draft that can't be loaded yet."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise SchemaError(f"{path.name}: a TOML file is expected. Correct it, or draft a new one.") from None


def values_of(document: Document) -> dict[str, str]:
    """Returns what the form shows of a document, by the name of its field."""
    population = document.get("population", "")
    bought = population.get("count_epsilon", "") if isinstance(population, dict) else ""
    values = {"population": "" if isinstance(population, dict) else str(population), "count_epsilon": str(bought)}
    for section in FIELDS.values():
        for field in section:
            if field.key not in values:
                values[field.key] = _shown(_at(document, field.key))
    rules = document.get("constraints")
    values["constraints"] = toml({"constraints": rules}).strip() if rules else ""
    return values


def columns_of(document: Document) -> list[dict[str, Any]]:
    """Returns the columns that a schema declares, each with its group and what is declared of it."""
    found = []
    for group in ("channels", "static", "context"):
        for column in document.get(group, []):
            shown = {key: _shown(column.get(key)) for key in _COLUMN_KEYS}
            missing = bool(column.get("missing", False))
            found.append({**shown, "group": group, "name": column.get("name", ""), "missing": missing})
    ignored = (
        dict.fromkeys(_COLUMN_KEYS, "") | {"group": "ignore", "name": name} for name in document.get("ignore", [])
    )
    return [*found, *ignored]


def document_of(saved: Document, form: Mapping[str, str]) -> Document:
    """Returns the saved document with what a form says; what the form does not show stays as it was saved."""
    document = {key: dict(value) if isinstance(value, dict) else value for key, value in saved.items()}
    for section in FIELDS.values():
        for field in section:
            if field.key in form and field.key not in ("population", "count_epsilon"):
                _put(document, field.key, _value(form[field.key], field.number))
    document.pop("population", None)
    if form.get("population", "").strip():
        document["population"] = _value(form["population"], True)
    elif form.get("count_epsilon", "").strip():
        document["population"] = {"count_epsilon": _value(form["count_epsilon"], True)}
    _put_columns(document, saved, form)
    document.pop("constraints", None)
    try:
        document |= tomllib.loads(form.get("constraints", ""))
    except (ValueError, RecursionError) as problem:
        raise SchemaError(f"constraints: not valid TOML: {problem}. Correct that line.", key="constraints") from None
    return {key: value for key, value in document.items() if value != {}}


def checked(document: Document, *, draft: bool) -> Schema:
    """Returns the schema that a document is; the library's own error says what is wrong with it."""
    return Schema.loads(toml(document), file="schema", draft=draft)


def save(document: Document, path: Path) -> Schema:
    """Writes a document as a schema file, unless the file says the same already; bounds may still be open."""
    schema = checked(document, draft=True)
    if not path.exists() or read_document(path) != document:
        with whole_file(path) as draft:
            draft.write_text(schema.dumps(), encoding="utf-8")
    return schema


def toml(document: Mapping[str, Any]) -> str:
    """Returns a document as TOML text."""
    plain = {key: value for key, value in document.items() if not _is_table(key, value)}
    lines = [f"{key} = {_written(value)}" for key, value in plain.items()]
    for key, value in document.items():
        if _is_table(key, value):
            for table in [value] if isinstance(value, dict) else value:
                head = f"[{key}]" if isinstance(value, dict) else f"[[{key}]]"
                lines += ["", head, *(f"{name} = {_written(item)}" for name, item in table.items())]
    return "\n".join(lines) + "\n"


def _is_table(key: str, value: Any) -> bool:
    tables = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    return (isinstance(value, dict) and key != "population") or bool(tables)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_written(item)}" for key, item in value.items()) + " }"
    if isinstance(value, float):
        return repr(value)
    if value is None or isinstance(value, bool | int | str | list | tuple):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)  # a date, which TOML writes as it is


def _put_columns(document: Document, saved: Document, form: Mapping[str, str]) -> None:
    before = {column["name"]: column for group in ("channels", "static", "context") for column in saved.get(group, [])}
    groups: dict[str, list[Any]] = {group: [] for group in GROUPS}
    place = 0
    while (name := form.get(f"column.{place}.name")) is not None:
        get = {key: form.get(f"column.{place}.{key}", "") for key in (*_COLUMN_KEYS, "group", "missing")}
        group = get["group"] if get["group"] in GROUPS else "channels"
        groups[group].append(name if group == "ignore" else _column(name, before.get(name, {}), get))
        place += 1
    if place == 0:
        return
    for group, found in groups.items():
        document.pop(group, None)
        if found:
            document[group] = found
    if "columns" in document:
        document["columns"] = [name for name in document["columns"] if name not in groups["ignore"]]


def _column(name: str, before: Document, get: Mapping[str, str]) -> Document:
    kept = {key: value for key, value in before.items() if key not in (*_COLUMN_KEYS, "missing", "name")}
    if get["kind"] != before.get("kind", get["kind"]):
        kept.pop("dtype", None)
    column: Document = {"kind": get["kind"], "name": name, **kept}
    for key in _COLUMN_KEYS[1:]:
        numeric = get["kind"] in ("continuous", "integer")
        wanted = {
            "categories": get["kind"] == "categorical",
            "aggregate": True,
            "resolution": get["kind"] == "continuous",
        }
        if get[key].strip() and wanted.get(key, numeric):
            column[key] = _listed(get[key], before) if key == "categories" else _value(get[key], key in _NUMBERS)
    if get["missing"]:
        column["missing"] = True
    return {key: value for key, value in column.items() if value != ""}


def _listed(text: str, before: Document) -> list[Any]:
    words = [word.strip() for word in text.replace("\n", ",").split(",") if word.strip()]
    whole = all(isinstance(one, int) for one in before.get("categories", [""])) or "int" in str(before.get("dtype", ""))
    return [_value(word, True) for word in words] if whole else words


def _at(document: Document, key: str) -> Any:
    first, _, rest = key.partition(".")
    value = document.get(first)
    return value.get(rest) if rest and isinstance(value, dict) else (None if rest else value)


def _put(document: Document, key: str, value: Any) -> None:
    first, _, rest = key.partition(".")
    if rest and not isinstance(document.get(first), dict):
        document[first] = {}
    place = document[first] if rest else document
    place.pop(rest or first, None)
    if value != "":
        place[rest or first] = value


def _shown(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _value(text: str, number: bool) -> Any:
    """Returns a number where the field takes one and the text is one; anything else is for the library to refuse."""
    text = text.strip()
    for kind in (int, float) if number else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text
