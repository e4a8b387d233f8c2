"""A defect to plant while a test runs: less noise than was charged."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from understudy.privacy.noise import NoiseSource, Size


@contextmanager
def noise_times(share: float) -> Iterator[None]:
    """Lets noise be so many times what was charged, real numbers and whole ones; 0 leaves none."""
    normal, discrete = NoiseSource.normal, NoiseSource.discrete_gaussian

    def less(noise: NoiseSource, scale: float, size: Size) -> NDArray[np.float64]:
        return normal(noise, share * scale, size)

    def fewer(noise: NoiseSource, scale: float, size: Size) -> NDArray[np.int64]:
        return discrete(noise, share * scale, size) if share else np.zeros(size, dtype=np.int64)

    with patch.object(NoiseSource, "normal", less), patch.object(NoiseSource, "discrete_gaussian", fewer):
        yield
