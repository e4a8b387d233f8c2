"""Relatives that are fresh draws: from the parent's cell, in its class, different for parents that are alike."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from understudy.nn.nearest import nearest
from understudy.synthesizers.pets import redrawing
from understudy.synthesizers.pets.evolution import Environment, evolve
from understudy.synthesizers.pets.population import Population
from understudy.synthesizers.pets.redrawing import redrawn


def fresh(group: np.ndarray, rng: np.random.Generator) -> Population:
    """Series of two steps; those of class 1 lie elsewhere."""
    series = rng.standard_normal((len(group), 2, 1)) + 100 * group[:, None, None]
    return Population.first(series, np.zeros((len(group), 0)), group)


def embed(series: np.ndarray, static: np.ndarray) -> np.ndarray:
    return series.reshape(len(series), -1).astype(np.float32)


def parents_of(points: np.ndarray, group: np.ndarray) -> Population:
    return Population.first(points.reshape(len(points), 2, 1), np.zeros((len(points), 0)), group)


def test_relatives_lie_in_the_cell_and_the_class_of_their_parent() -> None:
    rng = np.random.default_rng(0)
    parents = fresh(np.repeat([0, 1], 30), rng)
    children = redrawn(parents, fresh, embed, rng)
    np.testing.assert_array_equal(children.group, parents.group)
    np.testing.assert_array_equal(children.ancestor, parents.ancestor)
    cells = nearest(embed(children.series, children.static), embed(parents.series, parents.static))[0][:, 0]
    assert (cells == np.arange(60)).mean() > 0.7  # the others' cells were empty among 90 draws of a class
    assert not np.isclose(children.series, parents.series).all(axis=1).any()


def test_parents_that_are_alike_get_different_relatives_as_long_as_there_are_any() -> None:
    rng = np.random.default_rng(1)
    parents = parents_of(np.repeat([[-1.0, 0.0], [1.0, 0.0]], 10, axis=0), np.zeros(20, dtype=np.int64))
    children = redrawn(parents, fresh, embed, rng)
    assert len(np.unique(children.series, axis=0)) == 20
    assert (np.sign(children.series[:, 0, 0]) == np.sign(parents.series[:, 0, 0])).all()


def test_an_empty_cell_gives_the_nearest_draw() -> None:
    rng = np.random.default_rng(2)
    far = np.array([[0.0, 0.0], [0.0, 50.0]])
    children = redrawn(parents_of(far, np.zeros(2, dtype=np.int64)), fresh, embed, rng)
    assert np.isfinite(children.series).all()
    assert abs(children.series[1]).max() < 10


def test_many_parents_are_served_in_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redrawing, "_PASS_PARENTS", 7)
    rng = np.random.default_rng(3)
    parents = fresh(np.zeros(40, dtype=np.int64), rng)
    children = redrawn(parents, fresh, embed, rng)
    np.testing.assert_array_equal(children.ancestor, parents.ancestor)


@pytest.mark.parametrize("voting", [True, False])
def test_one_vote_puts_the_density_of_the_start_right(voting: bool) -> None:
    """Private points are N(0.8, 0.5²), the start draws N(0, 1). Without votes, the control, children stay as they were.

    Kolmogorov–Smirnov distance of 1,500 children and 4,000 points: at most 0.06 by chance in 10⁻³ of runs (seeded).
    """
    rng = np.random.default_rng(4)
    private = (0.8 + 0.5 * rng.standard_normal((4_000, 2))).astype(np.float32)

    def vote(candidates: np.ndarray, group: np.ndarray) -> np.ndarray:
        near = nearest(private, candidates)[0][:, 0]
        counted = np.bincount(near, minlength=len(candidates)).astype(np.float64)
        return counted if voting else np.ones(len(candidates))

    environment = Environment(variation=None, similarity=lambda series: embed(series, series), lookahead=0, fresh=fresh)
    start = fresh(np.zeros(1_500, dtype=np.int64), rng)
    last = evolve(start, environment, vote, ((10.0, 0.0),), rng, lambda done, population: None)
    distance = ks_2samp(last.series[:, 0, 0], private[:, 0]).statistic
    assert distance < 0.06 if voting else distance > 0.25
