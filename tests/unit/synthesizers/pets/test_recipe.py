"""Sizes and thresholds are public numbers, and bad ones are refused."""

import pytest

from understudy.errors import InputError
from understudy.synthesizers.pets.method import Pets
from understudy.synthesizers.pets.recipe import RECIPES, Recipe


def test_thresholds_are_votes_as_published_or_multiples_of_the_noise() -> None:
    assert Recipe(threshold=8.0).stages(29.0)[0] == (40, 8.0)
    assert Recipe(threshold_noise=2.0).stages(5.0)[-1] == (5, 10.0)
    assert len(Recipe(iterations=13).stages(1.0)) == 13


def test_the_default_size_keeps_votes_above_the_noise_within_limits() -> None:
    recipe = Recipe(neighbours=1)
    assert recipe.num_candidates(10_000, 10.0, 1) == 1000
    assert recipe.num_candidates(10_000, 20.0, 1) == 500
    assert recipe.num_candidates(10**7, 1.0, 1) == 2000
    assert recipe.num_candidates(10, 100.0, 3) == 180


def test_the_recipe_follows_the_start_unless_it_is_given() -> None:
    assert Pets().recipe == RECIPES["rules"]
    assert Pets(start="spectral").recipe == RECIPES["spectral"]
    assert RECIPES["spectral"].stages(4.0) == ((10, 2.0),)
    assert Pets(start="spectral", recipe=Recipe(iterations=5)).recipe.iterations == 5


@pytest.mark.parametrize("classes", [1, 2, 3, 7])
def test_the_size_is_a_multiple_of_the_classes(classes: int) -> None:
    for population in (None, 2, 100, 1001):
        assert Recipe(population=population).num_candidates(5000, 9.0, classes) % classes == 0


def test_a_threshold_beyond_all_votes_is_foretold() -> None:
    lines = Recipe(threshold=1e6).outlook(5000, 3.0, 1)
    assert any("nothing would survive" in line for line in lines)
    assert not any("nothing would survive" in line for line in Recipe().outlook(5000, 3.0, 1))


@pytest.mark.parametrize(
    "options",
    [
        {"iterations": 0},
        {"lookahead": -1},
        {"neighbours": 0},
        {"population": 1},
        {"private_fraction": 0.0},
        {"schedule": "S9"},
    ],
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Recipe(**options)
