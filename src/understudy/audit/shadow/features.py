"""What an attacker measures on synthetic series to tell whether the target was there."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from understudy.audit.records import Vectors, distances
from understudy.audit.shadow.targets import NEIGHBOURS

Features = NDArray[np.float32]
_MOST_COLUMNS = 256  # of a correlation matrix: 32,640 pairs


def naive(synthetic: Vectors, target: Vectors) -> Features:
    """Mean, median and variance of every column."""
    return np.concatenate([synthetic.mean(axis=0), np.median(synthetic, axis=0), synthetic.var(axis=0)])


def correlations(synthetic: Vectors, target: Vectors) -> Features:
    """Correlations of all pairs of columns; of evenly spaced ones where there are many. 0 where one is constant."""
    chosen = np.unique(np.linspace(0, synthetic.shape[1] - 1, _MOST_COLUMNS).round().astype(int))
    columns = synthetic[:, chosen].astype(np.float64)
    centred = columns - columns.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    moments = centred.T @ centred
    known = np.outer(length, length)
    matrix = np.divide(moments, known, out=np.zeros_like(moments), where=known > 1e-12)
    return matrix[np.triu_indices(len(chosen), 1)].astype(np.float32)


def nearest_neighbours(synthetic: Vectors, target: Vectors) -> Features:
    """Sum of the target's distances to the 20 nearest synthetic series (Eq. 21), for its nearest row."""
    return distances(target, synthetic, NEIGHBOURS).sum(axis=1).min(keepdims=True).astype(np.float32)


FEATURES: Mapping[str, Callable[[Vectors, Vectors], Features]] = {
    "naive": naive,
    "correlation": correlations,
    "knn": nearest_neighbours,
}


def measured(synthetic: Vectors, target: Vectors) -> dict[str, Features]:
    """Returns all features of one shadow's series; `target` holds the target's rows."""
    return {name: np.ascontiguousarray(feature(synthetic, target), np.float32) for name, feature in FEATURES.items()}
