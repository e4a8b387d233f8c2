"""What units add to a statistic: one vector each, of which the border needs the length and weighted sums alone.

Every kind rounds towards zero, coordinate by coordinate, to whole multiples of a public step. That makes no vector
longer, so a bound on real vectors holds for the integers. Sums of these integers are exact: below 2⁵³ in float64, which
the blocks here see to, and in int64 from one block to the next.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_BLOCK_VECTORS = 2**18  # of at most 2³⁴ steps each: sums stay below 2⁵³
_BLOCK_NUMBERS = 2**20
_MANY_BALLOTS = 8
_SHORTEST, _LONGEST = 1e-100, 1e100


class Contributions(Protocol):
    """Vectors of some series, or units, to one statistic; perhaps never written out."""

    def norms(self) -> Floats:
        """Return at least the Euclidean length of each vector; what is not finite is left out by the border."""

    def weighted_sum(self, factors: Floats, step: float) -> Integers:
        """Return Σ factor · vector, each summand in whole multiples of `step`, rounded towards zero.

        A vector with the factor 0 adds nothing, whatever it holds.
        """


@final
@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Dense vectors [vector, ...]; with a place for each, [place, ...] of which a vector fills its own place."""

    vectors: NDArray[Any]
    place: Integers | None = None
    num_places: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", _numbers(self.vectors))
        object.__setattr__(self, "place", _inside(self.place, self.num_places))

    def norms(self) -> Floats:
        """Return the lengths."""
        flat = self._flat.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.sqrt(np.einsum("vi,vi->v", flat, flat)))

    def weighted_sum(self, factors: Floats, step: float) -> Integers:
        """Return the sum over vectors, place by place if they have places."""
        total = np.zeros((self.num_places, self._flat.shape[1]), dtype=np.int64)
        for here in _blocks(*self._flat.shape):
            whole = _whole(self._flat[here], factors[here], step)
            for place, own in _by_place(self.place, here):
                total[place] += whole[own].sum(axis=0).astype(np.int64)
        shape = self.vectors.shape[1:]
        return total.reshape(shape if self.place is None else (self.num_places, *shape))

    @property
    def _flat(self) -> NDArray[Any]:
        return self.vectors.reshape(len(self.vectors), int(np.prod(self.vectors.shape[1:])))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Votes for cells of ballots, which have their cells to themselves and stand end to end.

    A ballot counts with the sum of its worths, which is its length where all its votes are for one cell, and more
    than that where they are not.

    Attributes:
        vector: Whose each vote is.
        ballot: The ballot of each vote.
        cell: The cell of each vote within its ballot; what lies beyond counts for the last or the first.
        worth: What each vote is worth; one number for all or one each.
        sizes: Cells of each ballot.
    """

    vector: Integers
    ballot: Integers
    cell: Integers
    worth: float | Floats
    num_vectors: int
    sizes: Integers

    def __post_init__(self) -> None:
        """Leaves votes out that are in no ballot or belong to no vector."""
        sizes = _numbers(self.sizes, np.int64)
        vector, ballot, cell = (_numbers(part, np.int64) for part in (self.vector, self.ballot, self.cell))
        worth = _numbers(self.worth, np.float64)
        if not vector.shape == ballot.shape == cell.shape or vector.ndim != 1 or worth.shape not in ((), cell.shape):
            raise InputError("Cells: one vector, ballot, cell and worth of each vote are expected.")
        if sizes.ndim != 1 or (sizes < 1).any():
            raise InputError("Cells: ballots of at least one cell are expected.")
        stays = (vector >= 0) & (vector < self.num_vectors) & (ballot >= 0) & (ballot < len(sizes))
        if not stays.all():
            vector, ballot, cell = vector[stays], ballot[stays], cell[stays]
            worth = worth[stays] if worth.ndim else worth
        for name, part in (("vector", vector), ("ballot", ballot), ("cell", cell), ("worth", worth), ("sizes", sizes)):
            object.__setattr__(self, name, part)

    @classmethod
    def one_each(cls, cells: Integers, num_cells: int, ballot: Integers | None = None, num_ballots: int = 0) -> "Cells":
        """Return one vote of each vector [vector, ballot] in each ballot of `num_cells` cells; -1 votes for none.

        Args:
            ballot: The ballot [vector, ballot] of each vote where it is not its place, of `num_ballots`.
        """
        voted = cells >= 0
        place = np.broadcast_to(np.arange(cells.shape[1]), cells.shape) if ballot is None else ballot
        sizes = np.full(num_ballots or cells.shape[1], num_cells)
        return cls(np.nonzero(voted)[0], place[voted], cells[voted], 1.0, len(cells), sizes)

    def norms(self) -> Floats:
        """Return the lengths of vectors whose ballots are for one cell each; no vector with these votes is longer."""
        keys = self.vector if len(self.sizes) == 1 else self.vector * len(self.sizes) + self.ballot
        owner = np.arange(self.num_vectors * len(self.sizes)) // max(1, len(self.sizes))
        if len(owner) > _MANY_BALLOTS * max(1, len(keys)):  # few of all ballots are used
            used, keys = np.unique(keys, return_inverse=True)
            owner = used // len(self.sizes)
        worth = np.broadcast_to(np.abs(self.worth), keys.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            ballots = np.bincount(keys, worth, minlength=len(owner))
            return np.asarray(np.sqrt(np.bincount(owner, ballots**2, minlength=self.num_vectors)))

    def weighted_sum(self, factors: Floats, step: float) -> Integers:
        """Return the votes for each cell."""
        total = np.zeros(int(self.sizes.sum()), dtype=np.int64)
        if len(self.sizes) == 1:
            place = np.clip(self.cell, 0, self.sizes[0] - 1)
        else:
            place = np.clip(self.cell, 0, self.sizes[self.ballot] - 1)
            place += (np.cumsum(self.sizes) - self.sizes)[self.ballot]
        worth = np.broadcast_to(self.worth, place.shape)
        for here in _blocks(len(place), 1):
            whole = _whole(worth[here], factors[self.vector[here]], step)
            total += np.bincount(place[here], whole, minlength=len(total)).astype(np.int64)
        return total


@final
@dataclass(frozen=True, eq=False, repr=False)
class Products:
    """Second moments of rows [vector, group, coordinate]: x xᵀ of each group, the upper triangles end to end.

    Attributes:
        block: Block of each coordinate; None has all in one.
        inside: Weight of a product inside a block.
        across: Weight of a product of two blocks, at most `inside`.
        place: Place of each vector, for sums [place, pair].
    """

    rows: Floats
    block: Integers | None = None
    inside: float = 1.0
    across: float | None = None
    place: Integers | None = None
    num_places: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", _numbers(self.rows, np.float64))
        object.__setattr__(self, "place", _inside(self.place, self.num_places))
        across = self.inside if self.across is None else self.across
        if not 2.0**-20 <= self.inside <= 2.0**20 or not 0 <= across <= self.inside:
            raise InputError("Products: a weight inside blocks near one is expected, and one across them not above it.")
        object.__setattr__(self, "across", across)
        if self.rows.ndim != 3 or (self.block is not None and len(self.block) != self.rows.shape[2]):
            raise InputError("Products: rows [vector, group, coordinate] and a block of each coordinate are expected.")

    def norms(self) -> Floats:
        """Return the lengths, of which twice the square is v² (Σ_b S_b² + Σ_i x_i⁴) + w² (S² − Σ_b S_b²).

        S_b = Σ_(i in b) x_i², S = Σ_b S_b, v and w are the weights inside and across.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.rows**2
            order = np.concatenate(self._members)
            sorted_squares = squares if (np.diff(order) == 1).all() else squares[:, :, order]
            blocks = np.add.reduceat(sorted_squares, np.cumsum([0, *map(len, self._members[:-1])]), axis=2)
            inside = (blocks**2).sum(axis=2)
            across = np.maximum(blocks.sum(axis=2) ** 2 - inside, 0.0)
            twice = self.inside**2 * (inside + (squares**2).sum(axis=2)) + self._across**2 * across
            return np.asarray(np.sqrt(0.5 * twice.sum(axis=1)))

    def weighted_sum(self, factors: Floats, step: float) -> Integers:
        """Return the sums of products, exact because rows are made whole first.

        A product inside a block is the sum of two with the weights w and v − w and the same sign.
        """
        _, groups, size = self.rows.shape
        total = np.zeros((self.num_places, groups, size, size), dtype=np.int64)
        for here in _blocks(len(self.rows), groups * size):
            for weight, together in ((self._across, [np.arange(size)]), (self.inside - self._across, self._members)):
                if weight == 0:
                    continue
                whole = _whole(self.rows[here], np.sqrt(weight * factors[here]), float(np.sqrt(step)))
                for place, own in _by_place(self.place, here):
                    for block in together:
                        part = whole[own][:, :, block].transpose(1, 0, 2)
                        total[place][:, block[:, None], block] += (part.transpose(0, 2, 1) @ part).astype(np.int64)
        flat = total[:, :, *np.triu_indices(size)].reshape(self.num_places, -1)
        return flat[0] if self.place is None else flat

    @property
    def _across(self) -> float:
        assert self.across is not None
        return self.across

    @cached_property
    def _members(self) -> list[Integers]:
        """Coordinates of each block."""
        block = np.zeros(self.rows.shape[2], dtype=np.int64) if self.block is None else self.block
        return [np.flatnonzero(block == one) for one in np.unique(block)]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Crossed:
    """Products left rightᵀ of two rows of each vector, [vector, left] and [vector, right]."""

    left: Floats
    right: Floats

    def __post_init__(self) -> None:
        for name in ("left", "right"):
            object.__setattr__(self, name, np.ascontiguousarray(_numbers(getattr(self, name), np.float64)))
        if len(self.left) != len(self.right):
            raise InputError("Crossed: two rows of each vector are expected.")

    def norms(self) -> Floats:
        """Return ‖left‖ ‖right‖; not finite where a side is so long or short that its squares lose digits."""
        with np.errstate(over="ignore", invalid="ignore"):
            left, right = (np.sqrt((side**2).sum(axis=1)) for side in (self.left, self.right))
            usable = (left > _SHORTEST) & (left < _LONGEST) & (right > _SHORTEST) & (right < _LONGEST)
            nothing = ~self.left.any(axis=1) | ~self.right.any(axis=1)
            finite = np.isfinite(left) & np.isfinite(right)
            return np.asarray(np.where(usable, left * right, np.where(nothing & finite, 0.0, np.inf)))

    def weighted_sum(self, factors: Floats, step: float) -> Integers:
        """Return the sums of products, exact because rows are made whole first."""
        total = np.zeros((self.left.shape[1], self.right.shape[1]), dtype=np.int64)
        for here in _blocks(len(self.left), sum(total.shape)):
            sides = self._balanced(here)
            left, right = (_whole(side, np.sqrt(factors[here]), float(np.sqrt(step))) for side in sides)
            total += (left.T @ right).astype(np.int64)
        return total

    def _balanced(self, here: slice) -> tuple[Floats, Floats]:
        """Return both rows brought to one length, so that neither loses more than the other in whole steps."""
        left, right = self.left[here], self.right[here]
        with np.errstate(all="ignore"):
            lengths = [np.sqrt((side**2).sum(axis=1, keepdims=True)) for side in (left, right)]
            ratio = np.sqrt(lengths[1] / lengths[0])
            usable = np.isfinite(ratio) & (ratio > 0)
            return np.where(usable, left * ratio, 0.0), np.where(usable, right / ratio, 0.0)


