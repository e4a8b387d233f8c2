"""Effect sizes are what they say, and one unit moves the figure of a check by no more than its bound."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.unit.synthesizers.ppem.toy import panel, schema
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.ppem import effect_size
from understudy.synthesizers.ppem.attributes import parse

SETS = parse(schema(), ("income", "region"))


def points(number: int, seed: int = 0, shift: float = 0.0) -> np.ndarray:
    """x′: income, then region one-hot."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(shift, 1, (number, 1)), np.eye(3)[rng.choice(3, number)]], axis=1)


def private(number: int) -> PrivateSeries:
    return PrivateSeries.of(panel(number), number)


def test_the_effect_of_a_shift_is_the_closed_form() -> None:
    """Normals one apart: the Wasserstein distance is 1, an eighth of the range."""
    first, second = points(40_000), points(40_000, seed=1, shift=1.0)
    income, region = effect_size.effect_sizes_of(SETS)
    assert income.between(first, second) == pytest.approx(1 / 8, abs=0.005)
    assert region.between(first, second) < 0.03  # regions do not differ
    assert region.between(first, 0 * second + [[0, 1, 0, 0]]) > 0.5


def test_what_a_generator_follows_is_the_effect() -> None:
    first, second = points(400), points(400, seed=1, shift=1.5)
    for size in effect_size.effect_sizes_of(SETS):
        followed = size.differentiable(torch.from_numpy(first).float(), torch.from_numpy(second).float())
        assert float(followed) == pytest.approx(size.between(first, second), abs=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_one_unit_moves_the_figure_by_at_most_its_bound(seed: int) -> None:
    released, real = points(500, seed=99, shift=2.0), points(40, seed=seed)
    real[-1] = [[-1e9, 0, 0, 1], [1e9, 1, 0, 0], [0, 0, 1, 0], [4, 0, 0, 0], [-4, 0, 1, 0]][seed]
    judged = effect_size.effect_sizes_of(SETS)
    many, few = private(40), private(39)
    few = replace(few, population=40)
    with_unit, bound = effect_size.figure(judged, 0.2, released, real, many)
    without, same = effect_size.figure(judged, 0.2, released, real[:-1], few)
    assert bound == same
    assert abs(with_unit - without) <= bound


def test_the_bound_is_not_loose_by_much() -> None:
    """Negative control of the test above: half the bound would be broken."""
    released, real = points(500, seed=99), np.tile([[4.0, 1, 0, 0]], (40, 1))
    judged = effect_size.effect_sizes_of(SETS[:1])
    moved = [
        effect_size.figure(judged, 0.2, released - [[8.0, 0, 0, 0]], real[:n], replace(private(n), population=40))[0]
        for n in (40, 39)
    ]
    bound = effect_size.bound_of(judged[0], 0.2, 500)
    assert abs(moved[0] - moved[1]) > 0.4 * bound


def test_a_figure_is_above_zero_only_if_every_set_is_far_enough() -> None:
    near, far = points(3000, seed=1), points(3000, seed=2, shift=3.0)
    real = points(3000, seed=3)
    judged = effect_size.effect_sizes_of(SETS)
    assert effect_size.figure(judged[:1], 0.1, far, real, private(3000))[0] > 0
    assert effect_size.figure(judged[:1], 0.1, near, real, private(3000))[0] < 0
    assert effect_size.figure(judged, 0.1, far, real, private(3000))[0] < 0  # regions are as they were


def test_the_effect_that_a_check_needs_falls_with_units_and_epsilon() -> None:
    effect = effect_size.effect_sizes_of(SETS)[0]
    asked = [effect_size.needed(effect, 0.1, units, epsilon, 1, 8192) for units, epsilon in
             ((1e3, 0.1), (1e5, 0.1), (1e5, 1.0), (1e9, 1.0))]  # fmt: skip
    assert asked == sorted(asked, reverse=True)
    assert 0.1 < asked[-1] < 0.2


def test_the_bound_is_that_of_the_set_that_can_move_furthest() -> None:
    """Sets differ in what chance allows them, and a unit moves each figure by its own bound."""
    released = points(500, seed=99)
    judged = effect_size.effect_sizes_of(SETS)
    bounds = [effect_size.bound_of(effect, 0.2, 500) for effect in judged]
    assert max(bounds) > min(bounds)
    for order in (judged, judged[::-1]):
        assert effect_size.figure(order, 0.2, released, points(40), private(40))[1] == max(bounds)
