from functools import partial

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.privacy.accounting import epsilon
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, PureDP, SubsampledGaussian
from understudy.privacy.plan import noise_multipliers, round_up, smallest_noise_multiplier


def test_shares_of_mu_meet_the_guarantee_and_leave_nothing_over():
    noise = noise_multipliers(Guarantee(1.0, 1e-6), {"mean": 0.7, "marginals": 0.25, "clip": 0.05})
    cost = epsilon([Gaussian(value) for value in noise.values()], 1e-6)
    assert 0.9999 < cost <= 1.0
    assert noise["mean"] < noise["marginals"] < noise["clip"]


@pytest.mark.parametrize("shares", [{}, {"a": 0.7, "b": 0.4}, {"a": -0.1}])
def test_shares_that_are_not_shares_are_refused(shares):
    with pytest.raises(InputError):
        noise_multipliers(Guarantee(1.0, 1e-6), shares)


@pytest.mark.parametrize(
    ("asked", "rate", "iterations", "others"), [(1.0, 0.02, 100, [PureDP(0.05)]), (0.06, 0.001, 5_000, [])]
)
def test_the_smallest_noise_fits_and_a_little_less_does_not(asked, rate, iterations, others):
    """The coarse grid, where the root is looked for first, is off by a fourteenth in the second."""

    def sgd(noise):
        return SubsampledGaussian(rate, noise, iterations)

    noise = smallest_noise_multiplier(sgd, Guarantee(asked, 1e-6), others=others)
    assert epsilon([sgd(noise), *others], 1e-6) <= asked
    assert epsilon([sgd(noise * 0.999), *others], 1e-6) > asked


def test_calibration_agrees_with_the_closed_form():
    exact = noise_multipliers(Guarantee(0.5, 1e-6), {"all": 1.0})["all"]
    assert smallest_noise_multiplier(Gaussian, Guarantee(0.5, 1e-6)) == pytest.approx(exact, rel=1e-4)


def test_no_noise_is_a_hair_too_little():
    """Three hundred guarantees: a root may lie on either side of where it is looked for, what is returned may not."""
    rng = np.random.default_rng(0)
    asked = zip(rng.uniform(0.05, 8, 300), 10.0 ** rng.uniform(-9, -5, 300), rng.integers(1, 400, 300), strict=True)
    for wanted, delta, count in asked:
        noise = smallest_noise_multiplier(partial(Gaussian, count=int(count)), Guarantee(wanted, delta))
        assert epsilon([Gaussian(noise, int(count))], delta) <= wanted


def test_noise_fits_where_delta_is_so_small_that_the_cost_does_not_quite_fall():
    wanted = Guarantee(4.038296375503636, 2.073686084367346e-12)
    noise = smallest_noise_multiplier(lambda value: SubsampledGaussian(0.03473471705299077, value, 790), wanted)
    assert epsilon([SubsampledGaussian(0.03473471705299077, noise, 790)], wanted.delta) <= wanted.epsilon


@pytest.mark.parametrize(("count", "expected"), [(2_000, 1623.61), (200_000_000, 513_435.0)])
def test_a_lot_of_noise_is_found_too(count, expected):
    noise = smallest_noise_multiplier(partial(Gaussian, count=count), Guarantee(0.1, 1e-6))
    assert noise == pytest.approx(expected, rel=1e-4)


def test_more_noise_than_anybody_could_mean_is_refused():
    with pytest.raises(InputError, match="below 10⁹"):
        smallest_noise_multiplier(partial(Gaussian, count=10**18), Guarantee(0.1, 1e-6))


def test_other_events_that_use_everything_up_are_an_error():
    with pytest.raises(InputError, match="other events alone"):
        smallest_noise_multiplier(Gaussian, Guarantee(1.0, 1e-6), others=[PureDP(2.0)])


@pytest.mark.parametrize("value", [1.0, 5.166512345, 123456.7, 1e-3 + 1e-12, 0.1 + 0.2])
def test_rounding_never_makes_noise_smaller(value):
    assert value <= round_up(value) <= value * (1 + 1.1e-5)
