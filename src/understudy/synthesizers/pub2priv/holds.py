"""Values that are held: shares change at reviews, tariffs at dates, and in between they are exactly what they were.

A continuous sampler never repeats a value. Each series votes once, for how many steps it holds its values on average;
synthetic series then hold theirs so long. A repeat counts where every continuous channel repeats and none rests at a
bound, where series rest for other reasons.
"""

import numpy as np

from understudy.data import Continuous, Panel, Schema
from understudy.statistics import gaps

NUM_CELLS = len(gaps.LENGTH_EDGES)
_SURE = 4.0  # standard deviations of noise from which a vote counts


def held_channels(schema: Schema) -> list[int]:
    """Returns the places of channels whose values may be held; the others repeat by being whole numbers or codes."""
    return [place for place, channel in enumerate(schema.channels) if isinstance(channel, Continuous)]


def hold_cells(panel: Panel, rows: slice) -> np.ndarray:
    """Returns the cell of `gaps.LENGTH_EDGES` in which the mean hold of each series lies.

    Privacy: private if the panel is; a cell follows from its own series alone.
    """
    places = held_channels(panel.schema)
    values = panel.values[rows][:, :, places]
    low, high = np.array([panel.schema.channels[place].bounds for place in places], dtype=values.dtype).reshape(-1, 2).T
    before, after = values[:, :-1], values[:, 1:]
    with np.errstate(invalid="ignore"):
        resting = (before <= low) | (before >= high)
        comparable = (~np.isnan(before) & ~np.isnan(after) & ~resting).all(axis=2)
        changed = comparable & (before != after).any(axis=2)
    mean = (comparable.sum(axis=1) + 1) / (changed.sum(axis=1) + 1)
    return np.clip(np.searchsorted(gaps.LENGTH_EDGES, mean, side="right") - 1, 0, NUM_CELLS - 1)


def hold(values: np.ndarray, shares: np.ndarray, schema: Schema, rng: np.random.Generator) -> np.ndarray:
    """Returns values [series, step, channel] that stay for as long as drawn from the released shares of holds.

    Each stays at its middle value: what is slow was learned from series that held theirs, and must not lag twice.
    """
    number, steps = values.shape[:2]
    holds = gaps.sample_lengths(shares, gaps.LENGTH_EDGES, steps, number, rng)[:, None]
    middle = np.minimum(np.arange(steps) // holds * holds + holds // 2, steps - 1)
    held = np.array(values)
    for place in held_channels(schema):
        held[:, :, place] = np.take_along_axis(values[:, :, place], middle, axis=1)
    return held


def sure_shares(votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns shares of cells that surely hold something; where none does, nobody holds values.

    A series that is held by mistake loses its movements, one that is not held by mistake only its repeats.
    """
    sure = np.where(votes > _SURE * noise, votes, 0.0)
    return sure / sure.sum() if sure.any() else np.eye(len(votes))[0]
