"""From noisy counts to distributions, without looking at data again.

The noise of every cell is Gaussian with one known standard deviation, so Stein's unbiased risk estimate says how wide
to smooth and the positive part of James and Stein says how far to trust what departs from a simple shape. Where
counts are so noisy that single cells say nothing, a normal distribution is fitted, of the values or of the logarithm of
their distance from the lower bound, and only what visibly departs from it is kept.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.fft import dct, idct
from scipy.special import ndtr, ndtri

_REACHES = (0, 1, 2, 3, 5, 8, 12)
_NARROWEST = 0.4  # deviation of a fitted normal over the width of the cell in its middle
_NEAREST = 2.0**-12  # to the lower bound, in shares of the range, that a logarithm resolves
_DEPARTURES = 0.1 * 2.0 ** np.arange(5)  # sizes of a density's departure from a normal one
_SLOW_WAVES = 4  # over the range, up to which they are as large as the slowest
_OF_A_CELL = 0.05  # how far the share of a cell may be expected to lie from that of a fitted normal
_FALSE_LOUD = 0.01  # how often noise alone passes for a loud departure somewhere
_LEAST_LEFT = 0.1  # of the noise, however near to what was expected figures lie: a prior is never all that is known
_QUIET = 3.0  # standard deviations up to which the sum of a grid's end, or a difference of sums, is taken for noise


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


def quiet_ends(noisy: np.ndarray, noise: float) -> tuple[int, int]:
    """Returns how many cells at the two ends of a grid hold no more together than noise could have put there."""
    numbers = []
    for cells in (noisy, noisy[::-1]):
        quiet = np.flatnonzero(np.cumsum(cells) <= _quiet_sums(len(cells), noise))
        numbers.append(int(quiet[-1]) + 1 if 0 < len(quiet) < len(cells) else 0)
    return (numbers[0], numbers[1]) if sum(numbers) < len(noisy) else (0, 0)


def keep_middle(departure: np.ndarray, noise: float) -> np.ndarray:
    """Returns a departure, which adds up to nothing, without its ends up to where their sum first leaves the noise."""
    kept = departure.copy()
    for cells, rest in ((departure, kept), (departure[::-1], kept[::-1])):
        loud = np.abs(np.cumsum(cells)) > _quiet_sums(len(cells), noise)
        rest[: int(loud.argmax()) if loud.any() else len(cells)] = 0.0
    return kept


def _quiet_sums(number: int, noise: float) -> np.ndarray:
    """Returns how large the sum of the first 1, 2, … cells may be when there is only noise in them."""
    return _QUIET * noise * np.sqrt(np.arange(1, number + 1))


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


def drawn_towards(
    noisy: np.ndarray, expected: np.ndarray, noise: float, groups: Sequence[int]
) -> tuple[np.ndarray, float]:
    """Returns (noisy figures drawn towards what was expected of them, the noise that is left in each).

    In each group of neighbouring figures the variance of departures is estimated, their noise known; a departure that
    is loud by itself is believed and makes no other one heard.

    Args:
        groups: Number of figures in each group; together all of them.
    """
    unit = ((noisy - expected) / max(noise, 1e-12)).ravel()
    threshold, weight = -ndtri(_FALSE_LOUD / 2 / unit.size), np.empty(unit.size)
    for here in np.split(np.arange(unit.size), np.cumsum(groups)[:-1]):
        size = float((np.clip(unit[here], -threshold, threshold) ** 2).mean())
        weight[here] = np.where(np.abs(unit[here]) > threshold, 1.0, max(0.0, 1 - 1 / size))
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


@dataclass(frozen=True)
class Normals:
    """Normal distributions of many means and spreads.

    Attributes:
        means, deviations: Of each, along the axis.
        low, high: Ends of the axis.
        rising: 1 if the axis is the logarithm of the distance from `low`, -1 if of that from `high`, 0 if of neither.
    """

    means: np.ndarray
    deviations: np.ndarray
    low: float
    high: float
    rising: int

    def cumulative(self, points: np.ndarray) -> np.ndarray:
        """Returns distribution functions [normal, point]."""
        along = _along(points, self.low, self.high, self.rising)
        return np.asarray(ndtr((along - self.means[:, None]) / self.deviations[:, None]))

    def shares(self, edges: np.ndarray) -> np.ndarray:
        """Returns the shares [normal, cell] between edges, tails in the outer cells."""
        inner = self.cumulative(edges[1:-1])
        ends = np.zeros((len(inner), 1))
        return np.diff(np.concatenate([ends, inner, ends + 1], axis=1))

    def only(self, place: int) -> "Normals":
        """Returns one of them."""
        one = slice(place, place + 1)
        return Normals(self.means[one], self.deviations[one], self.low, self.high, self.rising)


def _likely_departure(noisy: np.ndarray, noise: float) -> np.ndarray:
    """Returns what is likely to lie behind a noisy departure from a simple shape: slow waves rather than fast ones.

    The size of departures is the one of `_DEPARTURES` that makes the noisy waves the likeliest.
    """
    waves = dct(noisy, norm="ortho")
    variance = _DEPARTURES[:, None] ** 2 / len(noisy) / (1 + (np.arange(len(noisy)) / _SLOW_WAVES) ** 2)
    total = variance + noise**2
    likeliest = int((np.log(total) + waves**2 / total).sum(axis=1).argmin())
    return np.asarray(idct((variance / total)[likeliest] * waves, norm="ortho"))


@dataclass(frozen=True)
class Expected:
    """What is known of a distribution before its cells are counted: its mean and deviation, with their own doubts.

    Attributes:
        doubt: Standard deviation of the mean.
        log_doubt: Standard deviation of the logarithm of the deviation.
    """

    mean: float
    doubt: float
    deviation: float
    log_doubt: float

    def penalty(self, normals: Normals) -> np.ndarray:
        """Returns minus the logarithm of the prior density of normal distributions, up to a constant."""
        far = (normals.means - self.mean) / self.doubt
        wide = np.log(normals.deviations / self.deviation) / self.log_doubt
        return np.asarray((far**2 + wide**2) / 2)


def smoothed_cumulative(
    noisy: np.ndarray,
    noise: float,
    edges: np.ndarray,
    points: np.ndarray,
    *,
    skewed: bool = False,
    expected: Expected | None = None,
) -> np.ndarray:
    """Returns the distribution function at `points` behind noisy shares of the cells between `edges`.

    Args:
        skewed: Whether log-normal distributions, rising from either end, are tried too.
        expected: What is known of the distribution before.
    """
    nearest, shares = _nearest_normal(noisy, noise, edges, skewed, expected)
    if skewed:
        departure = _likely_departure(noisy - shares, noise)
    else:
        departure = smooth_by_risk(keep_middle(noisy - shares, noise), noise)
        departure *= shrink(noisy, shares, noise, _OF_A_CELL)[1]
    at_edges = cumulative_of(shares + departure)
    return _between(at_edges, edges, points, nearest)


def _nearest_normal(
    noisy: np.ndarray, noise: float, edges: np.ndarray, skewed: bool, expected: Expected | None
) -> tuple[Normals, np.ndarray]:
    """Returns the likeliest normal distribution behind noisy shares, and its shares."""
    found = []
    for rising in (0, 1, -1)[: 3 if skewed else 1]:
        normals, shares = _normals(tuple(edges), rising)
        misfit = (shares**2).sum(1) - 2 * shares @ noisy  # ‖normal − noisy‖² up to a constant
        if expected is not None:
            misfit = misfit + 2 * noise**2 * expected.penalty(normals)
        place = int(misfit.argmin())
        found.append((float(misfit[place]), normals.only(place), shares[place]))
    return min(found, key=lambda one: one[0])[1:]


def _between(at_edges: np.ndarray, edges: np.ndarray, points: np.ndarray, nearest: Normals) -> np.ndarray:
    """Returns the distribution function between its values at the edges; in a cell it rises as the fitted normal."""
    cell = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, len(edges) - 2)
    height = nearest.cumulative(edges)[0]
    rise = np.diff(height)[cell]
    even = (points - edges[cell]) / (edges[cell + 1] - edges[cell])
    share = np.where(rise > 1e-9, (nearest.cumulative(points)[0] - height[cell]) / np.maximum(rise, 1e-9), even)
    return np.asarray(at_edges[cell] + np.clip(share, 0, 1) * np.diff(at_edges)[cell])


@lru_cache(maxsize=64)
def _normals(edges: tuple[float, ...], rising: int) -> tuple[Normals, np.ndarray]:
    """Returns normal distributions over a range of means and spreads, and their shares [normal, cell]."""
    low, high = edges[0], edges[-1]
    first, last = _along(np.array([low, high]), low, high, rising)
    means = np.linspace(first, last, 97)
    deviations = (last - first) / 2 ** np.arange(1.5, 7.6, 0.25)
    every = [grid.ravel() for grid in np.meshgrid(means, deviations, indexing="ij")]
    along = _along(np.array(edges), low, high, rising)
    cell = np.clip(np.searchsorted(along, every[0], side="right") - 1, 0, len(edges) - 2)
    told = every[1] >= _NARROWEST * np.diff(along)[cell]  # cells do not tell apart what fits into one of them
    normals = Normals(every[0][told], every[1][told], low, high, rising)
    return normals, normals.shares(np.array(edges))


def _along(points: np.ndarray, low: float, high: float, rising: int) -> np.ndarray:
    """Returns points on an axis that grows with them."""
    if not rising:
        return points
    far = (points - low if rising > 0 else high - points) / (high - low)
    return np.asarray(rising * np.log2(np.maximum(far, _NEAREST)))
