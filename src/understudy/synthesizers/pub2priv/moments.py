"""How shapes follow context, from one noisy sum of products; a Gaussian given the context is all it can say.

Each series adds the products of its shape with itself and with its mapped context, and a vote for how long it holds its
values. One Gaussian release of this sum gives a regression of shapes on context and what is left over; gradients
would spend the same budget on reaching the same regression in many noisy steps.

Notation: s shape, u mapped context, S and U their bounds, M regression of s on whitened u.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from understudy.privacy.contributions import Cells, Contributions, Crossed, Products
from understudy.statistics.moments import num_pairs, symmetric
from understudy.synthesizers.pub2priv.holds import NUM_CELLS, sure_shares

PREFIX = "moments."
_OWN_WEIGHT = 0.5  # of products of a shape with itself, or of a context with itself, beside those of both
_TRIANGLE = 0.75  # of the square of a symmetric product that its upper triangle usually has at most
_VOTE_SHARE = 6.0  # all products together may weigh this many times a vote
_FLOOR = 0.3  # smallest variance of a direction of shapes, in units of what noise makes of none
_FALSE = 0.1  # how often noise alone passes for a response to one direction of context
LOUDEST = 0.1  # noise of a response to one direction beside all that shapes do
_LEAST_REST = 1e-3  # variance of a direction that no context explains
_LEAST_SHARE = 0.05  # of all variance that no context explains

Part = tuple[np.ndarray, float]  # places of numbers of a shape, and the sum of their mean squares


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What one series adds to the sum, and how much at most.

    Attributes:
        num_shape, num_context: Numbers of s and of u.
        shape_reach, context_reach: S and U.
        context_known: Whether public windows told the products of u with itself; else they are bought as well.
    """

    num_shape: int
    num_context: int
    shape_reach: float
    context_reach: float
    context_known: bool

    @property
    def size(self) -> int:
        """Length of the sum."""
        own_context = 0 if self.context_known else num_pairs(self.num_context)
        return num_pairs(self.num_shape) + self.num_shape * self.num_context + NUM_CELLS + own_context

    @property
    def vote_weight(self) -> float:
        """Weight of the vote."""
        return self._products_bound / _VOTE_SHARE

    @property
    def bound(self) -> float:
        """Most that one series usually adds: ‖suᵀ‖ = ‖s‖ ‖u‖, a vote is one number, of ssᵀ a triangle."""
        return float(np.hypot(self._products_bound, self.vote_weight))

    @property
    def _products_bound(self) -> float:
        shape, context = self.shape_reach, self.context_reach
        own = _TRIANGLE * _OWN_WEIGHT**2 * (shape**4 + (0.0 if self.context_known else context**4))
        return float(np.sqrt(own + (shape * context) ** 2))

    def contributions(self, shapes: np.ndarray, contexts: np.ndarray, cells: np.ndarray) -> list[Contributions]:
        """Returns what series add.

        Args:
            shapes, contexts: Rows no longer than S and U.
            cells: Cell that each series votes for.
        """
        votes = replace(Cells.one_each(cells[:, None], NUM_CELLS), worth=self.vote_weight)
        own, of_context = (Products(rows[:, None], inside=_OWN_WEIGHT) for rows in (shapes, contexts))
        parts: list[Contributions] = [own, Crossed(shapes, contexts), votes]
        return parts if self.context_known else [*parts, of_context]

    def split(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
        """Returns (shape products, shape by context products, votes, context products if bought)."""
        sizes = [num_pairs(self.num_shape), self.num_shape * self.num_context, NUM_CELLS]
        own, both, votes, context = np.split(vector, np.cumsum(sizes))
        shapes = symmetric(own[None] / _OWN_WEIGHT, self.num_shape)[0]
        crossed = both.reshape(self.num_shape, self.num_context)
        if self.context_known:
            return shapes, crossed, votes / self.vote_weight, None
        contexts = symmetric(context[None] / _OWN_WEIGHT, self.num_context)[0]
        return shapes, crossed, votes / self.vote_weight, contexts


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """Shapes given context: s = gainᵀ u + rest · white noise.

    Attributes:
        gain: [context, shape].
        rest: [shape, shape].
        holds: Share of series by how long they hold values.
        explained: Mean square of shapes that is context's, beyond what all have in common and noise; told by the fit.
    """

    gain: np.ndarray
    rest: np.ndarray
    holds: np.ndarray
    explained: float = 0.0

    def draw(self, contexts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Returns a shape for each mapped context."""
        return contexts @ self.gain + rng.standard_normal((len(contexts), len(self.rest))) @ self.rest.T

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Returns the parts as arrays."""
        return {f"{PREFIX}{name}": np.ascontiguousarray(getattr(self, name)) for name in ("gain", "rest", "holds")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "Moments":
        """Returns what `to_arrays` stored."""
        gain, rest, holds = (arrays[f"{PREFIX}{name}"] for name in ("gain", "rest", "holds"))
        return cls(gain=gain, rest=rest, holds=holds)


def fit_moments(
    vector: np.ndarray, noise: float, count: float, layout: Layout, products: np.ndarray, parts: Sequence[Part] = ()
) -> Moments:
    """Returns the Gaussian behind a noisy sum; post-processing.

    A response is left as it was measured, or left out if noise may explain it. Shrinking it would only make room for
    more of what follows no context, because how long shapes are is known.

    Args:
        noise: Standard deviation of each released number.
        count: Public number of series that the sum is over.
        products: Mean products of u among public windows; empty if they were bought.
        parts: Numbers of a shape whose squares have a known sum.
    """
    shapes, crossed, votes, contexts = layout.split(vector / count)
    noise = noise / count
    of_context = products if contexts is None else contexts
    white = _whitening(of_context, 0.0 if contexts is None else noise)
    whole = _of_known_size(_lifted(shapes, _FLOOR * noise / _OWN_WEIGHT * np.sqrt(len(shapes))), parts)
    variance = noise**2 * (white**2).sum(axis=0)
    regression = _heard(crossed @ white, variance, float(np.trace(whole)))  # M
    rest = _rest(whole, regression)
    gain, shares = white @ regression.T, sure_shares(votes, noise / layout.vote_weight)
    noisy = len(regression) * float(variance[regression.any(axis=0)].sum())
    return Moments(gain=gain, rest=rest, holds=shares, explained=_explained(gain, of_context) - noisy)


def _explained(gain: np.ndarray, products: np.ndarray) -> float:
    """Returns the variance of shapes that follows context, whose first number is the constant."""
    spread = products - np.outer(products[:, 0], products[0])
    return float(np.trace(gain.T @ spread @ gain))


def _heard(regression: np.ndarray, variance: np.ndarray, whole: float) -> np.ndarray:
    """Returns the columns that stand out of noise of a variance each, and 0 for others and where noise is too loud."""
    stands_out = (regression**2).sum(axis=0) > variance * chi2.isf(_FALSE, len(regression))
    return np.asarray(regression * (stands_out & (len(regression) * variance < LOUDEST * whole)))


def _of_known_size(moments: np.ndarray, parts: Sequence[Part]) -> np.ndarray:
    """Returns mean products of shapes, scaled so that the squares of each part have their known sum."""
    scale = np.ones(len(moments))
    for places, square in parts:
        scale[places] = np.sqrt(square / np.diag(moments)[places].sum())
    return moments * np.outer(scale, scale)


def _rest(whole: np.ndarray, regression: np.ndarray) -> np.ndarray:
    """Returns a root of what the regression leaves of mean products, as much in all as is left."""
    left = whole - regression @ regression.T
    values, vectors = np.linalg.eigh((left + left.T) / 2)
    lifted = np.maximum(values, _LEAST_REST)
    amount = max(float(np.trace(left)), _LEAST_SHARE * float(np.trace(whole)))
    return np.asarray((vectors * np.sqrt(lifted * amount / lifted.sum())) @ vectors.T)  # whatever signs of vectors


def _whitening(moments: np.ndarray, noise: float) -> np.ndarray:
    """Returns W [context, direction] with WᵀE[uuᵀ]W = 1, over the directions that stand out of the noise."""
    if not len(moments):
        return np.zeros((0, 0))
    values, vectors = np.linalg.eigh(moments)
    loud = values > max(2 * noise / _OWN_WEIGHT * np.sqrt(len(moments)), 1e-9)
    return np.asarray(vectors[:, loud] / np.sqrt(values[loud]))


def _lifted(moments: np.ndarray, floor: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(moments)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)
