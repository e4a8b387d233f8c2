"""What imputing and forecasting share: which series are refused, where windows begin, and what several draws say."""

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from understudy.data import Panel, Schema, constraints
from understudy.data.channels import num_codes
from understudy.data.timegrid import Time, parse_frequency, start_microseconds
from understudy.errors import InputError
from understudy.synthesizers.sampling import CompletionRequest, inside_bounds

if TYPE_CHECKING:
    from understudy.synthesizers.release import Release

NUM_DRAWS = 39
PIECE_VALUES = 4_000_000  # values that are worked on at a time
_DAY = 86_400_000_000  # microseconds


def check_alike(learned: Schema, given: Schema) -> None:
    """Refuses series that a release was not learned for."""
    for what in ("channels", "static", "context"):
        own, other = (
            {column.name: (column.kind, column.bounds) for column in getattr(schema, what)}
            for schema in (learned, given)
        )
        odd = [name for name in {**own, **other} if own.get(name) != other.get(name)]
        if odd or list(own) != list(other):
            raise InputError(
                f"{what}: the columns, bounds and order that the release was learned with are expected; these differ: "
                f"{', '.join(odd) or 'their order'}. Use the release's schema, with your own time axis."
            )
    if (learned.label, learned.time.frequency) != (given.label, given.time.frequency):
        raise InputError(
            f"Steps of {learned.time.frequency} and the label '{learned.label}' are expected, as the release was "
            f"learned with; got {given.time.frequency} and '{given.label}'."
        )


def check_draws(level: float, num_draws: int) -> None:
    """Refuses a central interval that so few draws can't have."""
    if not 0 <= level < 1:
        raise InputError(f"level: a share from 0 to below 1 is expected, got {level:g}.")
    fewest = max(1, ceil(round(2 / (1 - level), 6)) - 1)
    if num_draws < fewest:
        raise InputError(f"num_draws: an interval of {level:g} needs at least {fewest} draws, got {num_draws}.")


def front_of(learned: Time, given: Time, length: int) -> int:
    """Returns how many steps before the first one a window begins, so that it is in step with what was learned."""
    width = parse_frequency(given.frequency).microseconds
    if learned.align != "calendar" or given.align != "calendar" or given.counts_steps or not width:
        return 0
    return (start_microseconds(given) - start_microseconds(learned)) // width % length


def pace_of(release: "Release", given: Time) -> int:
    """Returns the steps by which a window may be moved: days, where what was learned began at one hour of the day."""
    length, width = release.schema.num_steps, parse_frequency(given.frequency).microseconds
    day = _DAY // width if width and _DAY % width == 0 else 1
    by_days = (release.synthesizer.window_stride or length) % day == 0
    return day if given.align == "calendar" and by_days and length >= 2 * day else 1


def gaps_of(
    panel: Panel,
    rows: np.ndarray,
    values: np.ndarray,
    hidden: np.ndarray,
    context: np.ndarray | None,
    rng: np.random.Generator,
    draws: int,
) -> CompletionRequest:
    """Returns windows [row, step, …] of some series, `draws` times, with what is known about those series."""
    label, static = None if panel.label is None else panel.label[rows], panel.static[rows]
    return CompletionRequest(
        values=values, hidden=hidden, static=static, label=label, context=context, rng=rng, draws=draws
    )


def obeying(values: np.ndarray, schema: Schema, context: np.ndarray | None) -> np.ndarray:
    """Returns values as their kinds and the declared constraints allow them; what is missing stays missing."""
    if context is None:
        context = np.full((*values.shape[:2], len(schema.context)), np.nan, dtype=np.float32)
    return constraints.apply(inside_bounds(schema.channels, values).astype(np.float32), schema, context=context)


def quantiles_of(drawn: np.ndarray, levels: Sequence[float], schema: Schema) -> np.ndarray:
    """Returns [level, series, step, channel] of draws [draw, …]: of codes the most frequent, whatever the level.

    A quantile lies at the rank below which one more draw would fall with that probability (Weibull's plotting
    position), so an interval between two of them covers as much as it says however few draws there are.
    """
    found = np.empty((len(levels), *drawn.shape[1:]), dtype=np.float32)
    for place, channel in enumerate(schema.channels):
        own, codes = drawn[..., place], num_codes(channel)
        if codes is None:
            found[..., place] = np.quantile(own, levels, axis=0, method="weibull")
        else:
            votes = np.stack([(own == code).sum(axis=0) for code in range(codes)])
            found[..., place] = np.where(np.isnan(own).any(axis=0), np.nan, votes.argmax(axis=0))
    return found
