"""Scores for the exponential mechanism on quantiles."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import InputError


def quantile_scores(values_one_per_unit: ArrayLike, candidates: NDArray[np.float64], q: float) -> NDArray[np.float64]:
    """Minus the distance of q·n from each candidate's ranks, so that the best candidate scores highest.

    A candidate c covers the ranks from #{x < c} to #{x ≤ c}. Both #{x < c} − q·n and q·n − #{x ≤ c} move by
    −q, 1 − q or their negatives when a unit is added, so no score moves by more than max(q, 1 − q).
    """
    if not 0 < q < 1:
        raise InputError(f"A quantile must lie between 0 and 1, got {q}.")
    if len(candidates) < 2 or not np.isfinite(candidates).all():
        raise InputError("A quantile needs a public grid of at least two finite candidates.")
    values = np.asarray(values_one_per_unit, dtype=np.float64)
    if values.ndim != 1:
        raise InputError("A quantile needs exactly one value per unit, as a flat array.")
    values = np.sort(values[~np.isnan(values)])
    wanted = q * len(values)
    too_high = np.searchsorted(values, candidates, side="left") - wanted
    too_low = wanted - np.searchsorted(values, candidates, side="right")
    return np.asarray(-np.maximum(np.maximum(too_high, too_low), 0.0), dtype=np.float64)
