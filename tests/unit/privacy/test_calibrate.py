import pytest

from understudy.errors import InputError
from understudy.privacy.accountants import epsilon
from understudy.privacy.budget import Guarantee
from understudy.privacy.calibrate import noise_multipliers, round_up, smallest_noise_multiplier
from understudy.privacy.events import Gaussian, PureDP, SubsampledGaussian


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


def test_other_events_that_use_everything_up_are_an_error():
    with pytest.raises(InputError, match="other events alone"):
        smallest_noise_multiplier(Gaussian, Guarantee(1.0, 1e-6), others=[PureDP(2.0)])


@pytest.mark.parametrize("value", [1.0, 5.166512345, 123456.7, 1e-3 + 1e-12, 0.1 + 0.2])
def test_rounding_never_makes_noise_smaller(value):
    assert value <= round_up(value) <= value * (1 + 1.1e-5)
