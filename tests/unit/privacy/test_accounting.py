import math

import mpmath
import pytest

from understudy.errors import InputError
from understudy.privacy import losses
from understudy.privacy.accounting import (
    concentrated_epsilon,
    delta,
    epsilon,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    renyi_at,
    renyi_curve,
    renyi_epsilon,
    replace_one_epsilon,
)
from understudy.privacy.events import (
    ApproximateDP,
    DiscreteGaussian,
    Gaussian,
    MixtureOfGaussians,
    NonPrivate,
    PureDP,
    SubsampledGaussian,
)

SGD = SubsampledGaussian(0.05, 2.0, 200)


@pytest.mark.parametrize(
    ("mu", "cost"),
    [(mu, cost) for mu in (1e-3, 0.05, 0.3, 1.0, 4.0, 20.0) for cost in (1e-3, 0.5, 2.0, 200.0) if cost < 60 * mu],
)
def test_log_delta_of_a_gaussian_agrees_with_mpmath_to_nine_digits(mu, cost):
    with mpmath.workdps(400):
        m, e = mpmath.mpf(mu), mpmath.mpf(cost)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        expected = float(mpmath.log(exact))
    assert gaussian_log_delta(mu, cost) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("at", [1e-2, 1e-6, 1e-12])
def test_gaussian_epsilon_is_rounded_up_and_mu_down(mu, at):
    cost = gaussian_epsilon(mu, at)
    assert gaussian_log_delta(mu, cost) <= math.log(at)
    if cost > 0:
        assert gaussian_mu(cost, at) == pytest.approx(mu, rel=1e-8)
        assert gaussian_log_delta(gaussian_mu(cost, at), cost) <= math.log(at)


def test_gaussians_compose_to_one_gaussian():
    assert epsilon([Gaussian(3.0, 4), Gaussian(6.0, 2)], 1e-6) == pytest.approx(
        gaussian_epsilon(math.sqrt(4 / 9 + 2 / 36), 1e-6)
    )


def test_the_closed_form_agrees_with_the_privacy_loss_distribution():
    events = (Gaussian(3.0, 4), Gaussian(6.0, 2))
    assert losses.epsilon(events, 1e-6, losses.INTERVAL) == pytest.approx(epsilon(events, 1e-6), rel=1e-3)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (SGD, SubsampledGaussian(0.05, 2.0, 400)),
        (SGD, SubsampledGaussian(0.1, 2.0, 200)),
        (SGD, SubsampledGaussian(0.05, 1.5, 200)),
        (MixtureOfGaussians(0.05, 2.0, 2, 50), MixtureOfGaussians(0.05, 2.0, 3, 50)),
        (PureDP(0.1), PureDP(0.2)),
        (DiscreteGaussian(3.0), DiscreteGaussian(2.0)),
    ],
)
def test_epsilon_grows_with_iterations_rate_windows_and_with_less_noise(better, worse):
    assert epsilon([better], 1e-6) < epsilon([worse], 1e-6)
    assert delta([better], 0.3) <= delta([worse], 0.3)
    assert replace_one_epsilon([better], 1e-6) <= replace_one_epsilon([worse], 1e-6)


@pytest.mark.parametrize(("rate", "noise", "iterations"), [(0.05, 2.0, 200), (1.0, 9.0, 30), (0.001, 0.8, 3000)])
def test_one_window_per_unit_is_poisson_sampling(rate, noise, iterations):
    """Of dp-accounting, which makes the loss distribution another way."""
    from dp_accounting.pld import privacy_loss_distribution

    one = privacy_loss_distribution.from_gaussian_mechanism(
        noise, sampling_prob=rate, value_discretization_interval=losses.INTERVAL
    )
    theirs = one.self_compose(iterations).get_epsilon_for_delta(1e-6)
    for event in (MixtureOfGaussians(rate, noise, 1, iterations), SubsampledGaussian(rate, noise, iterations)):
        assert losses.epsilon((event,), 1e-6, losses.INTERVAL) == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize(("noise", "count"), [(0.6, 2), (3.0, 10), (40.352, 61)])
