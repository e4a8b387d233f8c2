"""Distances, copies, coverage and rules: known answers, and what each has to notice."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from tests.unit.evaluation.odd import LEAST
from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Monotone, NonNegative, Panel, concatenate
from understudy.evaluation.general import METRICS
from understudy.evaluation.general.neighbours import ball_shares, corrected_share, warped_distances
from understudy.evaluation.metric import Measured
from understudy.evaluation.panels import Comparison
from understudy.synthesizers.contract.panels import make_panel, rich_schema

BY_NAME = {metric.name.removeprefix("general."): metric for metric in METRICS}


def measured(name: str, real: Panel, candidate: Panel, reference: Panel | None = None, **effort) -> Measured:
    reference = candidate if reference is None else reference
    comparison = Comparison(real=real, candidate=candidate, reference=reference, unseen=reference)
    return BY_NAME[name].measure(comparison, replace(LEAST, **effort), 0)


def warped(x: np.ndarray, y: np.ndarray, band: int) -> float:
    """The textbook recursion, one pair at a time."""
    cost = np.full((len(x) + 1, len(y) + 1), np.inf)
    cost[0, 0] = 0
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            if abs(i - j) <= band:
                step = min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
                cost[i, j] = ((x[i - 1] - y[j - 1]) ** 2).sum() + step
    return float(np.sqrt(cost[-1, -1]))


@pytest.mark.parametrize("band", [0, 1, 4, 9])
def test_warping_is_the_textbook_recursion(band: int) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((4, 9, 2)), rng.standard_normal((3, 9, 2))
    expected = [[warped(x, y, band) for y in second] for x in first]
    np.testing.assert_allclose(warped_distances(first[:, None], second, band), expected)
    if band == 0:
        np.testing.assert_allclose(expected, pairwise_distances(first.reshape(4, -1), second.reshape(3, -1)))


def test_warping_forgives_a_shift_that_the_straight_distance_does_not() -> None:
    bump = np.zeros((1, 12, 1))
    bump[0, 5] = 1.0
    later = np.roll(bump, 2, axis=1)
    assert warped_distances(bump, later, 2)[0] == 0.0
    assert warped_distances(bump, later, 1)[0] > 0


def test_nearness_is_corrected_for_the_number_of_training_series() -> None:
    for num_training in (50, 100, 300):
        by_number = num_training / (num_training + 100)
        assert corrected_share(by_number, num_training, 100) == pytest.approx(0.5)
        assert (corrected_share(0.0, num_training, 100), corrected_share(1.0, num_training, 100)) == (0.0, 1.0)


@pytest.mark.parametrize("name", ["copied", "copied_warped"])
@pytest.mark.parametrize("num_training", [80, 240])
def test_copies_of_training_series_are_noticed_and_fresh_ones_are_not(name: str, num_training: int) -> None:
    real, fresh, reference = waves(num_training), waves(120, seed=1), waves(120, seed=2)
    # Which side is nearest for 120 fresh series has a standard deviation of about 0.05; 0.3 is six of them.
    assert abs(measured(name, real, fresh, reference).value - 0.5) < 0.3
    copies = panel_of(real.values[:80] + np.random.default_rng(0).normal(0, 0.001, (80, 24, 2)))
    assert measured(name, real, copies, reference).value > 0.99


def direct_balls(real: np.ndarray, candidate: np.ndarray, k: int) -> dict[str, float]:
    """The definitions of Kynkäänniemi et al. and Naeem et al. with full distance matrices."""
    radius = [np.sort(pairwise_distances(side), axis=1)[:, k] for side in (real, candidate)]
    between = pairwise_distances(real, candidate)
    return {
        "precision": (between <= radius[0][:, None]).any(axis=0).mean(),
        "recall": (between <= radius[1]).any(axis=1).mean(),
        "density": (between <= radius[0][:, None]).sum(axis=0).mean() / k,
        "coverage": (between <= radius[0][:, None]).any(axis=1).mean(),
    }


def test_balls_are_those_of_the_definitions() -> None:
    rng = np.random.default_rng(0)
    real, candidate = (rng.standard_normal((60, 3)).astype(np.float32) for _ in range(2))
    candidate[:, 0] *= 1.8
    found = {name: share.mean() for name, share in ball_shares(real, candidate, 3).items()}
    assert found == pytest.approx(direct_balls(real, candidate, 3))
    assert 0.2 < found["coverage"] < 0.95


def test_a_collapse_to_few_modes_is_noticed() -> None:
    real, fresh = waves(150), waves(150, seed=1)
    modes = concatenate([fresh.take_units(np.arange(5))] * 30)
    for name, healthy in (("coverage", 0.9), ("recall", 0.8), ("variety", 0.8)):
        assert measured(name, real, fresh).value > healthy, name
        assert measured(name, real, modes).value < 0.35, name
    assert measured("doubles", real, modes).value == 1.0
    assert measured("doubles", real, fresh).value == 0.0
    assert measured("doubles", real, real).parts["also among the training series"] == 1.0


def test_series_that_break_a_declared_rule_are_counted_once() -> None:
    rules = (NonNegative("wave0"), Monotone("wave1"))
    rising = np.cumsum(np.random.default_rng(0).random((40, 6, 2)), axis=1)
    broken = np.array(rising)
    broken[:10, 2, 0] = -1.0
    broken[5:20, 5, 1] = 0.0
    real, candidate = (panel_of(values, constraints=rules) for values in (rising, broken))
    found = measured("constraints", real, candidate, replicates=50)
    assert found.value == 0.5
    assert found.parts == {"non-negative: wave0": 0.25, "monotone: wave1 increasing": 0.375}
    assert found.replicates is not None
    assert found.replicates.std() == pytest.approx(np.sqrt(0.25 / 40), rel=0.4)


def test_rules_that_look_at_context_are_checked_with_it() -> None:
    panel = make_panel(rich_schema(), 30)
    values = np.array(panel.values)
    values[:4, 0, panel.schema.channel_index("heat")] = 2.0  # must be zero while there is little sunshine
    assert measured("constraints", panel, panel).value == 0.0
    assert measured("constraints", panel, panel.with_values(values)).value == pytest.approx(4 / 30)
