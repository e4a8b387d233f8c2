"""Kernel tests: maximum mean discrepancy of two samples, Stein discrepancy of a sample from a density."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import chi2, norm

from understudy.synthesizers.ppem.published import median_bandwidth, normalised_discrepancy, stein_pairs
from understudy_bench.metrics.stein import linear_discrepancy, quadratic_discrepancy, stein_matrix

DRAWS = 1_000
Score = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class KernelTest:
    """A statistic and how probable one at least as large is by chance."""

    statistic: float
    p_value: float


def gram(points: np.ndarray, bandwidth: float | None = None) -> np.ndarray:
    """Returns exp(−‖x − y‖²/h) of every pair of points [point, dimension]; h is their median squared distance."""
    points = np.asarray(points, dtype=np.float64)
    norms = np.einsum("pd,pd->p", points, points)
    squared = np.maximum(norms[:, None] + norms - 2 * points @ points.T, 0)
    np.fill_diagonal(squared, 0)
    if bandwidth is None:
        bandwidth = _median(squared)
    return np.exp(-squared / bandwidth)


def squared_discrepancy(matrix: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns the biased squared MMD [draw] of points weighted by `first` and by `second`, [draw, point].

    Gretton et al. (2012), JMLR 13, Eq. 5, with weights in place of the members of two samples.
    """
    contrast = first / first.sum(axis=-1, keepdims=True) - second / second.sum(axis=-1, keepdims=True)
    return np.maximum(np.einsum("...p,...p->...", contrast @ matrix, contrast), 0)


def unbiased_discrepancy(matrix: np.ndarray, num_first: int) -> float:
    """Returns the unbiased squared MMD of the first points and the rest; it may be negative. Same work, Eq. 3."""
    sides = matrix[:num_first, :num_first], matrix[num_first:, num_first:]
    within = [(side.sum() - np.trace(side)) / (len(side) * (len(side) - 1)) for side in sides]
    return float(within[0] + within[1] - 2 * matrix[:num_first, num_first:].mean())


def two_sample_test(matrix: np.ndarray, num_first: int, rng: np.random.Generator, draws: int = DRAWS) -> KernelTest:
    """Tests whether the first points and the rest come from one distribution, by dealing sides at random.

    The p-value counts the observed deal among the draws, so it never falls below 1/(draws + 1) and a true hypothesis
    is rejected at most as often as announced.
    """
    side = np.zeros(len(matrix))
    side[:num_first] = 1
    dealt = rng.permuted(np.broadcast_to(side, (draws, len(side))), axis=1)
    found = float(squared_discrepancy(matrix, side, 1 - side))
    by_chance = squared_discrepancy(matrix, dealt, 1 - dealt)
    return KernelTest(statistic=float(np.sqrt(found)), p_value=float((1 + (by_chance >= found).sum()) / (1 + draws)))


def stein_gram(points: np.ndarray, score: Score) -> np.ndarray:
    """Returns u of every pair of points [point, dimension] under a density's score, for `quadratic_test`."""
    x, s = (torch.from_numpy(np.asarray(side, dtype=np.float64)) for side in (points, score(points)))
    return np.asarray(stein_matrix(x, s, float(median_bandwidth(x))))


def shuffled_pairs(points: np.ndarray, score: Score, rng: np.random.Generator) -> np.ndarray:
    """Returns u of points paired at random, for `linear_test` and `normalised_test`."""
    points = points[rng.permutation(len(points))]
    x, s = (torch.from_numpy(np.asarray(side, dtype=np.float64)) for side in (points, score(points)))
    return np.asarray(stein_pairs(x, s, float(median_bandwidth(x))))


def quadratic_test(matrix: np.ndarray, rng: np.random.Generator, draws: int = DRAWS) -> KernelTest:
    """Tests whether a density made the points; wild bootstrap with random signs, Chwialkowski et al. (2016).

    The statistic is the unbiased squared discrepancy; chance is judged by the one that keeps the diagonal, n · mean(u).
    """
    number = len(matrix)
    signs = rng.choice([-1.0, 1.0], (draws, number))
    by_chance = np.einsum("dp,dp->d", signs @ matrix, signs) / number
    p_value = (1 + (by_chance >= matrix.sum() / number).sum()) / (1 + draws)
    return KernelTest(statistic=float(quadratic_discrepancy(torch.from_numpy(matrix))), p_value=float(p_value))


def linear_test(pairs: np.ndarray) -> KernelTest:
    """Tests by the mean of u over pairs, which is about normal; one-sided, since the discrepancy is positive."""
    mean = float(linear_discrepancy(torch.from_numpy(pairs)))
    error = float(pairs.std(ddof=1)) / len(pairs) ** 0.5
    return KernelTest(statistic=mean, p_value=float(norm.sf(mean / error)) if error > 0 else 1.0)


def normalised_test(pairs: np.ndarray) -> KernelTest:
    """Tests by the normalised discrepancy against χ² with one degree of freedom (PPEM, Eq. 17)."""
    statistic = float(normalised_discrepancy(torch.from_numpy(pairs)))
    return KernelTest(statistic=statistic, p_value=float(chi2.sf(statistic, 1)))


def _median(squared: np.ndarray) -> float:
    """Returns the median squared distance of different points; the mean if it is 0, 1 if all points are one."""
    pairs = squared[~np.tri(len(squared), dtype=bool)]
    return float(np.median(pairs)) or float(pairs.mean()) or 1.0 if len(pairs) else 1.0
