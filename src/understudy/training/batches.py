"""The private windows a network is trained on, grouped by unit, and the batches taken from them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from understudy.errors import DataError, InputError

Batch = dict[str, Tensor]


class UnitWindows:
    """Named arrays [window, …] with the unit of each window.

    Privacy:
        Holds private data; a batch looks at one unit at a time. How many windows or units there are is
        private and never shown.

    Args:
        unit: unit of each window, 0, 1, 2, … never decreasing. None where a unit is an event, which owns no window but
            touches at most `max_windows` of them by the way they were cut.
        rng: chooses a sampled unit's window; secret, because one more unit shifts the numbers of all others.
        max_windows: None where the sampler chooses units, else the cap on a unit's windows, of which it chooses single
            ones; a cap that the data break is refused.
    """

    def __init__(
        self,
        arrays: Mapping[str, NDArray[Any]],
        unit: NDArray[np.int64] | None,
        rng: np.random.Generator,
        max_windows: int | None = None,
    ) -> None:
        rows = {len(array) for array in arrays.values()} | (set() if unit is None else {len(unit)})
        if not arrays or len(rows) != 1:
            raise InputError("Expected arrays with one row per window, got none or another number of rows.")
        if unit is None and max_windows is None:
            raise InputError("Expected the unit of each window for batches of units, got none. Give max_windows.")
        self._arrays, self._num_rows = dict(arrays), rows.pop()
        self._counts = np.zeros(0, np.int64) if unit is None else _windows_per_unit(unit)
        self._first = np.cumsum(self._counts) - self._counts
        if max_windows is not None and self._counts.max(initial=0) > max_windows:
            raise DataError("Expected at most max_windows windows per unit, got more. Cut windows with that cap.")
        self._of_units, self._rng = max_windows is None, rng

    @property
    def num_candidates(self) -> int:
        """Number of units (or windows) the sampler chooses from; private."""
        return len(self._counts) if self._of_units else self._num_rows

    def batch(self, chosen: NDArray[np.int64]) -> Batch:
        """Returns one row for each chosen window, or for each chosen unit, all of whose windows are equally likely."""
        rows = self._first[chosen] + self._rng.integers(0, self._counts[chosen]) if self._of_units else chosen
        return {name: torch.from_numpy(np.array(array[rows])) for name, array in self._arrays.items()}

    def made_up(self, num_chosen: int, rng: np.random.Generator) -> Batch:
        """Returns a batch of the same shapes and types that shows no private value: noise, zeros or True."""
        batch = {}
        for name, array in self._arrays.items():
            shape = (num_chosen, *array.shape[1:])
            made = np.full(shape, array.dtype == np.bool_, dtype=array.dtype)
            if np.issubdtype(array.dtype, np.floating):
                made = rng.random(shape).astype(array.dtype)
            batch[name] = torch.from_numpy(made)
        return batch


def _windows_per_unit(unit: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = np.bincount(unit) if len(unit) else np.zeros(0, np.int64)
    if (np.diff(unit) < 0).any() or (counts == 0).any():
        raise InputError("Expected units numbered 0, 1, 2, … with the windows of a unit side by side.")
    return counts
