"""The scorecard: every figure has its neighbours, and one that fails loses no other."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.evaluate.sets import waves
from understudy.evaluate.metric import QUICK, Measured, Metric, Undefined
from understudy.evaluate.panels import Panels
from understudy.evaluate.scorecard import Figure, Score, evaluate


def _metric(measure, name="toy.mean", **facts):
    common = {"title": "mean", "direction": "lower", "range": (0.0, np.inf), "reference": "none"}
    return Metric(name=name, measure=measure, **{**common, **facts})


def _gap_of_means(comparison, effort, seed):
    gap = abs(float(comparison.real.values.mean() - comparison.candidate.values.mean()))
    return Measured(value=gap, replicates=np.array([gap, gap + 0.1]))


def _panels(**changes):
    return Panels.prepare(waves(80), changes.pop("synthetic", waves(60, seed=1)), **{"max_series": 500, **changes})


def test_every_score_stands_beside_other_real_series_and_the_control() -> None:
    (score,) = evaluate(_panels(), [_metric(_gap_of_means)], QUICK).scores
    assert score.synthetic.value is not None
    assert score.synthetic.low is not None
    assert score.holdout.value is not None
    assert f"{QUICK.splits} random splits" in score.holdout.how
    assert score.independent.value is not None


def test_one_failing_metric_loses_no_other() -> None:
    def broken(comparison, effort, seed):
        raise ZeroDivisionError("7.123 of person-9")

    def undefined(comparison, effort, seed):
        raise Undefined("needs a label; declare one in the schema")

    def endless(comparison, effort, seed):
        return Measured(value=float("nan"))

    metrics = [
        _metric(broken, "toy.broken"),
        _metric(undefined, "toy.undefined"),
        _metric(endless, "toy.endless"),
        _metric(_gap_of_means),
    ]
    card = evaluate(_panels(), metrics, QUICK)
    assert "ZeroDivisionError" in str(card["toy.broken"].synthetic.problem)
    assert "7.123" not in str(card["toy.broken"].synthetic.problem)
    assert card["toy.undefined"].synthetic.problem == "needs a label; declare one in the schema"
    assert "not finite" in str(card["toy.endless"].synthetic.problem)
    assert card["toy.mean"].synthetic.problem is None


def test_trained_metrics_train_once_for_each_split_and_repeat_for_the_candidates() -> None:
    seen = []

    def measure(comparison, effort, seed):
        seen.append(effort.repeats)
        return Measured(value=1.0)

    evaluate(_panels(), [_metric(measure, trained=True)], QUICK)
    assert seen == [QUICK.repeats, QUICK.repeats, *[1] * QUICK.repeats]


@pytest.mark.parametrize(
    ("direction", "found", "expected"),
    [
        *(("lower", 0.5, True), ("lower", 2.5, False), ("higher", 2.5, True), ("higher", 0.5, False)),
        *(("near", 1.5, True), ("near", 0.5, False), ("near", 2.5, False)),
    ],
)
def test_like_real_is_being_no_worse_than_other_real_series(direction, found, expected) -> None:
    assert _score(direction, found).like_real is expected


def test_position_is_zero_at_real_and_one_at_the_control() -> None:
    assert _score("lower", 1.5).position == 0
    assert _score("lower", 5.5).position == 1
    assert replace(_score("lower", 1.0), independent=Figure(value=1.5)).position is None


def _score(direction, found) -> Score:
    return Score(
        name="toy.mean", suite="toy", title="mean", direction=direction, range=(0, 9), reference="none", seconds=0.0,
        synthetic=Figure(value=found), holdout=Figure(value=1.5, low=1.0, high=2.0), independent=Figure(value=5.5),
    )  # fmt: skip
