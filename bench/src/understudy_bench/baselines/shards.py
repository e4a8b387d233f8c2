"""Units dealt out to disjoint shards, each by its own content: no coin is kept, and nobody moves for anybody else."""

import hashlib

import numpy as np

from understudy.data import Schema
from understudy.privacy.private_series import PrivateSeries


def shards(private: PrivateSeries, number: int) -> list[np.ndarray]:
    """Returns the rows of each shard, all series of a unit together, in an order that follows from their content.

    Privacy: which shard a unit is in follows from that unit alone. Adding or removing one changes `touched` shards and
    leaves the others as they are, bit by bit.
    """
    panel = private.panel
    ends = np.cumsum(np.bincount(panel.unit, minlength=panel.num_units))
    dealt: list[list[tuple[bytes, np.ndarray]]] = [[] for _ in range(number)]
    for first, last in zip([0, *ends[:-1]], ends, strict=False):
        content = hashlib.blake2b(panel.values[first:last].tobytes() + panel.static[first:last].tobytes()).digest()
        dealt[int.from_bytes(content[:8], "little") % number].append((content, np.arange(first, last)))
    none = np.zeros(0, dtype=np.int64)
    return [np.concatenate([none, *(rows for _, rows in sorted(own, key=lambda one: one[0]))]) for own in dealt]


def touched(schema: Schema) -> int:
    """Returns how many shards a protected unit reaches: its own; an event makes its owner leave one for another."""
    return 2 if schema.unit.kind == "event" else 1
