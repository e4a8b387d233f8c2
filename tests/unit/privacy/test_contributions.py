"""Every kind of contributions against vectors written out: lengths, sums, and units made to do harm."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import InputError
from understudy.privacy.border import Given, Statistic, clipped_sum, lattice_step
from understudy.privacy.contributions import Cells, Contributions, Crossed, Products, Rows, SideBySide, shortened

BOUND, VECTORS = 1.7, 7
ODD = (0.0, 1.0, -1e-3, 1e-300, -5e-324, 1e30, -1e200, 1e308, np.inf, -np.inf, np.nan)


@dataclass(frozen=True)
class Kind:
    """How to make contributions from numbers [vector, 6], and the same written out as dense vectors."""

    make: Callable[[np.ndarray], Contributions]
    written_out: Callable[[np.ndarray], np.ndarray]


PLACE = np.array([2, 0, 2, 1, 0, 2, 2])
BLOCK = np.array([0, 0, 1, 1, 1, 2])
UPPER = np.triu_indices(6)


def by_place(vectors: np.ndarray, num_places: int = 3) -> np.ndarray:
    out = np.zeros((len(vectors), num_places, vectors.shape[1]))
    out[np.arange(len(vectors)), PLACE[: len(vectors)]] = vectors
    return out.reshape(len(vectors), -1)


def outer(rows: np.ndarray, other: np.ndarray) -> np.ndarray:
    return rows[:, :, None] * other[:, None]


def triangles(rows: np.ndarray, inside: float, across: float) -> np.ndarray:
    weights = np.where(BLOCK[:, None] == BLOCK, inside, across)
    return (weights * outer(rows, rows))[:, *UPPER]


def votes(rows: np.ndarray) -> Cells:
    """Six votes of each vector in two ballots, three for one cell each time: worth what the numbers say."""
    vector, number = (index.ravel() for index in np.indices(rows.shape))
    return Cells(vector, number // 3, np.where(number < 3, 1, number % 3), rows.ravel(), len(rows), np.array([3, 4]))


def votes_written_out(rows: np.ndarray) -> np.ndarray:
    out = np.zeros((len(rows), 7))
    out[:, 1] = rows[:, :3].sum(axis=1)
    out[:, 3:6] = rows[:, 3:]
    return out


KINDS = {
    "rows": Kind(Rows, lambda rows: rows),
    "rows in places": Kind(lambda rows: Rows(rows, PLACE[: len(rows)], 3), by_place),
    "rows of a matrix": Kind(lambda rows: Rows(rows.reshape(len(rows), 2, 3)), lambda rows: rows),
    "cells": Kind(votes, votes_written_out),
    "products": Kind(lambda rows: Products(rows[:, None]), lambda rows: outer(rows, rows)[:, *UPPER]),
    "products of blocks": Kind(lambda rows: Products(rows[:, None], BLOCK, 0.8, 0.3), lambda r: triangles(r, 0.8, 0.3)),
    "products of groups": Kind(
        lambda rows: Products(rows.reshape(len(rows), 2, 3)),
        lambda rows: np.concatenate([outer(part, part)[:, *np.triu_indices(3)] for part in np.split(rows, 2, 1)], 1),
    ),
    "products in places": Kind(
        lambda rows: Products(rows[:, None], place=PLACE[: len(rows)], num_places=3),
        lambda rows: by_place(outer(rows, rows)[:, *UPPER]),
    ),
    "crossed": Kind(
        lambda rows: Crossed(rows[:, :4], rows[:, 4:]),
        lambda rows: outer(rows[:, :4], rows[:, 4:]).reshape(len(rows), -1),
    ),
    "side by side": Kind(
        lambda rows: SideBySide([Rows(rows), Products(rows[:, None]), votes(rows)]),
        lambda rows: np.concatenate([rows, outer(rows, rows)[:, *UPPER], votes_written_out(rows)], axis=1),
    ),
}
EXACT = sorted(set(KINDS) - {"cells", "side by side"})  # votes of one ballot for several cells count for more
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


@every_kind
def test_sums_are_those_of_the_vectors_written_out(kind: Kind) -> None:
    rng = np.random.default_rng(1)
    rows, factors, step = rng.normal(size=(VECTORS, 6)), rng.random(VECTORS), 2.0**-30
    found = kind.make(rows).weighted_sum(factors, step)
    assert found.dtype == np.int64
    expected = factors @ kind.written_out(rows)
    np.testing.assert_allclose(found.ravel() * step, expected, atol=1e-3)  # rows of products are laid on √step


@every_kind
def test_no_vector_is_longer_than_its_norm_says(kind: Kind) -> None:
    rows = np.random.default_rng(2).normal(size=(VECTORS, 6))
    written = np.linalg.norm(kind.written_out(rows), axis=1)
    assert (kind.make(rows).norms() >= written * (1 - 1e-12)).all()


@pytest.mark.parametrize("name", EXACT)
def test_norms_are_lengths(name: str) -> None:
    rows = np.random.default_rng(3).normal(size=(VECTORS, 6))
    np.testing.assert_allclose(KINDS[name].make(rows).norms(), np.linalg.norm(KINDS[name].written_out(rows), axis=1))


def test_votes_of_one_ballot_for_one_cell_have_their_length() -> None:
    cells = Cells.one_each(np.array([[0, 2], [1, -1], [-1, -1]]), 3)
    np.testing.assert_allclose(cells.norms(), [np.sqrt(2), 1, 0])
    assert cells.weighted_sum(np.ones(3), 1.0).tolist() == [1, 1, 0, 0, 0, 1]


def test_many_ballots_of_which_few_are_used_have_the_same_lengths() -> None:
    rng = np.random.default_rng(4)
    vector, ballot = np.sort(rng.integers(0, 9, 50)), rng.integers(0, 1000, 50)
    few = Cells(vector, ballot, np.zeros(50, int), rng.random(50), 9, np.ones(1000, int))
    expected = np.zeros((9, 1000))
    np.add.at(expected, (vector, ballot), few.worth)
    np.testing.assert_allclose(few.norms(), np.linalg.norm(expected, axis=1))


def test_a_cell_beyond_its_ballot_never_reaches_the_next() -> None:
    cells = Cells(np.array([0, 0]), np.array([0, 1]), np.array([99, -7]), 1.0, 1, np.array([3, 2]))
    assert cells.weighted_sum(np.ones(1), 1.0).tolist() == [0, 0, 1, 1, 0]


@every_kind
@given(data=st.data())
def test_one_unit_whatever_it_holds_moves_the_sum_by_at_most_the_bound(kind: Kind, data: st.DataObject) -> None:
    """The theorem, in integers: no tolerance but what the noise is widened by."""
    number = st.one_of(st.sampled_from(ODD), st.floats(width=64))
    series = data.draw(st.lists(st.lists(number, min_size=6, max_size=6), min_size=1, max_size=3))
    with np.errstate(all="ignore"):
        unit = kind.make(np.array(series))
    step, own = lattice_step(BOUND, 1.0), np.zeros(len(series), dtype=np.int64)
    shape = unit.weighted_sum(np.zeros(len(series)), step).shape
    moved = clipped_sum(Statistic(label="sum", shape=shape, bound=BOUND), step, unit, own)
    assert sum(int(one) ** 2 for one in moved.ravel()) <= (BOUND / step) ** 2 * (1 + 2.0**-20) ** 2


@every_kind
def test_what_has_the_factor_zero_adds_nothing(kind: Kind) -> None:
    rows = np.full((3, 6), np.nan)
    rows[1], rows[2] = np.inf, 1e308
    assert not kind.make(rows).weighted_sum(np.zeros(3), 1.0).any()


@every_kind
def test_rounding_makes_no_coordinate_larger(kind: Kind) -> None:
    rows = np.random.default_rng(6).normal(size=(1, 6))
    found = kind.make(rows).weighted_sum(np.ones(1), 2.0**-8).ravel() * 2.0**-8
    written = kind.written_out(rows)[0]
    assert (np.abs(found) <= np.abs(written) * (1 + 1e-12)).all()


@every_kind
def test_the_order_of_vectors_and_blocks_of_them_do_not_matter(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    rows, factors = rng.normal(size=(VECTORS, 6)), rng.random(VECTORS)
    whole = kind.make(rows).weighted_sum(factors, 2.0**-30)
    monkeypatch.setattr("understudy.privacy.contributions._BLOCK_NUMBERS", 12)
    assert np.array_equal(kind.make(rows).weighted_sum(factors, 2.0**-30), whole)


def test_a_million_series_of_one_unit_weigh_as_much_as_one() -> None:
    rows = np.random.default_rng(8).normal(size=(1_000_000, 3)) * 100
    statistic, step = Statistic(label="sum", shape=(3,), bound=1.0), lattice_step(1.0, 1.0)
    total = Given(Rows(rows), unit=np.zeros(len(rows), int)).total(statistic, step)
    assert np.linalg.norm(total * step) <= 1.0
    ones = Given(Rows(np.ones((1_000_000, 3))), unit=np.zeros(1_000_000, int)).total(statistic, step)
    np.testing.assert_allclose(ones * step, np.ones(3) / np.sqrt(3), rtol=1e-3)


def test_sums_at_the_limit_neither_overflow_nor_lose_a_step() -> None:
    """A million units near the largest number of steps in a bound: their sum is no double any more."""
    bound = 3.999
    step = lattice_step(bound, 1.0)
    rows = bound * (1 - np.random.default_rng(9).random((2**20, 1)) / 100)
    total = Given(Rows(rows)).total(Statistic(label="sum", shape=(1,), bound=bound), step)
    assert int(total[0]) == sum(int(row) for row in np.trunc(rows[:, 0] / step))
    assert int(total[0]) > 2**53
    assert 2**28 * int(bound / step) < 2**63  # and 2²⁸ units do not overflow


@pytest.mark.parametrize("deviation", [1e-3, 1.0, 1e6, 1e9])
@pytest.mark.parametrize("bound", [1e-9, 0.7, 1.0, 3.999, 1e12])
def test_the_step_is_public_an_even_power_of_two_and_fine(bound: float, deviation: float) -> None:
    step = lattice_step(bound, deviation * bound)
    assert np.log2(step) % 2 == 0
    assert bound / step < 2.0**34
    assert bound / step >= 2.0**32 or deviation * bound / step >= 2.0**48
    assert deviation * bound / step < 2.0**52


def test_shortened_vectors_keep_their_direction() -> None:
    np.testing.assert_allclose(shortened(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0), [[0.6, 0.8], [0.3, 0.4]])
    assert not shortened(np.array([[np.nan, 1.0], [np.inf, 1.0]]), 1.0).any()


def moved_by(unit: Contributions, bound: float) -> float:
    """How far one unit moves the sum, in bounds."""
    step, vectors = lattice_step(bound, bound), len(unit.norms())
    shape = unit.weighted_sum(np.zeros(vectors), step).shape
    total = clipped_sum(Statistic(label="sum", shape=shape, bound=bound), step, unit, np.arange(vectors) * 0)
    return math.sqrt(sum(int(one) ** 2 for one in total.ravel())) * step / bound


LONG = np.random.default_rng(10).normal(size=(1, 4001))
ONE = np.ones(1, dtype=np.int64)
HARMFUL = {
    "squares of int8": (Products(np.array([[[16, 16]]], dtype=np.int8)), 1.0),
    "fourth powers of int64": (Products(np.array([[[2**16]]])), 1.0),
    "squares of float16": (Products(np.array([[[1e-4, 1e-4]]], dtype=np.float16)), 1e-10),
    "squares of float32": (Products(np.array([[[1e-12, 1e-12]]], dtype=np.float32)), 1e-30),
    "crossed int8": (Crossed(np.array([[16, 1]], dtype=np.int8), np.array([[16, 1]], dtype=np.int8)), 1.0),
    "crossed float32 in columns": (Crossed(np.asfortranarray(LONG, np.float32), np.ones((1, 2), np.float32)), 0.5),
    "crossed with tiny squares": (Crossed(np.array([[1.2e154]]), np.array([[2.7e-162]])), 1e-8),
    "crossed with a tiny factor": (Crossed(np.array([[1e154]]), np.array([[1.1e154]])), 1e-15),
    "masked rows": (Rows(np.ma.masked_array([[1e17]], mask=[[True]])), 1.0),
    "a ballot before the first": (Cells(ONE - 1, ONE - 2, ONE, 1e6, 1, np.array([3])), 1.0),
    "uint8 vectors": (Cells(np.full(50, 1, np.uint8), np.arange(50), 0 * np.arange(50), 1.0, 2, np.ones(300)), 1.0),
    "int8 worth": (Cells(ONE - 1, ONE - 1, ONE, np.array([-128], np.int8), 1, np.array([2])), 1.0),
    "nothing across": (Products(np.full((1, 1, 5), 9.0), np.arange(5), 1.0, 0.0), 1.0),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_types_and_sizes_made_to_do_harm_move_the_sum_by_at_most_the_bound(name: str) -> None:
    assert moved_by(*HARMFUL[name]) <= 1 + 2.0**-20


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cells(np.array([0]), np.array([0]), np.zeros(1000, int), 1.0, 1, np.array([3])),
        lambda: Cells(np.array([0]), np.array([0]), np.array([0]), 1.0, 1, np.array([3, 0])),
        lambda: Products(np.ones((1, 1, 3)), across=-1.0),
        lambda: Products(np.ones((1, 1, 3)), across=2.0),
        lambda: Products(np.ones((1, 1, 3)), inside=1e-170),
        lambda: Products(np.ones((1, 1, 3)), block=np.arange(2)),
        lambda: Crossed(np.ones((2, 1)), np.ones((1, 1))),
        lambda: Rows(np.array([["17.5 kW"]], dtype=object)),
        lambda: Products(np.array([[["17.5 kW"]]])),
        lambda: Crossed(np.ones((1, 1)), np.array([["17.5 kW"]])),
        lambda: Cells(np.array([0]), np.array([0]), np.array(["17.5 kW"]), 1.0, 1, np.array([3])),
    ],
)
def test_what_no_length_could_be_told_of_is_refused(make: Callable[[], Contributions]) -> None:
    with pytest.raises(InputError) as refused:
        make()
    assert "17.5" not in str(refused.value)


class Changing(list[Contributions]):
    """Shows short vectors to whoever checks and measures them, and long ones to whoever adds them up."""

    def __iter__(self) -> Iterator[Contributions]:
        self.asked = getattr(self, "asked", 0) + 1
        return iter([Rows(np.full((1, 4), 1e-6 if self.asked < 3 else 1e6))])


def test_parts_that_change_between_length_and_sum_move_it_by_at_most_the_bound() -> None:
    total = clipped_sum(Statistic(label="sum", shape=(4,), bound=1.0), 2.0**-32, SideBySide(Changing()), None)
    assert np.linalg.norm(total * 2.0**-32) <= 1.0


def test_a_kind_that_the_border_does_not_know_is_refused() -> None:
    class Liar:
        def norms(self) -> np.ndarray:
            return np.zeros(1)

        def weighted_sum(self, factors: np.ndarray, step: float) -> np.ndarray:
            return np.array([10**12])

    statistic = Statistic(label="sum", shape=(1,), bound=1.0)
    for unknown in (Liar(), SideBySide([Liar()])):
        with pytest.raises(InputError, match="kind"):
            clipped_sum(statistic, 2.0**-32, unknown, np.zeros(1, int))


@pytest.mark.parametrize("step", [0.0, -1.0, float("nan"), float("inf"), 2.0, 2.0**-60])
def test_a_step_that_is_none_or_overflows_is_refused(step: float) -> None:
    with pytest.raises(InputError, match="step"):
        Statistic(label="sum", shape=(1,), bound=1.0, step=step)


def test_a_vote_in_no_ballot_counts_for_nobody() -> None:
    cells = Cells(np.array([1, 1]), np.array([-1, 2]), np.array([0, 0]), 1e6, 2, np.array([3, 3]))
    assert not cells.norms().any()
    assert not cells.weighted_sum(np.ones(2), 1.0).any()
