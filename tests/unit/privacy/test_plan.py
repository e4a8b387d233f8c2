import json

import pytest

from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, PureDP
from understudy.privacy.plan import PlanEntry, SpendingPlan


def test_a_plan_survives_a_round_trip_through_json():
    plan = SpendingPlan((PlanEntry("clip", PureDP(0.1)), PlanEntry("mean", Gaussian(5.0))), Guarantee(2.0, 1e-6))
    assert SpendingPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_two_entries_may_not_share_a_label():
    with pytest.raises(InputError, match="label of its own"):
        SpendingPlan((PlanEntry("a", PureDP(0.1)), PlanEntry("a", PureDP(0.1))), Guarantee(1.0, 1e-6))


def test_an_unknown_label_is_named_together_with_the_known_ones():
    plan = SpendingPlan((PlanEntry("mean", Gaussian(5.0)),), Guarantee(2.0, 1e-6))
    with pytest.raises(InputError, match="Labels of this plan: mean"):
        plan.event("median")


def test_a_plan_without_private_data_costs_nothing():
    assert SpendingPlan((), Guarantee(1.0, 1e-6)).epsilon() == 0
