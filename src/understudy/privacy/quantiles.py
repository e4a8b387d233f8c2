"""Scores for the exponential mechanism on quantiles."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import InputError


def quantile_scores(
    values_one_per_unit: ArrayLike, candidates: NDArray[np.float64], q: float
) -> NDArray[np.float64]:
    """Minus the distance of each candidate's rank from q·n, so that the best candidate scores highest.

    The score is −|(1 − q)·#{x ≤ c} − q·#{x > c}|: one unit enters either the first count or the second, so
    adding it moves a score by at most max(q, 1 − q), and n itself never enters.
    """
    if not 0 < q < 1:
        raise InputError(f"A quantile must lie between 0 and 1, got {q}.")
    if len(candidates) < 2 or not np.isfinite(candidates).all():
        raise InputError("A quantile needs a public grid of at least two finite candidates.")
    values = np.asarray(values_one_per_unit, dtype=np.float64)
    if values.ndim != 1:
        raise InputError("A quantile needs exactly one value per unit, as a flat array.")
    values = np.sort(values[~np.isnan(values)])
    at_most = np.searchsorted(values, candidates, side="right")
    return np.asarray(-np.abs((1 - q) * at_most - q * (len(values) - at_most)), dtype=np.float64)
