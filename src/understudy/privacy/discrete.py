"""Discrete Gaussian and Laplace integers: exact ones from OpenDP, tabulated ones for seeded tests."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

_CHUNK = 1 << 16


def secure_gaussian(scale: float, count: int) -> NDArray[np.int64]:
    """`count` integers with P(x) proportional to exp(−x²/(2·scale²)), from OpenDP's own secure generator."""
    return _draw(_gaussian(_checked(scale)), count)


def secure_laplace(scale: float, count: int) -> NDArray[np.int64]:
    """`count` integers with P(x) proportional to exp(−|x|/scale), from OpenDP's own secure generator."""
    return _draw(_laplace(_checked(scale)), count)


def tabulated_gaussian(scale: float, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """The same distribution by inversion of a table, to double precision; reproducible, for tests."""
    reach = int(10 * scale) + 10
    support = np.arange(-reach, reach + 1)
    return _invert(support, np.exp(-(support**2) / (2 * _checked(scale) ** 2)), uniforms)


def tabulated_laplace(scale: float, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """The same distribution by inversion of a table, to double precision; reproducible, for tests."""
    reach = int(40 * scale) + 10
    support = np.arange(-reach, reach + 1)
    return _invert(support, np.exp(-np.abs(support) / _checked(scale)), uniforms)


def _invert(
    support: NDArray[np.int64], weights: NDArray[np.float64], uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    cumulative = np.cumsum(weights)
    places = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    chosen: NDArray[np.int64] = support[np.minimum(places, len(support) - 1)]
    return chosen


def _draw(measurement: Any, count: int) -> NDArray[np.int64]:
    parts = [measurement([0] * min(_CHUNK, count - start)) for start in range(0, count, _CHUNK)]
    return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts] or [np.empty(0, dtype=np.int64)])


@lru_cache(maxsize=64)
def _gaussian(scale: float) -> Any:
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    return make_gaussian(_integer_vectors(), l2_distance(T="f64"), scale)


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    return make_laplace(_integer_vectors(), l1_distance(T="f64"), scale)


def _integer_vectors() -> Any:
    # Here and not at the top: OpenDP takes a second to import, which most commands never need.
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"))


def _checked(scale: float) -> float:
    if not 0 < scale < 2.0**52:
        raise InputError(f"A discrete noise scale must be positive and below 2⁵², got {scale}.")
    return float(scale)
