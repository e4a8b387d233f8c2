"""An event takes its windows away and changes no other: what makes the mixture of Gaussians the right price."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.synthesizers.dit.small import SMALL, waves
from tests.unit.synthesizers.heard import Heard
from tests.unit.synthesizers.spectral.recording import listening
from understudy.data import Panel, PrivacyUnit
from understudy.data.windows import without_empty
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, MixtureOfGaussians
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.synthesizers.dit import DiT
from understudy.synthesizers.dit.interpolation import release_autocovariance
from understudy.synthesizers.dit.recipe import Recipe
from understudy.synthesizers.dit.scores import release_scales
from understudy.synthesizers.spectral import Spectral

EVENT_STEPS, STEPS, WINDOW, STRIDE = 3, 40, 8, 2
EVENT = PrivacyUnit(column="home", kind="event", event_steps=EVENT_STEPS)


def _windows(panel: Panel, method: DiT | Spectral) -> list[bytes]:
    return sorted(series.tobytes() for series in method.private_series(panel, 1).panel.values)


def _without(panel: Panel, first: int) -> Panel:
    values = np.array(panel.values)
    values[0, first : first + EVENT_STEPS] = np.nan
    return panel.with_values(values)


def test_taking_an_event_away_takes_windows_away_and_changes_none() -> None:
    method = DiT(window_steps=WINDOW, window_stride=STRIDE)
    panel = waves(2, steps=STEPS, unit=EVENT)
    whole, most = _windows(panel, method), method.influence(panel.schema)
    assert most == -(-(WINDOW + EVENT_STEPS - 1) // STRIDE)
    lost = []
    for first in range(STEPS - EVENT_STEPS + 1):
        left = _windows(_without(panel, first), method)
        assert set(left) <= set(whole)
        lost.append(len(whole) - len(left))
    assert max(lost) == most  # the bound is reached, and never passed


def test_a_method_that_keeps_such_windows_pays_twice_for_each() -> None:
    """The negative control: `spectral` keeps them, so windows change, and its influence says so."""
    panel = waves(2, steps=STEPS, unit=EVENT)
    method = Spectral(window_steps=WINDOW, window_stride=STRIDE)
    changed = _windows(_without(panel, 17), method)
    assert len(changed) == len(_windows(panel, method))
    assert not set(changed) <= set(_windows(panel, method))
    assert method.influence(panel.schema) == 2 * DiT(window_steps=WINDOW, window_stride=STRIDE).influence(panel.schema)


def _bought(panel: Panel, method: DiT) -> dict[str, Heard]:
    """What is bought without noise, by label."""
    entries = (PlanEntry("scale", Gaussian(1.0)), PlanEntry("autocovariance", Gaussian(1.0)))
    plan = SpendingPlan(entries, Guarantee(9.0, 1e-6))
    grant = Ledger.in_memory(plan.guarantee).charge(plan, label="run", noise=NoiseSource.constant(0))
    private = method.private_series(panel, 1)
    examples = {"x": private.panel.values - 5, "known": private.panel.observed}
    with listening() as tape:
        release_scales(private, grant)
        release_autocovariance(private, examples, np.ones(1), 4, grant)
    return tape.sums


def test_one_event_moves_each_sum_by_at_most_its_reach_and_by_more_than_a_window_may() -> None:
    method, panel = DiT(window_steps=WINDOW, window_stride=STRIDE), waves(2, steps=STEPS, unit=EVENT)
    before, furthest = _bought(panel, method), dict.fromkeys(("scale", "autocovariance"), 0.0)
    for first in range(STEPS - EVENT_STEPS + 1):
        after = _bought(_without(panel, first), method)
        for label, own in before.items():
            furthest[label] = max(furthest[label], own.moved(after[label]))
    assert all(1 / method.influence(panel.schema) < moved <= 1 + 1e-9 for moved in furthest.values())


def test_where_no_whole_window_is_left_everything_is_bought_as_elsewhere() -> None:
    """How many windows are whole is private: none has to look like one."""
    method, panel = DiT(window_steps=WINDOW, window_stride=STRIDE), waves(1, steps=STEPS, unit=EVENT)
    holed = np.array(panel.values)
    holed[:, :: WINDOW // 2] = np.nan
    nothing, something = _bought(panel.with_values(holed), method), _bought(panel, method)
    assert method.private_series(panel.with_values(holed), 1).panel.num_series == 0
    for label, own in something.items():
        assert nothing[label].value.shape == own.value.shape
        assert nothing[label].reach == own.reach
        assert not nothing[label].value.any()
    guarantee = Guarantee(1.0, 1e-5)
    quick = replace(method, recipe=replace(method.recipe, iterations=2))
    released = quick.fit(panel.with_values(holed), Ledger.in_memory(guarantee), guarantee=guarantee)
    assert released.sample(2, rng=np.random.default_rng(0)).num_series == 2


def test_a_step_with_one_channel_left_is_not_empty() -> None:
    panel = waves(3, steps=STEPS)
    values = np.array(panel.values)
    values[1, 5] = np.nan
    assert without_empty(panel.with_values(values), every_step=True).num_series == 2
    assert without_empty(panel, every_step=True).num_series == 3


def test_the_plan_prices_the_windows_that_one_event_can_touch() -> None:
    schema = waves(50, steps=STEPS, unit=EVENT).schema
    method = DiT(recipe=Recipe(network=SMALL.recipe.network, batch=64), window_steps=WINDOW, window_stride=STRIDE)
    event = method.spending_plan(schema, Guarantee(4.0, 1e-6)).event("training")
    assert isinstance(event, MixtureOfGaussians)
    assert event.max_windows == method.influence(schema) == 5
    assert event.sampling_rate == pytest.approx(64 / (50 * 17))  # 17 windows of each series
    told = method.outlook(schema, Guarantee(4.0, 1e-6))
    assert "any 3 consecutive steps of 1h" in told[0]
    assert "up to 5 windows" in told[0]


@pytest.mark.parametrize("stride", [0, WINDOW + 1])
def test_windows_with_holes_between_them_are_refused(stride: int) -> None:
    from understudy.errors import InputError
    from understudy.privacy.ledger import Ledger

    ledger = Ledger.in_memory(Guarantee(1.0, 1e-6))
    with pytest.raises(InputError, match="window_stride"):
        DiT(window_steps=WINDOW, window_stride=stride).fit(waves(200, steps=STEPS), ledger)
    assert not ledger.entries()
