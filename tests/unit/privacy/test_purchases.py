from dataclasses import replace

import numpy as np
import pytest

from tests.unit.privacy.conftest import make_schema
from understudy.data.channels import Continuous
from understudy.data.panel import Panel
from understudy.data.table import Table
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import ApproximateDP, PureDP
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.purchases import BuyBounds, BuyPopulation, one_per_unit, round_numbers


def make_panel(values, unit=None):
    values = np.asarray(values, dtype=np.float32)
    return Panel(
        schema=make_schema(),
        values=values,
        lengths=np.full(len(values), values.shape[1], dtype=np.int32),
        unit=np.arange(len(values), dtype=np.int64) if unit is None else np.asarray(unit, dtype=np.int64),
        static=np.empty((len(values), 0), dtype=np.float32),
    )


def grant_for(label, event, noise=None):
    plan = SpendingPlan((PlanEntry(label, event),), Guarantee(100.0, 1e-5))
    ledger = Ledger.in_memory(Guarantee(100.0, 1e-5))
    return ledger.charge(plan, label="preprocessing", noise=noise or NoiseSource.secure())


@pytest.fixture
def panel():
    rng = np.random.default_rng(2)
    return make_panel(rng.uniform(2.0, 6.0, size=(3000, 4, 1)))


def counted(panel, noise=None):
    purchase = BuyPopulation()
    (entry,) = purchase.plan(Guarantee(1.0, 1e-5)).entries
    assert entry.event == PureDP(1.0)
    grant = grant_for(entry.label, entry.event, noise)
    return purchase.answer(grant, Table.of(panel), make_schema()).facts["population"]


def test_a_count_is_near_the_number_of_units_and_has_a_price(panel):
    assert counted(panel) == pytest.approx(3000, abs=40)


def test_a_count_of_nobody_is_still_at_least_one():
    assert counted(make_panel(np.empty((0, 4, 1))), NoiseSource.constant(-50.0)) == 1


def bounds(panel, epsilon, grid):
    grant = grant_for("bounds of load", PureDP(epsilon / 2, count=2))
    return BuyBounds(columns=("load",), low=0.0, high=10.0).bounds_of("load", grid, grant, Table.of(panel))


def test_bounds_bought_with_a_good_budget_enclose_most_of_the_data(panel):
    low, high = bounds(panel, 2.0, round_numbers(0.0, 10.0))
    assert 1.9 < low < 2.3
    assert 5.7 < high < 6.1


def test_bounds_bought_with_nothing_are_still_an_interval(panel):
    for _ in range(20):
        low, high = bounds(panel, 1e-6, np.array([0.0, 5.0, 10.0]))
        assert 0.0 <= low < high <= 10.0


def test_each_unit_enters_with_one_value_however_many_series_it_has():
    panel = make_panel(np.arange(12.0).reshape(3, 4, 1) / 2, unit=[0, 0, 1])
    assert one_per_unit(panel, "load", "max").tolist() == [3.5, 5.5]
    assert one_per_unit(panel, "load", "min").tolist() == [0.0, 4.0]


def test_a_unit_without_values_is_skipped():
    values = np.ones((2, 4, 1))
    values[1] = np.nan
    assert np.isnan(one_per_unit(make_panel(values), "load", "max")).tolist() == [False, True]
    assert one_per_unit(make_panel(np.empty((0, 4, 1))), "load", "max").size == 0


def test_the_values_of_other_units_do_not_change_a_units_own(panel):
    outlier = make_panel(np.concatenate([panel.values, np.full((1, 4, 1), 10.0)]))
    for statistic in ("min", "max"):
        alone = one_per_unit(panel, "load", statistic)
        assert np.array_equal(alone, one_per_unit(outlier, "load", statistic)[:-1])


def test_a_category_domain_keeps_what_many_have():
    grant = grant_for("tariffs", ApproximateDP(1.0, 1e-8))
    kept = grant.stable_domain("tariffs", ["flat"] * 300 + ["night"] * 300 + ["one of a kind"])
    assert kept == ("flat", "night")


@pytest.mark.parametrize(
    ("low", "high", "whole", "expected"),
    [
        (-1000, 1000, False, (-1000.0, 1000.0, 1001)),
        (0, 50, False, (0.0, 50.0, 1001)),
        (0.013, 0.987, False, (0.013, 0.987, 975)),
        (0.5, 17.2, True, (0.0, 18.0, 19)),
        (3, 1234, True, (2.0, 1234.0, 617)),
    ],
)
def test_a_grid_of_round_numbers_reaches_outwards(low, high, whole, expected):
    grid = round_numbers(low, high, whole=whole).tolist()
    assert (grid[0], grid[-1], len(grid)) == expected
    assert grid[0] <= low < high <= grid[-1]
    assert np.diff(grid) == pytest.approx(np.full(len(grid) - 1, (grid[-1] - grid[0]) / (len(grid) - 1)))
    assert all(len(repr(point)) <= 8 for point in grid)


def test_a_static_column_has_one_value_per_unit():
    panel = make_panel(np.ones((3, 4, 1)), unit=[0, 0, 1])
    schema = replace(panel.schema, static=(Continuous("size", 0.0, 9.0),))
    panel = replace(panel, schema=schema, static=np.array([[1], [5], [3]], dtype=np.float32))
    assert one_per_unit(panel, "size", "max").tolist() == [5.0, 3.0]
