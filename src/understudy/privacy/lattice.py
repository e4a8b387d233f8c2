"""Statistics as exact multiples of a public step, so that no bit below the noise leaves the border.

The sum of two doubles has low-order bits that depend on both, and those bits tell neighbours apart however large the
noise is (Mironov 2012; Jin et al., arXiv:2112.05307). Here a statistic is rounded to whole multiples of a step that
depends on public facts alone, and noise is added to these integers.
"""

import math

import numpy as np
from numpy.typing import NDArray

WIDENING = 1 + 2.0**-10  # of every bound: half for rounding to the lattice, half for float64 sums of up to 2²⁰ units
_ROUNDING = 2.0**-11
_LARGEST = 2.0**62


def lattice_step(length: float, size: int) -> float:
    """Return the largest power of two such that √size steps are at most 2⁻¹¹ · length.

    Rounding to the nearest multiple moves each of `size` coordinates of a difference by at most one step, so the whole
    difference by at most √size steps.
    """
    return 2.0 ** math.floor(math.log2(length * _ROUNDING / math.sqrt(max(1, size))))


def to_lattice(value: NDArray[np.float64], step: float) -> NDArray[np.int64]:
    """Return the nearest whole multiple of `step`; division by a power of two is exact.

    Values beyond ±2⁶² steps are cut off there, which moves no two values apart.
    """
    return np.clip(np.rint(np.asarray(value, np.float64) / step), -_LARGEST, _LARGEST).astype(np.int64)


def from_lattice(multiples: NDArray[np.int64], step: float) -> NDArray[np.float64]:
    """Return the real numbers again; what doubles can't hold is rounded after the noise."""
    return multiples.astype(np.float64) * step
