"""Steps three and six. Levels and volatilities: two numbers per series whose distributions may have several modes.

The level of a series is its mean score, its volatility the log size of its movements. Both are counted on public
grids, so that two kinds of homes stay two kinds; a Gaussian would put its mass between them.
"""

from dataclasses import dataclass

import numpy as np

from understudy.statistics.copula import LEVEL_EDGES, NUM_CELLS, VOLATILITY_EDGES, Distribution
from understudy.statistics.counts import smoothed_cumulative
from understudy.statistics.marginals import SCORE_LIMIT

EVEN_EDGES = np.linspace(-SCORE_LIMIT, SCORE_LIMIT, NUM_CELLS + 1)
_FEW_LEVELS = np.concatenate([LEVEL_EDGES[[0, 4, 8, 12, 16]], [0.0], LEVEL_EDGES[[48, 52, 56, 60, 64]]])  # octaves
_FEW_VOLATILITIES = VOLATILITY_EDGES[[0, 16, 24, 32, 36, 40, 44, 48, 52, 56, 64]]
_MOST_NOISE = 0.012  # of the share of a cell, up to which cells are many
_SIGNIFICANT = 5.0  # a valley counts when it is this many standard deviations of noise deep
_SMALLEST_SIDE = 0.1  # share of the population on the thinner side of a split


def edges_for(cell_noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns edges of levels and of volatilities: of few cells where noise is large beside the share of a cell."""
    if cell_noise > _MOST_NOISE:
        return _FEW_LEVELS, _FEW_VOLATILITIES
    return LEVEL_EDGES, VOLATILITY_EDGES


def cells_of(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns the cell between the edges of each number; numbers beyond are in the outer cells."""
    return np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)


def fit_distribution(noisy_shares: np.ndarray, noise: float, edges: np.ndarray, points: np.ndarray) -> Distribution:
    """Returns the distributions at `points` behind noisy shares [channel, cell] of the cells between `edges`."""
    return Distribution(
        np.stack([smoothed_cumulative(shares, noise, edges, points) for shares in noisy_shares]), points
    )


@dataclass(frozen=True)
class Split:
    """Series whose level in `channel` lies below `threshold` are one kind, the others another."""

    channel: int
    threshold: float


def find_splits(noisy_votes: np.ndarray, noise: float, most: int) -> tuple[Split, ...]:
    """Returns the deepest valleys between two modes, at most one per channel and `most` in all.

    Args:
        noisy_votes: Released votes [channel, cell].
        noise: Standard deviation of the noise in each cell.
        most: How many splits the population's size can bear; a public number.
    """
    found = []
    for channel, votes in enumerate(noisy_votes):
        depth, threshold = _deepest_valley(votes, noise)
        if depth > 0:
            found.append((depth / max(votes.sum(), 1.0), Split(channel, threshold)))
    found.sort(key=lambda pair: -pair[0])
    return tuple(split for _, split in found[:most])


def _deepest_valley(votes: np.ndarray, noise: float) -> tuple[float, float]:
    """Returns (depth of the valley below the lower of its two shoulders, its place); depth 0 without one."""
    smooth = np.convolve(votes, [0.25, 0.5, 0.25], mode="same")
    smooth_noise = noise * np.sqrt(0.25**2 * 2 + 0.5**2)
    before = np.maximum.accumulate(smooth)
    after = np.maximum.accumulate(smooth[::-1])[::-1]
    depth = np.minimum(before, after) - smooth
    share = np.cumsum(votes) / max(votes.sum(), 1.0)
    allowed = (share > _SMALLEST_SIDE) & (share < 1 - _SMALLEST_SIDE) & (depth > _SIGNIFICANT * smooth_noise)
    allowed &= depth > 0.5 * np.minimum(before, after)  # a real valley, not a dent
    if not allowed.any():
        return 0.0, 0.0
    deepest = np.flatnonzero(allowed & (depth >= depth[allowed].max() - smooth_noise))
    place = int(deepest[len(deepest) // 2])
    return float(depth[allowed].max()), float((EVEN_EDGES[place] + EVEN_EDGES[place + 1]) / 2)


def stratum_of(levels: np.ndarray, splits: tuple[Split, ...]) -> np.ndarray:
    """Returns the kind 0..2^splits-1 of each series from its mean scores [series, channel]."""
    kind = np.zeros(len(levels), dtype=np.int64)
    for split in splits:
        kind = 2 * kind + (levels[:, split.channel] > split.threshold)
    return kind
