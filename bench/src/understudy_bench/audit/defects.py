"""Defects to plant while an audit runs: what a careless hand leaves of the noise, and of a scale."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from understudy.data import Panel
from understudy.privacy.noise import NoiseSource, Size
from understudy.training.private_gradient import NormalReserve


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


@contextmanager
def one_scalar() -> Iterator[None]:
    """Adds the same number to every coordinate of a gradient, as the code released with VFLGAN-TS does."""
    genuine = NormalReserve.add_to

    def shared(reserve: NormalReserve, vector: Tensor) -> None:
        one = torch.zeros(1)
        genuine(reserve, one)
        vector += one

    with patch.object(NormalReserve, "add_to", shared):
        yield


def stretched(panel: Panel) -> Panel:
    """Returns values scaled so that the least and the greatest of all units meet the bounds: a scale that tells."""
    bounds = np.array([channel.bounds for channel in panel.schema.channels])
    low, high = np.nanmin(panel.values, axis=(0, 1)), np.nanmax(panel.values, axis=(0, 1))
    share = (panel.values - low) / np.maximum(high - low, 1e-6)
    return panel.with_values((bounds[:, 0] + share * (bounds[:, 1] - bounds[:, 0])).astype(np.float32))


Defect = Callable[[], AbstractContextManager[None]]
DEFECTS: Mapping[str, Defect] = {
    "as it is": nullcontext,
    "half of the noise": lambda: noise_times(0.5),
    "no noise": lambda: noise_times(0.0),
    "one scalar of noise": one_scalar,
    "scaled by private extremes": nullcontext,  # its panels are `stretched`
}
SCALED = "scaled by private extremes"
