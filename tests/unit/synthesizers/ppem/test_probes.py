"""A shifted copy of the secret is noticed, and so is a question that the conditional model was never asked."""

import numpy as np
import pytest

from understudy.data import Categorical, Continuous
from understudy.synthesizers.ppem.effect_size import share_without_support, transformed_copies

INCOME, REGION = Continuous("income", -20.0, 20.0), Categorical("region", ("north", "south", "east"))


def secret(seed: int, number: int = 4000) -> np.ndarray:
    """A shape of its own: skewed."""
    return np.random.default_rng(seed).gamma(2.0, 1.0, number)


MAPS = {
    "shifted": lambda x: x + 10,
    "stretched": lambda x: 3 * x,
    "mirrored": lambda x: -x,
    "both": lambda x: 5 - 2 * x,
}


@pytest.mark.parametrize("moved", MAPS.values(), ids=MAPS.keys())
def test_a_copy_behind_an_invertible_map_is_called_one(moved) -> None:
    found = transformed_copies((INCOME,), moved(secret(1))[:, None], secret(2)[:, None])
    assert found == ("income",)


def test_another_shape_and_the_same_shape_in_its_place_are_not() -> None:
    other = np.random.default_rng(3).uniform(-5, 5, (4000, 1))
    assert transformed_copies((INCOME,), other, secret(2)[:, None]) == ()
    assert transformed_copies((INCOME,), secret(1)[:, None], secret(2)[:, None]) == ()  # a copy, but not a moved one


def test_renamed_categories_are_a_copy() -> None:
    rng = np.random.default_rng(0)
    real, released = rng.choice(3, (4000, 1), p=[0.7, 0.2, 0.1]), rng.choice(3, (4000, 1), p=[0.1, 0.7, 0.2])
    assert transformed_copies((REGION,), released, real) == ("region",)
    assert transformed_copies((REGION,), rng.choice(3, (4000, 1)), real) == ()
    assert transformed_copies((REGION,), real, real) == ()


def test_values_far_from_anybody_are_counted() -> None:
    rng = np.random.default_rng(0)
    sketch, near = rng.normal(0, 1, (4000, 2)), rng.normal(0, 1, (1000, 2))
    far = near.copy()
    far[::2] += 20
    assert share_without_support(near, sketch) < 0.05
    assert share_without_support(far, sketch) == pytest.approx(0.5, abs=0.05)
