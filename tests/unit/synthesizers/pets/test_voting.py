"""One unit, one vote: whoever votes moves the histogram by at most one, and moves nobody else's vote."""

import numpy as np
import pytest

from understudy.privacy.border import Given, Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import DiscreteGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.synthesizers.pets.selection import Lattice, Voters, contributions, private_vote

DIMENSION, CANDIDATES = 6, 40


def coordinates(rng: np.random.Generator, number: int) -> np.ndarray:
    return rng.integers(-300, 301, (number, DIMENSION)).astype(np.int16)


def electorate(rng: np.random.Generator, series_per_unit: np.ndarray, classes: int = 1) -> Voters:
    """Units with the given numbers of series."""
    unit = np.repeat(np.arange(len(series_per_unit)), series_per_unit)
    return Voters(coordinates(rng, len(unit)), unit, rng.integers(0, classes, len(unit)), len(series_per_unit))


def without(voters: Voters, unit: int) -> Voters:
    kept = voters.unit != unit
    return Voters(voters.coordinates[kept], voters.unit[kept], voters.group[kept], voters.num_units)


def grant(*, one_vote: bool = False, noise: float = 0.0) -> Grant:
    event = DiscreteGaussian(4.0, one_vote=one_vote)
    plan = SpendingPlan((PlanEntry("votes", event),), Guarantee(9.0, 1e-6))
    return Ledger.in_memory(plan.guarantee).charge(plan, label="test", noise=NoiseSource.constant(noise))


def counted(voters: Voters, candidates: np.ndarray, group: np.ndarray, neighbours: int) -> np.ndarray:
    """What the border releases, without noise."""
    statistic = Statistic(label="votes", shape=group.shape, bound=1.0)
    return grant().release(statistic, Given(contributions(voters, candidates, group, neighbours)))


@pytest.mark.parametrize("neighbours", [1, 3, 7])
def test_the_votes_add_up_to_the_units_times_the_root_of_the_neighbours(neighbours: int) -> None:
    rng = np.random.default_rng(0)
    voters = electorate(rng, np.ones(200, dtype=int))
    total = counted(voters, coordinates(rng, CANDIDATES), np.zeros(CANDIDATES, dtype=int), neighbours).sum()
    assert total == pytest.approx(200 * np.sqrt(neighbours), rel=1e-8)
    assert total <= 200 * np.sqrt(neighbours)


@pytest.mark.parametrize("neighbours", [1, 2, 5])
@pytest.mark.parametrize("classes", [1, 3])
def test_removing_any_unit_moves_the_histogram_by_at_most_one(neighbours: int, classes: int) -> None:
    rng = np.random.default_rng(1)
    voters = electorate(rng, rng.integers(1, 60, 30), classes)
    candidates, group = coordinates(rng, CANDIDATES), np.sort(rng.integers(0, classes, CANDIDATES))
    everybody = counted(voters, candidates, group, neighbours)
    moves = [
        np.linalg.norm(everybody - counted(without(voters, unit), candidates, group, neighbours)) for unit in range(30)
    ]
    assert max(moves) <= 1
    assert min(moves) > 0.999  # votes are not much too light either
    lengths = contributions(voters, candidates, group, neighbours).norms()
    np.testing.assert_allclose(lengths, 1, rtol=1e-12)  # the border has nothing to clip


def test_a_unit_with_five_hundred_copies_moves_the_histogram_by_at_most_one() -> None:
    rng = np.random.default_rng(2)
    others = electorate(rng, np.ones(5, dtype=int))
    together = Voters(
        np.concatenate([others.coordinates, np.repeat(coordinates(rng, 1), 500, axis=0)]),
        np.concatenate([others.unit, np.full(500, 9)]),
        np.concatenate([others.group, np.zeros(500, dtype=int)]),
        10,
    )
    candidates, group = coordinates(rng, CANDIDATES), np.zeros(CANDIDATES, dtype=int)
    with_them = counted(together, candidates, group, 1)
    assert np.linalg.norm(with_them - counted(others, candidates, group, 1)) == 1


def test_without_normalisation_that_unit_would_have_been_caught() -> None:
    votes = np.zeros(CANDIDATES)
    np.add.at(votes, np.full(500, 3), 1.0)
    assert np.linalg.norm(votes) > 1


