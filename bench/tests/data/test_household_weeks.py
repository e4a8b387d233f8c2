"""Homes of different weeks: each has the weather of its own week, and those with electric heating follow it."""

import numpy as np
from understudy_bench.data.household_weeks import household_weeks_schema, simulate_household_weeks, week_contexts


def test_homes_of_one_week_share_its_context_and_weeks_differ():
    weeks = week_contexts(3)
    homes = simulate_household_weeks(20, weeks)
    assert homes.num_units == 60
    assert homes.schema == household_weeks_schema(60)
    np.testing.assert_array_equal(homes.context[20:40], np.broadcast_to(weeks[1], (20, *weeks[1].shape)))
    assert len(np.unique(weeks.mean(axis=1)[:, 0])) == 3


def test_colder_weeks_need_more_load():
    weeks = week_contexts(2)
    cold, warm = (weeks[:1] + np.float32([shift, 0]) for shift in (-8, 8))
    loads = [np.nanmean(simulate_household_weeks(300, week).values[:, :, 0]) for week in (cold, warm)]
    assert loads[0] > loads[1]
