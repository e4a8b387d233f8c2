import math

import pytest

from understudy.errors import InputError
from understudy.privacy.budget import Guarantee, at_most, check_delta, default_delta


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_an_epsilon_that_is_not_positive_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon must be above 0"):
        Guarantee(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0.0, 5e-324, 1.0, -1e-6, math.nan])
def test_a_delta_outside_zero_and_one_is_refused(delta):
    with pytest.raises(InputError, match="delta must lie"):
        Guarantee(1.0, delta)


def test_default_delta_is_one_in_a_hundred_populations():
    assert default_delta(10_000) == pytest.approx(1e-6)


def test_delta_above_one_in_ten_populations_is_refused_with_a_remedy():
    check_delta(1e-5, 10_000)
    with pytest.raises(InputError, match="Use 1e-06 or less"):
        check_delta(1.1e-5, 10_000)


def test_a_papers_own_delta_needs_the_papers_name():
    check_delta(1e-2, 10_000, reproduction="Jordon et al. 2019")


def test_a_population_of_nobody_is_refused():
    with pytest.raises(InputError, match="population must be"):
        default_delta(0)


def test_a_population_that_nobody_knows_counts_as_the_fewest_a_table_may_hold() -> None:
    """Below a hundred units nothing is read; at delta 0.9 a mechanism may publish most of them."""
    check_delta(1e-3, None)
    with pytest.raises(InputError, match="100 or more"):
        check_delta(1.1e-3, None)
    check_delta(0.9, None, reproduction="Jordon et al. 2019")


@pytest.mark.parametrize(("value", "digits"), [(1.2341, 3), (0.99951, 3), (9.9951, 3), (1.00001e-6, 2), (123456.0, 3)])
def test_a_shown_figure_is_never_below_the_true_one(value, digits):
    shown = float(at_most(value, digits))
    assert value <= shown <= value * (1 + 10 ** (1 - digits))


def test_a_figure_that_needs_no_rounding_stays():
    assert [at_most(value) for value in (1.0, 0.5, 1e-6, 20.0, 0.0)] == ["1", "0.5", "1e-06", "20", "0"]
    assert at_most(float("inf")) == "infinite"