def test_whole_votes_are_whole_and_one_each() -> None:
    rng = np.random.default_rng(3)
    voters, lattice = electorate(rng, np.ones(77, dtype=int)), Lattice.around(rng.normal(size=(50, DIMENSION)))
    found = []
    for noise in (0.0, 1.0):
        vote = private_vote(voters, grant(one_vote=True, noise=noise), lattice, 1, 1)
        found.append(vote(np.random.default_rng(0).normal(size=(CANDIDATES, DIMENSION)), np.zeros(CANDIDATES, int)))
    assert np.array_equal(found[0], np.rint(found[0]))
    assert found[0].sum() == 77
    assert (found[1] - found[0] == 4).all()


@pytest.mark.parametrize("influence", [1, 6])
def test_the_noise_grows_with_the_vectors_that_one_event_can_change(influence: int) -> None:
    rng = np.random.default_rng(4)
    voters, lattice = electorate(rng, np.ones(5, dtype=int)), Lattice.around(rng.normal(size=(50, DIMENSION)))
    vote = private_vote(voters, grant(noise=1.0), lattice, 2, influence)
    noisy = vote(np.random.default_rng(0).normal(size=(CANDIDATES, DIMENSION)), np.zeros(CANDIDATES, int))
    assert noisy.min() == pytest.approx(4.0 * influence, rel=1e-5)


def test_series_vote_inside_their_class() -> None:
    rng = np.random.default_rng(5)
    voters = electorate(rng, np.ones(90, dtype=int), classes=3)
    group = np.repeat([0, 1, 2], [10, 20, 10])
    votes = counted(voters, coordinates(rng, CANDIDATES), group, 1)
    sizes = np.bincount(voters.group, minlength=3)
    np.testing.assert_allclose([votes[group == own].sum() for own in range(3)], sizes)


def test_a_class_without_voters_and_one_with_few_candidates_are_no_trouble() -> None:
    rng = np.random.default_rng(6)
    voters = electorate(rng, np.ones(12, dtype=int))  # all of class 0
    group = np.repeat([0, 1], [2, 38])
    votes = counted(voters, coordinates(rng, CANDIDATES), group, 5)
    assert (votes[2:] == 0).all()
    assert votes.sum() == pytest.approx(12 * np.sqrt(2), rel=1e-3)


def test_nobody_gives_no_votes() -> None:
    nobody = electorate(np.random.default_rng(0), np.zeros(0, dtype=int))
    assert not counted(nobody, coordinates(np.random.default_rng(0), 4), np.zeros(4, int), 1).any()


@pytest.mark.parametrize("dimension", [1, 64, 320, 2000])
def test_distances_on_the_lattice_are_exact_in_single_precision(dimension: int) -> None:
    lattice = Lattice.around(np.random.default_rng(9).normal(size=(50, dimension)))
    edge = lattice.coordinates(np.full((1, dimension), 1e30))
    assert edge.min() > 0
    assert 3 * dimension * int(edge.max()) ** 2 < 2**24


def test_every_series_has_its_own_coordinates_whatever_else_is_encoded() -> None:
    rng = np.random.default_rng(10)
    lattice = Lattice.around(rng.normal(size=(50, 8)))
    private = rng.normal(size=(20, 8))
    alone = lattice.coordinates(private[3:4])
    outlier = np.concatenate([private, np.full((1, 8), 1e6)])
    np.testing.assert_array_equal(lattice.coordinates(outlier)[3:4], alone)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e38])
def test_an_embedding_that_is_no_number_still_is_one_bounded_vote(odd: float) -> None:
    rng = np.random.default_rng(11)
    lattice = Lattice.around(rng.normal(size=(50, 8)).astype(np.float32))
    points = lattice.coordinates(np.full((1, 8), odd, dtype=np.float32))
    voters = Voters(points, np.zeros(1, np.int64), np.zeros(1, np.int64), 1)
    candidates = lattice.coordinates(rng.normal(size=(9, 8)))
    assert np.linalg.norm(counted(voters, candidates, np.zeros(9, int), 1)) == 1


def test_the_lattice_keeps_who_is_near_whom() -> None:
    rng = np.random.default_rng(12)
    candidates, queries = rng.normal(size=(300, 64)), rng.normal(size=(300, 64))
    exact = ((queries[:, None] - candidates[None]) ** 2).sum(axis=2).argmin(axis=1)
    lattice = Lattice.around(candidates)
    laid = [lattice.coordinates(points).astype(float) for points in (queries, candidates)]
    coarse = ((laid[0][:, None] - laid[1][None]) ** 2).sum(axis=2).argmin(axis=1)
    assert (exact == coarse).mean() > 0.95


def test_voters_show_nothing_of_themselves() -> None:
    voters = electorate(np.random.default_rng(13), np.ones(5, dtype=int))
    assert repr(voters) == "Voters(<private>)"
