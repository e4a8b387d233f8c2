"""Gaps and early ends: how many gaps a series has, how long they are, after which values they begin.

Each series votes three times per channel that may be missing: for its number of gaps, and, spread over its gaps, for
their lengths and for the score just before each. Votes of one series have Euclidean length at most one each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from understudy.data import Panel
from understudy.privacy.contributions import Cells
from understudy.statistics.counts import nearest_distribution, smooth_by_risk

COUNT_EDGES = np.array([0, 1, 2, 3, 4, 6, 9, 14, 22])  # lower ends; the last cell is open
LENGTH_EDGES = np.array([1, 2, 3, 4, 5, 7, 10, 14, 20, 30, 48, 96, 192])
NUM_RANKS = 8
SIZES = (len(COUNT_EDGES), len(LENGTH_EDGES), NUM_RANKS)
_MAX_LENGTH_CELLS = 64


@dataclass(frozen=True)
class GapModel:
    """Released gap model of one channel: distributions over `COUNT_EDGES`, `LENGTH_EDGES` and eight rank cells."""

    counts: np.ndarray
    lengths: np.ndarray
    ranks: np.ndarray

    @classmethod
    def of(cls, cells: np.ndarray) -> "GapModel":
        """Returns the model whose distributions are laid end to end in `cells`."""
        return cls(*np.split(cells, np.cumsum(SIZES[:2])))


def absence_votes(panel: Panel, scores: np.ndarray, channels: Sequence[int], edges: np.ndarray) -> Cells:
    """Returns the votes of all series: three ballots for each channel (counts, lengths, ranks), one for the length.

    Args:
        scores: Scores [series, step, channel] with gaps filled from the same series.
        edges: Lower ends of the cells for lengths; none where all series are equally long.
    """
    everyone, votes = np.arange(panel.num_series), []
    inside = np.arange(panel.num_steps) < panel.lengths[:, None]
    for place, channel in enumerate(channels):
        series, begin, size = _runs(np.isnan(panel.values[:, :, channel]) & inside)
        number = np.bincount(series, minlength=panel.num_series)
        share = 1 / np.maximum(number[series], 1)
        before = scores[series, np.maximum(begin - 1, 0), channel]
        votes += [
            (everyone, 3 * place, _cell(number, COUNT_EDGES), np.ones(len(number))),
            (series, 3 * place + 1, _cell(size, LENGTH_EDGES), share),
            (series, 3 * place + 2, _rank_cell(before), share),
        ]
    sizes = SIZES * len(channels)
    if len(edges):
        votes.append((everyone, len(sizes), _cell(panel.lengths, edges), np.ones(len(everyone))))
        sizes += (len(edges),)
    vector, ballot, cell, worth = zip(*votes, strict=True)
    whose = np.concatenate(vector)
    ballots = np.repeat(ballot, [len(own) for own in vector])
    return Cells(whose, ballots, np.concatenate(cell), np.concatenate(worth), panel.num_series, np.array(sizes))


def gap_models(noisy_votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns gap models from noisy votes, both [channel, cell]; `noise` is the standard deviation of each vote."""
    models = np.zeros_like(noisy_votes)
    for model, votes in zip(models, noisy_votes, strict=True):
        model[:] = np.concatenate([believable(part, noise) for part in np.split(votes, np.cumsum(SIZES[:2]))])
    return models


def length_shares(noisy_votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns the distribution of lengths: most series run to the end, the others end anywhere."""
    if len(noisy_votes) < 2:
        return np.ones(len(noisy_votes))
    early, total = smooth_by_risk(noisy_votes[:-1], noise), max(float(noisy_votes.sum()), 1e-9)
    return nearest_distribution(np.append(early, noisy_votes[-1]) / total)


def believable(noisy_votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns a distribution over cells; cells that noise alone could have filled are empty.

    A long gap is rare and matters much, so an invented one is worse than a missed one.
    """
    kept = np.where(noisy_votes > 2 * noise, noisy_votes, 0.0)
    kept = kept if kept.any() else (noisy_votes == noisy_votes.max()).astype(np.float64)
    return nearest_distribution(kept / kept.sum())


def sample_gaps(model: GapModel, scores: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns True [series, step] where a synthetic value is to be missing."""
    num_series, num_steps = scores.shape
    number = _sample_from_cells(model.counts, COUNT_EDGES, num_series, rng)
    previous = np.concatenate([scores[:, :1], scores[:, :-1]], axis=1)
    base = np.maximum(model.ranks, 1e-6)[_rank_cell(previous)]
    steps = np.arange(num_steps)
    missing = np.zeros(scores.shape, dtype=bool)
    for turn in range(int(number.max(initial=0))):
        rows = np.flatnonzero(number > turn)
        blocked = missing[rows] | np.roll(missing[rows], 1, axis=1) | (steps >= lengths[rows, None])
        cumulative = np.cumsum(np.where(blocked, 0.0, base[rows]), axis=1)
        target = rng.random(len(rows)) * cumulative[:, -1]
        begin = (cumulative > target[:, None]).argmax(axis=1)
        size = _sample_from_cells(model.lengths, LENGTH_EDGES, len(rows), rng)
        here = (steps >= begin[:, None]) & (steps < (begin + size)[:, None])
        missing[rows] |= here & (cumulative[:, -1:] > 0)
    missing &= steps < lengths[:, None]
    everything = missing.sum(1) >= lengths  # a channel never observed would be a series that no unit has
    missing[everything, 0] = False
    return missing


def length_edges(min_steps: int | None, steps: int) -> np.ndarray:
    """Returns the lower ends of the cells for series lengths; none where all series are equally long."""
    if min_steps is None:
        return np.zeros(0, dtype=np.int64)
    every = np.arange(min_steps, steps + 1)
    return every if len(every) <= _MAX_LENGTH_CELLS else np.unique(np.linspace(min_steps, steps, 65).astype(int))


def sample_lengths(
    share: np.ndarray, edges: np.ndarray, steps: int, num_series: int, rng: np.random.Generator
) -> np.ndarray:
    """Returns lengths of synthetic series."""
    return np.minimum(_sample_from_cells(share, edges, num_series, rng), steps).astype(np.int32)


def _runs(missing: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns (series, first step, size) of every run of True."""
    padded = np.pad(missing, ((0, 0), (1, 1)))
    change = padded[:, 1:] != padded[:, :-1]
    series, edge = np.nonzero(change)
    return series[::2], edge[::2], edge[1::2] - edge[::2]


def _cell(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 1)


def _rank_cell(scores: np.ndarray) -> np.ndarray:
    return np.clip((ndtr(scores) * NUM_RANKS).astype(np.int64), 0, NUM_RANKS - 1)


def _sample_from_cells(share: np.ndarray, edges: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Samples whole numbers: a cell by its share, then evenly up to the next cell's lower end."""
    cells = rng.choice(len(edges), size=number, p=share / share.sum())
    upper = np.append(edges[1:], edges[-1] + 1)
    return rng.integers(edges[cells], upper[cells])
