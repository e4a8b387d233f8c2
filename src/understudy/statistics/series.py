"""Series made whole, one at a time, from the same series and nothing else; transforms; matrices as vectors."""

import numpy as np
from scipy.fft import dct, idct


def filled(scores: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns scores [series, step, channel] without NaN.

    Gaps are bridged linearly inside the series, what lies beyond the end mirrors what came before it, and a channel
    never observed becomes 0, the middle of the distribution. No other series is looked at.
    """
    steps = np.arange(scores.shape[1])
    bridged = np.stack([_bridge(scores[:, :, channel]) for channel in range(scores.shape[2])], axis=2)
    if (lengths == scores.shape[1]).all():
        return bridged
    last = np.maximum(lengths.astype(np.int64) - 1, 0)
    period = np.maximum(2 * last, 1)[:, None]
    folded = np.minimum(steps[None] % period, period - steps[None] % period)
    source = np.where(last[:, None] > 0, np.minimum(folded, last[:, None]), 0)
    return np.take_along_axis(bridged, source[:, :, None], axis=1)


def _bridge(scores: np.ndarray) -> np.ndarray:
    """Interpolates NaN along the last axis of [series, step]."""
    known = ~np.isnan(scores)
    if known.all():
        return scores
    num_steps = scores.shape[1]
    step = np.arange(num_steps)
    before = np.maximum.accumulate(np.where(known, step, -1), axis=1)
    after = np.minimum.accumulate(np.where(known, step, num_steps)[:, ::-1], axis=1)[:, ::-1]
    left = np.where(before < 0, after, before)
    right = np.where(after >= num_steps, left, after)
    left, right = np.clip(left, 0, num_steps - 1), np.clip(right, 0, num_steps - 1)
    values = np.where(known, scores, 0)
    low, high = np.take_along_axis(values, left, 1), np.take_along_axis(values, right, 1)
    share = np.clip((step - left) / np.maximum(right - left, 1), 0, 1)
    return np.where(known, scores, low + share * (high - low)).astype(scores.dtype)


def to_frequencies(series: np.ndarray) -> np.ndarray:
    """Orthonormal DCT-II along the steps of [series, step, channel]."""
    return dct(series, axis=1, norm="ortho")


def unit_length(moves: np.ndarray) -> np.ndarray:
    """Returns [series, frequency, column] with length one over the frequencies; no movement stays none."""
    length = np.sqrt((moves**2).sum(axis=1, keepdims=True))
    return np.where(length > 1e-9, moves / np.maximum(length, 1e-9), 0.0)


def dct_matrix(num_steps: int) -> np.ndarray:
    """Returns the matrix [frequency, step] of `to_frequencies`."""
    return np.asarray(dct(np.eye(num_steps), axis=0, norm="ortho"))


def to_steps(coefficients: np.ndarray) -> np.ndarray:
    """Inverse of `to_frequencies`."""
    return idct(coefficients, axis=1, norm="ortho")


def bands(num_steps: int) -> list[np.ndarray]:
    """Returns frequencies from 0 on that are likely to be alike, by octave."""
    octave = np.floor(np.log2(np.maximum(np.arange(num_steps), 0.5)))
    return [np.flatnonzero(octave == one) for one in np.unique(octave)]


def num_pairs(size: int) -> int:
    """Returns the length of the vector of one matrix."""
    return size * (size + 1) // 2


def triangle(matrices: np.ndarray) -> np.ndarray:
    """Returns the upper triangles [matrix, pair]."""
    return np.asarray(matrices[:, *np.triu_indices(matrices.shape[-1])])


def symmetric(pairs: np.ndarray, size: int) -> np.ndarray:
    """Inverse of `triangle`."""
    rows, columns = np.triu_indices(size)
    matrices = np.zeros((len(pairs), size, size))
    matrices[:, rows, columns] = matrices[:, columns, rows] = pairs
    return matrices
