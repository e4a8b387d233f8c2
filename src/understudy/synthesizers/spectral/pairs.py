"""Symmetric matrices as vectors of the same Euclidean length, which is what a bound is stated for."""

import numpy as np


def num_pairs(size: int) -> int:
    """Returns the length of the vector of one matrix."""
    return size * (size + 1) // 2


def pack_pairs(matrices: np.ndarray) -> np.ndarray:
    """Returns upper triangles [matrix, pair]; pairs off the diagonal stand for two entries and weigh √2."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2))


def unpack_pairs(pairs: np.ndarray, size: int) -> np.ndarray:
    """Inverse of `pack_pairs`."""
    rows, columns = np.triu_indices(size)
    matrices = np.zeros((len(pairs), size, size))
    values = pairs / np.where(rows == columns, 1.0, np.sqrt(2))
    matrices[:, rows, columns] = values
    matrices[:, columns, rows] = values
    return matrices
