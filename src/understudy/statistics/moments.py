"""Symmetric matrices as vectors: their upper triangles."""

import numpy as np


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
