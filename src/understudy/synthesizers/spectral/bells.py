"""Distributions from counts so noisy that single cells say nothing: a bell, and what visibly departs from it.

Two numbers can still be told where a histogram can't, so counts are fitted by a normal distribution, of the values or
of the logarithm of their distance from the lower bound. Between the edges of few cells it also says where mass lies.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from understudy.synthesizers.spectral.counts import cumulative_of, keep_middle, shrink, smooth_by_risk

_NARROWEST = 0.4  # deviation of a bell over the width of the cell in its middle
_NEAREST = 2.0**-12  # to the lower bound, in shares of the range, that a logarithm tells apart


@dataclass(frozen=True)
class Bells:
    """Normal distributions of many means and spreads.

    Attributes:
        means, deviations: Of each, along the axis.
        low, high: Ends of the axis.
        rising: Whether the axis is the logarithm of the distance from `low`.
    """

    means: np.ndarray
    deviations: np.ndarray
    low: float
    high: float
    rising: bool

    def cumulative(self, points: np.ndarray) -> np.ndarray:
        """Returns distribution functions [bell, point]."""
        along = _along(points, self.low, self.high, self.rising)
        return np.asarray(ndtr((along - self.means[:, None]) / self.deviations[:, None]))

    def shares(self, edges: np.ndarray) -> np.ndarray:
        """Returns the shares [bell, cell] between edges, tails in the outer cells."""
        inner = self.cumulative(edges[1:-1])
        ends = np.zeros((len(inner), 1))
        return np.diff(np.concatenate([ends, inner, ends + 1], axis=1))

    def only(self, place: int) -> "Bells":
        """Returns one of them."""
        one = slice(place, place + 1)
        return Bells(self.means[one], self.deviations[one], self.low, self.high, self.rising)


def settle(
    noisy: np.ndarray, noise: float, edges: np.ndarray, points: np.ndarray, *, skewed: bool = False
) -> np.ndarray:
    """Returns the distribution function at `points` behind noisy shares of the cells between `edges`.

    Args:
        skewed: Whether a bell of logarithms is tried too.
    """
    bell, expected = _nearest_bell(noisy, edges, skewed)
    departure = smooth_by_risk(keep_middle(noisy - expected, noise), noise)
    at_edges = cumulative_of(expected + shrink(noisy, expected, noise)[1] * departure)
    return _between(at_edges, edges, points, bell)


def _nearest_bell(noisy: np.ndarray, edges: np.ndarray, skewed: bool) -> tuple[Bells, np.ndarray]:
    """Returns the bell whose shares are nearest to noisy ones, and these shares."""
    nearest = []
    for rising in (False, True)[: 1 + skewed]:
        bells, shares = _bells(tuple(edges), rising)
        misfit = (shares**2).sum(1) - 2 * shares @ noisy  # ‖bell − noisy‖² up to a constant
        place = int(misfit.argmin())
        nearest.append((float(misfit[place]), bells.only(place), shares[place]))
    return min(nearest, key=lambda found: found[0])[1:]


def _between(at_edges: np.ndarray, edges: np.ndarray, points: np.ndarray, bell: Bells) -> np.ndarray:
    """Returns the distribution function between its values at the edges: within a cell it rises as the bell does."""
    cell = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, len(edges) - 2)
    height = bell.cumulative(edges)[0]
    rise = np.diff(height)[cell]
    even = (points - edges[cell]) / (edges[cell + 1] - edges[cell])
    share = np.where(rise > 1e-9, (bell.cumulative(points)[0] - height[cell]) / np.maximum(rise, 1e-9), even)
    return np.asarray(at_edges[cell] + np.clip(share, 0, 1) * np.diff(at_edges)[cell])


@lru_cache(maxsize=64)
def _bells(edges: tuple[float, ...], rising: bool) -> tuple[Bells, np.ndarray]:
    """Returns bells over a range of means and spreads, and their shares [bell, cell]."""
    low, high = edges[0], edges[-1]
    first, last = _along(np.array([low, high]), low, high, rising)
    means = np.linspace(first, last, 97)
    deviations = (last - first) / 2 ** np.arange(1.5, 7.6, 0.25)
    every = [grid.ravel() for grid in np.meshgrid(means, deviations, indexing="ij")]
    along = _along(np.array(edges), low, high, rising)
    cell = np.clip(np.searchsorted(along, every[0], side="right") - 1, 0, len(edges) - 2)
    told = every[1] >= _NARROWEST * np.diff(along)[cell]  # cells do not tell bells apart that fit into one of them
    bells = Bells(every[0][told], every[1][told], low, high, rising)
    return bells, bells.shares(np.array(edges))


def _along(points: np.ndarray, low: float, high: float, rising: bool) -> np.ndarray:
    return np.asarray(np.log2(np.maximum((points - low) / (high - low), _NEAREST))) if rising else points
