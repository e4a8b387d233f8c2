"""What the parts of a schema have to obey together: names, layout, label and constraints."""

from collections import Counter
from typing import TYPE_CHECKING

from understudy.data.channels import Channel, Continuous, Integer, undeclared
from understudy.data.constraint_kinds import Constraint, NonNegative, Sum, ZeroWhen, constrained_channels
from understudy.errors import SchemaError

if TYPE_CHECKING:
    from understudy.data.schema import Schema

MAX_WIDE_COLUMNS = 100_000
_SHOWN = 10  # names that an error lists


def check_together(schema: "Schema") -> None:
    """Refuses a schema whose parts contradict each other."""
    _check_layout(schema)
    _check_names(schema)
    _check_label(schema)
    for constraint in schema.constraints:
        _check_constraint(constraint, schema)


def default_columns(schema: "Schema") -> tuple[str, ...]:
    """Returns the table's columns in the order of a schema that declares none: unit, series, time, channels, static."""
    time, channels = schema.time, [channel.name for channel in schema.channels]
    keys = [schema.unit.column, time.series_column]
    static = [channel.name for channel in schema.static]
    if time.layout == "wide":
        wide = [time.wide_column(channel, step) for channel in channels for step in range(time.steps)]
        return tuple(name for name in (*keys, *static, *wide) if name is not None)
    return tuple(name for name in (*keys, time.column, *channels, *static) if name is not None)


def _check_names(schema: "Schema") -> None:
    columns = [c.name for group in (schema.channels, schema.static, schema.context) for c in group]
    keys = [schema.unit.column, schema.time.column, schema.time.series_column]
    declared = Counter([*columns, *(key for key in keys if key is not None), *schema.ignore])
    in_table = Counter([*default_columns(schema), *schema.ignore])
    for name in (name for names in (declared, in_table) for name, number in names.items() if number > 1):
        places = _places(schema, name)
        where = f", {places}" if places else ""
        raise SchemaError(
            f"Key '{name}': the column is declared twice{where}. Declare each column once: remove one.", key=name
        )
    for channel in (*schema.static, *schema.context):
        if channel.aggregate == "count":
            raise SchemaError(
                f"Key '{channel.name}.aggregate': only a channel can be a count of rows.",
                key=f"{channel.name}.aggregate",
            )


def _places(schema: "Schema", name: str) -> str:
    """Says where a name is declared."""
    keys = {
        "unit.column": schema.unit.column,
        "time.column": schema.time.column,
        "time.series_column": schema.time.series_column,
    }
    found = [f"as {key}" for key, column in keys.items() if column == name]
    for group in ("channels", "static", "context"):
        found += [f"under [[{group}]]" for column in getattr(schema, group) if column.name == name]
    return " and ".join([*found, *(["under ignore"] if name in schema.ignore else [])])


def _check_layout(schema: "Schema") -> None:
    if schema.time.layout == "long" and schema.time.column is None and schema.unit.protects_a_person:
        raise SchemaError("Key 'time.column': the time column of a long table is expected.", key="time.column")
    if schema.time.layout == "wide" and schema.num_steps * schema.num_channels > MAX_WIDE_COLUMNS:
        raise SchemaError(
            f"Key 'time.layout': a wide table of at most {MAX_WIDE_COLUMNS} columns (steps x channels) is expected. "
            "Use the long layout.",
            key="time.layout",
        )
    if not schema.columns:
        return
    context = {channel.name for channel in schema.context}
    expected, listed = set(default_columns(schema)), set(schema.columns) - context
    if listed != expected or len(set(schema.columns)) != len(schema.columns):
        names = ", ".join(sorted(f"'{name}'" for name in listed ^ expected)[:_SHOWN]) or "a name listed twice"
        raise SchemaError(
            f"Key 'columns': every declared column, once, is expected. Put right: {names}.", key="columns"
        )


def _check_label(schema: "Schema") -> None:
    if schema.label is not None and schema.label_column is None:
        raise SchemaError(
            f"Key 'label': the name of a categorical column under [[static]] is expected, got '{schema.label}'.",
            key="label",
        )


def _check_constraint(constraint: Constraint, schema: "Schema") -> None:
    key = f"constraints.{constrained_channels(constraint)[0]}"
    channels = {channel.name: channel for channel in schema.channels}
    for name in constrained_channels(constraint):
        if not isinstance(channels.get(name), Continuous | Integer):
            raise SchemaError(f"Key '{key}': '{name}' is not a continuous or integer channel.", key=key)
    if isinstance(constraint, ZeroWhen):
        _check_zero_when(constraint, schema, key)
    bounds = {name: channels[name] for name in constrained_channels(constraint)}
    if any(undeclared(channel) for channel in bounds.values()):
        return
    if isinstance(constraint, Sum):
        low = sum(bounds[part].bounds[0] for part in constraint.parts)
        high = sum(bounds[part].bounds[1] for part in constraint.parts)
        total = bounds[constraint.total].bounds
        if low > total[1] or high < total[0]:
            raise SchemaError(f"Key '{key}': the parts' bounds never add up to the total's. Widen them.", key=key)
    elif isinstance(constraint, ZeroWhen) and not _holds_zero(bounds[constraint.channel]):
        raise SchemaError(f"Key '{key}': the channel's bounds leave out zero. Widen them.", key=key)
    elif isinstance(constraint, NonNegative) and bounds[constraint.channel].bounds[1] < 0:
        raise SchemaError(f"Key '{key}': the channel's bounds are below zero. Widen them.", key=key)


def _check_zero_when(constraint: ZeroWhen, schema: "Schema", key: str) -> None:
    if constraint.context is not None and constraint.context not in [c.name for c in schema.context]:
        raise SchemaError(f"Key '{key}.context': the name of a public context channel is expected.", key=key)
    if constraint.hours is not None and schema.time.align != "calendar":
        raise SchemaError(f"Key '{key}.hours': hours of day need time.align = 'calendar'.", key=key)


def _holds_zero(channel: Channel) -> bool:
    low, high = channel.bounds
    return low <= 0 <= high
