"""Distributions behind noisy shares of cells: a shape of few parameters, and what visibly departs from it.

Where single cells say nothing, shapes of many means and spreads are averaged by their likelihood. Where cells do say
something, their ends do not: an end is little mass far out, which decides the mean of a heavy-tailed column, because
bounds of money, counts and durations are declared for the largest unit. How the loud cells before it fall off foretells
the end.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.fft import dct, idct
from scipy.special import ndtr

from understudy.statistics.counts import cumulative_of, smooth_by_risk

_DEVIATIONS = np.geomspace(0.004, 1.0, 24)  # of normal distributions, in shares of the range
_LOG_DEVIATIONS = np.geomspace(0.05, 3.0, 20)
_POWERS = np.geomspace(0.25, 4.0, 13)
_PLACES = 64  # means or scales tried with each of these
_LEAST = 1e-9  # length of a shape that the cells can tell; noise that counts as none
_DEPARTURES = 0.1 * 2.0 ** np.arange(8)  # sizes of a density's departure from a shape
_SLOW_WAVES = np.array([4, 16, 64])  # over the range, up to which they are as large as the slowest
_STARTS = (0.0, 0.5, 0.7, 0.8, 0.88, 0.93, 0.96, 0.98)  # of the mass lies before the cells to which tails are fitted
_DOUBT = 2.0  # standard deviations of a squared misfit up to which a tail fits
_QUIET = 3.0  # standard deviations up to which the sum of a grid's end is taken for noise


class Expected(NamedTuple):
    """What is known of a distribution before its cells are counted: its mean and deviation, with their own doubts."""

    mean: float
    doubt: float  # standard deviation of the mean
    deviation: float
    log_doubt: float  # standard deviation of the logarithm of the deviation

    def penalty(self, shares: np.ndarray, middles: np.ndarray) -> np.ndarray:
        """Returns minus the logarithm of the prior density of shapes [shape, cell], up to a constant."""
        mean = shares @ middles
        deviation = np.sqrt(np.maximum(shares @ middles**2 - mean**2, _LEAST))
        far, wide = (mean - self.mean) / self.doubt, np.log(deviation / self.deviation) / self.log_doubt
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
        skewed: Whether shapes that rise from either end are tried too.
    """
    every = np.union1d(edges, points)
    shapes = _shapes(_unit(every, edges), skewed)
    at_edges, at_points = (shapes[:, np.searchsorted(every, some)] for some in (edges, points))
    shares = _with_tails_inside(at_edges)
    misfit = ((shares**2).sum(axis=1) - 2 * shares @ noisy) / (2 * max(noise, _LEAST) ** 2)  # up to a constant
    if expected is not None:
        misfit = misfit + expected.penalty(_with_tails_inside(shapes), (every[1:] + every[:-1]) / 2)
    likely = np.exp(misfit.min() - misfit)
    likely /= likely.sum()
    mean = likely @ shares
    rest = noisy - mean
    departure = _likely_departure(rest, noise)
    for cells, own in ((rest, departure), (rest[::-1], departure[::-1])) if not skewed else ():
        loud = np.abs(np.cumsum(cells)) > _quiet_sums(len(cells), noise)  # edges lie far beyond all scores
        own[: int(loud.argmax()) if loud.any() else len(cells)] = 0.0
    settled = cumulative_of(mean + departure)
    return _between(settled, edges, points, likely @ at_edges, likely @ at_points)


def _with_tails_inside(cumulative: np.ndarray) -> np.ndarray:
    """Returns the shares [shape, cell], what lies beyond the ends in the outer cells."""
    shares = np.diff(cumulative, axis=1)
    shares[:, 0] += cumulative[:, 0]
    shares[:, -1] += 1 - cumulative[:, -1]
    return shares


def _likely_departure(noisy: np.ndarray, noise: float) -> np.ndarray:
    """Returns what is likely to lie behind a noisy departure from a shape: slow waves rather than fast ones.

    The size of departures and how slow they are make the noisy waves the likeliest.
    """
    waves = dct(noisy, norm="ortho")
    falling = 1 / (1 + (np.arange(len(noisy)) / _SLOW_WAVES[:, None]) ** 2)
    variance = (_DEPARTURES[:, None, None] ** 2 / len(noisy) * falling).reshape(-1, len(noisy))
    total = variance + noise**2
    likeliest = int((np.log(total) + waves**2 / total).sum(axis=1).argmin())
    return np.asarray(idct((variance / total)[likeliest] * waves, norm="ortho"))


