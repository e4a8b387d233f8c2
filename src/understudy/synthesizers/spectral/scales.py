"""Step four: how strong each frequency is, and how heavy its tail.

A series votes once per channel and frequency, for the half-octave in which the size of its coefficient lies. Votes
are bounded whatever the coefficient, so no clip radius has to be known. A symmetric Student distribution is fitted to
the noisy votes by least squares (the noise is Gaussian and equal in every cell, so this is maximum likelihood), with
a prior that neighbouring frequencies are alike. Least squares on a two-parameter family is what keeps one percent
of noise per cell from becoming one percent of huge coefficients.

Notation: s scale, ν degrees of freedom, k frequency.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

DEGREES_OF_FREEDOM = (2.2, 3.0, 4.0, 6.0, 10.0, 30.0)
_OCTAVES = 16
_CELLS_PER_OCTAVE = 2
_GRID_PER_OCTAVE = 8
NUM_CELLS = _OCTAVES * _CELLS_PER_OCTAVE + 1
_LARGEST = 4.0  # in units of √steps: no score series can have a larger coefficient
_SCORE_NODES = np.linspace(-6, 6, 4097)


def cell_edges(num_steps: int) -> np.ndarray:
    """Returns the upper edges of the size cells; sizes are absolute values of coefficients."""
    largest = _LARGEST * np.sqrt(num_steps)
    return largest * 2.0 ** (-np.arange(NUM_CELLS - 1, -1, -1) / _CELLS_PER_OCTAVE)


def size_votes(coefficients: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns votes [frequency, channel, cell] of coefficients [series, frequency, channel]."""
    num_steps = coefficients.shape[1] + 1  # frequency 0 is not among them
    cells = np.clip(np.searchsorted(cell_edges(num_steps), np.abs(coefficients)), 0, NUM_CELLS - 1)
    frequencies, channels = coefficients.shape[1:]
    slot = np.arange(frequencies * channels).reshape(frequencies, channels) * NUM_CELLS
    votes = np.bincount(
        (slot[None] + cells).ravel(),
        weights=np.broadcast_to(weights[:, None, None], cells.shape).ravel(),
        minlength=frequencies * channels * NUM_CELLS,
    )
    return votes.reshape(frequencies, channels, NUM_CELLS)