@final
@dataclass(frozen=True, eq=False, repr=False)
class SideBySide:
    """Several contributions of the same vectors as one: their coordinates end to end."""

    parts: Sequence[Contributions]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))  # the same for the length and for the sum

    def norms(self) -> Floats:
        """Return the lengths of the joined vectors."""
        with np.errstate(over="ignore"):
            return np.asarray(np.sqrt(np.sum([part.norms() ** 2 for part in self.parts], axis=0)))

    def weighted_sum(self, factors: Floats, step: float) -> Integers:
        """Return the sums of all parts, end to end."""
        return np.concatenate([part.weighted_sum(factors, step).ravel() for part in self.parts])


def require_known(contributions: Contributions) -> None:
    """Refuse a kind of contributions that is not of this module: its lengths would have to be trusted."""
    if type(contributions) is SideBySide:
        for part in contributions.parts:
            require_known(part)
    elif type(contributions) not in (Rows, Cells, Products, Crossed):
        raise InputError("Contributions of a kind that the border knows are expected.")


def shortened(vectors: Floats, length: float) -> Floats:
    """Return vectors [vector, coordinate] scaled down to `length` where they are longer, and 0 if not finite.

    A method shapes what it adds by this, so that one large part does not take the others with it; no bound rests on it.
    """
    norms = Rows(vectors).norms()
    factors = np.divide(length, norms, out=np.ones(len(norms)), where=norms > length)
    return np.asarray(np.where(np.isfinite(norms)[:, None], vectors, 0.0) * factors[:, None])


