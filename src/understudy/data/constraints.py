"""Facts about the values that hold for everyone, and that samples are made to obey."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import pydantic
from jaxtyping import Float, Float32

from understudy.data.channels import Integer
from understudy.data.timegrid import hours_of_day
from understudy.data.type_checks import check_fields, require_key
from understudy.errors import DataError

if TYPE_CHECKING:
    from understudy.data.schema import Schema

_TOLERANCE = 1e-5  # of a channel's width: what float32 may lose in a sum
Values = Float[np.ndarray, "series step channel"]
Context = Float[np.ndarray, "*series step context"] | None


@dataclass(frozen=True)
class NonNegative:
    """The channel is never below zero.

    Attributes:
        channel: Name of a continuous or integer channel.
    """

    kind: ClassVar[str] = "non-negative"

    channel: str

    def __post_init__(self) -> None:
        check_fields(self, f"constraints.{self.channel}")


@dataclass(frozen=True)
class Monotone:
    """The channel never turns back along a series (a meter reading).

    Attributes:
        channel: Name of a continuous or integer channel.
        direction: Which way values may change.
    """

    kind: ClassVar[str] = "monotone"

    channel: str
    direction: Literal["increasing", "decreasing"] = "increasing"

    def __post_init__(self) -> None:
        check_fields(self, f"constraints.{self.channel}")


@dataclass(frozen=True)
class Sum:
    """One channel is the sum of others at every step.

    Attributes:
        total: Name of the channel that is the sum.
        parts: Names of the channels that add up to it.
    """

    kind: ClassVar[str] = "sum"

    total: str
    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        check_fields(self, f"constraints.{self.total}")
        different = 1 <= len(self.parts) == len({*self.parts} - {self.total})
        told = "different channels, none of them the total, are expected. List them."
        require_key(different, f"constraints.{self.total}.parts", told)


@dataclass(frozen=True)
class ZeroWhen:
    """The channel is zero at declared hours, while a public context is below a number, or while another channel is.

    Attributes:
        channel: Name of a continuous or integer channel.
        hours: Hours of the day, 0 to 23, at which it is zero.
        context: Name of a context column, in place of `hours`.
        below: The channel is zero while the context is below this number.
        channel_is_zero: Name of another channel, in place of `hours`: the channel is zero wherever that one is.
    """

    kind: ClassVar[str] = "zero-when"

    channel: str
    _: KW_ONLY
    hours: tuple[Annotated[int, pydantic.Field(ge=0, le=23)], ...] | None = None
    context: str | None = None
    below: float | None = None
    channel_is_zero: str | None = None

    def __post_init__(self) -> None:
        key = f"constraints.{self.channel}"
        check_fields(self, key)
        declared = [self.hours is not None, self.context is not None, self.channel_is_zero is not None]
        single = sum(declared) == 1 and (self.context is None) == (self.below is None)
        require_key(single, key, "one of hours, context with below, and channel_is_zero is expected. Declare one.")
        other = self.channel_is_zero != self.channel
        require_key(other, f"{key}.channel_is_zero", "another channel is expected. Name one.")
        require_key(self.hours != (), f"{key}.hours", "hours from 0 to 23 are expected. List them.")


Constraint = NonNegative | Monotone | Sum | ZeroWhen


def constrained_channels(constraint: Constraint) -> tuple[str, ...]:
    """Returns the channels a constraint speaks about."""
    return (constraint.total, *constraint.parts) if isinstance(constraint, Sum) else (constraint.channel,)


def name_of(constraint: Constraint) -> str:
    """Returns what messages call a constraint."""
    fact = constrained_channels(constraint)[0]
    if isinstance(constraint, Sum):
        fact += f" = {' + '.join(constraint.parts)}"
    elif isinstance(constraint, Monotone):
        fact += f" {constraint.direction}"
    elif isinstance(constraint, ZeroWhen) and constraint.hours is not None:
        fact += f" at hours {constraint.hours}"
    elif isinstance(constraint, ZeroWhen):
        other = constraint.channel_is_zero
        fact += f" while {constraint.context} < {constraint.below}" if other is None else f" while {other} is zero"
    return f"{constraint.kind}: {fact}"


def apply(
    values: Values, schema: "Schema", *, context: Context = None, first_step: int = 0
) -> Float32[np.ndarray, "series step channel"]:
    """Returns values moved as little as needed to obey bounds and every declared constraint.

    Missing values stay missing. `first_step` shifts the hours of the day when step 0 is not the declared start.

    Privacy: post-processing of synthetic values with public facts; costs nothing.
    """
    bounds = np.array([channel.bounds for channel in schema.channels], dtype=np.float32)
    settled: np.ndarray = np.clip(np.array(values, dtype=np.float32), bounds[:, 0], bounds[:, 1])
    following = [rule for rule in schema.constraints if isinstance(rule, ZeroWhen) and rule.channel_is_zero is not None]
    # a channel may follow one that follows a third
    rules = [*(rule for rule in schema.constraints if rule not in following), *following * len(following)]
    for constraint in sorted(rules, key=lambda rule: isinstance(rule, Sum)):  # sums come last
        if isinstance(constraint, Sum):
            _add_up(settled, constraint, schema)
        else:
            column = settled[..., schema.channel_index(constraint.channel)]
            column[...] = _obeying(settled, constraint, schema, context, first_step)
    return settled


def violations(values: Values, schema: "Schema", *, context: Context = None, first_step: int = 0) -> list[str]:
    """Returns the names of the declared constraints that some value breaks.

    Privacy: says something about the values it is given: internal when they are private.
    """
    broken = []
    for constraint in schema.constraints:
        if isinstance(constraint, Sum):
            place = schema.channel_index(constraint.total)
            low, high = schema.channels[place].bounds
            parts = values[..., _part_indices(constraint, schema)].astype(np.float64).sum(axis=2)
            off = np.abs(values[..., place].astype(np.float64) - parts)
            bad = off > _TOLERANCE * max(high - low, abs(high), abs(low))
        else:
            column = values[..., schema.channel_index(constraint.channel)]
            bad = (column != _obeying(values, constraint, schema, context, first_step)) & ~np.isnan(column)
        if bad.any():
            broken.append(name_of(constraint))
    return broken


def _obeying(
    values: Values, constraint: NonNegative | Monotone | ZeroWhen, schema: "Schema", context: Context, first_step: int
) -> Float[np.ndarray, "series step"]:
    """Returns the nearest values of a channel that obey a constraint on it; missing values stay missing."""
    column = values[..., schema.channel_index(constraint.channel)]
    if isinstance(constraint, NonNegative):
        return np.asarray(np.maximum(column, 0.0))
    if isinstance(constraint, Monotone):
        extreme = np.fmax if constraint.direction == "increasing" else np.fmin  # both step over gaps
        return np.where(np.isnan(column), np.nan, extreme.accumulate(column, axis=1))
    if constraint.channel_is_zero is not None:
        zero = values[..., schema.channel_index(constraint.channel_is_zero)] == 0
    elif constraint.hours is not None:
        hours = hours_of_day(schema.time, first_step + column.shape[1])[first_step:]
        zero = np.isin(hours, constraint.hours)
    elif context is None:
        told = "looks at public context and none was given. Pass the context."
        raise DataError(f"Constraint '{name_of(constraint)}' {told}", column=constraint.context)
    else:
        index = [channel.name for channel in schema.context].index(str(constraint.context))
        zero = context[..., index] < constraint.below
    return np.where(zero & ~np.isnan(column), 0.0, column)


def _part_indices(constraint: Sum, schema: "Schema") -> np.ndarray:
    return np.array([schema.channel_index(part) for part in constraint.parts])


def _add_up(values: Float32[np.ndarray, "series step channel"], constraint: Sum, schema: "Schema") -> None:
    """Makes the total the sum of its parts, moving the parts when the sum would leave the total's bounds.

    Parts shrink towards their lower bounds (or grow towards their upper ones) in proportion to the room they
    have. Where a part or the total is missing there is nothing to add up, and values stay.
    """
    index, total = _part_indices(constraint, schema), schema.channel_index(constraint.total)
    lower, upper = np.array([schema.channels[i].bounds for i in index]).T
    parts = values[..., index].astype(np.float64)
    known = ~(np.isnan(parts).any(axis=2) | np.isnan(values[..., total]))
    sums = parts.sum(axis=2)
    excess = (sums - np.clip(sums, *schema.channels[total].bounds))[..., None]
    room = np.where(excess > 0, parts - lower, upper - parts)
    moved = parts - excess * room / np.maximum(room.sum(axis=2, keepdims=True), np.finfo(np.float64).tiny)
    whole = np.array([isinstance(schema.channels[i], Integer) for i in index])
    moved = np.where(whole, np.where(excess < 0, np.ceil(moved - 1e-9), np.floor(moved + 1e-9)), moved)
    moved = np.where(known[..., None], moved, parts)
    values[..., index] = moved
    added = np.clip(moved.sum(axis=2), *schema.channels[total].bounds)
    values[..., total] = np.where(known, added, values[..., total])
