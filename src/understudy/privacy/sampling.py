"""Which units take part in which iteration. Indices only; the data stays where it is."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.privacy.noise import NoiseSource


@dataclass(frozen=True)
class PoissonSampler:
    """Every unit takes part in every iteration with probability `rate`, on its own secret coin.

    Both numbers are public constants, chosen before data is read; `rate` is expected batch / declared
    population, never expected batch / number of rows.
    """

    rate: float
    iterations: int

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InputError(f"rate must lie in (0, 1], got {self.rate}. Use expected batch / declared population.")
        if self.iterations < 1:
            raise InputError(f"iterations must be at least 1, got {self.iterations}.")

    def draw(self, num_units: int, noise: NoiseSource, *, done: int = 0) -> Iterator[NDArray[np.int64]]:
        """Yields the unit indices of each remaining iteration.

        **Privacy**: batches differ in size and may be empty. An empty batch is an iteration like any other:
        it must be noised and counted, or its absence would be seen.
        """
        for _ in range(done, self.iterations):
            yield noise.poisson_selection(self.rate, num_units)
