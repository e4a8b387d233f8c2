"""Published and independently computed figures; each names where it comes from."""

import math

import pytest
from scipy.stats import norm

from understudy.privacy.accounting import epsilon, gaussian_epsilon, renyi_curve, renyi_epsilon, replace_one_epsilon
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import (
    Gaussian,
    MixtureOfGaussians,
    SubsampledGaussian,
)
from understudy.privacy.plan import noise_multipliers, smallest_noise_multiplier

PUB2PRIV = SubsampledGaussian(sampling_rate=0.09117, noise_multiplier=11.328, iterations=1096)


def test_dp_sgd_of_1404_series_batch_128_for_100_epochs_needs_noise_11_328():
    """Poisson sampling, epsilon 1, delta 1e-5: dp-accounting's PLD on a grid of 1e-4."""
    noise = smallest_noise_multiplier(lambda value: SubsampledGaussian(0.09117, value, 1096), Guarantee(1.0, 1e-5))
    assert noise == pytest.approx(11.328, abs=0.002)


def test_renyi_wastes_eight_percent_on_the_same_run():
    """Opacus and dp-accounting by Rényi DP both say 12.284 for the same run."""
    curve = renyi_curve([SubsampledGaussian(0.09117, 12.284, 1096)])
    assert renyi_epsilon(curve, 1e-5) == pytest.approx(1.0, abs=0.01)
    assert epsilon([SubsampledGaussian(0.09117, 12.284, 1096)], 1e-5) == pytest.approx(0.914, abs=0.003)


@pytest.mark.parametrize(
    ("rate", "epochs", "noise"),
    [
        (0.1016, 50, 9.22), (0.1016, 100, 12.97), (0.1016, 1000, 40.8),
        (0.0912, 50, 8.74), (0.0912, 100, 12.28), (0.0912, 1000, 38.6),
        (0.16, 50, 11.55), (0.16, 100, 16.26), (0.16, 1000, 51.2),
    ],
)  # fmt: skip
def test_noise_that_renyi_asks_of_the_three_tables_of_pub2priv(rate, epochs, noise):
    """Portfolio, electricity and trade, epsilon 1, delta 1e-5: an integer-order computation of its own, within 1 %."""
    for change, above in ((0.99, True), (1.01, False)):
        curve = renyi_curve([SubsampledGaussian(rate, noise * change, round(epochs / rate))])
        assert (renyi_epsilon(curve, 1e-5) > 1.0) == above


@pytest.mark.parametrize(("delta", "noise"), [(1e-5, 40.352), (1e-6, 45.974)])
def test_sixty_one_full_batch_gaussians_for_epsilon_0_7(delta, noise):
    """T-fold Gaussian composition, analytic Gaussian at noise/√T."""
    found = smallest_noise_multiplier(lambda value: Gaussian(value, 61), Guarantee(0.7, delta))
    assert found == pytest.approx(noise, abs=0.001)


@pytest.mark.parametrize(
    ("target", "releases", "noise"),
    [
        (0.125, 61, 195.9),
        (0.7, 61, 40.35),
        (1.0, 61, 29.14),
        (5.0, 61, 6.97),
        (32.0, 61, 1.60),
        (0.125, 20, 112.2),
        (0.7, 20, 23.1),
        (1.0, 20, 16.7),
        (5.0, 20, 3.99),
        (32.0, 20, 0.92),
    ],
)
def test_noise_per_histogram_bin_of_private_evolution(target, releases, noise):
    """delta 1e-5; `releases` noisy histograms."""
    single = noise_multipliers(Guarantee(target, 1e-5), {"votes": 1.0})["votes"]
    assert single * math.sqrt(releases) == pytest.approx(noise, rel=0.006)


@pytest.mark.parametrize(("window", "sensor"), [(0.125, 12.2), (0.7, 113.0), (1.0, 192.0), (5.0, 2469.0)])
def test_a_sensor_with_59_windows_is_59_times_as_far_away(window, sensor):
    noise = noise_multipliers(Guarantee(window, 1e-5), {"votes": 1.0})["votes"]
    assert epsilon([Gaussian(noise / 59)], 1e-5) == pytest.approx(sensor, rel=0.01)


@pytest.mark.parametrize(("one", "replaced"), [(0.7, 1.02), (1.0, 1.47), (5.0, 7.54)])
def test_replacing_one_vote_is_root_two_away(one, replaced):
    noise = noise_multipliers(Guarantee(one, 1e-5), {"votes": 1.0})["votes"]
    assert gaussian_epsilon(math.sqrt(2) / noise, 1e-5) == pytest.approx(replaced, abs=0.01)


@pytest.mark.parametrize(
    ("rate", "noise", "windows", "iterations", "cost"),
    [(128 / 1404, 11.35, 4, 1097, 4.74), (0.16, 15.01, 10, 625, 14.42)],
    ids=["Electricity, a household with 4 windows", "Comtrade, a country with 10 windows"],
)
def test_an_epsilon_of_one_per_window_is_much_more_per_unit(rate, noise, windows, iterations, cost):
    assert epsilon([SubsampledGaussian(rate, noise, iterations)], 1e-5) == pytest.approx(1.0, abs=0.01)
    found = epsilon([MixtureOfGaussians(rate, noise, windows, iterations)], 1e-5)
    assert found == pytest.approx(cost, abs=0.01)
    assert found > windows * 1.0 * 0.99  # and more than the product: group privacy does not keep delta


@pytest.mark.parametrize(("iterations", "noise"), [(10_000, 1.664), (50_000, 3.422)])
def test_noise_of_a_load_model_for_epsilon_one(iterations, noise):
    """16 000 windows, batch 64, delta 1e-5."""
    assert epsilon([SubsampledGaussian(64 / 16_000, noise, iterations)], 1e-5) == pytest.approx(1.0, abs=0.01)


def test_composing_five_runs_of_epsilon_one_costs_2_43():
    assert epsilon([PUB2PRIV] * 5, 1e-5) == pytest.approx(2.435, abs=0.01)


def test_replace_one_by_two_steps_is_above_the_direct_figure():
    """Noise 22.55 gives replace-one epsilon 1 by a direct analysis; ours is an upper bound of it."""
    found = replace_one_epsilon([SubsampledGaussian(0.09117, 22.55, 1096)], 1e-5)
    assert 1.0 <= found < 1.15


def test_gaussian_dp_against_an_independent_formula():
    """delta(epsilon; mu) of Dong, Roth & Su, arXiv:1905.02383, Corollary 2.13, written with scipy."""
    for mu, cost in ((0.5, 1.0), (1.0, 2.0), (2.0, 6.0)):
        at = norm.cdf(-cost / mu + mu / 2) - math.exp(cost) * norm.cdf(-cost / mu - mu / 2)
        assert gaussian_epsilon(mu, at) == pytest.approx(cost, rel=1e-7)
