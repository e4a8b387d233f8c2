import copy

import numpy as np
import pytest

from tests.releases import released
from understudy.data.table import Table
from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.border import Given, Listed, Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Cells, Rows
from understudy.privacy.events import (
    ApproximateDP,
    DiscreteGaussian,
    Gaussian,
    PureDP,
    SubsampledGaussian,
)
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.synthesizers.contract.panels import make_panel, plain_schema


def granted(noise=None, **events):
    ledger = Ledger.in_memory(Guarantee(50.0, 1e-5))
    plan = SpendingPlan(tuple(PlanEntry(label, event) for label, event in events.items()), Guarantee(40.0, 1e-5))
    return ledger, ledger.charge(plan, label="test", noise=noise or NoiseSource.secure())


def test_noise_of_the_charged_size_and_hardly_more_goes_on_every_coordinate():
    value = np.arange(6.0).reshape(1, 2, 3) / 8
    quiet, loud = (granted(NoiseSource.constant(one), mean=Gaussian(2.5))[1] for one in (0.0, 1.0))
    difference = released(loud, "mean", value, 4.0) - released(quiet, "mean", value, 4.0)
    assert ((difference > 10.0) & (difference < 10.0 * (1 + 2**-19))).all()


def test_noise_grows_with_what_one_unit_can_reach():
    quiet, loud = (granted(NoiseSource.constant(one), mean=Gaussian(2.5))[1] for one in (0.0, 1.0))
    statistic, units = Statistic(label="mean", shape=(2,), bound=4.0), Given(Rows(np.ones((3, 2))), reach=6.0)
    assert loud.release(statistic, units) - quiet.release(statistic, units) == pytest.approx(60.0, rel=2**-18)
    assert quiet.deviation("mean", 4.0 * 6.0) == 60.0


def test_rows_released_one_by_one_need_a_charge_for_neighbours_with_the_same_units_and_nothing_else_takes_it():
    rows, quiet = np.array([[3.0, 4.0], [0.5, 0.0], [np.inf, 0.0]]), NoiseSource.constant(0.0)
    statistic = Statistic(label="rows", shape=rows.shape, bound=1.0)
    _, grant = granted(quiet, rows=Gaussian(2.0, relation="values"))
    assert np.allclose(grant.release(statistic, Listed(rows)), [[0.6, 0.8], [0.5, 0.0], [0.0, 0.0]], atol=1e-6)
    own_places = Given(Rows(rows, np.arange(3), 3))
    for event, units in (
        (Gaussian(2.0), Listed(rows)),
        (DiscreteGaussian(2.0), Listed(rows)),
        (Gaussian(2.0, relation="values"), own_places),
    ):
        _, grant = granted(rows=event)
        with pytest.raises(InputError, match="how many units there are"):
            grant.release(statistic, units)
        assert grant.executed == {"rows": 0}


def test_integer_noise_of_exactly_the_charged_size_goes_on_every_coordinate():
    _, grant = granted(NoiseSource.constant(1.0), votes=DiscreteGaussian(3.0, one_vote=True))
    assert np.array_equal(released(grant, "votes", np.eye(2)[[0, 0, 0, 0, 0]], step=1.0), [8, 3])


def test_a_label_that_was_not_charged_is_refused():
    _, grant = granted(mean=Gaussian(2.0))
    with pytest.raises(InputError, match="Nothing was charged under the label 'median'"):
        released(grant, "median", np.zeros((1, 1)))


def test_a_label_charged_as_something_else_is_refused_and_not_counted():
    _, grant = granted(mean=Gaussian(2.0), clip=PureDP(0.1))
    with pytest.raises(InputError, match="charged as PureDP"):
        released(grant, "clip", np.zeros((1, 1)))
    assert grant.executed == {"mean": 0, "clip": 0}


def test_a_label_is_executed_at_most_as_often_as_charged():
    ledger, grant = granted(mean=Gaussian(2.0, count=2))
    for _ in range(2):
        released(grant, "mean", np.zeros((1, 1)))
    with pytest.raises(BudgetExceeded) as caught:
        released(grant, "mean", np.zeros((1, 1)))
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


