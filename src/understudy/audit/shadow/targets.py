"""Whose presence is to be noticed: the series that should be easiest to miss or to find.

Which target is chosen may depend on anything, as long as the shadows that count are made afterwards.
"""

from collections.abc import Callable, Mapping

import numpy as np

from understudy.audit.records import Vectors, distances, isolation

CANDIDATES, NEIGHBOURS = 100, 20  # m and k of Eq. 19 and 20, as in the authors' published code
_QUANTILES = (0.025, 0.975)


def most_isolated(real: Vectors, synthetic: Vectors) -> int:
    """The series furthest from its nearest neighbour (Eq. 18)."""
    return int(isolation(real).argmax())


def most_influential(real: Vectors, synthetic: Vectors) -> int:
    """Of the most isolated series, the one that synthetic series came nearest to (Eq. 19 and 20)."""
    candidates = np.argsort(-isolation(real), kind="stable")[:CANDIDATES]  # Eq. 19
    near = distances(real[candidates], synthetic, NEIGHBOURS).sum(axis=1)  # Eq. 20
    return int(candidates[near.argmin()])


def _extreme(real: Vectors, place: int) -> int:
    low, high = np.quantile(real, _QUANTILES, axis=0)
    number = ((real < low) | (real > high)).sum(axis=1)
    return int(np.argsort(-number, kind="stable")[place])


def first_record(real: Vectors, synthetic: Vectors) -> int:
    """The series with the most columns in the outer 5 % (record 1 of the original ASSD)."""
    return _extreme(real, 0)


def second_record(real: Vectors, synthetic: Vectors) -> int:
    """The series with the second most columns in the outer 5 % (record 2 of the original ASSD)."""
    return _extreme(real, min(1, len(real) - 1))


Target = Callable[[Vectors, Vectors], int]
TARGETS: Mapping[str, Target] = {
    "isolated": most_isolated,
    "influential": most_influential,
    "record-1": first_record,
    "record-2": second_record,
}
SCHEMES: Mapping[str, tuple[str, ...]] = {"assd": ("record-1", "record-2"), "assd+": ("isolated", "influential")}
