"""The ends of a distribution behind noisy cells: what lies so far out that every cell there is mostly noise.

An end is little mass far out, so it decides the mean of a heavy-tailed column: bounds of money, counts and durations
are declared for the largest unit, and most values are a thousand times smaller. How the loud cells fall off foretells
the end. Three families are tried, with many parameters, and averaged by their likelihood.
"""

from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from understudy.statistics.counts import quiet_ends, smooth_by_risk

_STARTS = (0.0, 0.5, 0.7, 0.8, 0.88, 0.93, 0.96, 0.98)  # of the mass lies before the cells to which families are fitted
_DEVIATIONS = np.geomspace(0.004, 1.0, 20)  # of normal distributions, in shares of the range
_LOG_DEVIATIONS = np.geomspace(0.05, 3.0, 20)
_POWERS = np.geomspace(0.25, 4.0, 13)
_PLACES = 48  # means or scales tried with each of these
_LEAST = 1e-9  # length of a shape that the cells can tell
_DOUBT = 2.0  # standard deviations of a squared misfit up to which a family fits


def with_tails(noisy: np.ndarray, noise: float, edges: np.ndarray) -> np.ndarray:
    """Returns smoothed cells whose quiet ends fall off as the loud cells before them foretell.

    Args:
        noise: Standard deviation of each cell.
        edges: Ends of the cells, one more than cells.
    """
    first, last = quiet_ends(noisy, noise)
    end = len(noisy) - last
    loud = smooth_by_risk(noisy[first:end], noise)
    shapes = _shapes(tuple(np.round((edges - edges[0]) / (edges[-1] - edges[0]), 12)))  # one for columns cut alike
    before = _end(noisy[::-1], noise, shapes[:, ::-1], len(noisy) - first)[::-1]
    return np.concatenate([before, loud, _end(noisy, noise, shapes, end)])


def _end(noisy: np.ndarray, noise: float, shapes: np.ndarray, quiet: int) -> np.ndarray:
    """Returns the shares of the cells from `quiet` on.

    Families are fitted to more or fewer cells before them: a simple shape may hold for a whole distribution, or for its
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


@lru_cache(maxsize=8)
def _shapes(edges: tuple[float, ...]) -> np.ndarray:
    """Returns the shares [shape, cell] of normal, and from either bound of log-normal and Weibull distributions."""
    rising = np.array(edges)
    normal = _normals(rising, _DEVIATIONS)
    up, down = (np.diff(_from_origin(far), axis=1) for far in (rising, 1 - rising[::-1]))
    return np.concatenate([np.diff(normal, axis=1), up, down[:, ::-1]])


def _from_origin(far: np.ndarray) -> np.ndarray:
    """Returns log-normal and Weibull distribution functions [shape, edge] of the distance from a bound."""
    least = far[1] / 2
    scales = np.geomspace(least, 1.0, _PLACES)[:, None]
    weibull = [-np.expm1(-((far / scales) ** power)) for power in _POWERS]
    return np.concatenate([_normals(np.log(np.maximum(far, least)), _LOG_DEVIATIONS), *weibull])


def _normals(along: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    means = np.linspace(along[0], along[-1], _PLACES)[:, None]
    return np.concatenate([ndtr((along - means) / deviation) for deviation in deviations])
