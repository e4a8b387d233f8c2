"""Makes values obey the declared constraints, and says which ones they break."""

import numpy as np
from jaxtyping import Bool, Float, Float32, Int

from understudy.data.channels import Integer
from understudy.data.constraint_kinds import Constraint, Monotone, NonNegative, Sum, ZeroWhen
from understudy.data.schema import Schema
from understudy.data.timegrid import hours_of_day
from understudy.errors import DataError

__all__ = ["Constraint", "Monotone", "NonNegative", "Sum", "ZeroWhen", "apply", "violations"]

_TOLERANCE = 1e-5  # of a channel's width: what float32 may lose in a sum


def apply(
    values: Float[np.ndarray, "series step channel"],
    schema: Schema,
    *,
    context: Float[np.ndarray, "*series step context"] | None = None,
    first_step: int = 0,
) -> Float32[np.ndarray, "series step channel"]:
    """Returns values moved as little as needed to obey bounds and every declared constraint.

    Missing values stay missing. `first_step` shifts the hours of the day when step 0 is not the declared
    start.

    Privacy:
        Post-processing of synthetic values with public facts; costs nothing.
    """
    settled = _clip_to_bounds(np.array(values, dtype=np.float32), schema)
    for constraint in sorted(schema.constraints, key=lambda item: isinstance(item, Sum)):  # sums come last
        if isinstance(constraint, NonNegative):
            column = settled[..., schema.channel_index(constraint.channel)]
            np.maximum(column, 0.0, out=column)
        elif isinstance(constraint, ZeroWhen):
            column = settled[..., schema.channel_index(constraint.channel)]
            column[_zero_steps(constraint, schema, column, context, first_step) & ~np.isnan(column)] = 0.0
        elif isinstance(constraint, Monotone):
            _make_monotone(settled, constraint, schema)
        else:
            _add_up(settled, constraint, schema)
    return settled


def violations(
    values: Float[np.ndarray, "series step channel"],
    schema: Schema,
    *,
    context: Float[np.ndarray, "*series step context"] | None = None,
    first_step: int = 0,
) -> list[str]:
    """Returns the names of the declared constraints that some value breaks.

    Privacy:
        Says something about the values it is given: internal when they are private.
    """
    broken = []
    for constraint in schema.constraints:
        if isinstance(constraint, NonNegative):
            bad = values[..., schema.channel_index(constraint.channel)] < 0
        elif isinstance(constraint, ZeroWhen):
            column = values[..., schema.channel_index(constraint.channel)]
            zero = _zero_steps(constraint, schema, column, context, first_step)
            bad = zero & ~np.isnan(column) & (column != 0)
        elif isinstance(constraint, Monotone):
            column = values[..., schema.channel_index(constraint.channel)]
            bad = column != _running_extreme(column, constraint)
            bad &= ~np.isnan(column)
        else:
            bad = _sum_error(values, constraint, schema)
        if bad.any():
            broken.append(constraint.name)
    return broken


def _clip_to_bounds(
    values: Float32[np.ndarray, "series step channel"], schema: Schema
) -> Float32[np.ndarray, "series step channel"]:
    bounds = np.array([channel.bounds for channel in schema.channels], dtype=np.float32)
    clipped: np.ndarray = np.clip(values, bounds[:, 0], bounds[:, 1])
    return clipped


def _zero_steps(
    constraint: ZeroWhen,
    schema: Schema,
    column: Float[np.ndarray, "series step"],
    context: Float[np.ndarray, "*series step context"] | None,
    first_step: int,
) -> Bool[np.ndarray, "*rows step"]:
    """Returns where the channel has to be zero."""
    if constraint.hours is not None:
        hours = hours_of_day(schema.time, first_step + column.shape[1])[first_step:]
        at_hours: np.ndarray = np.isin(hours, constraint.hours)
        return at_hours
    if context is None:
        raise DataError(
            f"Constraint '{constraint.name}' looks at public context and none was given. Pass the context.",
            column=constraint.context,
        )
    index = [channel.name for channel in schema.context].index(str(constraint.context))
    below: np.ndarray = context[..., index] < constraint.below
    return below


def _make_monotone(values: Float32[np.ndarray, "series step channel"], constraint: Monotone, schema: Schema) -> None:
    index = schema.channel_index(constraint.channel)
    column = values[..., index]
    values[..., index] = np.where(np.isnan(column), np.nan, _running_extreme(column, constraint))


def _running_extreme(
    column: Float[np.ndarray, "series step"], constraint: Monotone
) -> Float[np.ndarray, "series step"]:
    """Returns the largest (or smallest) value so far; gaps are stepped over."""
    pick = np.fmax if constraint.direction == "increasing" else np.fmin
    extreme: np.ndarray = pick.accumulate(column, axis=1)
    return extreme


def _part_indices(constraint: Sum, schema: Schema) -> Int[np.ndarray, " part"]:
    return np.array([schema.channel_index(part) for part in constraint.parts])


def _sum_error(
    values: Float[np.ndarray, "series step channel"], constraint: Sum, schema: Schema
) -> Bool[np.ndarray, "series step"]:
    total = values[..., schema.channel_index(constraint.total)].astype(np.float64)
    parts = values[..., _part_indices(constraint, schema)].astype(np.float64).sum(axis=2)
    low, high = schema.channels[schema.channel_index(constraint.total)].bounds
    off: np.ndarray = np.abs(total - parts) > _TOLERANCE * max(high - low, abs(high), abs(low))
    return off


def _add_up(values: Float32[np.ndarray, "series step channel"], constraint: Sum, schema: Schema) -> None:
    """Makes the total the sum of its parts, moving the parts when the sum would leave the total's bounds.

    Parts shrink towards their lower bounds (or grow towards their upper ones) in proportion to the room they
    have. Where a part or the total is missing there is nothing to add up, and values stay.
    """
    index = _part_indices(constraint, schema)
    bounds = np.array([schema.channels[i].bounds for i in index])
    total_index = schema.channel_index(constraint.total)
    total_low, total_high = schema.channels[total_index].bounds
    parts = values[..., index].astype(np.float64)
    known = ~(np.isnan(parts).any(axis=2) | np.isnan(values[..., total_index]))
    shrunk = _rescale(parts, bounds[:, 0], total_high, above=True)
    grown = _rescale(shrunk, bounds[:, 1], total_low, above=False)
    whole = np.array([isinstance(schema.channels[i], Integer) for i in index])
    settled = np.where(whole, np.where(grown > parts, np.ceil(grown - 1e-9), np.floor(grown + 1e-9)), grown)
    settled = np.where(known[..., None], settled, parts)
    values[..., index] = settled
    sums = np.clip(settled.sum(axis=2), total_low, total_high)
    values[..., total_index] = np.where(known, sums, values[..., total_index])


def _rescale(
    parts: Float[np.ndarray, "series step part"],
    anchor: Float[np.ndarray, " part"],
    limit: float,
    *,
    above: bool,
) -> Float[np.ndarray, "series step part"]:
    """Pulls parts towards their anchors where their sum passes the limit (above it, or below it)."""
    sums = parts.sum(axis=2)
    passes = sums > limit if above else sums < limit
    room = np.where(passes, sums - anchor.sum(), 1.0)
    share = np.where(passes, (limit - anchor.sum()) / np.where(room == 0, 1.0, room), 1.0)
    rescaled: np.ndarray = anchor + (parts - anchor) * share[..., None]
    return rescaled
