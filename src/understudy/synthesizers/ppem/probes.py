"""What a different marginal may still give away, and where it asks for what the conditional model never saw.

Everything here reads the sketch and released points; nothing private is looked at.
"""

import numpy as np

from understudy.data import Channel
from understudy.data.channels import num_codes

_RANKS = np.linspace(0.02, 0.98, 97)
_ALIKE = 0.06  # mean distance of standardised quantiles up to which two shapes count as one
_MOVED = 0.1  # of a deviation, from which a shape counts as moved
_SAME_SHARES = 0.05  # total variation up to which shares count as the same
_SHOWN = 512
_RARE = 0.99  # quantile of the sketch's own distances beyond which a point counts as never seen


def moved_copies(columns: tuple[Channel, ...], released: np.ndarray, sketch: np.ndarray) -> tuple[str, ...]:
    """Returns names of columns whose released distribution is the real one behind a simple invertible map.

    Numbers: moved, stretched or mirrored. Categories: renamed. Such a copy passes every test of difference, and whoever
    guesses the map has the original.
    """
    found = []
    for place, column in enumerate(columns):
        test = _affine_copy if num_codes(column) is None else _renamed
        if test(released[:, place], sketch[:, place], num_codes(column) or 0):
            found.append(column.name)
    return tuple(found)


def _affine_copy(released: np.ndarray, real: np.ndarray, codes: int) -> bool:
    first, second = (np.quantile(values, _RANKS) for values in (released, real))
    spreads = first.std(), second.std()
    if not min(spreads) > 1e-9:
        return False
    moved = abs(first.mean() - second.mean()) / spreads[1] > _MOVED or abs(np.log(spreads[0] / spreads[1])) > _MOVED
    shapes = [(values - values.mean()) / values.std() for values in (first, second)]
    straight, mirrored = (float(np.abs(shapes[0] - other).mean()) for other in (shapes[1], -shapes[1][::-1]))
    return (moved and straight < _ALIKE) or (mirrored < _ALIKE < straight)


def _renamed(released: np.ndarray, real: np.ndarray, codes: int) -> bool:
    shares = [np.bincount(values.astype(int), minlength=codes) / len(values) for values in (released, real)]
    apart = np.abs(shares[0] - shares[1]).sum() / 2
    sorted_apart = np.abs(np.sort(shares[0]) - np.sort(shares[1])).sum() / 2
    return bool(apart > 2 * _SAME_SHARES and sorted_apart < _SAME_SHARES)


def never_seen(released: np.ndarray, sketch: np.ndarray) -> float:
    """Returns the share of released x′ [row, number] that lie farther from the sketch than its own points do."""
    pool, own = sketch[_SHOWN:], sketch[:_SHOWN]
    usual = np.quantile(_nearest(own, pool), _RARE)
    return float((_nearest(released[:_SHOWN], pool) > max(usual, 1e-9)).mean())


def _nearest(points: np.ndarray, pool: np.ndarray) -> np.ndarray:
    squared = (points**2).sum(1)[:, None] + (pool**2).sum(1) - 2 * points @ pool.T
    return np.sqrt(np.maximum(squared.min(axis=1), 0))
