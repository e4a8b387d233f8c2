"""Declared rules, taken out of a table before it is learned from: what a rule says need not be learned with noise.

A channel that never turns back is seen as what it gains: a meter is where it started plus all that it counted since.

A declared direction is a public fact. What a series gains from one step to the next has a rhythm, a marginal and gaps
like any other channel, and no falling step has to be mended when gains are added up again. A channel that is zero while
another one is (sales of a closed shop) is seen as if its last value had stayed; samples are set to zero again.
"""

from dataclasses import replace

import numpy as np

from understudy.data import Channel, Continuous, Integer, Monotone, Panel, Schema, ZeroWhen
from understudy.statistics.series import filled


def learned_schema(schema: Schema) -> Schema:
    """Returns the contract of what is learned from: a start for each monotone channel stands behind static columns."""
    moving = _signs(schema)
    if not moving and not _implied(schema):
        return schema
    channels, starts = list(schema.channels), []
    for place in moving:
        channel, (low, high) = channels[place], channels[place].bounds
        assert isinstance(channel, Continuous | Integer)
        plain = replace(channel, aggregate="last", dtype="float64")
        starts.append(replace(plain, name=f"{channel.name}~start"))
        channels[place] = _from_zero(plain, high - low)
    return replace(
        schema, channels=tuple(channels), static=(*schema.static, *starts), constraints=(), columns=(), ignore=()
    )


def to_learned(panel: Panel) -> Panel:
    """Returns the panel under `learned_schema`; a gain over a gap is spread over its steps.

    Privacy: private if the panel is; a series follows from its own values and length alone.
    """
    schema, values, starts = panel.schema, np.array(panel.values), [panel.static]
    for place, other in _implied(schema):
        own, forced = values[:, :, place], panel.values[:, :, other] == 0
        last = np.maximum.accumulate(np.where(forced | np.isnan(own), -1, np.arange(panel.num_steps)), axis=1)
        stayed = np.take_along_axis(own, np.maximum(last, 0), axis=1)
        values[:, :, place] = np.where(forced & (last >= 0), stayed, own)
    for place, sign in _signs(schema).items():
        own = values[:, :, [place]]
        whole = filled(own.astype(np.float64), panel.lengths)
        gains = np.maximum(sign * np.diff(whole, axis=1, prepend=whole[:, :1]), 0.0)
        gains[:, :1] = gains[:, 1:2] if panel.num_steps > 1 else 0.0  # nothing is known of the first
        values[:, :, [place]] = np.where(np.isnan(own), np.nan, gains)
        starts.append(np.where(np.isnan(own).all(axis=1), np.nan, whole[:, 0]).astype(np.float32))
    return replace(panel, schema=learned_schema(schema), values=values, static=np.concatenate(starts, axis=1))


def from_learned(values: np.ndarray, static: np.ndarray, schema: Schema) -> tuple[np.ndarray, np.ndarray]:
    """Returns (values, static) of a schema from those of its `learned_schema`, all steps known."""
    moving, whole = _signs(schema), np.array(values)
    first = static.shape[1] - len(moving)
    for start, (place, sign) in zip(static[:, first:].T, moving.items(), strict=True):
        low, high = schema.channels[place].bounds
        begin = np.where(np.isnan(start), low if sign > 0 else high, start)
        whole[:, :, place] = begin[:, None] + sign * (np.cumsum(values[:, :, place], axis=1) - values[:, :1, place])
    return whole, static[:, :first]


def _implied(schema: Schema) -> list[tuple[int, int]]:
    """Returns (channel, the one with which it is zero) for each such rule."""
    rules = [rule for rule in schema.constraints if isinstance(rule, ZeroWhen) and rule.channel_is_zero is not None]
    return [(schema.channel_index(rule.channel), schema.channel_index(str(rule.channel_is_zero))) for rule in rules]


def _from_zero(channel: Continuous | Integer, high: float) -> Channel:
    if isinstance(channel, Integer):
        return replace(channel, low=0, high=int(high))
    return replace(channel, low=0.0, high=high)


def _signs(schema: Schema) -> dict[int, int]:
    """Returns 1 for each channel that never falls and -1 for each that never rises, by place."""
    rules = [rule for rule in schema.constraints if isinstance(rule, Monotone)]
    return {schema.channel_index(rule.channel): 1 if rule.direction == "increasing" else -1 for rule in rules}
