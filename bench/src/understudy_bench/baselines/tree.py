"""A distribution over the columns of a table whose dependence is a tree: exact to infer with, exact to draw from.

Private-PGM (McKenna, Sheldon & Miklau, arXiv:1901.09136) on a graph without cycles. Every edge holds the joint
distribution of two columns, and all joints agree with one distribution for each column, so that the tree's is their
product divided by the columns that several edges share.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from understudy.statistics.counts import nearest_distribution, shrink

_ROUNDS = 50  # of proportional fitting
_LEAST = 1e-9


def spanning_tree(pairs: Sequence[tuple[int, int]], merits: np.ndarray, num_columns: int) -> np.ndarray:
    """Returns the edges [edge, (parent, child)] of the tree with the most merit, from the first column outwards."""
    costs = np.zeros((num_columns, num_columns))
    rows, columns = np.array(pairs).T
    costs[rows, columns] = merits.max() - merits + 1.0  # positive, because a zero is no edge
    found = minimum_spanning_tree(costs)
    order, parents = breadth_first_order(found, 0, directed=False)
    return np.stack([parents[order[1:]], order[1:]], axis=1).astype(np.int64)


def joint_of(noisy: np.ndarray, first: np.ndarray, second: np.ndarray, noise: float) -> np.ndarray:
    """Returns the joint distribution with the given margins behind noisy shares.

    What departs no more from independence than noise would make it depart is taken for independence (James–Stein), and
    proportional fitting does the rest.
    """
    independent = np.outer(first, second)
    joint = nearest_distribution(shrink(noisy, independent, noise)[0].ravel()).reshape(noisy.shape)
    joint = (1 - _LEAST) * joint + _LEAST * independent
    for _ in range(_ROUNDS):
        joint *= _ratio(first, joint.sum(axis=1))[:, None]
        joint *= _ratio(second, joint.sum(axis=0))
    return joint


@dataclass(frozen=True, eq=False)
class Tree:
    """Columns, and joints along edges.

    Attributes:
        singles: Distributions [column, level]; what a column has no level for is 0.
        edges: (parent, child) [edge, 2], from the first column outwards.
        joints: Joint distributions [edge, level of the parent, level of the child].
    """

    singles: np.ndarray
    edges: np.ndarray
    joints: np.ndarray

    @classmethod
    def of(cls, singles: Sequence[np.ndarray], edges: np.ndarray, joints: Sequence[np.ndarray]) -> "Tree":
        """Returns the tree of parts of different lengths."""
        most = max(len(own) for own in singles)
        padded = np.stack([np.pad(own, (0, most - len(own))) for own in singles])
        shaped = [np.pad(own, [(0, most - size) for size in own.shape]) for own in joints]
        return cls(padded, edges, np.stack(shaped) if shaped else np.zeros((0, most, most)))

    def draw(self, number: int, rng: np.random.Generator, first: int | None = None) -> np.ndarray:
        """Returns levels [row, column]; `first` fixes those of the first column."""
        codes = np.zeros((number, len(self.singles)), dtype=np.int64)
        codes[:, 0] = drawn_levels(np.tile(self.singles[0], (number, 1)), rng) if first is None else first
        for (parent, child), joint in zip(self.edges, self.joints, strict=True):
            given = joint[codes[:, parent]]
            unseen = given.sum(axis=1) < _LEAST * _LEAST  # a level that nobody has says nothing
            codes[:, child] = drawn_levels(np.where(unseen[:, None], self.singles[child], given), rng)
        return codes


def drawn_levels(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns one level for each row of weights [row, level], in proportion to them."""
    reached = np.cumsum(weights, axis=1)
    return np.asarray((reached <= rng.random((len(weights), 1)) * reached[:, -1:]).sum(axis=1))


def _ratio(wanted: np.ndarray, found: np.ndarray) -> np.ndarray:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)
