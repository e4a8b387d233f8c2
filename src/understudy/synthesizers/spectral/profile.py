"""Step four: mean and spread of the scores at every step, for every kind of series.

What remains after subtracting the mean and dividing by the spread has the same distribution at every step, which is
what makes one spectrum enough.
"""

import numpy as np
from scipy.fft import dct, idct
from scipy.special import chdtri, ndtri

from understudy.statistics.copula import Profile
from understudy.statistics.counts import shrink
from understudy.statistics.series import bands

_SLACK = 2.5  # clip radius² over its expectation
_SQUARE_WEIGHT = 0.5  # the mean of a step matters more than its spread
_SMALLEST_SPREAD = 0.25
_FALSE = 0.02  # how often noise alone passes for a band of frequencies
_FALSE_LOUD = 0.01  # how often it passes for a loud frequency somewhere; every series would have to carry that one


def clip_radius(num_steps: int, num_channels: int) -> float:
    """Returns the most one series may weigh in `moment_vectors`; scores have mean 0 and variance 1 by construction."""
    return float(np.sqrt(_SLACK * (1 + _SQUARE_WEIGHT**2) * num_steps * num_channels))


def count_weight(num_steps: int, num_channels: int) -> float:
    """Returns the weight of "one more series" beside the moments: half of what a series' scores weigh."""
    return float(np.sqrt(num_steps * num_channels / 4))


def moment_vectors(scores: np.ndarray) -> np.ndarray:
    """Returns [series, 2 · step · channel]: each series' scores and, weighing less, their centred squares."""
    flat = scores.reshape(len(scores), -1)
    return np.concatenate([flat, _SQUARE_WEIGHT * (flat**2 - 1) / np.sqrt(2)], axis=1)


def fit_profiles(
    moments: np.ndarray, pooled: np.ndarray, share: np.ndarray, shape: tuple[int, int], noise: float
) -> list[Profile]:
    """Returns a profile per kind: a mean of its own and the spread that all kinds share.

    A spread of its own would need more series than most kinds have; a spread too small by chance would blow up
    what it divides, so none is smaller than the noise.

    Args:
        noise: Standard deviation of the noise of a pooled moment.
    """
    size = shape[0] * shape[1]
    means = moments[:, :size].reshape(-1, *shape)
    square = 1 + np.sqrt(2) / _SQUARE_WEIGHT * pooled[size:].reshape(shape)
    smallest = max(_SMALLEST_SPREAD**2, min(noise, 1.0))
    spread = np.sqrt(np.maximum(square - np.einsum("k,ktc->tc", share, means**2), smallest))
    return [Profile(mean, spread) for mean in means]


def denoise_nested(
    sums: np.ndarray,
    counts: np.ndarray,
    noise: float,
    group_sizes: tuple[int, ...],
    shape: tuple[int, int],
    season: int | None = None,
) -> np.ndarray:
    """Returns mean moments [kind, moment]: of everybody, then what sets a group apart, then what sets a kind apart.

    Each level adds the frequencies of its difference to the level above that stand out of its own noise.

    Args:
        group_sizes: How many neighbouring kinds make a group, from all of them down.
        season: Steps of a day, week or year, as the time axis says.
    """
    means = np.zeros_like(sums)
    for size in group_sizes:
        for first in range(0, len(sums), size):
            group = slice(first, first + size)
            count = counts[group].sum()
            expected = (means[group] * counts[group, None]).sum(0) / count
            means[group] += _denoise(
                sums[group].sum(0) / count - expected, noise * np.sqrt(size) / count, shape, season
            )
    return means


def _denoise(moments: np.ndarray, noise: float, shape: tuple[int, int], season: int | None) -> np.ndarray:
    """Keeps of noisy mean moments what stands out of the noise."""
    size = shape[0] * shape[1]
    mean, square = (dct(part.reshape(shape), axis=0, norm="ortho") for part in (moments[:size], moments[size:]))
    threshold = noise * -ndtri(_FALSE_LOUD / 2 / size)  # Bonferroni: the universal threshold passes one fit in five
    weight = np.zeros_like(mean)
    for block in bands(shape[0], season):  # Cai (1999): block by block; one loud frequency does not make all heard
        bounded = np.clip(mean[block], -threshold, threshold)
        if (bounded**2).sum() > noise**2 * chdtri(bounded.size, _FALSE):
            weight[block] = shrink(bounded, np.zeros_like(bounded), noise)[1]
    weight = np.where(np.abs(mean) < threshold, weight, 1.0)
    kept = (weight * mean, np.where(np.abs(square) < threshold, 0.0, square))
    return np.concatenate([idct(part, axis=0, norm="ortho").ravel() for part in kept])