@dataclass(frozen=True)
class Scales:
    """Fitted tails: `scale` [frequency, channel] and `freedom` [channel]."""

    scale: np.ndarray
    freedom: np.ndarray

    def scores_of(self, coefficients: np.ndarray) -> np.ndarray:
        """Returns normal scores of coefficients [series, frequency, channel]."""
        scores = np.empty_like(coefficients)
        for channel, freedom in enumerate(self.freedom):
            nodes = student_nodes(float(freedom))
            scores[:, :, channel] = np.interp(
                coefficients[:, :, channel] / self.scale[:, channel], nodes, _SCORE_NODES
            )
        return scores

    def coefficients_of(self, scores: np.ndarray) -> np.ndarray:
        """Inverse of `scores_of`."""
        coefficients = np.empty_like(scores)
        for channel, freedom in enumerate(self.freedom):
            sizes = np.interp(scores[:, :, channel], _SCORE_NODES, student_nodes(float(freedom)))
            coefficients[:, :, channel] = sizes * self.scale[:, channel]
        return coefficients

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation [frequency, channel] of what `coefficients_of` returns for |score| ≤ 3."""
        nodes, weight = np.linspace(-3, 3, 601), np.exp(-(np.linspace(-3, 3, 601) ** 2) / 2)
        factor = [
            np.sqrt(np.average(np.interp(nodes, _SCORE_NODES, student_nodes(float(freedom))) ** 2, weights=weight))
            for freedom in self.freedom
        ]
        return self.scale * np.array(factor)


def student_nodes(freedom: float) -> np.ndarray:
    """Returns the standard Student quantiles at the normal scores of the table."""
    lower = stdtrit(freedom, np.maximum(ndtr(_SCORE_NODES[_SCORE_NODES <= 0]), 1e-12))
    return np.concatenate([lower, -lower[-2::-1]])


def fit_scales(
    votes: np.ndarray, noise: float, num_steps: int, *, around: Scales | None = None, smoothness: float = 0.6
) -> Scales:
    """Fits `Scales` to noisy vote shares [frequency, channel, cell] whose noise has standard deviation `noise`.

    Args:
        around: Scales of the whole population; deviations from them are smooth and shrink to nothing when the
            votes carry no news.
        smoothness: Prior standard deviation, in octaves, of the step from one frequency to the next.
    """
    scale, freedom = np.empty(votes.shape[:2]), np.empty(votes.shape[1])
    for channel in range(votes.shape[1]):
        centre = None if around is None else (around.scale[:, channel], float(around.freedom[channel]))
        scale[:, channel], freedom[channel] = _fit_channel(votes[:, channel], noise, num_steps, centre, smoothness)
    return Scales(scale, freedom)


def _fit_channel(
    votes: np.ndarray, noise: float, num_steps: int, centre: tuple[np.ndarray, float] | None, smoothness: float
) -> tuple[np.ndarray, float]:
    edges = cell_edges(num_steps)
    grid = edges[-1] * 2.0 ** (-np.arange(_OCTAVES * _GRID_PER_OCTAVE, 0, -1) / _GRID_PER_OCTAVE)
    middle = np.full(len(votes), len(grid) // 2)
    reach, prior, freedoms = len(grid) // 2, np.zeros(2 * (len(grid) // 2) + 1), DEGREES_OF_FREEDOM
    if centre is not None:
        middle = np.clip(np.searchsorted(grid, centre[0] * (1 - 1e-9)), 0, len(grid) - 1)
        reach, freedoms = 2 * _GRID_PER_OCTAVE, (centre[1],)
        prior = (np.arange(-reach, reach + 1) / _GRID_PER_OCTAVE / 0.7) ** 2 / 2
    states = np.clip(middle[:, None] + np.arange(-reach, reach + 1), 0, len(grid) - 1)
    best: tuple[float, np.ndarray, float] | None = None
    for freedom in freedoms:
        shares = _student_shares(edges, grid, freedom)
        misfit = ((votes[:, None, :] - shares[None]) ** 2).sum(-1) / (2 * max(noise, 1e-3) ** 2)
        cost, path = _smoothest_path(np.take_along_axis(misfit, states, 1), prior, smoothness)
        if best is None or cost < best[0]:
            best = cost, grid[np.take_along_axis(states, path[:, None], 1)[:, 0]], freedom
    assert best is not None
    return best[1], best[2]


def _student_shares(edges: np.ndarray, grid: np.ndarray, freedom: float) -> np.ndarray:
    """Returns the share [scale, cell] of |Student(freedom)| · scale in each size cell."""
    ends = np.concatenate([[0.0], edges[:-1], [np.inf]])
    return np.diff(2 * stdtr(freedom, ends[None] / grid[:, None]) - 1, axis=1)


def _smoothest_path(misfit: np.ndarray, prior: np.ndarray, smoothness: float) -> tuple[float, np.ndarray]:
    """Returns (cost, path) of the most likely sequence of states, by dynamic programming (Viterbi 1967).

    Steps between neighbours cost as a Gaussian does, up to a ceiling: a spectrum may have sharp lines.
    """
    offset = np.arange(misfit.shape[1]) / _GRID_PER_OCTAVE
    move = np.minimum((offset[:, None] - offset[None]) ** 2 / (2 * smoothness**2), 8.0)
    total, back = misfit[0] + prior, []
    for row in misfit[1:]:
        reached = total[:, None] + move
        back.append(reached.argmin(0))
        total = reached.min(0) + row + prior
    path = [int(total.argmin())]
    for choice in reversed(back):
        path.append(int(choice[path[-1]]))
    return float(total.min()), np.array(path[::-1])


def score_of_share(share: np.ndarray) -> np.ndarray:
    """Returns Φ⁻¹, clipped to the table's range."""
    return np.clip(ndtri(share), _SCORE_NODES[0], _SCORE_NODES[-1])
