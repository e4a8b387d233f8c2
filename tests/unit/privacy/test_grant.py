import copy

import numpy as np
import pytest

from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import (
    ApproximateDP,
    DiscreteGaussian,
    Gaussian,
    PureDP,
    SubsampledGaussian,
)
from understudy.privacy.ledger import Ledger
from understudy.privacy.mechanisms import Bounded
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan


def granted(noise=None, **events):
    ledger = Ledger.in_memory(Guarantee(50.0, 1e-5))
    plan = SpendingPlan(tuple(PlanEntry(label, event) for label, event in events.items()), Guarantee(40.0, 1e-5))
    return ledger, ledger.charge(plan, label="test", noise=noise or NoiseSource.secure())


def test_noise_of_the_charged_size_and_a_thousandth_more_goes_on_every_coordinate():
    value = np.arange(6.0).reshape(2, 3)
    _, quiet = granted(NoiseSource.constant(0.0), mean=Gaussian(2.5))
    _, loud = granted(NoiseSource.constant(1.0), mean=Gaussian(2.5))
    difference = loud.gaussian("mean", Bounded(value, 4.0)) - quiet.gaussian("mean", Bounded(value, 4.0))
    assert ((difference >= 10.0 * (1 + 2**-10) - 4.0 * 2**-12) & (difference <= 10.01)).all()


def test_integer_noise_of_exactly_the_charged_size_goes_on_every_coordinate():
    _, grant = granted(NoiseSource.constant(1.0), votes=DiscreteGaussian(3.0))
    assert np.array_equal(grant.discrete_gaussian("votes", Bounded(np.array([5, 0]), 2.0)), [11, 6])


def test_a_label_that_was_not_charged_is_refused():
    _, grant = granted(mean=Gaussian(2.0))
    with pytest.raises(InputError, match="Nothing was charged under the label 'median'"):
        grant.gaussian("median", Bounded(np.zeros(1), 1.0))


def test_a_label_charged_as_something_else_is_refused_and_not_counted():
    _, grant = granted(mean=Gaussian(2.0), clip=PureDP(0.1))
    with pytest.raises(InputError, match="charged as PureDP"):
        grant.gaussian("clip", Bounded(np.zeros(1), 1.0))
    assert grant.executed == {"mean": 0, "clip": 0}


def test_a_label_is_executed_at_most_as_often_as_charged():
    ledger, grant = granted(mean=Gaussian(2.0, count=2))
    for _ in range(2):
        grant.gaussian("mean", Bounded(np.zeros(1), 1.0))
    with pytest.raises(BudgetExceeded) as caught:
        grant.gaussian("mean", Bounded(np.zeros(1), 1.0))
    assert caught.value.exit_code == 4
    assert grant.executed == ledger.entries()[0].executed == {"mean": 2}


def test_blocks_of_iterations_are_counted_before_they_run_and_end_with_the_plan():
    ledger, grant = granted(sgd=SubsampledGaussian(0.01, 1.0, 100))
    assert grant.begin_block("sgd", 60) == 0
    assert ledger.entries()[0].executed == {"sgd": 60}
    assert grant.begin_block("sgd", 40) == 60
    assert grant.remaining("sgd") == 0
    with pytest.raises(BudgetExceeded):
        grant.begin_block("sgd", 1)


def test_a_resumed_run_does_not_get_executed_iterations_back():
    ledger, grant = granted(sgd=SubsampledGaussian(0.01, 1.0, 100))
    grant.begin_block("sgd", 60)
    resumed = ledger.resume(1, noise=NoiseSource.secure())
    assert resumed.remaining("sgd") == 40
    with pytest.raises(BudgetExceeded):
        resumed.begin_block("sgd", 41)


def test_two_grants_of_one_run_share_its_executions():
    ledger, grant = granted(sgd=SubsampledGaussian(0.01, 1.0, 100))
    resumed = ledger.resume(1, noise=NoiseSource.secure())
    resumed.begin_block("sgd", 70)
    with pytest.raises(BudgetExceeded, match="by another grant"):
        grant.begin_block("sgd", 40)


def test_a_run_resumed_with_seeded_noise_is_marked():
    ledger, _ = granted(sgd=SubsampledGaussian(0.01, 1.0, 100))
    assert not ledger.resume(1, noise=NoiseSource.seeded(1)).receipt.secure_noise
    assert not ledger.resume(1, noise=NoiseSource.secure()).receipt.secure_noise


def test_discrete_noise_needs_whole_numbers_and_a_single_vote_needs_a_bound_of_one():
    _, grant = granted(votes=DiscreteGaussian(2.0, one_vote=True), plain=DiscreteGaussian(2.0))
    with pytest.raises(InputError, match="whole numbers"):
        grant.discrete_gaussian("plain", Bounded(np.array([1.5]), 1.0))
    with pytest.raises(InputError, match="l2_bound = 1"):
        grant.discrete_gaussian("votes", Bounded(np.array([1]), 2.0))
    assert grant.executed == {"votes": 0, "plain": 0}


def test_a_quantile_with_a_large_budget_finds_the_quantile():
    _, grant = granted(clip=PureDP(20.0))
    values = np.concatenate([np.arange(1000.0), [np.nan, np.nan]])
    assert grant.quantile("clip", values, np.linspace(0, 2000, 2001), 0.9) == pytest.approx(900, abs=5)


def test_a_quantile_of_nothing_is_a_point_of_the_grid():
    _, grant = granted(clip=PureDP(1.0))
    assert grant.quantile("clip", np.full(5, np.nan), [1.0, 2.0, 4.0], 0.5) in (1.0, 2.0, 4.0)


def test_one_unit_moves_a_quantile_score_by_at_most_the_declared_sensitivity():
    from understudy.privacy.quantiles import quantile_scores

    rng = np.random.default_rng(3)
    grid = np.linspace(-1, 1, 41)
    for q in (0.1, 0.5, 0.99):
        for added in (-5.0, 0.0, 5.0):
            values = rng.normal(size=30)
            change = quantile_scores(np.append(values, added), grid, q) - quantile_scores(values, grid, q)
            assert np.abs(change).max() <= max(q, 1 - q) + 1e-12


def test_a_category_that_one_unit_holds_does_not_appear():
    _, grant = granted(domain=ApproximateDP(1.0, 1e-9))
    assert grant.stable_domain("domain", ["a"] * 500 + ["b"] * 400 + ["secret name"]) == ("a", "b")


def test_the_threshold_keeps_a_unique_category_below_delta():
    """Exact tail of the discrete Laplace distribution, summed."""
    from understudy.privacy.domains import domain_threshold

    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-8), (5.0, 1e-3)):
        threshold = domain_threshold(epsilon, delta)
        support = np.arange(-2000, 2001)
        weights = np.exp(-epsilon * np.abs(support))
        tail = weights[support >= threshold].sum() / weights.sum()
        assert tail <= delta * (1 + 1e-6)
        assert tail * np.exp(epsilon) > delta * 0.999  # one less would be too low


def test_a_grant_cannot_be_copied():
    _, grant = granted(mean=Gaussian(2.0))
    with pytest.raises(TypeError):
        copy.copy(grant)
    assert "mean" in repr(grant)
