"""Which units were seen, in sixteen bytes each, to find one that comes twice."""

import hashlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt64

from understudy.data.dtypes import INTEGER_DTYPES


def unit_keys(identifiers: np.ndarray, dtype: str, secret: bytes) -> UInt64[np.ndarray, "unit 2"]:
    """Returns 128 bits for each identifier: a whole number as it is, text as a keyed hash.

    Two texts share a key with a probability below 10⁻²⁴ among 10⁷ units.
    """
    if dtype in INTEGER_DTYPES:
        numbers = identifiers.astype(np.int64).view(np.uint64)
        return np.stack([numbers, np.zeros_like(numbers)], axis=1)
    blake = hashlib.blake2b
    digests = b"".join(blake(text.encode(), digest_size=16, key=secret).digest() for text in identifiers)
    return np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)


def repeated(keys: Sequence[UInt64[np.ndarray, "_ 2"]]) -> bool:
    """Tells whether a key is there twice, in one array or in two."""
    if not keys:
        return False
    first = np.concatenate([piece[:, 0] for piece in keys])
    first.sort()
    ties = np.unique(first[1:][first[1:] == first[:-1]])
    if not len(ties):
        return False
    tied = np.concatenate([piece[np.isin(piece[:, 0], ties)] for piece in keys])
    return len(np.unique(tied, axis=0)) < len(tied)
