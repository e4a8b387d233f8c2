"""Worst cases to try a mechanism on: whose presence is asked about, and among whom.

One canary among one crowd misses most defects. Noise shared by all coordinates is seen only by a canary whose
coordinates cancel it (e_i − e_j); a division by the realised batch only among others who pull the other way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene:
    """One question to a mechanism: was `canary` there, among `others`?

    Attributes:
        name: "<canary>, others <crowd>".
        canary: the vector of the unit in question; whole numbers.
        others: one row per unit that is there either way.
    """

    name: str
    canary: Vector
    others: NDArray[np.float64]

    @property
    def everybody(self) -> NDArray[np.float64]:
        """The others and the canary, who comes last."""
        return np.vstack([self.others, self.canary])

    @property
    def axis(self) -> Vector:
        """Direction of the canary, of length one: what is released is looked at along it."""
        return self.canary / np.linalg.norm(self.canary)


def scenes(
    blocks: Sequence[int],
    *,
    num_others: int = 4,
    canary_length: float = 1.0,
    others_length: float = 1.0,
    rng: np.random.Generator,
) -> tuple[Scene, ...]:
    """Every canary among every crowd.

    Args:
        blocks: sizes of the parts that the released vector is made of (the layers of a network, the columns of a
            histogram); a defect may spare one part only, so each is asked about.
        num_others: units in each crowd; public, like everything here.
        canary_length: how many times longer than its plain form the canary is. Long canaries find clips that
            look at the crowd; mechanisms that do not clip need 1.
        others_length: the same for the others. Beyond the clip norm they pull as hard as anybody can.
        rng: chooses the random canary; nothing private is drawn from it.
    """
    if sum(blocks) < 2 or min(blocks) < 1:
        raise InputError(f"Expected blocks of at least one coordinate and two in total, got {list(blocks)}.")
    return tuple(
        Scene(
            name=f"{name}, others {crowd}",
            canary=canary_length * canary,
            others=np.tile(others_length * row, (num_others, 1)),
        )
        for name, canary in _canaries(blocks, rng).items()
        for crowd, row in _crowds(canary).items()
    )


def _canaries(blocks: Sequence[int], rng: np.random.Generator) -> Mapping[str, Vector]:
    """ones, e_i in each block, e_i − e_j within a block and across blocks, random signs."""
    size = sum(blocks)
    first = np.cumsum(blocks) - blocks
    found = {"ones": np.ones(size)}
    for place in first:
        found[f"e_{place}"] = _basis(size, place)
    for one, other in dict.fromkeys([(0, 1), *pairwise(first)]):
        found[f"e_{one} − e_{other}"] = _basis(size, one) - _basis(size, other)
    found["random"] = rng.choice([-1.0, 1.0], size)
    return found


def _crowds(canary: Vector) -> Mapping[str, Vector]:
    """What each of the others is like: nothing, the canary's likeness, its opposite, or at right angles to it."""
    one = int(np.flatnonzero(canary)[0])
    other = one + 1 if one + 1 < len(canary) else one - 1
    across = canary[other] * _basis(len(canary), one) - canary[one] * _basis(len(canary), other)
    return {"zero": np.zeros_like(canary), "aligned": canary, "opposed": -canary, "orthogonal": across}


def _basis(size: int, place: int) -> Vector:
    vector = np.zeros(size)
    vector[place] = 1.0
    return vector
