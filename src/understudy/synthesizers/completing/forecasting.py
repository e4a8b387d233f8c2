"""What comes after the end of somebody's series, as quantiles of several continuations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from understudy.data import Categorical, Channel, Continuous, Panel, Schema
from understudy.data.masks import LONGEST_HORIZON
from understudy.data.timegrid import step_ticks
from understudy.errors import InputError
from understudy.synthesizers.base import Progress
from understudy.synthesizers.completing.drawn import (
    NUM_DRAWS,
    PIECE_VALUES,
    check_alike,
    check_draws,
    front_of,
    gaps_of,
    obeying,
    pace_of,
    quantiles_of,
)
from understudy.synthesizers.sampling import inside_bounds

if TYPE_CHECKING:
    from understudy.synthesizers.release import Release

QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Forecast:
    """What comes after the end of each series.

    Attributes:
        history: The series that were continued.
        quantiles: Which ones `values` holds.
        values: [quantile, series, step ahead, channel]; of codes the most frequent in every row.
    """

    history: Panel
    quantiles: tuple[float, ...]
    values: np.ndarray

    def as_panel(self) -> Panel:
        """Returns a panel of the steps ahead with a column `…_q5` for each quantile of each number.

        Its time axis begins at the earliest end of a series; where others end later, their first steps are missing.
        """
        panel, horizon = self.history, self.values.shape[2]
        earliest = int(panel.lengths.min(initial=panel.num_steps))
        late = panel.lengths.astype(np.int64) - earliest
        steps = int(late.max(initial=0)) + horizon
        columns, picked = zip(*_columns(panel.schema.channels, self.quantiles), strict=True)
        values = np.full((panel.num_series, steps, len(columns)), np.nan, dtype=np.float32)
        own = np.stack([self.values[level, :, :, place] for level, place in picked], axis=2)
        np.put_along_axis(values, (late[:, None] + np.arange(horizon))[:, :, None], own, 1)
        return replace(
            panel,
            schema=_ahead(panel.schema, earliest, steps, columns),
            values=values,
            lengths=(late + horizon).astype(np.int32),
            context=None,
        )


def forecast(
    release: "Release",
    panel: Panel,
    horizon: int,
    *,
    quantiles: Sequence[float] = QUANTILES,
    num_draws: int = NUM_DRAWS,
    context: np.ndarray | None = None,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Forecast:
    """Returns quantiles of the `horizon` steps after the end of each series.

    One window foretells at most 4/7 of its length. Beyond that every draw is continued from its own steps, again and
    again, so that errors grow with the horizon.

    Args:
        context: Public context of the steps ahead, [step, context] or [series, step, context]; None leaves it unsaid.
    """
    check_alike(release.schema, panel.schema)
    if horizon < 1:
        raise InputError(f"horizon: at least 1 step is expected, got {horizon}.")
    if not quantiles or not all(0 < quantile < 1 for quantile in quantiles):
        raise InputError("quantiles: numbers between 0 and 1 are expected.")
    check_draws(max(abs(1 - 2 * quantile) for quantile in quantiles), num_draws)
    ahead, schema = _context_ahead(panel, horizon, context), panel.schema
    longer = replace(schema, time=replace(schema.time, steps=panel.num_steps + horizon, min_steps=1), columns=())
    found = np.empty((len(quantiles), panel.num_series, horizon, schema.num_channels), dtype=np.float32)
    size = max(1, PIECE_VALUES // (num_draws * longer.num_steps * schema.num_channels))
    for first in range(0, panel.num_series, size):
        rows = np.arange(first, min(first + size, panel.num_series))
        steps = panel.lengths[rows].astype(np.int64)[:, None] + np.arange(horizon)
        told = None if ahead is None else ahead[rows]
        paths = _continued(release, panel, rows, horizon, told, num_draws, rng or np.random.default_rng())
        settled = [np.take_along_axis(obeying(path, longer, told), steps[:, :, None], 1) for path in paths]
        found[:, rows] = quantiles_of(np.stack(settled), quantiles, schema)
        if progress is not None:
            progress("forecasting", (rows[-1] + 1) / panel.num_series)
    return Forecast(history=panel, quantiles=tuple(quantiles), values=found)


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
    front, pace = front_of(release.schema.time, schema.time, length), pace_of(release, schema.time)
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
        asked = gaps_of(panel, rows[several], window, np.repeat(hidden, schema.num_channels, 2), seen, rng, num_draws)
        filled = inside_bounds(schema.channels, release.complete(asked))
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


def _columns(channels: tuple[Channel, ...], quantiles: tuple[float, ...]) -> list[tuple[Channel, tuple[int, int]]]:
    """Returns each column of a forecast with the places of its quantile and its channel."""
    columns: list[tuple[Channel, tuple[int, int]]] = []
    for place, channel in enumerate(channels):
        if isinstance(channel, Categorical):
            columns.append((replace(channel, missing=True), (0, place)))
            continue
        for level, quantile in enumerate(quantiles):
            name = f"{channel.name}_q{100 * quantile:g}"
            columns.append((Continuous(name, *channel.bounds, missing=True), (level, place)))
    return columns


def _ahead(schema: Schema, first_step: int, steps: int, columns: Sequence[Channel]) -> Schema:
    """Returns the contract of a forecast: other columns, and a time axis that begins where the series end."""
    time = replace(schema.time, steps=steps, min_steps=1)
    if not time.counts_steps:
        moment = int(step_ticks(schema.time, 1, first_step)[0])
        time = replace(time, start=(datetime(1970, 1, 1) + timedelta(microseconds=moment)).isoformat())
    return replace(schema, time=time, channels=tuple(columns), context=(), constraints=(), columns=())
