"""Schemas that leave facts open: what is open, how to fill it in, and how to read a table meanwhile."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from understudy.data.channels import Channel, Integer, undeclared
from understudy.data.schema import Schema, column_names
from understudy.errors import InputError

Interval = tuple[float, float]


def still_open(schema: Schema) -> tuple[str, ...]:
    """Returns the columns of which a draft leaves bounds or categories open."""
    columns = (*schema.channels, *schema.static, *schema.context)
    return tuple(column.name for column in columns if undeclared(column))


def private_column(schema: Schema, name: str) -> Channel:
    """Returns the channel or static column of that name."""
    columns = {column.name: column for column in (*schema.channels, *schema.static)}
    if name not in columns:
        raise InputError(f"--column: one of {', '.join(columns)} is expected, got '{name}'.")
    return columns[name]


def with_fields(schema: Schema, changes: Mapping[str, Mapping[str, Any]]) -> Schema:
    """Returns the schema with other fields in some private columns."""

    def changed(columns: tuple[Channel, ...]) -> tuple[Channel, ...]:
        return tuple(replace(column, **changes.get(column.name, {})) for column in columns)

    return replace(schema, channels=changed(schema.channels), static=changed(schema.static))


def with_bounds(schema: Schema, bounds: Mapping[str, Interval]) -> Schema:
    """Returns the schema with these bounds, which values beyond them are clipped to."""
    changes = {}
    for name, (low, high) in bounds.items():
        number = int if isinstance(private_column(schema, name), Integer) else float
        changes[name] = {"low": number(low), "high": number(high), "out_of_bounds": "clip"}
    return with_fields(schema, changes)


def reading_schema(schema: Schema, bounds: Mapping[str, Interval]) -> Schema:
    """Returns a schema to read the table with: `bounds` filled in; open and public columns left out."""
    known = with_bounds(replace(schema, label=None, constraints=(), columns=()), bounds)
    channels, static = (tuple(c for c in group if not undeclared(c)) for group in (known.channels, known.static))
    left_out = [column.name for column in (*known.static, *known.context) if column not in static]
    left_out += [name for c in known.channels if c not in channels for name in column_names(known, c.name)]
    if not channels:
        if schema.time.layout == "wide":
            raise InputError("Every channel of this wide table is still open. Declare or buy the bounds of one first.")
        # a channel that needs no column of its own
        channels = (Integer("rows of the table", 0, 2**24, aggregate="count", out_of_bounds="clip"),)
    return replace(known, channels=channels, static=static, context=(), ignore=(*known.ignore, *left_out))
