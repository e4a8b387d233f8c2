"""What a plan foretells follows units and budget: a hundred units keep their rhythm and no correlations."""

from dataclasses import replace

import pytest

from understudy.data import Population
from understudy.data.simulators import households_schema
from understudy.privacy.budget import Guarantee
from understudy.synthesizers.contract.panels import plain_schema
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.spectral.outlook import expected_shares


def shares(units: int, epsilon: float) -> dict[str, float]:
    return expected_shares(households_schema(units), Guarantee(epsilon, 1e-6), units)


def test_more_units_and_more_budget_let_more_be_heard() -> None:
    least, more, most = shares(100, 0.5), shares(1000, 0.5), shares(1000, 4.0)
    for name in least:
        assert 0 <= least[name] < more[name] < most[name] <= 1, name


def test_a_hundred_units_keep_a_rhythm_and_no_correlations() -> None:
    few = shares(100, 1.0)
    assert few["correlations"] < 0.01 < 0.5 < few["common rhythm"]
    assert min(shares(100_000, 2.0).values()) > 0.99


@pytest.mark.parametrize(("units", "how"), [(50, "faint"), (10, "noise or missing"), (10_000, "survive")])
def test_a_plan_says_whether_seasons_survive(units: int, how: str) -> None:
    told = Spectral().outlook(households_schema(units), Guarantee(1.0, 1e-6))
    assert "correlations" in told[0]
    assert how in told[1]


def test_a_plan_with_a_prior_says_what_is_the_prior_s() -> None:
    few, many = (Spectral(prior="city.csv").outlook(households_schema(n), Guarantee(1.0, 1e-6)) for n in (50, 100_000))
    assert "the prior 'city.csv'" in few[0]
    parts = [int(told[1].split("%")[0].split()[-1]) for told in (few, many)]
    assert parts[0] > 30
    assert parts[1] <= 1


def test_nothing_is_said_of_seasons_that_no_table_has_or_of_units_that_are_not_counted_yet() -> None:
    schema = plain_schema()
    assert len(Spectral().outlook(schema, Guarantee(1.0, 1e-6))) == 1
    bought = replace(schema, population=Population(count_epsilon=0.1))
    assert Spectral().outlook(bought, Guarantee(1.0, 1e-6)) == ()
