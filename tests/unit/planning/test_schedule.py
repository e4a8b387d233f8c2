"""A budget divided over releases of the same people is what the ledger would grant, one after the other."""

import re
from dataclasses import replace

import pytest

import understudy as us
from understudy.data import BudgetDeclaration
from understudy.data.simulators import households_schema
from understudy.errors import BudgetExceeded, InputError
from understudy.planning.choices import chosen, guarantee_for, spending_plan
from understudy.planning.schedule import divided
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import declared
from understudy.privacy.noise import NoiseSource

SCHEMA = households_schema(10_000)


@pytest.mark.parametrize("method", ["spectral", "pets", "dit"])
def test_the_ledger_grants_every_release_of_a_schedule_and_not_one_more(method: str) -> None:
    own, _ = chosen(SCHEMA, method=method)
    shared = divided("monthly:6", own, SCHEMA, 3.0, 1e-6)
    ledger = us.Ledger.in_memory(shared.whole, max_runs=shared.runs, composition=shared.composition)
    plan = spending_plan(own, SCHEMA, Guarantee(shared.epsilon, shared.delta))
    for _ in range(6):
        ledger.charge(plan, label="a month", noise=NoiseSource.secure())
    with pytest.raises(BudgetExceeded):
        ledger.charge(plan, label="one more", noise=NoiseSource.secure())


def test_the_epsilon_that_is_printed_is_granted_for_every_release() -> None:
    own, _ = chosen(SCHEMA, method="spectral")
    shared = divided("monthly:12", own, SCHEMA, 3.0, 1e-6)
    found = re.search(r": epsilon = ([0-9.]+) at delta", shared.sentence())
    assert found is not None
    plan = spending_plan(own, SCHEMA, Guarantee(float(found[1]), shared.delta))
    ledger = us.Ledger.in_memory(shared.whole, max_runs=shared.runs, composition=shared.composition)
    for _ in range(12):
        ledger.charge(plan, label="a month", noise=NoiseSource.secure())


def test_a_run_without_epsilon_takes_its_share_under_either_rule() -> None:
    for composition in ("basic", "zcdp"):
        budget = BudgetDeclaration(epsilon=3.0, max_runs=12, composition=composition)
        schema = replace(SCHEMA, budget=budget)
        guarantee = guarantee_for(schema, None, None)
        ledger = us.Ledger.in_memory(**declared(schema))
        for _ in range(12):
            plan = spending_plan(chosen(schema, method="spectral")[0], schema, guarantee)
            ledger.charge(plan, label="a month", noise=NoiseSource.secure())
        assert guarantee.epsilon < (0.26 if composition == "basic" else 1.0)


def test_gaussian_releases_share_by_zcdp_and_get_more_than_by_adding_up() -> None:
    own, _ = chosen(SCHEMA, method="spectral")
    shared = divided("monthly:12", own, SCHEMA, 3.0, 1e-6)
    assert shared.composition == "zcdp"
    assert shared.basic_epsilon == 0.25
    assert shared.epsilon > 2 * shared.basic_epsilon
    assert "zCDP" in shared.sentence()


def test_releases_with_subsampled_gradients_share_by_adding_up() -> None:
    own, _ = chosen(SCHEMA, method="dit")
    assert divided("monthly:12", own, SCHEMA, 3.0, 1e-6).composition == "basic"


def test_a_plan_for_a_schedule_shows_each_release() -> None:
    one, shared = (us.plan(SCHEMA, 3, method="spectral", schedule=text) for text in (None, "monthly:12"))
    assert shared.schedule is not None
    assert shared.epsilon <= shared.schedule.epsilon < one.epsilon
    best = [max(release.signal_to_noise or 0 for release in plan.releases) for plan in (one, shared)]
    assert best[1] < best[0]
    assert "12 releases, one a month" in shared._repr_html_()
    assert shared.as_dict()["schedule"]["runs"] == 12


@pytest.mark.parametrize("text", ["monthly", "monthly:1", "fortnightly:3", "12", "monthly:-3", "monthly:99999"])
def test_a_schedule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="schedule='monthly:12'"):
        us.plan(SCHEMA, 3, schedule=text)
