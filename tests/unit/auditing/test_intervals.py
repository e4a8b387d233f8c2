"""Intervals hold what they promise: each coverage test alarms falsely with probability below 1e-9."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from understudy.auditing.scores import Interval, area_under_curve, excess_risk, rate

REPEATS = 400
FEWEST = int(binom.ppf(1e-9, REPEATS, 0.93))  # Newcombe's intervals are good to about two points


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
def test_the_area_is_inside_its_interval_as_often_as_promised(shift: float) -> None:
    rng, truth = np.random.default_rng(), norm.cdf(shift / np.sqrt(2))
    found = [area_under_curve(rng.normal(size=60), rng.normal(shift, size=60)) for _ in range(REPEATS)]
    assert sum(each.low <= truth <= each.high for each in found) >= FEWEST
    if shift == 0:
        assert sum(each.low <= 0.8 <= each.high for each in found) == 0  # the control: a false value is outside


def test_arms_that_are_apart_leave_room_below_one_and_ties_count_half() -> None:
    apart = area_under_curve(np.zeros(50), np.ones(50))
    assert (apart.estimate, apart.high) == (1.0, 1.0)
    assert 0.9 < apart.low < 1.0
    assert area_under_curve(np.zeros(5), np.zeros(7)).estimate == 0.5
    assert area_under_curve(np.ones(50), np.zeros(50)).low == 0.0


def test_a_hundred_per_arm_tell_eight_hundredths() -> None:
    rng = np.random.default_rng(1)
    found = area_under_curve(rng.normal(size=100), rng.normal(size=100))
    assert (found.high - found.low) / 2 == pytest.approx(0.08, abs=0.005)


def test_risk_is_what_the_release_added() -> None:
    risk = excess_risk(Interval(0.6, 0.5, 0.7), Interval(0.2, 0.1, 0.3))
    assert (risk.estimate, risk.low, risk.high) == pytest.approx((0.5, 0.2 / 0.7, 0.6 / 0.9))
    assert excess_risk(rate(10, 10), rate(10, 10)).estimate == 0.0
