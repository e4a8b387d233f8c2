"""What is bought for `bridge`: how much of a score is level, movement and noise, and how much a day repeats.

Mean products of scores that mean something about each other are summed over series, with noise. Where noise is large,
they are drawn towards what series often are, by how large it is.
"""

import numpy as np

from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Rows, shortened
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.dit.bridge import NOTHING

LABEL, SHARE = "memory", 0.2  # of mu²
_LEAST = 0.02  # the least variance believed
_PACES = 1 - np.geomspace(0.8, 0.005, 60)[:, None]
_EXPECTED = np.array([1.1, 1.0, 0.65, 1.2, 1.0, 0.6])[:, None]  # of `products`, where nothing is known
_SURE = 0.3  # standard deviation of that


def products(scores: np.ndarray, known: np.ndarray, season: int) -> np.ndarray:
    """Returns [series, 1 + 6 · column]: a one, then mean products of what a series has in each column.

    Around the series' mean: of scores with themselves, with the next, and with one further on; of differences to the
    day before: the same three. All of it is shortened to a length of √(1 + 6 · column) where it is longer.
    """
    x = np.where(known, scores, 0.0).astype(np.float64)
    parts = _around(np.where(known, x - _mean(x, known)[:, None], 0.0), known)
    if season:
        both = known[:, season:] & known[:, :-season]
        parts += _around(np.where(both, x[:, season:] - x[:, :-season], 0.0), both)
    else:
        parts += [np.zeros(parts[0].shape)] * 3
    found = np.concatenate([np.ones((len(x), 1)), *parts], axis=1)
    return shortened(found, float(np.sqrt(found.shape[1])))


def _around(x: np.ndarray, known: np.ndarray) -> list[np.ndarray]:
    return [_mean(x**2, known)] + [
        _mean(x[:, lag:] * x[:, :-lag], known[:, lag:] & known[:, :-lag]) for lag in (1, far_lag(x.shape[1]))
    ]


def far_lag(num_steps: int) -> int:
    """Returns how far apart scores are by which the pace is told: about as far as half a gap."""
    return max(2, num_steps // 16)


def _mean(values: np.ndarray, counted: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(counted, values, 0.0).sum(axis=1) / np.maximum(counted.sum(axis=1), 1))


def memory_of(totals: np.ndarray, variances: np.ndarray, num_steps: int, season: int, noise: float = 0.0) -> np.ndarray:
    """Returns the memory [7, column] of `bridge` from totals of `products` with noise of a standard deviation.

    Args:
        variances: Of all scores of each column; what is not a series' own is its level.
    """
    count = max(float(totals[0]), noise, 1e-9)
    found = totals[1:].reshape(6, -1) / count
    found = _EXPECTED + (found - _EXPECTED) / (1 + (noise / count / _SURE) ** 2)  # the mean given a normal prior
    own = _movement(found[:3], far_lag(num_steps))
    daily = (
        _movement(found[3:], far_lag(num_steps - season)) if season else [np.full(len(own[0]), x) for x in NOTHING[4:]]
    )
    return np.stack([np.maximum(variances - own[0], _LEAST), *own, *daily])


def _movement(found: np.ndarray, lag: int) -> list[np.ndarray]:
    """Returns (ω, κ, ρ), κ ≤ ω, whose ω, κ ρ and κ ρ^lag are nearest to a variance and two covariances [3, column]."""
    own, near, far = np.maximum(found[0], _LEAST), found[1], found[2]
    first, second = _PACES, _PACES**lag  # [pace, 1]
    told, weight = first * near + second * far, first**2 + second**2
    free = np.maximum(told / weight, 0.0)
    moves = np.where(free <= own, free, np.maximum((own + told) / (1 + weight), 0.0))  # beyond, ω = κ
    whole = np.maximum(own, moves)
    misfit = (whole - own) ** 2 + (moves * first - near) ** 2 + (moves * second - far) ** 2
    best = misfit.argmin(axis=0)
    place = np.arange(len(own))
    return [whole[best, place], moves[best, place], _PACES[best, 0]]


def buy(
    private: PrivateSeries, examples: dict[str, np.ndarray], variances: np.ndarray, season: int, grant: Grant
) -> np.ndarray:
    """Returns the memory, bought: a sum of one vector per series, clipped to the root of its number of entries."""
    own = products(examples["x"], examples["known"], season)
    bound = float(np.sqrt(own.shape[1]))
    statistic = Statistic(label=LABEL, shape=own.shape[1:], bound=bound)
    noisy = grant.release(statistic, private.given(Rows(own)))
    noise = grant.deviation(LABEL, bound * private.reach)
    return memory_of(noisy, variances, examples["x"].shape[1], season, noise)
