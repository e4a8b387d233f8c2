"""Gaps of somebody's series, filled several times by a release."""

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from understudy.data import Categorical, Continuous, Panel
from understudy.synthesizers.base import CompletionRequest, Progress
from understudy.synthesizers.completing.drawn import (
    NUM_DRAWS,
    PIECE_VALUES,
    check_alike,
    check_draws,
    front_of,
    gaps_of,
    obeying,
    quantiles_of,
)

if TYPE_CHECKING:
    from understudy.synthesizers.release import Release

LEVEL = 0.9


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Completed:
    """A panel without gaps.

    Attributes:
        panel: What was observed, bit by bit, and in gaps the median of several fillings (of codes the most frequent).
        filled: True [series, step, channel] where there was a gap.
        low, high: Ends of the central interval of the fillings; what was observed where there was no gap.
        level: Share of fillings within that interval.
    """

    panel: Panel
    filled: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float

    def with_intervals(self) -> Panel:
        """Returns the panel with the columns `…_low` and `…_high` beside every channel that is a number."""
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
    level: float = LEVEL,
    num_draws: int = NUM_DRAWS,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Completed:
    """Returns the panel with all gaps inside its series filled, and how sure that is.

    Edge cases: a series of which nothing was observed is filled from what the release knows about all. Series shorter
    than those that were learned from stay as short; longer ones are filled window by window, side by side.
    """
    check_draws(level, num_draws)
    inside = np.arange(panel.num_steps) < panel.lengths[:, None]
    gaps = ~panel.observed & inside[:, :, None]
    drawn = fillings(release, panel, gaps, num_draws=num_draws, rng=rng, progress=progress)
    low, middle, high = quantiles_of(drawn, ((1 - level) / 2, 0.5, (1 + level) / 2), panel.schema)
    filled = np.where(gaps, obeying(middle, panel.schema, panel.context), panel.values)
    return Completed(
        panel=panel.with_values(filled),
        filled=gaps,
        low=np.where(gaps, low, panel.values),
        high=np.where(gaps, high, panel.values),
        level=level,
    )


def fillings(
    release: "Release",
    panel: Panel,
    hidden: np.ndarray,
    *,
    num_draws: int,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """Returns [draw, series, step, channel]: hidden entries drawn several times, the others as they are."""
    check_alike(release.schema, panel.schema)
    rng, length, num_steps = rng or np.random.default_rng(), release.schema.num_steps, panel.num_steps
    front = front_of(release.schema.time, panel.schema.time, length)
    cuts = _Cuts.of(panel, hidden, front, length)
    drawn = np.full((num_draws, panel.num_series, cuts.num_windows * length, panel.schema.num_channels), np.nan)
    asked = np.argwhere(cuts.hidden.any(axis=(2, 3)))  # (series, window)
    size = max(1, PIECE_VALUES // (num_draws * length * panel.schema.num_channels))
    for first in range(0, len(asked), size):
        series, window = asked[first : first + size].T
        several = np.tile(np.arange(len(series)), num_draws)
        filled = release.complete(cuts.gaps(panel, series[several], window[several], rng, num_draws))
        for place, (row, begin) in enumerate(zip(series, window * length, strict=True)):
            drawn[:, row, begin : begin + length] = filled[place :: len(series)]
        if progress is not None:
            progress("filling", (first + len(series)) / len(asked))
    own = drawn[:, :, front : front + num_steps].astype(np.float32)
    settled = (obeying(np.where(hidden, draw, panel.values), panel.schema, panel.context) for draw in own)
    return np.stack([np.where(hidden, draw, panel.values) for draw in settled])


@dataclass(frozen=True, eq=False, repr=False)
class _Cuts:
    """Windows [series, window, step, …] side by side, nothing known before the first step and after the last."""

    values: np.ndarray
    hidden: np.ndarray
    context: np.ndarray | None

    @classmethod
    def of(cls, panel: Panel, hidden: np.ndarray, front: int, length: int) -> "_Cuts":
        number = ceil((front + panel.num_steps) / length)
        back = number * length - front - panel.num_steps

        def cut(array: np.ndarray, blank: float) -> np.ndarray:
            padded = np.pad(array, ((0, 0), (front, back), (0, 0)), constant_values=blank)
            return padded.reshape(len(array), number, length, array.shape[2])

        context = None if panel.context is None else cut(panel.context, np.nan)
        return cls(cut(panel.values, np.nan), cut(hidden, False), context)

    @property
    def num_windows(self) -> int:
        return int(self.values.shape[1])

    def gaps(
        self, panel: Panel, series: np.ndarray, window: np.ndarray, rng: np.random.Generator, draws: int
    ) -> CompletionRequest:
        context = None if self.context is None else self.context[series, window]
        return gaps_of(panel, series, self.values[series, window], self.hidden[series, window], context, rng, draws)
