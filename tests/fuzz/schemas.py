"""Damaged schema files, and every command that reads one."""

import tomllib
from copy import deepcopy
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.case import Case
from tests.fuzz.commands import Command, buy_bounds, buy_categories, buy_population, plan, synth
from tests.fuzz.edits import FEW, byte_edits, document_edits
from tests.fuzz.place import LONG_SCHEMA, SCHEMAS


def to_toml(value: Any) -> str:
    """One TOML value; None, which TOML does not have, is a word that it does not have either."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(_escaped(character) for character in value) + '"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{to_toml(str(key))} = {to_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return repr(value)


def _escaped(character: str) -> str:
    plain = character.isprintable() and character not in '"\\'
    return character if plain else f"\\U{ord(character):08X}"


def to_document(document: dict[str, Any]) -> bytes:
    """A whole file: one line per key."""
    lines = (f"{to_toml(key)} = {to_toml(value)}\n" for key, value in document.items())
    return "".join(lines).encode("utf-8", errors="surrogatepass")


# What a careful person might write, right or wrong: these get furthest into the program.
_PLAUSIBLE: dict[str, tuple[Any, ...]] = {
    "version": (1, 2),
    "name": ("clinic", "a b", "x" * 300, "con", "clinic.ledger"),
    "population": (1, 2, 104, 10**6, 10**12, 2**63, {"count_epsilon": 0.01}, {"size": 50}, {"count_epsilon": 1e-300}),
    "label": ("ward", "state", "pulse"),
    "ignore": (["pulse"], ["pulse_0"], ["nobody"], ["person"]),
    "columns": (["person", "when", "pulse"], ["pulse"]),
    "unit.kind": ("entity", "event", "overlapping-window"),
    "unit.column": ("person", "ward", "nobody"),
    "unit.max_series": (1, 3, 10**9, 2**63),
    "unit.event_steps": (1, 2, 10**6),
    "unit.dtype": ("string", "int64", "dictionary", "large_string"),
    "time.column": ("when", "person", "nobody"),
    "time.frequency": ("1h", "30min", "1mo", "1y", "1us", "7d", "200000y", "9999999999999999999h", "1w"),
    "time.start": ("2024-01-01", "2024-02-01T00:00:00+05:00", "0001-01-01", "9999-12-31T23:00:00", "2023-12-31T23:00"),
    "time.steps": (1, 2, 3, 4, 400, 10**6 + 1, 10**9, 2**63),
    "time.min_steps": (1, 3, 4),
    "time.align": ("calendar", "relative"),
    "time.layout": ("long", "wide"),
    "time.wide_columns": ("{channel}_{step}", "{step}{channel}", "{channel}_{step:03d}", "{channel}{step!r:>99999999}"),
    "time.dtype": ("string", "timestamp[ns]", "int64", "uint8", "date32", "timestamp[us, tz=Mars/Base]"),
    "time.off_grid": ("refuse", "floor", "nearest"),
    "time.series_column": ("ward", "visits", "nobody"),
    "low": (0, -1, -1e38, -1.7e308, 8e8, 5e-324),
    "high": (1e9, 100, 1, 1e38, 1.7e308, 2**62, 1e-320, 0.1),
    "missing": (True, False),
    "out_of_bounds": ("refuse", "clip"),
    "resolution": (0.1, 1e-300, 0, -1, 1e38, "0.1"),
    "aggregate": ("mean", "sum", "count", "last", "max", "min"),
    "dtype": ("float64", "float32", "int8", "uint64", "bool", "string", "dictionary", "large_string"),
    "categories": (["off", "on"], ["north", "south", "\x1b[31m"], [1, 2], [""], ["a", "a"], [], [2**63], ["off", 1]),
    "kind": ("continuous", "integer", "categorical", "binary", "monotone", "sum", "zero-when", "non-negative"),
    "budget.epsilon": (4.0, 1e-9, 1e-300, 700.0, 1e300, 5),
    "budget.delta": (1e-6, 1e-300, 5e-324, 0.5, 1e-3),
    "budget.max_runs": (1, 8, 10**9, 2**63),
    "budget.composition": ("basic", "rdp", "zcdp"),
}


def edited_schema(draw: st.DrawFn, text: str) -> bytes:
    """The schema with other values, keys and tables, with broken bytes, or with both."""
    damage = draw(st.sampled_from(("plausible", "plausible", "values", "bytes", "both")))
    if damage == "plausible":
        return to_document(_plausible(draw, deepcopy(_parsed(text))))
    whole = text.encode() if damage == "bytes" else to_document(document_edits(draw, _parsed(text)))
    return whole if damage == "values" else byte_edits(draw, whole)


def _plausible(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    for _ in range(draw(FEW)):
        name = draw(st.sampled_from(sorted(_PLAUSIBLE)))
        table, _, key = name.rpartition(".")
        columns = [column for group in ("channels", "static") for column in document.get(group, [])]
        if table:
            target = document.setdefault(table, {})
        else:
            target = document if key in _TOP else draw(st.sampled_from(columns))
        target[key] = deepcopy(draw(st.sampled_from(_PLAUSIBLE[name])))
    return document


@cache
def _parsed(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


_TOP = ("version", "name", "population", "label", "ignore", "columns")


def commands(schema: str) -> list[Command]:
    """Command lines that read a schema, and succeed where nothing is wrong with it."""
    table = "wide.csv" if schema == "wide.toml" else "table.csv"
    bounds = buy_bounds(table, schema)
    if schema == "draft.toml":
        return [bounds, buy_population(table, schema), buy_categories(table, schema)]
    show = [("ledger", "show", schema)] if schema == "schema.toml" else []  # the only one with a ledger
    plans = [("plan", schema, "--population", "20"), plan(schema, "--json")]
    return [bounds, *plans, *show, synth(table, schema), synth(table, schema, "--json")]


@st.composite
def schema_cases(draw: st.DrawFn) -> Case:
    """A schema file that somebody got wrong."""
    name = draw(st.sampled_from(sorted(SCHEMAS)))
    text = draw(st.sampled_from((SCHEMAS[name], SCHEMAS[name], LONG_SCHEMA)))
    return Case(arguments=draw(st.sampled_from(commands(name))), files={name: edited_schema(draw, text)})
