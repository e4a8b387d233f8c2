"""What noise has to be besides large enough: separate for every coordinate, and on everything that is published."""

import numpy as np

from tests.releases import released
from understudy.data.panel import Panel
from understudy.data.table import Table
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import ApproximateDP, Event, Gaussian, PureDP
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.purchases import BuyBounds
from understudy.synthesizers.contract.panels import make_panel, plain_schema


def granted(label: str, event: Event, noise: NoiseSource | None = None) -> Grant:
    guarantee = Guarantee(500.0, 1e-6)
    plan = SpendingPlan((PlanEntry(label, event),), guarantee)
    return Ledger.in_memory(guarantee).charge(plan, label="run", noise=noise or NoiseSource.secure())


def test_every_coordinate_of_a_statistic_has_noise_of_its_own() -> None:
    """Of 64 multiples of a step this fine no two agree; shared noise: all."""
    answers = released(granted("mean", Gaussian(2.0)), "mean", np.zeros((1, 8, 8)))
    assert answers.shape == (8, 8)
    assert len(np.unique(answers)) > 48


def test_no_normal_is_handed_out_twice_in_one_call() -> None:
    drawn = NoiseSource.secure().normal(1.0, 1000)
    assert len(np.unique(drawn)) == 1000


def test_a_count_has_noise_of_exactly_the_charged_scale() -> None:
    counted = [
        granted("count", PureDP(0.25), NoiseSource.constant(value)).count("count", Table.of(make_panel(plain_schema())))
        for value in (0.0, 1.0)
    ]
    assert counted[1] - counted[0] == 4  # scale = 1 / epsilon


def test_categories_come_sorted_and_not_as_the_rows_did() -> None:
    grant = granted("domain", ApproximateDP(1.0, 1e-9))
    assert grant.stable_domain("domain", ["b"] * 500 + ["a"] * 500) == ("a", "b")


def test_no_category_appears_that_only_one_unit_holds() -> None:
    """Sixty of them: one appears by chance with probability below 1e-10, and nearly all without a threshold.

    A single such category would slip through a list without a threshold once in four runs, by luck of the noise.
    """
    alone = [f"secret {number}" for number in range(60)]
    assert granted("domain", ApproximateDP(1.0, 1e-12)).stable_domain("domain", ["a"] * 500 + alone) == ("a",)


def test_both_bounds_are_bought_and_are_points_of_the_public_grid() -> None:
    panel: Panel = make_panel(plain_schema())
    name, grid = panel.schema.channels[0].name, np.linspace(-100.0, 100.0, 9)
    grant = granted(f"bounds of {name}", PureDP(200.0, count=2))
    bought = BuyBounds(columns=(name,), low=-100.0, high=100.0).bounds_of(name, grid, grant, Table.of(panel))
    assert grant.executed == {f"bounds of {name}": 2}
    assert set(bought) <= set(grid)
