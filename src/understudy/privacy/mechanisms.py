"""Statistics that carry their own sensitivity, and the clipping that makes the sensitivity true."""

from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import InputError

CLIP_SLACK = 1e-5  # clip a little inside the radius: rounding of a long sum must not carry a unit past it
_ROWS_PER_CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Bounded:
    """A statistic of private data together with the most one privacy unit can move it.

    **Privacy**: `value` is private. It is not shown by `repr`, does not turn into an array by accident and
    can't be pickled; the only way out is a `Grant`, which adds noise.

    Args:
        value: array or number of any shape.
        l2_bound: sup ‖f(D) − f(D′)‖₂ over all D, D′ that differ by one added or removed unit.
    """

    value: NDArray[Any] = field(repr=False)
    l2_bound: float

    def __post_init__(self) -> None:
        array = np.asarray(self.value)
        if not 0 < self.l2_bound < np.inf:
            raise InputError(f"l2_bound must be positive and finite, got {self.l2_bound}.")
        if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            raise InputError("A bounded statistic must be made of finite numbers. Clip or drop the others first.")
        array.setflags(write=False)
        object.__setattr__(self, "value", array)

    def __repr__(self) -> str:
        return f"Bounded(<private>, l2_bound={self.l2_bound:g})"

    def __format__(self, specification: str) -> str:
        return repr(self)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("A Bounded statistic is private. Release it through a Grant, which adds noise.")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("A Bounded statistic is private and can't be saved.")


def clip_rows(matrix: ArrayLike, radius: float) -> NDArray[np.float64]:
    """Rows scaled down to norm at most radius·(1 − 1e-5); rows that are not finite become 0.

    **Privacy**: with one row per unit, the sum of the result moves by at most `radius` when a unit is added
    or removed, whatever the data.
    """
    if not 1e-100 < radius < 1e100:
        raise InputError(f"A clip radius must lie between 1e-100 and 1e100, got {radius}.")
    rows = np.array(matrix, dtype=np.float64, ndmin=2)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    odd = ~np.isfinite(norms)
    if odd.any():
        rows[odd] = _shrunk(rows[odd])
        norms[odd] = np.linalg.norm(rows[odd], axis=1)
    limit = radius * (1 - CLIP_SLACK)
    too_long = norms > limit
    rows[too_long] *= (limit / norms[too_long])[:, None]
    return rows


def _shrunk(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows whose squares overflow, brought to a length of about 10¹⁰⁰; rows that are not finite become 0."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    finite = np.isfinite(largest)[:, None]
    scaled: NDArray[np.float64] = np.divide(rows, largest[:, None], out=np.zeros_like(rows), where=finite)
    scaled *= 1e100
    return scaled


def clipped_sum(matrix: ArrayLike, radius: float) -> Bounded:
    """Sum of clipped rows, one row per unit, in chunks so that a large matrix is not copied whole."""
    rows = np.asarray(matrix)
    if rows.ndim != 2:
        raise InputError("clipped_sum needs a matrix with one row per unit.")
    total = np.zeros(rows.shape[1], dtype=np.float64)
    for start in range(0, len(rows), _ROWS_PER_CHUNK):
        total += clip_rows(rows[start : start + _ROWS_PER_CHUNK], radius).sum(axis=0)
    return Bounded(total, radius)


def sums_by_unit(rows: ArrayLike, unit: ArrayLike, num_units: int) -> NDArray[np.float64]:
    """One row per unit: the sum of the unit's rows. Clip the result, not the rows.

    **Privacy**: a unit with a thousand series still is one row afterwards. Rows that are not finite count
    as 0.
    """
    values = np.nan_to_num(np.asarray(rows, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    out = np.zeros((num_units, values.shape[1]), dtype=np.float64)
    with np.errstate(over="ignore"):  # an infinite sum is what `clip_rows` turns into 0
        np.add.at(out, np.asarray(unit), values)
    return out
