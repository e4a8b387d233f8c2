import numpy as np
import pytest

from tests.releases import released
from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.accountants import epsilon
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.selection import Selection

BASE = SpendingPlan((PlanEntry("fit", Gaussian(6.0)), PlanEntry("score", Gaussian(6.0))), Guarantee(2.0, 1e-6))


def selection(distribution="geometric", expected_runs=5.0):
    return Selection(label="tune", base=BASE, expected_runs=expected_runs, distribution=distribution)


def charged(choice):
    ledger = Ledger.in_memory(Guarantee(20.0, 1e-6))
    plan = SpendingPlan((PlanEntry(choice.label, choice.event()),), Guarantee(10.0, 1e-6))
    return ledger, ledger.charge(plan, label="tuning", noise=NoiseSource.secure())


def execute(candidate, grant):
    released(grant, "fit", np.zeros((1, 1)))
    many = np.full((1_000_000, 1), candidate)
    score = released(grant, "score", many, 4.0) / len(many)
    return candidate, float(score[0])


def test_the_best_of_the_tries_is_returned():
    _, grant = charged(selection(expected_runs=200.0))
    assert selection(expected_runs=200.0).run(grant, [0.0, 1.0, 2.0], execute) in (1.0, 2.0)


def test_the_number_of_tries_is_nowhere_in_the_ledger():
    ledger, grant = charged(selection())
    selection().run(grant, [0.0, 1.0], execute)
    assert ledger.entries()[0].executed == {"tune": 1}
    assert grant.executed == {"tune": 1}


def test_selection_can_be_run_once_per_charge():
    _, grant = charged(selection())
    selection().run(grant, [0.0], execute)
    with pytest.raises(BudgetExceeded):
        selection().run(grant, [0.0], execute)


def test_a_try_may_not_spend_more_than_the_base_plan():
    _, grant = charged(selection(expected_runs=50.0))

    def greedy(candidate, inner):
        released(inner, "fit", np.zeros((1, 1)))
        released(inner, "fit", np.zeros((1, 1)))

    with pytest.raises(BudgetExceeded):
        selection(expected_runs=50.0).run(grant, [0.0], greedy)


def test_a_base_plan_other_than_the_one_charged_is_refused():
    _, grant = charged(selection())
    cheaper = Selection(
        label="tune",
        base=SpendingPlan((PlanEntry("fit", Gaussian(1.0)),), Guarantee(20.0, 1e-6)),
        expected_runs=5.0,
        distribution="geometric",
    )
    with pytest.raises(InputError, match="another base plan"):
        cheaper.run(grant, [0.0], execute)


def test_a_poisson_number_of_tries_can_be_zero_and_then_nothing_is_released():
    results = []
    for _ in range(40):
        _, grant = charged(selection("poisson", 1.0))
        results.append(selection("poisson", 1.0).run(grant, [3.0], execute))
    assert set(results) == {None, 3.0}


def test_a_score_that_is_not_a_number_loses():
    _, grant = charged(selection(expected_runs=300.0))

    def sometimes_broken(candidate, inner):
        return candidate, float("nan") if candidate == "broken" else 1.0

    assert selection(expected_runs=300.0).run(grant, ["broken", "sound"], sometimes_broken) == "sound"


def test_selection_costs_less_than_composing_as_many_runs():
    alone = epsilon(BASE.events, 1e-6)
    composed = epsilon([event for event in BASE.events for _ in range(10)], 1e-6)
    for distribution in ("poisson", "geometric"):
        cost = epsilon([selection(distribution, 10.0).event()], 1e-6)
        assert alone < cost < composed


def test_selection_needs_a_candidate():
    _, grant = charged(selection())
    with pytest.raises(InputError):
        selection().run(grant, [], execute)
