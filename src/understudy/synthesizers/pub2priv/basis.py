"""Public windows of context say which of its features differ, so that nothing has to be spent on learning that.

Prices of one market move together: what tells two windows apart lies in few directions. Features are turned into these
directions and scaled most of the way to equal size, so that a private sum neither spends its noise on directions that
never move nor drowns those that move little. A constant stands before them: what shapes have in common, whatever the
context, is learned with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.privacy.contributions import shortened

PREFIX = "basis."
_SMALLEST = 1e-3  # variance of a direction beside that of the largest
_UNEVENNESS = 0.25  # power of a direction's variance that is left: 0 makes all alike, 1 leaves them as they are
_SLACK = 0.9  # clip radius over the root mean square length of public windows


@dataclass(frozen=True, eq=False, kw_only=True)
class Basis:
    """A public linear map of context features, with a bound on what it makes of any context.

    Attributes:
        centre: Mean feature of public windows.
        turn: Matrix [feature, direction].
        products: Mean products [1 + direction, 1 + direction] of mapped public windows; empty where none was public.
        clip: Most that the directions of a context measure.
    """

    centre: np.ndarray
    turn: np.ndarray
    products: np.ndarray
    clip: float

    @property
    def size(self) -> int:
        """Numbers of a mapped context."""
        return 1 + self.turn.shape[1]

    @property
    def reach(self) -> float:
        """Most that a mapped context measures."""
        return float(np.hypot(1.0, self.clip)) if self.turn.shape[1] else 1.0

    @property
    def known(self) -> bool:
        """Whether public windows told the products."""
        return len(self.products) > 0

    @classmethod
    def plain(cls, num_features: int, clip: float) -> "Basis":
        """Returns features as they are, of any length up to `clip`; where there are none, all is known."""
        products = np.zeros((0, 0)) if num_features else np.ones((1, 1))
        return cls(centre=np.zeros(num_features), turn=np.eye(num_features), products=products, clip=clip)

    @classmethod
    def of_public(cls, features: np.ndarray) -> "Basis":
        """Returns the directions in which features [window, feature] of public windows differ."""
        centre = features.mean(axis=0)
        variance, directions = np.linalg.eigh((features - centre).T @ (features - centre) / len(features))
        moves = variance > max(_SMALLEST * variance[-1], 1e-12)
        variance, directions = variance[moves], directions[:, moves]
        share = (variance / variance.max(initial=1e-300)) ** _UNEVENNESS
        turn = directions * np.sqrt(share / np.maximum(variance, 1e-300))
        clip = _SLACK * float(np.sqrt(share.sum())) if len(share) else 1.0
        mapped = cls(centre=centre, turn=turn, products=np.zeros((0, 0)), clip=clip).of(features)
        return cls(centre=centre, turn=turn, products=mapped.T @ mapped / len(mapped), clip=clip)

    def of(self, features: np.ndarray) -> np.ndarray:
        """Returns mapped features [series, 1 + direction], none longer than `reach`."""
        directions = (features - self.centre) @ self.turn
        clipped = shortened(directions, self.clip) if self.turn.shape[1] else directions
        return np.concatenate([np.ones((len(features), 1)), clipped], axis=1)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Returns the map as arrays."""
        parts = {"centre": self.centre, "turn": self.turn, "products": self.products, "clip": np.array([self.clip])}
        return {f"{PREFIX}{name}": np.ascontiguousarray(part) for name, part in parts.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Basis":
        """Returns the map that `to_arrays` stored."""
        centre, turn, products, clip = (arrays[f"{PREFIX}{name}"] for name in ("centre", "turn", "products", "clip"))
        return cls(centre=centre, turn=turn, products=products, clip=float(clip[0]))
