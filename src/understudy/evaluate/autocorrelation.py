"""How strongly series remember themselves."""

import numpy as np


def autocorrelations(values: np.ndarray, max_lag: int) -> np.ndarray:
    """Returns the sample autocorrelations [series, lag, channel] at lags 1 to `max_lag`, each around its own mean.

    The biased estimate of paper 000, App. F: pairs with a gap add nothing, the variance is that of all steps. A series
    at rest has 0; NaN stands where a series has no two observed steps that far apart.

    Args:
        values: [series, step, channel], NaN where not observed.
    """
    observed = ~np.isnan(values)
    count = np.maximum(observed.sum(axis=1, keepdims=True), 1)
    mean = np.where(observed, values, 0).sum(axis=1, keepdims=True, dtype=np.float64) / count
    centred = np.where(observed, values - mean, 0)
    moves = np.where(observed, values, -np.inf).max(axis=1) > np.where(observed, values, np.inf).min(axis=1)
    size = np.where(moves, np.einsum("stc,stc->sc", centred, centred), 1.0)
    found = np.empty((len(values), max_lag, values.shape[2]))
    for lag in range(1, max_lag + 1):
        products = np.einsum("stc,stc->sc", centred[:, lag:], centred[:, :-lag])
        pairs = (observed[:, lag:] & observed[:, :-lag]).any(axis=1)
        found[:, lag - 1] = np.where(pairs, np.where(moves, products / size, 0.0), np.nan)
    return found
