"""Fills gaps of given series and continues them, with a release that can (`Completer`).

Privacy: post-processing of the release for series of other units; for those that it was learned from the result is
internal, covered by no guarantee. Either way it holds what was observed and is as private as that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from understudy.data import Categorical, Channel, Continuous, Panel, Schema, constraints
from understudy.data.channels import num_codes
from understudy.data.masks import LONGEST_HORIZON
from understudy.data.timegrid import Time, parse_frequency, start_microseconds, step_ticks, steps_per_day
from understudy.errors import InputError
from understudy.synthesizers.sampling import CompletionRequest, inside_bounds

if TYPE_CHECKING:
    from understudy.synthesizers.base import Progress
    from understudy.synthesizers.release import Release

NUM_DRAWS = 39
_PIECE_VALUES = 4_000_000  # values that are worked on at a time
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Completed:
    """A panel without gaps: what was observed, bit by bit, and in gaps the median filling (of codes the mode)."""

    panel: Panel
    filled: np.ndarray  # true [series, step, channel] where there was a gap
    low: np.ndarray  # ends of the central interval of the fillings; what was observed where there was no gap
    high: np.ndarray

    def with_intervals(self) -> Panel:
        """Returns the panel with the columns `…_low` and `…_high` for every channel that is a number."""
        schema = self.panel.schema
        numbers = [place for place, channel in enumerate(schema.channels) if not isinstance(channel, Categorical)]
        ends = [
            Continuous(f"{schema.channels[place].name}_{end}", *schema.channels[place].bounds, missing=True)
            for end in ("low", "high")
            for place in numbers
        ]
        values = np.concatenate([self.panel.values, self.low[:, :, numbers], self.high[:, :, numbers]], axis=2)
        wider = replace(schema, channels=(*schema.channels, *ends), constraints=(), columns=())
        return replace(self.panel, schema=wider, values=values)


def impute(
    release: "Release",
    panel: Panel,
    *,
    level: float = 0.9,
    num_draws: int = NUM_DRAWS,
    rng: np.random.Generator | None = None,
    progress: "Progress | None" = None,
) -> Completed:
    """Returns the panel with all gaps inside its series filled, longer ones window by window, and how sure that is."""
    _check_draws(level, num_draws)
    inside = np.arange(panel.num_steps) < panel.lengths[:, None]
    gaps = ~panel.observed & inside[:, :, None]
    drawn = fillings(release, panel, gaps, num_draws=num_draws, rng=rng, progress=progress)
    low, middle, high = _quantiles_of(drawn, ((1 - level) / 2, 0.5, (1 + level) / 2), panel.schema)
    filled = np.where(gaps, _obeying(middle, panel.schema, panel.context), panel.values)
    return Completed(
        panel=panel.with_values(filled),
        filled=gaps,
        low=np.where(gaps, low, panel.values),
        high=np.where(gaps, high, panel.values),
    )


def fillings(
    release: "Release",
    panel: Panel,
    hidden: np.ndarray,
    *,
    num_draws: int,
    rng: np.random.Generator | None = None,
    progress: "Progress | None" = None,
) -> np.ndarray:
    """Returns [draw, series, step, channel]: hidden entries drawn several times, the others as they are."""
    _check_alike(release.schema, panel.schema)
    rng, length, num_steps = rng or np.random.default_rng(), release.schema.num_steps, panel.num_steps
    front = _front_of(release.schema.time, panel.schema.time, length)
    per_series = ceil((front + num_steps) / length)
    around = ((0, 0), (front, per_series * length - front - num_steps), (0, 0))

    def cut(array: np.ndarray, blank: float) -> np.ndarray:
        """Returns windows [series · window, step, …] side by side; nothing is known before the first step."""
        return np.pad(array, around, constant_values=blank).reshape(-1, length, array.shape[2])

    values, gaps = cut(panel.values, np.nan), cut(hidden, False)
    context = None if panel.context is None else cut(panel.context, np.nan)
    drawn = np.full((num_draws, *values.shape), np.nan)
    asked = np.flatnonzero(gaps.any(axis=(1, 2)))
    for piece in _pieces(asked, num_draws * length * panel.schema.num_channels, "filling", progress):
        several = np.tile(piece, num_draws)
        seen = None if context is None else context[several]
        filled = _complete(release, panel, several // per_series, values[several], gaps[several], seen, rng, num_draws)
        drawn[:, piece] = filled.reshape(num_draws, len(piece), *values.shape[1:])
    whole = drawn.reshape(num_draws, panel.num_series, per_series * length, panel.schema.num_channels)
    own = whole[:, :, front : front + num_steps].astype(np.float32)
    settled = (_obeying(np.where(hidden, draw, panel.values), panel.schema, panel.context) for draw in own)
    return np.stack([np.where(hidden, draw, panel.values) for draw in settled])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Forecast:
    """What comes after the end of each series."""

    history: Panel  # the series that were continued
    quantiles: tuple[float, ...]
    values: np.ndarray  # [quantile, series, step ahead, channel]; of codes the most frequent in every row

    def as_panel(self) -> Panel:
        """Returns a panel of the steps ahead, from the earliest end on, with a column `…_q5` for each quantile."""
        panel, horizon = self.history, self.values.shape[2]
        earliest = int(panel.lengths.min(initial=panel.num_steps))
        late = panel.lengths.astype(np.int64) - earliest
        steps = int(late.max(initial=0)) + horizon
        columns: list[Channel] = []
        parts: list[np.ndarray] = []
        for place, channel in enumerate(panel.schema.channels):
            if isinstance(channel, Categorical):
                columns.append(replace(channel, missing=True))
                parts.append(self.values[0, :, :, place])
            else:
                names = [f"{channel.name}_q{100 * quantile:g}" for quantile in self.quantiles]
                columns += [Continuous(name, *channel.bounds, missing=True) for name in names]
                parts += list(self.values[:, :, :, place])
        values = np.full((panel.num_series, steps, len(columns)), np.nan, dtype=np.float32)
        np.put_along_axis(values, (late[:, None] + np.arange(horizon))[:, :, None], np.stack(parts, axis=2), 1)
        time = replace(panel.schema.time, steps=steps, min_steps=1)
        if not time.counts_steps:
            moment = int(step_ticks(panel.schema.time, 1, earliest)[0])
            time = replace(time, start=(datetime(1970, 1, 1) + timedelta(microseconds=moment)).isoformat())
        schema = replace(panel.schema, time=time, channels=tuple(columns), context=(), constraints=(), columns=())
        return replace(panel, schema=schema, values=values, lengths=(late + horizon).astype(np.int32), context=None)


def forecast(
    release: "Release",
    panel: Panel,
    horizon: int,
    *,
    quantiles: Sequence[float] = QUANTILES,
    num_draws: int = NUM_DRAWS,
    context: np.ndarray | None = None,
    rng: np.random.Generator | None = None,
    progress: "Progress | None" = None,
) -> Forecast:
    """Returns quantiles of the `horizon` steps after the end of each series.

    One window foretells at most 4/7 of its length. Beyond that every draw is continued from its own steps, so that
    errors grow with the horizon. `context` is that of the steps ahead, [step, context] or [series, step, context].
    """
    _check_alike(release.schema, panel.schema)
    if horizon < 1:
        raise InputError(f"horizon: at least 1 step is expected, got {horizon}.")
    if not quantiles or not all(0 < quantile < 1 for quantile in quantiles):
        raise InputError("quantiles: numbers between 0 and 1 are expected.")
    _check_draws(max(abs(1 - 2 * quantile) for quantile in quantiles), num_draws)
    ahead, schema = _context_ahead(panel, horizon, context), panel.schema
    longer = replace(schema, time=replace(schema.time, steps=panel.num_steps + horizon, min_steps=1), columns=())
    found = np.empty((len(quantiles), panel.num_series, horizon, schema.num_channels), dtype=np.float32)
    size, rng = num_draws * longer.num_steps * schema.num_channels, rng or np.random.default_rng()
    for rows in _pieces(np.arange(panel.num_series), size, "forecasting", progress):
        steps = panel.lengths[rows].astype(np.int64)[:, None] + np.arange(horizon)
        told = None if ahead is None else ahead[rows]
        paths = _continued(release, panel, rows, horizon, told, num_draws, rng)
        settled = [np.take_along_axis(_obeying(path, longer, told), steps[:, :, None], 1) for path in paths]
        found[:, rows] = _quantiles_of(np.stack(settled), quantiles, schema)
    return Forecast(history=panel, quantiles=tuple(quantiles), values=found)


def _pieces(rows: np.ndarray, values: int, stage: str, progress: "Progress | None") -> Iterator[np.ndarray]:
    """Yields rows of so many values each, a few at a time, and reports what is done."""
    size = max(1, _PIECE_VALUES // values)
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
        if progress is not None:
            progress(stage, min(1.0, (first + size) / len(rows)))


def _continued(
    release: "Release",
    panel: Panel,
    rows: np.ndarray,
    horizon: int,
    context: np.ndarray | None,
    num_draws: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Returns paths [draw, series, step, channel] over history and horizon, continued window by window."""
    length, schema = release.schema.num_steps, panel.schema
    front, pace = _front_of(release.schema.time, schema.time, length), _pace_of(release, schema.time)
    several = np.tile(np.arange(len(rows)), num_draws)
    padding = ((0, 0), (front, horizon + length), (0, 0))
    values = np.pad(panel.values[rows], padding, constant_values=np.nan)[several]
    told = None if context is None else np.pad(context, ((0, 0), (front, length), (0, 0)), constant_values=np.nan)
    end = (front + panel.lengths[rows].astype(np.int64))[several]
    most = max(1, min(LONGEST_HORIZON * length // 7, length - pace))  # so that no window begins after the known end
    for done in range(0, horizon, most):
        known, until = end + done, end + min(done + most, horizon)
        begin = np.maximum(0, -(-(until - length) // pace) * pace)
        place = (begin[:, None] + np.arange(length))[:, :, None]
        hidden = (place >= known[:, None, None]) & (place < until[:, None, None])
        window = np.take_along_axis(values, place, 1)
        seen = None if told is None else np.take_along_axis(told[several], place, 1)
        gaps = np.repeat(hidden, schema.num_channels, 2)
        drawn = _complete(release, panel, rows[several], window, gaps, seen, rng, num_draws)
        filled = inside_bounds(schema.channels, drawn)
        np.put_along_axis(values, place, np.where(hidden, filled, window), 1)
    whole = values[:, front : front + panel.num_steps + horizon]
    return whole.reshape(num_draws, len(rows), *whole.shape[1:])


def _context_ahead(panel: Panel, horizon: int, context: np.ndarray | None) -> np.ndarray | None:
    """Returns context [series, step, context] from the first step to the end of the horizon, NaN where not said."""
    number = len(panel.schema.context)
    if not number:
        if context is not None:
            raise InputError("context: the schema declares none. Leave it out.")
        return None
    whole = np.full((panel.num_series, panel.num_steps + horizon, number), np.nan, dtype=np.float32)
    if panel.context is not None:
        whole[:, : panel.num_steps] = panel.context
    if context is None:
        return whole
    given = np.asarray(context, dtype=np.float32)
    if given.shape not in ((horizon, number), (panel.num_series, horizon, number)):
        raise InputError(f"context: [{horizon} steps ahead, {number} channels], for all or for each, is expected.")
    steps = panel.lengths.astype(np.int64)[:, None] + np.arange(horizon)
    np.put_along_axis(whole, steps[:, :, None], np.broadcast_to(given, (len(whole), horizon, number)), 1)
    return whole


def _check_alike(learned: Schema, given: Schema) -> None:
    """Refuses series that a release was not learned for."""

    def declared(schema: Schema) -> dict[str, object]:
        columns = (*schema.channels, *schema.static, *schema.context)
        parts = {column.name: (column.kind, column.bounds) for column in columns}
        return {**parts, "label": schema.label, "time.frequency": schema.time.frequency}

    own, other = declared(learned), declared(given)
    odd = [name for name in {**own, **other} if own.get(name) != other.get(name)]
    if odd or list(own) != list(other):
        raise InputError(
            "The columns, bounds, order, label and frequency that the release was learned with are expected; these "
            f"differ: {', '.join(odd) or 'their order'}. Use the release's schema, with your own time axis "
            f"in steps of {learned.time.frequency}."
        )


def _check_draws(level: float, num_draws: int) -> None:
    """Refuses a central interval that so few draws can't have."""
    if not 0 <= level < 1:
        raise InputError(f"level: a share from 0 to below 1 is expected, got {level:g}.")
    fewest = max(1, ceil(round(2 / (1 - level), 6)) - 1)
    if num_draws < fewest:
        raise InputError(f"num_draws: an interval of {level:g} needs at least {fewest} draws, got {num_draws}.")


def _front_of(learned: Time, given: Time, length: int) -> int:
    """Returns how many steps before the first one a window begins, so that it is in step with what was learned."""
    width = parse_frequency(given.frequency).microseconds
    if learned.align != "calendar" or given.align != "calendar" or given.counts_steps or not width:
        return 0
    return (start_microseconds(given) - start_microseconds(learned)) // width % length


def _pace_of(release: "Release", given: Time) -> int:
    """Returns the steps by which a window may be moved: days, where what was learned began at one hour of the day."""
    length, day = release.schema.num_steps, steps_per_day(given) or 1
    by_days = (release.synthesizer.window_stride or length) % day == 0
    return day if given.align == "calendar" and by_days and length >= 2 * day else 1


def _complete(
    release: "Release",
    panel: Panel,
    rows: np.ndarray,
    values: np.ndarray,
    hidden: np.ndarray,
    context: np.ndarray | None,
    rng: np.random.Generator,
    draws: int,
) -> np.ndarray:
    """Returns windows [row, step, …] of some series with their hidden entries filled; all series come `draws` times."""
    label, static = None if panel.label is None else panel.label[rows], panel.static[rows]
    facts = {"static": static, "label": label, "context": context, "rng": rng, "draws": draws}
    return release.complete(CompletionRequest(values=values, hidden=hidden, **facts))


def _obeying(values: np.ndarray, schema: Schema, context: np.ndarray | None) -> np.ndarray:
    """Returns values as their kinds and the declared constraints allow them; what is missing stays missing."""
    if context is None:
        context = np.full((*values.shape[:2], len(schema.context)), np.nan, dtype=np.float32)
    return constraints.apply(inside_bounds(schema.channels, values).astype(np.float32), schema, context=context)


def _quantiles_of(drawn: np.ndarray, levels: Sequence[float], schema: Schema) -> np.ndarray:
    """Returns [level, series, step, channel] of draws [draw, …]: of codes the most frequent, whatever the level.

    One more draw would fall below a quantile with just its probability (Weibull), however few draws there are.
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
