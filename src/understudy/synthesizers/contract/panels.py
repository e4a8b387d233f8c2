"""Small invented panels on which `contract` tries a method: every kind of column, every kind of unit.

The data is drawn from the schema alone, so it is public and may stand in any report.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from understudy.data import (
    Binary,
    Categorical,
    Channel,
    Continuous,
    Integer,
    Monotone,
    NonNegative,
    Panel,
    Population,
    PrivacyUnit,
    Schema,
    Sum,
    Time,
    ZeroWhen,
    constraints,
)
from understudy.data.panel import broadcast_context
from understudy.synthesizers.sampling import shared_context

NUM_UNITS = 211  # prime, and no size that a schema below implies: it must not show in a release
STEPS, MIN_STEPS = 8, 3
_GAP = 0.15  # chance of a missing value where a column allows it
_ONE_MORE = ((0, 1), (0, 0), (0, 0))  # series

_CHANNELS: tuple[Channel, ...] = (
    Continuous("load", 0.0, 20.0, missing=True),
    Continuous("balance", -5.0, 12.0),
    Integer("meter", 0, 90),
    Categorical("state", ("off", "idle", "on"), missing=True),
    Binary("alarm"),
    Continuous("solar", 0.0, 0.7),
    Continuous("heat", 0.0, 3.0),
    Continuous("in_house", 0.0, 4.0),
    Continuous("outside", 0.0, 5.0),
    Continuous("total", 0.0, 7.0),
)
_CONSTRAINTS = (
    NonNegative("balance"),
    Monotone("meter"),
    ZeroWhen("solar", hours=(0, 1, 5)),
    ZeroWhen("heat", context="sunshine", below=0.5),
    Sum("total", ("in_house", "outside")),
)


def rich_schema(**changes: Any) -> Schema:
    """Every kind of channel and constraint, gaps, lengths, static columns, a label and public context."""
    fields: dict[str, Any] = {
        "name": "contract",
        "population": Population(500),
        "unit": PrivacyUnit(column="home"),
        "time": Time(column="when", steps=STEPS, min_steps=MIN_STEPS),
        "channels": _CHANNELS,
        "static": (
            Categorical("tariff", ("flat", "night", "dynamic")),
            Continuous("area", 10.0, 300.1, missing=True),
            Categorical("region", ("north", "south")),
            Integer("people", 1, 9),
        ),
        "context": (Continuous("sunshine", 0.0, 1.0), Continuous("price", -50.0, 400.0)),
        "label": "tariff",
        "constraints": _CONSTRAINTS,
    }
    return Schema(**{**fields, **changes})


def plain_schema(**changes: Any) -> Schema:
    """One channel of whole series, without gaps, static columns or context."""
    fields: dict[str, Any] = {
        "name": "contract",
        "population": Population(500),
        "unit": PrivacyUnit(column="home"),
        "time": Time(column="when", steps=STEPS),
        "channels": (Continuous("load", 0.0, 20.0),),
    }
    return Schema(**{**fields, **changes})


def make_panel(schema: Schema, num_units: int = NUM_UNITS, *, seed: int = 5, own_context: bool = False) -> Panel:
    """Returns invented series that obey the schema: up to `max_series` for each unit, context as declared."""
    if own_context:  # contexts differ between series only where each starts at its own time
        kept = tuple(rule for rule in schema.constraints if not (isinstance(rule, ZeroWhen) and rule.hours))
        schema = replace(schema, time=replace(schema.time, align="relative"), constraints=kept)
    rng = np.random.default_rng([seed, num_units])
    unit = np.repeat(np.arange(num_units), rng.integers(1, schema.unit.max_series + 1, num_units))
    context = _context(schema, len(unit), rng, own_context)
    lengths = np.full(len(unit), schema.num_steps, dtype=np.int32)
    if schema.time.min_steps is not None:
        lengths = rng.integers(schema.time.min_steps, schema.num_steps + 1, len(unit)).astype(np.int32)
    level, shape = rng.normal(size=(len(unit), 1)), (len(unit), schema.num_steps)
    walks = (level + rng.normal(size=shape).cumsum(axis=1) / np.sqrt(schema.num_steps) for _ in schema.channels)
    columns = [_values(channel, walk, rng) for channel, walk in zip(schema.channels, walks, strict=True)]
    values = constraints.apply(np.stack(columns, axis=2).astype(np.float32), schema, context=context)
    values[np.arange(schema.num_steps) >= lengths[:, None]] = np.nan
    static = np.zeros((len(unit), len(schema.static)), dtype=np.float32)
    for place, column in enumerate(schema.static):
        static[:, place] = _values(column, level[:, 0] + rng.normal(size=len(unit)), rng)
    return Panel(
        schema=schema,
        values=values,
        lengths=lengths,
        unit=unit.astype(np.int64),
        static=static,
        context=context,
        shared_context=None if context is None or own_context else shared_context(schema),
    )


def one_unit_more(panel: Panel) -> Panel:
    """Returns the panel with a unit at its end whose values sit at the declared bounds, as few as can be."""
    schema = panel.schema
    length = schema.time.min_steps or schema.num_steps
    values = np.full((1, schema.num_steps, schema.num_channels), np.nan, dtype=np.float32)
    values[0, :length] = [channel.bounds[1] for channel in schema.channels]
    static = np.array([[column.bounds[1] for column in schema.static]], dtype=np.float32)
    context = panel.context
    if context is not None:
        shared = context.strides[0] == 0
        context = broadcast_context(context[0], len(context) + 1) if shared else np.pad(context, _ONE_MORE, mode="edge")
    return replace(
        panel,
        values=np.concatenate([panel.values, values]),
        lengths=np.append(panel.lengths, np.int32(length)),
        unit=np.append(panel.unit, np.int64(panel.num_units)),
        static=np.concatenate([panel.static, static.reshape(1, -1)]),
        context=context,
    )


def without_values(panel: Panel, *channels: str) -> Panel:
    """Returns the panel with nothing observed in some channels."""
    values = np.array(panel.values)
    values[:, :, [panel.schema.channel_index(name) for name in channels]] = np.nan
    return panel.with_values(values)


def _context(schema: Schema, num_series: int, rng: np.random.Generator, own: bool) -> np.ndarray | None:
    if not schema.context:
        return None
    if not own:
        return broadcast_context(shared_context(schema), num_series)
    low, high = np.array([channel.bounds for channel in schema.context]).T
    level = rng.random((num_series, 1, len(low))).repeat(schema.num_steps, axis=1)
    return np.asarray(low + (high - low) * level, dtype=np.float32)


def _values(channel: Channel, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns values between the bounds, with gaps where the channel allows them."""
    low, high = channel.bounds
    values = low + (high - low) / (1 + np.exp(-scores))
    if not isinstance(channel, Continuous):
        values = np.rint(values)
    if channel.missing:
        values[rng.random(values.shape) < _GAP] = np.nan
    return np.asarray(values)
