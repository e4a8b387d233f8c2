"""From noisy counts to figures, without looking at data again.

The noise of every figure is Gaussian with one known standard deviation, so Stein's unbiased risk estimate says how wide
to smooth and the positive part of James and Stein says how far to trust what departs from what was expected.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from scipy.special import chdtri, ndtri

_REACHES = (0, 1, 2, 3, 5, 8, 12)
_FALSE = 0.02  # how often noise alone passes for a group that stands out
_FALSE_LOUD = 0.01  # how often it passes for a loud figure somewhere: the universal threshold passes one fit in five
_BELIEF = 2.0  # figures that the prior is worth
_LEAST_LEFT = 0.1  # of the noise, however near to what was expected figures lie: a prior is never all that is known


def nearest_distribution(weights: np.ndarray) -> np.ndarray:
    """Returns the Euclidean projection onto the probability simplex; small noisy cells become exactly empty.

    Duchi, Shalev-Shwartz, Singer and Chandra (2008), Fig. 1.
    """
    weights = weights - weights.max()  # the projection is the same, and 1 does not drown in noise of any size
    falling = np.sort(weights)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(weights) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(weights - excess[last], 0)


def cumulative_of(shares: np.ndarray) -> np.ndarray:
    """Returns the distribution function [cell + 1] nearest to noisy shares.

    Shares are scaled to one first: the projection would lift every cell alike, also those known to be empty. Where
    noise has left next to nothing, there is nothing to scale.
    """
    total = float(shares.sum())
    mass = nearest_distribution(shares / total if total > 0.1 else shares)
    cumulative = np.concatenate([[0.0], np.cumsum(mass)])
    return cumulative / cumulative[-1]


def smooth_by_risk(noisy: np.ndarray, noise: float) -> np.ndarray:
    """Returns running means of noisy cells, over the width with the least estimated risk."""
    return least_risk(noisy, noise, _REACHES)[0]


def least_risk(noisy: np.ndarray, noise: float, reaches: Sequence[int]) -> tuple[np.ndarray, float]:
    """Returns (running means over the reach with the least estimated risk, the noise that is left in them).

    Stein (1981): for a linear smoother S, ‖Sy − y‖² + 2 noise² tr S − m noise² estimates the squared error.
    """
    best, least, left = noisy, np.inf, noise
    total, place = np.concatenate([np.zeros_like(noisy[:1]), np.cumsum(noisy)]), np.arange(len(noisy))
    for reach in reaches:
        if reach and 2 * reach + 1 > len(noisy):
            break
        low, high = np.maximum(place - reach, 0), np.minimum(place + reach + 1, len(noisy))  # fewer at the ends
        smooth, trace = (total[high] - total[low]) / (high - low), float((1 / (high - low)).sum())
        risk = float(((smooth - noisy) ** 2).sum()) + 2 * noise**2 * trace
        if risk < least:
            best, least, left = smooth, risk, noise * float(np.sqrt(trace / len(noisy)))
    return best, left


def shrink(own: np.ndarray, pooled: np.ndarray, noise: float, doubt: float = np.inf) -> tuple[np.ndarray, float]:
    """Returns (own figures drawn towards pooled ones, the weight own figures kept).

    Positive-part James–Stein: what differs no more than noise would make it differ is taken from the pool.

    Args:
        doubt: How far a figure may be expected to lie from the pooled one; noise beyond it is not taken for signal.
    """
    distance = float(((own - pooled) ** 2).sum())
    expected = own.size * noise**2
    weight = 1.0 - expected / distance if distance > expected else 0.0
    weight = min(weight, 1 / (1 + (noise / doubt) ** 2))
    return pooled + weight * (own - pooled), weight


def weights_of(unit: np.ndarray, loud: float, ratio: np.ndarray | None = None) -> np.ndarray:
    """Returns how far each of a group of noisy figures is believed, from 0 to 1, as James and Stein would.

    A figure that is loud by itself is believed and makes no other one heard. Where the group does not stand out, the
    `ratio` of expected variance to that of the noise counts.

    Args:
        unit: Figures around what was expected of them, over the deviation of their noise.
    """
    size = float((np.clip(unit, -loud, loud) ** 2).sum())
    excess = np.asarray(max(size / unit.size - 1, 0.0))  # variance of what is heard, in units of its noise
    if ratio is not None and size <= chdtri(unit.size, _FALSE):
        mine = unit.size * (ratio / (1 + ratio)) ** 2
        excess = (_BELIEF * ratio + mine * excess) / (_BELIEF + mine)
    return np.where(np.abs(unit) < loud, excess / (1 + excess), 1.0)


def loud_size(number: int) -> float:
    """Returns the size beyond which one of so many figures of unit noise is loud (Bonferroni)."""
    return float(-ndtri(_FALSE_LOUD / 2 / number))


def drawn_towards(
    noisy: np.ndarray, expected: np.ndarray, noise: float, groups: Sequence[int]
) -> tuple[np.ndarray, float]:
    """Returns (noisy figures drawn towards what was expected of them, the noise that is left in each).

    Args:
        groups: Number of neighbouring figures in each group; together all of them.
    """
    unit = ((noisy - expected) / max(noise, 1e-12)).ravel()
    parts = np.split(unit, np.cumsum(groups)[:-1])
    weight = np.concatenate([weights_of(own, loud_size(unit.size)) for own in parts])
    figures = expected + weight.reshape(noisy.shape) * (noisy - expected)
    return figures, max(noise * float(np.sqrt(weight.mean())), _LEAST_LEFT * noise)


def share_among(rows: list[np.ndarray], noise: float, groups: list[Hashable]) -> list[np.ndarray]:
    """Draws rows of one group towards their mean: columns declared alike often are alike.

    Five prices with the same bounds would otherwise be warped by five different noises.
    """
    settled = list(rows)
    for group in set(groups):
        members = [place for place, other in enumerate(groups) if other == group]
        if len(members) > 1:
            mean = np.mean([rows[place] for place in members], axis=0)
            for place in members:
                settled[place] = shrink(rows[place], mean, noise)[0]
    return settled
