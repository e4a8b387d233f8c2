"""Nearest neighbours by tiled matrix products: exact search in bounded memory, without an index.

Two to three times as fast as scikit-learn's brute force on one core (`understudy-bench run cost-voting`).
"""

import numpy as np
from jaxtyping import Float32, Int64, Real

TILE_BYTES = 4 * 2**20  # one tile of products; small enough to be read back from the processor's cache
_MAX_QUERIES = 1024


def nearest(
    queries: Real[np.ndarray, "query dimension"],
    base: Real[np.ndarray, "point dimension"],
    neighbours: int = 1,
    tile_bytes: int = TILE_BYTES,
) -> tuple[Int64[np.ndarray, "query neighbour"], Float32[np.ndarray, "query neighbour"]]:
    """Returns (places in `base`, squared distances) of each query's nearest points, nearest first.

    Among equally near points the earlier one counts as nearer. If all coordinates are whole numbers and
    3 · dimension · (largest coordinate)² stays below 2²⁴, every sum is exact in float32: then the answer for one query
    does not depend on the other queries, on the tiles or on the library that multiplies.
    """
    if not 1 <= neighbours <= len(base):
        raise ValueError(f"Expected 1 to {len(base)} neighbours, got {neighbours}.")
    queries, base = (np.ascontiguousarray(points, dtype=np.float32) for points in (queries, base))
    half_norms = np.einsum("pd,pd->p", base, base) / 2  # ‖q − b‖²/2 = ‖b‖²/2 − q·b + a constant of the query
    rows = min(_MAX_QUERIES, max(1, len(queries)))
    columns = max(neighbours, tile_bytes // (4 * rows))
    places = np.zeros((len(queries), neighbours), dtype=np.int64)
    costs = np.full((len(queries), neighbours), np.inf, dtype=np.float32)
    for first in range(0, len(base), columns):
        tile = slice(first, first + columns)
        for begin in range(0, len(queries), rows):
            part = slice(begin, begin + rows)
            products = queries[part] @ base[tile].T
            np.subtract(half_norms[tile], products, out=products)
            found = _smallest(products, min(neighbours, products.shape[1]))
            _merge(places[part], costs[part], found + first, np.take_along_axis(products, found, axis=1))
    squared = 2 * costs + np.einsum("qd,qd->q", queries, queries)[:, None]
    return places, np.maximum(squared, 0)


def _smallest(costs: np.ndarray, number: int) -> np.ndarray:
    """Returns the places [row, number] of the smallest costs, smallest first, earlier ones first among equals."""
    if number == 1:
        return costs.argmin(axis=1)[:, None]
    limit = np.partition(costs, number - 1, axis=1)[:, number - 1 : number]
    keep = costs < limit  # all of these, and the earliest of those that equal the limit
    short = number - keep.sum(axis=1, keepdims=True)
    equal = costs == limit
    keep |= equal & (np.cumsum(equal, axis=1) <= short)
    places = np.nonzero(keep)[1].reshape(len(costs), number)
    order = np.take_along_axis(costs, places, axis=1).argsort(axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)


def _merge(places: np.ndarray, costs: np.ndarray, new_places: np.ndarray, new_costs: np.ndarray) -> None:
    """Keeps the best of both in place; on a tie the older one, whose place is lower."""
    if costs.shape[1] == 1:
        better = new_costs < costs
        places[better], costs[better] = new_places[better], new_costs[better]
        return
    together = np.concatenate([costs, new_costs], axis=1)
    order = together.argsort(axis=1, kind="stable")[:, : costs.shape[1]]
    costs[:] = np.take_along_axis(together, order, axis=1)
    places[:] = np.take_along_axis(np.concatenate([places, new_places], axis=1), order, axis=1)
