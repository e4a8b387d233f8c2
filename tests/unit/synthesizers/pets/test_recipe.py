"""Sizes and thresholds are public numbers, and bad ones are refused."""

from dataclasses import fields

import pytest

from understudy.errors import InputError
from understudy.synthesizers.pets import PETS
from understudy.synthesizers.pets.recipe import ACTIVITY, BY_START, PAPER, S3, Recipe


def test_thresholds_are_votes_as_published_or_multiples_of_the_noise() -> None:
    assert Recipe(threshold=8.0, as_published=True).stages(29.0)[0] == (40, 8.0)
    assert Recipe(threshold=2.0).stages(5.0)[-1] == (5, 10.0)
    assert len(Recipe(iterations=13).stages(1.0)) == 13


def test_the_default_size_keeps_votes_above_the_noise_within_limits() -> None:
    recipe = Recipe(neighbours=1)
    assert recipe.num_candidates(10_000, 10.0, 1) == 1000
    assert recipe.num_candidates(10_000, 20.0, 1) == 500
    assert recipe.num_candidates(10**7, 1.0, 1) == 2000
    assert recipe.num_candidates(10, 100.0, 3) == 180


def test_the_recipe_follows_the_start_unless_it_is_given() -> None:
    assert PETS().settings == BY_START["rules"]
    assert PETS(start="public", public="table.csv").settings == BY_START["public"]
    assert BY_START["public"].stages(4.0) == ((10, 2.0),)
    assert PETS(recipe=Recipe(iterations=5)).settings.iterations == 5
    assert PETS.from_preset("paper").settings == PAPER


def test_a_method_shows_at_most_eight_options() -> None:
    assert len({field.name for field in fields(PETS)} - {"window_steps", "window_stride"}) <= 8


def test_the_papers_degrees_are_as_printed() -> None:
    """Appendix C and D: 21 degrees for 20 iterations, of which the first is the initial population's."""
    assert [degree for degree, _ in PAPER.stages(1.0)] == list(ACTIVITY[1:])


def test_another_number_of_iterations_follows_the_same_curve() -> None:
    def degrees(schedule: tuple[float, ...], iterations: int) -> list[float]:
        return [degree for degree, _ in Recipe(schedule=schedule, iterations=iterations).stages(1.0)]

    assert degrees(S3, len(S3)) == list(S3)
    assert degrees(S3, 2) == [40, 5]
    assert degrees(S3, 1) == [40]
    assert degrees((10.0, 5.0), 3) == [10, 7.5, 5]
    assert degrees((7.0,), 3) == [7, 7, 7]


@pytest.mark.parametrize("classes", [1, 2, 3, 7])
def test_the_size_is_a_multiple_of_the_classes(classes: int) -> None:
    for population in (None, 2, 100, 1001):
        assert Recipe(population=population).num_candidates(5000, 9.0, classes) % classes == 0


def test_a_threshold_beyond_all_votes_is_foretold() -> None:
    lines = Recipe(threshold=1e6, as_published=True).outlook(5000, 3.0, 1)
    assert any("nothing would survive" in line for line in lines)
    assert not any("nothing would survive" in line for line in Recipe().outlook(5000, 3.0, 1))


@pytest.mark.parametrize(
    "options",
    [
        {"iterations": 0},
        {"lookahead": -1},
        {"neighbours": 0},
        {"population": 1},
        {"schedule": ()},
        {"schedule": (101,)},
    ],
)
def test_numbers_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Recipe(**options)
