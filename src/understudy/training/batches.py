"""The private windows a network is trained on, grouped by unit, and the batches taken from them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from understudy.errors import DataError, InputError
from understudy.training.plan import UnitBatches, WindowBatches

Batch = dict[str, Tensor]


class UnitWindows:
    """Named arrays [window, …] with the unit of each window.

    Privacy:
        Holds private data; a batch looks at one unit at a time. How many windows or units there are is
        private and never shown.

    Args:
        arrays: whatever the loss needs, one row per window.
        unit: unit of each window, 0, 1, 2, … never decreasing (as in a Panel). None where a unit is an event,
            which owns no window but touches at most `batches.max_windows` of them by the way they were cut.
        batches: whether the sampler chooses units or windows; a cap that the data break is refused.
        rng: chooses a sampled unit's windows, from one stream: it must stay secret, because one more unit
            shifts the numbers of all others. The guarantee covers secret randomness, whatever it chooses.
    """

    def __init__(
        self,
        arrays: Mapping[str, NDArray[Any]],
        unit: NDArray[np.int64] | None,
        batches: UnitBatches | WindowBatches,
        rng: np.random.Generator,
    ) -> None:
        rows = {len(array) for array in arrays.values()} | (set() if unit is None else {len(unit)})
        if not arrays or len(rows) != 1:
            raise InputError("Expected arrays with one row per window, got none or another number of rows.")
        if unit is None and isinstance(batches, UnitBatches):
            raise InputError("Expected the unit of each window for batches of units, got none. Use WindowBatches.")
        self._arrays, self._num_rows = dict(arrays), rows.pop()
        self._counts = np.zeros(0, np.int64) if unit is None else _windows_per_unit(unit)
        self._first = np.cumsum(self._counts) - self._counts
        if isinstance(batches, WindowBatches) and self._counts.max(initial=0) > batches.max_windows:
            raise DataError("Expected at most max_windows windows per unit, got more. Cut windows with that cap.")
        self._batches, self._rng = batches, rng
        self.rows_per_candidate = batches.windows if isinstance(batches, UnitBatches) else 1

    @property
    def num_candidates(self) -> int:
        """Number of units (or windows) the sampler chooses from; private."""
        return len(self._counts) if isinstance(self._batches, UnitBatches) else self._num_rows

    def batch(self, chosen: NDArray[np.int64]) -> Batch:
        """Returns `rows_per_candidate` consecutive rows for each chosen unit (or window)."""
        rows = chosen if isinstance(self._batches, WindowBatches) else self._rows_of(chosen)
        return {name: torch.from_numpy(np.array(array[rows])) for name, array in self._arrays.items()}

    def made_up(self, num_chosen: int, rng: np.random.Generator) -> Batch:
        """Returns a batch of the same shapes and types that shows no private value: noise, zeros or True."""
        batch = {}
        for name, array in self._arrays.items():
            shape = (num_chosen * self.rows_per_candidate, *array.shape[1:])
            if np.issubdtype(array.dtype, np.floating):
                made = rng.random(shape).astype(array.dtype)
            else:
                made = np.full(shape, array.dtype == np.bool_, dtype=array.dtype)
            batch[name] = torch.from_numpy(made)
        return batch

    def _rows_of(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """Chooses windows of each unit: without repetition as far as it has enough, all equally likely."""
        wanted, counts = self.rows_per_candidate, self._counts[units]
        if wanted == 1:
            return self._first[units] + self._rng.integers(0, counts)
        # np.resize repeats the order when the unit has fewer windows than wanted
        chosen = [np.resize(self._rng.permutation(int(count)), wanted) for count in counts]
        return np.concatenate([self._first[unit] + pick for unit, pick in zip(units, chosen, strict=True)])


def _windows_per_unit(unit: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = np.bincount(unit) if len(unit) else np.zeros(0, np.int64)
    if (np.diff(unit) < 0).any() or (counts == 0).any():
        raise InputError("Expected units numbered 0, 1, 2, … with the windows of a unit side by side.")
    return counts
