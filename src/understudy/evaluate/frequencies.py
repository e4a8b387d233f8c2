"""Frequency tables of values, and distances between two of them. Tables need not sum to one."""

import numpy as np
from scipy.spatial.distance import jensenshannon

_FLOOR = 1e-10  # added to frequencies before a logarithm is taken


def cell_counts(values: np.ndarray, borders: np.ndarray) -> np.ndarray:
    """Returns how many values of each series lie in each cell, [series, cell], from [series, step].

    NaN lies in no cell; the outer cells also take what is beyond them.
    """
    cells = len(borders) - 1
    place = np.clip(np.searchsorted(borders, values, side="right") - 1, 0, cells - 1)
    flat = (np.arange(len(values))[:, None] * cells + place)[~np.isnan(values)]
    return np.bincount(flat, minlength=len(values) * cells).reshape(len(values), cells).astype(np.float32)


def even_borders(first: np.ndarray, second: np.ndarray, cells: int) -> np.ndarray:
    """Returns the borders of equally wide cells from the least to the greatest value of both pools."""
    pool = np.concatenate([first[~np.isnan(first)], second[~np.isnan(second)]])
    low, high = (float(pool.min()), float(pool.max())) if len(pool) else (0.0, 1.0)
    return np.linspace(low, high if high > low else low + 1.0, cells + 1)


def quantile_cells(values: np.ndarray, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns (borders, means) of cells that hold about equally many values; fewer where values are often equal."""
    seen = values[~np.isnan(values)].astype(np.float64)
    if not len(seen):
        return np.array([0.0, 1.0]), np.zeros(1)
    borders = np.unique(np.quantile(seen, np.linspace(0, 1, cells + 1)))
    borders = borders if len(borders) > 1 else np.array([borders[0], borders[0] + 1])
    place = np.clip(np.searchsorted(borders, seen, side="right") - 1, 0, len(borders) - 2)
    count, total = (np.bincount(place, weights=weights, minlength=len(borders) - 1) for weights in (None, seen))
    return borders, np.where(count > 0, total / np.maximum(count, 1), borders[:-1])


def total_variation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns half the summed difference along the first axis; NaN where a table is empty."""
    return np.asarray(np.abs(_shares(first) - _shares(second)).sum(axis=0) / 2)


def kullback_leibler(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the divergence KL(first‖second) in nats, every share raised by 1e-10; NaN where a table is empty."""
    p, q = (_shares(_shares(table) + _FLOOR) for table in (first, second))
    return float(np.sum(p * np.log(p / q)))


def jensen_shannon(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the distance √JSD in base 2, so that it lies in [0, 1]; NaN where a table is empty."""
    return float(jensenshannon(first, second, base=2)) if first.sum() and second.sum() else float("nan")


def _shares(table: np.ndarray) -> np.ndarray:
    table = np.asarray(table, dtype=np.float64)
    total = table.sum(axis=0, keepdims=True)
    return np.divide(table, total, out=np.full_like(table, np.nan), where=total > 0)
