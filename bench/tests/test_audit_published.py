"""Published statistics beside valid ones: ten repeats of one experiment are steady about nothing."""

import numpy as np
import pytest
from scipy.stats import binom
from understudy_bench.audit.published_tests import REPEATS, Repeated, as_published, repeated, valid

from understudy.auditing.scores import Interval


def features(shift: float, rng: np.random.Generator, number: int = 40) -> dict:
    """Distances of shadows without and with a target, who is nearer by `shift` deviations."""
    return {arm: {"knn": rng.normal(-shift * (arm == "present"), 1, (number, 1))} for arm in ("absent", "present")}


def test_a_target_that_leaves_a_trace_is_found_by_both() -> None:
    found = repeated(features(4.0, np.random.default_rng(0)), "knn", np.random.default_rng(0))
    assert found.repeats.shape == (REPEATS,)
    assert found.repeats.min() > 0.9
    assert found.area.low > 0.85
    assert found.p_value < 1e-6


def test_valid_p_values_of_nothing_are_small_as_seldom_as_they_say_and_published_ones_more_often() -> None:
    """40 pairs of targets that leave no trace, at 5 %. False alarm below 1e-6 for the valid test; the published one
    is expected to be below 0.05 in about half of the pairs, and is in more than the valid one may be."""
    rng, pairs, level = np.random.default_rng(1), 40, 0.05
    honest = published = 0
    for _ in range(pairs):
        one, other = (repeated(features(0.0, rng), "knn", rng) for _ in range(2))
        honest += valid(one, other) < level
        published += as_published(one, other) < level
    most = binom.isf(1e-6, pairs, level)
    assert honest <= most < published


def test_ten_repeats_can_not_say_more_than_two_in_a_thousand() -> None:
    def steady(area: float) -> Repeated:
        noise = 0.001 * np.arange(REPEATS)
        return Repeated(repeats=area + noise, area=Interval(area, area - 0.2, area + 0.2), p_value=0.5)

    assert as_published(steady(0.9), steady(0.1)) == pytest.approx(2 / 1024)
    assert as_published(steady(0.5), steady(0.5)) == 1.0