def test_votes_agree_with_the_library(noise, count):
    from dp_accounting.pld import privacy_loss_distribution

    one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        noise, sensitivity=1, use_connect_dots=True, value_discretization_interval=losses.INTERVAL
    )
    theirs = one.self_compose(count).get_epsilon_for_delta(1e-6)
    votes = DiscreteGaussian(noise, count, one_vote=True)
    assert losses.epsilon((votes,), 1e-6, losses.INTERVAL) == pytest.approx(theirs, rel=1e-6)


def test_capped_windows_agree_with_the_library_point_by_point():
    from dp_accounting.pld import privacy_loss_distribution
    from scipy.stats import binom

    theirs = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        20.0,
        [0.0, 1.0, 2.0, 3.0],
        [float(binom.pmf(k, 3, 0.1)) for k in range(4)],
        value_discretization_interval=1e-3,
        use_connect_dots=True,
    ).self_compose(300)
    ours = losses.epsilon((MixtureOfGaussians(0.1, 20.0, 3, 300),), 1e-6, losses.INTERVAL)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)


def test_every_window_always_is_a_gaussian_with_k_times_the_reach():
    mixture = MixtureOfGaussians(1.0, 8.0, 4, 3)
    assert epsilon([mixture], 1e-6) == pytest.approx(epsilon([Gaussian(2.0, 3)], 1e-6), rel=2e-3)


def test_the_privacy_loss_distribution_is_never_above_renyi():
    for event in (SGD, SubsampledGaussian(0.01, 1.0, 1000), MixtureOfGaussians(0.02, 3.0, 3, 200)):
        assert losses.epsilon((event,), 1e-6, losses.INTERVAL) <= renyi_epsilon(renyi_curve((event,)), 1e-6) * 1.001


def test_renyi_interpolation_between_whole_orders_is_an_upper_bound():
    from dp_accounting.dp_event import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    for order in (1.5, 2.5, 7.3):
        accountant = RdpAccountant([order])
        accountant.compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(4.0)))
        assert renyi_at([SubsampledGaussian(0.01, 4.0, 1)], order) >= accountant._rdp[0] * (1 - 1e-9)


@pytest.mark.parametrize(("cost", "count"), [(0.3, 1), (0.3, 4), (1.0, 2)])
def test_pure_mechanisms_are_priced_as_randomised_response(cost, count):
    """Exact delta of `count` randomised responses, summed over outcomes (Kairouz, Oh & Viswanath 2015)."""
    yes = math.exp(cost) / (1 + math.exp(cost))
    at = 0.7 * cost * count
    exact = sum(
        math.comb(count, k)
        * max(0.0, yes**k * (1 - yes) ** (count - k) - math.exp(at) * (1 - yes) ** k * yes ** (count - k))
        for k in range(count + 1)
    )
    found = delta([PureDP(cost, count)], at)
    assert exact <= found * (1 + 1e-9)
    assert found == pytest.approx(exact, rel=2e-3)


def test_pure_mechanisms_never_cost_more_than_the_sum_of_their_epsilons():
    assert epsilon([PureDP(0.5, 4)], 1e-6) <= 2.0 + 1e-3
    assert epsilon([PureDP(0.01, 400)], 1e-6) < 2.0


def test_an_approximate_event_costs_no_more_than_basic_composition():
    together = epsilon([ApproximateDP(0.5, 1e-7), Gaussian(3.0)], 1e-6)
    assert epsilon([Gaussian(3.0)], 1e-6) < together <= 0.5 + epsilon([Gaussian(3.0)], 1e-6 - 1e-7) + 1e-3


def test_an_approximate_event_with_more_delta_than_asked_has_no_epsilon():
    assert math.isinf(epsilon([ApproximateDP(0.5, 1e-3)], 1e-6))


def test_a_discrete_gaussian_vector_is_priced_by_zcdp_and_never_below_the_continuous_one():
    vector = epsilon([DiscreteGaussian(5.0, 3)], 1e-6)
    assert vector == pytest.approx(concentrated_epsilon(3 / 50, 1e-6), rel=1e-6)
    assert epsilon([Gaussian(5.0, 3)], 1e-6) < vector < 1.2 * epsilon([Gaussian(5.0, 3)], 1e-6)


def test_a_single_vote_gets_the_exact_discrete_gaussian():
    assert epsilon([DiscreteGaussian(40.352, 61, one_vote=True)], 1e-5) == pytest.approx(0.7, rel=2e-3)