def _between(
    settled: np.ndarray, edges: np.ndarray, points: np.ndarray, at_edges: np.ndarray, at_points: np.ndarray
) -> np.ndarray:
    """Returns the distribution function between its values at the edges; in a cell it rises as the shape does."""
    cell = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, len(edges) - 2)
    rise = np.diff(at_edges)[cell]
    even = (points - edges[cell]) / (edges[cell + 1] - edges[cell])
    share = np.where(rise > 1e-9, (at_points - at_edges[cell]) / np.maximum(rise, 1e-9), even)
    return np.asarray(settled[cell] + np.clip(share, 0, 1) * np.diff(settled)[cell])


def with_tails(noisy: np.ndarray, noise: float, edges: np.ndarray) -> np.ndarray:
    """Returns smoothed cells whose quiet ends fall off as the loud cells before them foretell."""
    first, last = quiet_ends(noisy, noise)
    end = len(noisy) - last
    loud = smooth_by_risk(noisy[first:end], noise)
    shapes = np.diff(_shapes(_unit(edges, edges), True), axis=1)
    before = _end(noisy[::-1], noise, shapes[:, ::-1], len(noisy) - first)[::-1]
    return np.concatenate([before, loud, _end(noisy, noise, shapes, end)])


def quiet_ends(noisy: np.ndarray, noise: float) -> tuple[int, int]:
    """Returns how many cells at the two ends of a grid hold no more together than noise could have put there."""
    numbers = []
    for cells in (noisy, noisy[::-1]):
        quiet = np.flatnonzero(np.cumsum(cells) <= _quiet_sums(len(cells), noise))
        numbers.append(int(quiet[-1]) + 1 if 0 < len(quiet) < len(cells) else 0)
    return (numbers[0], numbers[1]) if sum(numbers) < len(noisy) else (0, 0)


def _quiet_sums(number: int, noise: float) -> np.ndarray:
    """Returns how large the sum of the first 1, 2, … cells may be when there is only noise in them."""
    return _QUIET * noise * np.sqrt(np.arange(1, number + 1))


def _end(noisy: np.ndarray, noise: float, shapes: np.ndarray, quiet: int) -> np.ndarray:
    """Returns the shares of the cells from `quiet` on.

    Shapes are fitted to more or fewer cells before them: a simple one may hold for a whole distribution, or for its
    last twentieth. What fits all of it counts as much as the mean of all that fit: where noise can't tell, one light
    tail would lose the mean of a column.
    """
    if quiet == len(noisy):
        return np.zeros(0)
    reached, fitting = np.cumsum(noisy[:quiet]), []
    last = np.zeros(len(noisy) - quiet)
    for share in _STARTS:
        start = min(int(np.searchsorted(reached, share * reached[-1])), quiet - 1)
        found = _averaged(noisy[start:], noise, shapes[:, start:])
        misfit, cells, last = float(((found - noisy[start:]) ** 2).sum()), len(found), found[quiet - start :]
        if misfit <= noise**2 * (cells + _DOUBT * np.sqrt(2 * cells)):
            fitting.append(last)
    return (fitting[0] + np.mean(fitting, axis=0)) / 2 if fitting else last


def _averaged(noisy: np.ndarray, noise: float, shapes: np.ndarray) -> np.ndarray:
    """Returns the mean of the shapes, scaled to noisy cells by least squares, weighted by their likelihood."""
    length = np.linalg.norm(shapes, axis=1)
    known = shapes[length > _LEAST] / length[length > _LEAST, None]
    height = np.maximum(known @ noisy, 0)
    likely = (height / max(noise, _LEAST)) ** 2 / 2
    weight = np.exp(likely - likely.max())
    return np.asarray((weight * height / weight.sum()) @ known)


def _unit(points: np.ndarray, edges: np.ndarray) -> tuple[float, ...]:
    """Returns points in shares of the range between edges, rounded: one key for columns that are cut alike."""
    return tuple(np.round((points - edges[0]) / (edges[-1] - edges[0]), 12))


@lru_cache(maxsize=32)
def _shapes(points: tuple[float, ...], skewed: bool) -> np.ndarray:
    """Returns distribution functions [shape, point]: normal, and from either bound log-normal and Weibull."""
    rising = np.array(points)
    normal = _normals(rising, _DEVIATIONS)
    if not skewed:
        return normal
    up, down = (_from_origin(far) for far in (rising, 1 - rising[::-1]))
    return np.concatenate([normal, up, 1 - down[:, ::-1]])


def _from_origin(far: np.ndarray) -> np.ndarray:
    """Returns log-normal and Weibull distribution functions [shape, point] of the distance from a bound."""
    least = far[1] / 2
    scales = np.geomspace(least, 1.0, _PLACES)[:, None]
    weibull = [-np.expm1(-((far / scales) ** power)) for power in _POWERS]
    return np.concatenate([_normals(np.log(np.maximum(far, least)), _LOG_DEVIATIONS), *weibull])


def _normals(along: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    means = np.linspace(along[0], along[-1], _PLACES)[:, None]
    return np.concatenate([ndtr((along - means) / deviation) for deviation in deviations])