def test_a_single_vote_needs_a_bound_of_one_step_and_one_unit_s_reach():
    _, grant = granted(votes=DiscreteGaussian(2.0, one_vote=True))
    for bound, step, reach in ((2.0, 1.0, 1.0), (1.0, 0.5, 1.0), (1.0, None, 1.0), (1.0, 1.0, 2.0)):
        with pytest.raises(InputError, match="bound of one step"):
            grant.release(
                Statistic(label="votes", shape=(1,), bound=bound, step=step), Given(Rows(np.ones((1, 1))), reach)
            )
    assert grant.executed == {"votes": 0}


@pytest.mark.parametrize("reach", [0.0, -1.0, 1e-6, float("nan"), float("inf")])
def test_a_reach_that_hides_nobody_is_refused_before_anything_is_counted(reach):
    _, grant = granted(mean=Gaussian(2.0))
    with pytest.raises(InputError, match="reach"):
        grant.release(Statistic(label="mean", shape=(1,), bound=1.0), Given(Rows(np.ones((1, 1))), reach))
    assert grant.executed == {"mean": 0}


def test_a_coarse_step_needs_a_charge_for_discrete_noise():
    _, grant = granted(mean=Gaussian(2.0))
    with pytest.raises(InputError, match="discrete"):
        released(grant, "mean", np.ones((1, 1)), step=1.0)


class Trusted:
    """Units of a method's own, which clips nobody."""

    reach = 1.0

    def total(self, statistic: Statistic, step: float) -> np.ndarray:
        return np.full(statistic.shape, 10**6, dtype=np.int64)


def test_units_of_a_kind_that_the_border_does_not_know_are_refused_and_nothing_is_executed():
    _, grant = granted(mean=Gaussian(2.0))
    with pytest.raises(InputError, match="border knows"):
        grant.release(Statistic(label="mean", shape=(1,), bound=1.0), Trusted())
    assert grant.executed == {"mean": 0}


def test_distances_are_of_tables_that_are_ballots():
    _, grant = granted(NoiseSource.constant(0.0), choices=Gaussian(1.0, count=3))
    statistic = Statistic(label="choices", shape=(4,), bound=2**0.5)
    votes = Cells.one_each(np.array([[0, 1], [0, 0]]), 2)
    expected = [np.array([1.0, 0.0]), np.array([0.0, 0.0])]
    assert grant.distances(statistic, Given(votes), expected) == pytest.approx([1.0, 2.0], abs=1e-6)
    for wrong in (Rows(np.ones((1, 4))), Cells.one_each(np.array([[0]]), 4)):
        with pytest.raises(InputError, match="ballot"):
            grant.distances(statistic, Given(wrong), expected)


def test_a_label_that_was_also_chosen_by_is_not_called_exact():
    _, grant = granted(mixed=PureDP(1.0, count=2), count=PureDP(1.0), sum=Gaussian(1.0))
    table = Table.of(make_panel(plain_schema()))
    for label in ("mixed", "count"):
        grant.count(label, table)
    grant.quantile("mixed", np.arange(5.0), [1.0, 2.0], 0.5)
    assert grant.arithmetic == {"mixed": "idealised", "count": "exact", "sum": "exact"}


def test_a_quantile_with_a_large_budget_finds_the_quantile():
    _, grant = granted(clip=PureDP(20.0))
    values = np.concatenate([np.arange(1000.0), [np.nan, np.nan]])
    assert grant.quantile("clip", values, np.linspace(0, 2000, 2001), 0.9) == pytest.approx(900, abs=5)


def test_a_quantile_of_nothing_is_a_point_of_the_grid():
    _, grant = granted(clip=PureDP(1.0))
    assert grant.quantile("clip", np.full(5, np.nan), [1.0, 2.0, 4.0], 0.5) in (1.0, 2.0, 4.0)


def test_one_unit_moves_a_quantile_score_by_at_most_the_declared_sensitivity():
    from understudy.privacy.selections import quantile_scores

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
    from understudy.privacy.selections import domain_threshold

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


def test_a_grant_counts_its_own_executions_whatever_its_ledger_remembers():
    _, charged = granted(mean=Gaussian(5.0, 2))
    grant = Grant(plan=charged.plan, noise=charged.noise, receipt=charged.receipt, record=lambda label, number: 0)
    for _ in range(2):
        released(grant, "mean", np.zeros((1, 2)), 1.0)
    with pytest.raises(BudgetExceeded):
        released(grant, "mean", np.zeros((1, 2)), 1.0)