def _numbers(values: Any, kind: type | None = None) -> NDArray[Any]:
    """Return an array of numbers; refuse all else before an error of numpy quotes a value."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputError("Contributions: arrays of numbers are expected.")
    return array if kind is None else array.astype(kind, copy=False)


def _inside(place: Integers | None, num_places: int) -> Integers | None:
    """Return places as they are counted; what lies beyond counts for the last or the first."""
    return None if place is None else np.clip(np.asarray(place, dtype=np.int64), 0, num_places - 1)


def _whole(values: NDArray[Any], factors: Floats, step: float) -> Floats:
    """Return factor · value in whole steps, rounded towards zero; 0 where the factor is 0."""
    scale = (factors / step).reshape(-1, *[1] * (values.ndim - 1))
    with np.errstate(invalid="ignore", over="ignore"):
        whole: Floats = np.asarray(values * scale)
        np.trunc(whole, out=whole)
    if not (factors > 0).all():
        whole[~(factors > 0)] = 0.0
    return whole


def _blocks(number: int, size: int) -> Iterator[slice]:
    """Return slices of vectors so few that float64 adds them up exactly and copies of them are small."""
    length = max(1, min(_BLOCK_VECTORS, _BLOCK_NUMBERS // max(1, size)))
    return (slice(begin, begin + length) for begin in range(0, number, length))


def _by_place(place: Integers | None, here: slice) -> Iterator[tuple[int, Any]]:
    """Yield each place and which of the vectors belong to it."""
    if place is None:
        yield 0, slice(None)
        return
    order = np.argsort(place[here], kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(place[here][order])) + 1):
        yield int(place[here][own[0]]), own