def test_mixed_plans_cost_at_least_each_part_and_at_most_the_sum():
    parts = [DiscreteGaussian(10.0), Gaussian(5.0), PureDP(0.1, 3)]
    together = epsilon(parts, 1e-6)
    assert together > max(epsilon([part], 1e-6) for part in parts)
    assert together < sum(epsilon([part], 1e-6 / 3) for part in parts)


def test_the_order_of_events_does_not_matter():
    parts = (Gaussian(5.0), PureDP(0.2), SGD)
    assert epsilon(parts, 1e-6) == pytest.approx(epsilon(parts[::-1], 1e-6), rel=1e-6)


def test_delta_and_epsilon_invert_each_other():
    for events in ([Gaussian(2.0)], [SGD], [SGD, PureDP(0.1)]):
        assert delta(events, epsilon(events, 1e-6)) == pytest.approx(1e-6, rel=0.02)


def test_replace_one_of_a_gaussian_is_twice_the_distance():
    assert replace_one_epsilon([Gaussian(4.0)], 1e-6) == pytest.approx(gaussian_epsilon(0.5, 1e-6), rel=1e-9)


def test_replace_one_of_sampled_noise_is_two_steps_of_group_privacy():
    found = replace_one_epsilon([SGD], 1e-6)
    inner = found / 2
    assert found > 2 * epsilon([SGD], 1e-6)
    assert delta([SGD], inner) * (1 + math.exp(inner)) <= 1e-6 * 1.02


def test_nothing_costs_nothing_and_the_non_private_costs_everything():
    assert epsilon([], 1e-6) == 0
    assert replace_one_epsilon([], 1e-6) == 0
    assert math.isinf(epsilon([Gaussian(5.0), NonPrivate("raw gradients")], 1e-6))
    assert math.isinf(replace_one_epsilon([NonPrivate("raw gradients")], 1e-6))
    assert delta([NonPrivate("raw gradients")], 3.0) == 1.0


def test_hopeless_noise_is_answered_at_once_and_not_by_a_huge_grid():
    assert epsilon([SubsampledGaussian(0.004, 0.03, 10_000)], 1e-5) > 1000


def test_a_delta_of_zero_is_refused():
    with pytest.raises(InputError):
        epsilon([Gaussian(1.0)], 0.0)


def test_the_privacy_loss_of_delta_is_an_upper_bound_for_a_gaussian():
    for side in losses.mixture_loss(1.0, 2.0, 1, losses.INTERVAL):
        assert side.delta(1.0) >= math.exp(gaussian_log_delta(0.5, 1.0))


@pytest.mark.parametrize("price", [1.0, 1e3, 1e9, 1e100, 1e300])
def test_a_single_gaussian_costs_what_it_was_bought_for_however_much_that_is(price):
    assert gaussian_epsilon(gaussian_mu(price, 1e-6), 1e-6) == pytest.approx(price, rel=1e-6)


def test_equal_events_cost_as_much_as_one_that_counts_them():
    for one, five in ((SGD, SubsampledGaussian(0.05, 2.0, 1000)), (PureDP(0.1), PureDP(0.1, 5))):
        assert epsilon([one] * 5, 1e-6) == epsilon([five], 1e-6)
    assert epsilon([ApproximateDP(0.1, 1e-8)] * 2, 1e-6) > epsilon([ApproximateDP(0.1, 1e-8)], 1e-6)


@pytest.mark.parametrize("failure", [0.0, 5e-7])
def test_what_is_known_by_its_guarantee_alone_costs_what_its_loss_distribution_costs(failure):
    one = ApproximateDP(0.25, failure)
    for events in ((PureDP(0.3, 2),), (SGD, Gaussian(6.0))):
        whole = losses.epsilon((*events, one), 1e-6, losses.INTERVAL)
        assert losses.epsilon(events, 1e-6, losses.INTERVAL, one) == pytest.approx(whole, rel=1e-3)


def test_a_coarser_grid_costs_more_and_hardly_more():
    for event in (SGD, MixtureOfGaussians(0.02, 3.0, 24, 500), MixtureOfGaussians(0.3, 9.0, 4, 100)):
        fine, coarse = (losses.epsilon((event,), 1e-6, interval) for interval in (1e-4, 1.6e-3))
        assert fine * (1 - 1e-6) <= coarse <= fine * 1.01
