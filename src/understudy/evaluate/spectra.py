"""Power spectra of series."""

import numpy as np


def spectra(values: np.ndarray) -> np.ndarray:
    """Returns each series' share of power at each frequency, [series, frequency, channel]; all 0 for one at rest.

    Args:
        values: [series, step, channel] without gaps; each series is taken around its own mean.
    """
    centred = values.astype(np.float64) - values.mean(axis=1, keepdims=True, dtype=np.float64)
    power = np.abs(np.fft.rfft(centred, axis=1)[:, 1:]) ** 2
    total = power.sum(axis=1, keepdims=True)
    moves = total > 1e-12 * values.shape[1]
    return np.divide(power, total, out=np.zeros_like(power), where=moves)
