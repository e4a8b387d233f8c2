"""Where all privacy noise and every private coin comes from: an AES-CTR keystream, and OpenDP's discrete samplers.

A few outputs of a statistical generator reveal its state, and subtracting predictable noise undoes the guarantee.
Normals are made in double precision from 53-bit uniforms and used for gradients alone; integers are exact.
"""

import hashlib
import math
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NoReturn, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from understudy.errors import InputError

_CHUNK = 1 << 13  # numbers that one thread draws at a time
_PAIRS = 1 << 14  # candidate pairs per block: all temporaries stay in the processor's cache
_BLOCK_BYTES = 16 * _PAIRS
_ZEROS = bytes(_BLOCK_BYTES)
_LARGEST_TABLE = 4096.0  # scale up to which seeded discrete noise, for tests, is read off a table
_live: "weakref.WeakSet[NoiseSource]" = weakref.WeakSet()
Size = int | tuple[int, ...]


def tabulated(kind: str, scale: float, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """The same distributions by inversion of a table, to double precision; reproducible, for tests."""
    gaussian = kind == "gaussian"
    reach = int((10 if gaussian else 40) * _checked(scale)) + 10
    support = np.arange(-reach, reach + 1)
    cumulative = np.cumsum(np.exp(-(support**2) / (2 * scale**2) if gaussian else -np.abs(support) / scale))
    places = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    chosen: NDArray[np.int64] = support[np.minimum(places, len(support) - 1)]
    return chosen


def _draw(measurement: Any, count: int) -> NDArray[np.int64]:
    sizes = [min(_CHUNK, count - start) for start in range(0, count, _CHUNK)]
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # OpenDP takes 12 µs a number and runs beside Python
        parts = list(threads.map(lambda size: measurement([0] * size), sizes))
    return np.concatenate([np.asarray(part, dtype=np.int64) for part in parts] or [np.empty(0, dtype=np.int64)])


@lru_cache(maxsize=64)
def _measurement(kind: str, scale: float) -> Any:
    # Here and not at the top: OpenDP takes a second to import, which most commands never need.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    integers = vector_domain(atom_domain(T="i64"))
    if kind == "gaussian":
        return make_gaussian(integers, l2_distance(T="f64"), scale)
    return make_laplace(integers, l1_distance(T="i64"), scale)


def _checked(scale: float) -> float:
    if not 0 < scale < 2.0**52:
        raise InputError(f"A discrete noise scale must be positive and below 2⁵², got {scale}.")
    return float(scale)


@final
class NoiseSource:
    """Draws noise; made only by `secure()`, or for tests by `seeded()` and `constant()`.

    Thread-safe. A forked child gets a key of its own. The state can't be read, copied or saved: who has it could
    subtract the noise.
    """

    def __init__(self, *, seed: int | None, constant: float | None) -> None:
        self._seed = seed
        self._constant = constant
        self._rekey()
        _live.add(self)

    @classmethod
    def secure(cls) -> "NoiseSource":
        """The only source under which a certificate says *private*."""
        return cls(seed=None, constant=None)

    @classmethod
    def seeded(cls, seed: int) -> "NoiseSource":
        """Reproducible noise, for tests: anyone with the seed can subtract it."""
        return cls(seed=seed, constant=None)

    @classmethod
    def constant(cls, value: float) -> "NoiseSource":
        """Every normal is `scale * value`, for tests that check where noise goes; coins come from seed 0."""
        return cls(seed=0, constant=float(value))

    @property
    def is_secure(self) -> bool:
        """Whether the noise can't be reproduced."""
        return self._seed is None

    @property
    def description(self) -> str:
        """What a certificate says about the source."""
        if self.is_secure:
            return "AES-128-CTR keystream, keyed by the operating system; discrete noise by OpenDP"
        kind = "constant" if self._constant is not None else "seeded"
        return f"{kind}, for tests: reproducible, so it gives no protection"

    def normal(self, scale: float, size: Size) -> NDArray[np.float64]:
        """Independent N(0, scale²) in double precision; about ten nanoseconds each."""
        if not 0 <= scale < math.inf:
            raise InputError(f"A noise scale must be finite and not negative, got {scale}.")
        flat = np.full(int(np.prod(size)), self._constant or 0.0)
        if self._constant is None:
            with self._lock:
                self._fill_normals(flat)
        flat *= scale
        return flat.reshape(size)

    def uniform(self, size: Size) -> NDArray[np.float64]:
        """Uniform on the 2⁵³ multiples of 2⁻⁵³ in [0, 1)."""
        return (self._words53(int(np.prod(size))).astype(np.float64) * 2.0**-53).reshape(size)

    def bernoulli(self, probability: float, size: Size) -> NDArray[np.bool_]:
        """True with `probability`, rounded down to a multiple of 2⁻⁵³; compared as integers, so exact."""
        if not 0 <= probability <= 1:
            raise InputError(f"A probability must lie in [0, 1], got {probability}.")
        threshold = np.uint64(math.floor(probability * 2.0**53))
        return (self._words53(int(np.prod(size))) < threshold).reshape(size)

    def poisson_selection(self, rate: float, num_units: int) -> NDArray[np.int64]:
        """Indices of the units drawn, each on its own coin.

        **Privacy**: how many and which units were drawn is private; nothing of it may be shown or logged.
        """
        return np.flatnonzero(self.bernoulli(rate, num_units))

    def discrete_gaussian(self, scale: float, size: Size) -> NDArray[np.int64]:
        """Independent integers with P(x) proportional to exp(−x²/(2·scale²)) (Canonne, Kamath & Steinke 2020)."""
        if scale > _LARGEST_TABLE and self._constant is None and not self.is_secure:
            # so fine that rounded normals have the same distribution to double precision
            return np.rint(self.normal(scale, size)).astype(np.int64)
        return self._discrete("gaussian", scale, size)

    def discrete_laplace(self, scale: float, size: Size) -> NDArray[np.int64]:
        """Independent integers with P(x) proportional to exp(−|x| / scale)."""
        return self._discrete("laplace", scale, size)

    def _discrete(self, kind: str, scale: float, size: Size) -> NDArray[np.int64]:
        if self._constant is not None:
            return np.full(size, round(scale * self._constant), dtype=np.int64)
        if self.is_secure:
            return _draw(_measurement(kind, _checked(scale)), int(np.prod(size))).reshape(size)
        return tabulated(kind, scale, self.uniform(size))

    def _fill_normals(self, out: NDArray[np.float64]) -> None:
        """Marsaglia's polar form of Box & Muller: no sine, and no pair is used twice."""
        done, total = 0, len(out)
        while done < total:
            pairs = min(_PAIRS, max(64, int((total - done) * 0.66) + 16))
            # 54-bit signed whole numbers, moved by a half so that 0 can't occur, onto (−1, 1)
            square = (self._keystream(2 * pairs).view(np.int64) >> 10).astype(np.float64)
            square += 0.5
            square *= 2.0**-53
            x, y = square[:pairs], square[pairs:]
            radius = x * x
            radius += y * y
            inside = np.flatnonzero(radius < 1.0)
            radius = radius[inside]
            factor = np.log(radius)
            factor /= radius
            factor *= -2.0
            np.sqrt(factor, out=factor)
            for side in (x, y):
                take = min(len(inside), total - done)
                np.multiply(side[inside[:take]], factor[:take], out=out[done : done + take])
                done += take

    def _words53(self, count: int) -> NDArray[np.uint64]:
        out = np.empty(count, dtype=np.uint64)
        with self._lock:
            for start in range(0, count, 2 * _PAIRS):
                stop = min(count, start + 2 * _PAIRS)
                np.right_shift(self._keystream(stop - start), np.uint64(11), out=out[start:stop])
        return out

    def _keystream(self, words: int) -> NDArray[np.uint64]:
        self._encryptor.update_into(memoryview(_ZEROS)[: 8 * words], self._buffer)
        return np.frombuffer(self._buffer, dtype=np.uint64, count=words)

    def _rekey(self) -> None:
        if self._seed is None:
            key, counter = os.urandom(16), os.urandom(16)
        else:
            digest = hashlib.sha256(f"understudy test noise {self._seed}".encode()).digest()
            key, counter = digest[:16], digest[16:]
        self._lock = threading.Lock()
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
        self._buffer = bytearray(_BLOCK_BYTES + 16)

    def __repr__(self) -> str:
        return f"NoiseSource({self.description})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("A NoiseSource can't be copied or saved: its state would undo the noise. Make a new one.")


def _rekey_after_fork() -> None:
    for source in list(_live):
        source._rekey()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_rekey_after_fork)
