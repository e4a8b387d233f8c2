"""What shows that a hidden marginal is not hidden after all: transformed copies of it, and values without support."""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import zscore

from understudy.data import Channel
from understudy.data.channels import num_codes

_QUANTILES = np.linspace(0.02, 0.98, 97)
_SAME_SHAPE = 0.06  # mean distance of standardised quantiles up to which two shapes count as one
_MOVED = 0.1  # standard deviations from which a shape counts as moved
_SAME_SHARES = 0.05  # total variation distance up to which shares count as the same
_PROBED = 512
_UNSUPPORTED = 0.99  # quantile of distances among reference points beyond which a point has no support


def transformed_copies(columns: tuple[Channel, ...], released: np.ndarray, real: np.ndarray) -> tuple[str, ...]:
    """Return names of columns whose released distribution is the real one behind a simple invertible map.

    Numbers: moved, stretched or mirrored. Categories: renamed. Such a copy passes every test of difference.
    """
    found = []
    for place, column in enumerate(columns):
        codes = num_codes(column)
        sides = released[:, place], real[:, place]
        if _affine_copy(*sides) if codes is None else _renamed(*sides, codes):
            found.append(column.name)
    return tuple(found)


def _affine_copy(released: np.ndarray, real: np.ndarray) -> bool:
    first, second = (np.quantile(values, _QUANTILES) for values in (released, real))
    if not min(first.std(), second.std()) > 1e-9:
        return False
    moved = max(abs(first.mean() - second.mean()) / second.std(), abs(np.log(first.std() / second.std()))) > _MOVED
    ours, theirs = zscore(first), zscore(second)
    straight, mirrored = (float(np.abs(ours - other).mean()) for other in (theirs, -theirs[::-1]))
    return (moved and straight < _SAME_SHAPE) or (mirrored < _SAME_SHAPE < straight)


def _renamed(released: np.ndarray, real: np.ndarray, codes: int) -> bool:
    shares = [np.bincount(values.astype(int), minlength=codes) / len(values) for values in (released, real)]
    apart = np.abs(shares[0] - shares[1]).sum() / 2
    sorted_apart = np.abs(np.sort(shares[0]) - np.sort(shares[1])).sum() / 2
    return bool(apart > 2 * _SAME_SHARES and sorted_apart < _SAME_SHARES)


def share_without_support(released: np.ndarray, real: np.ndarray) -> float:
    """Return the share of released x′ [row, number] that lie farther from reference points than these do."""
    if len(real) < 2:
        return 1.0
    probed = min(_PROBED, len(real) // 2)
    pool, own = real[probed:], real[:probed]
    usual, found = (cdist(points, pool).min(axis=1) for points in (own, released[:_PROBED]))
    return float((found > max(np.quantile(usual, _UNSUPPORTED), 1e-9)).mean())
