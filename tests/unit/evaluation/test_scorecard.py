"""The scorecard: every figure has its neighbours, and one that fails loses no other."""

import time
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.evaluation.sets import waves
from understudy.evaluation.metric import MATTERS, QUICK, Measured, Metric, Undefined, metrics_of
from understudy.evaluation.panels import Panels
from understudy.evaluation.scorecard import Figure, Score, in_order, scorecard_of


def _metric(measure, name="toy.mean", **facts):
    common = {"title": "mean", "direction": "lower", "range": (0.0, np.inf), "reference": "none"}
    return Metric(name=name, measure=measure, **{**common, **facts})


def _gap_of_means(comparison, effort, seed):
    gap = abs(float(comparison.real.values.mean() - comparison.candidate.values.mean()))
    return Measured(value=gap, replicates=np.array([gap, gap + 0.1]))


def _panels(**changes):
    return Panels.prepare(waves(80), changes.pop("synthetic", waves(60, seed=1)), **{"max_series": 500, **changes})


def test_every_score_stands_beside_other_real_series_and_the_control() -> None:
    (score,) = scorecard_of(_panels(), [_metric(_gap_of_means)], QUICK).scores
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
    card = scorecard_of(_panels(), metrics, QUICK)
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

    scorecard_of(_panels(), [_metric(measure, trained=True)], QUICK)
    assert seen == [QUICK.repeats, QUICK.repeats, *[1] * QUICK.repeats]


def _slow(comparison, effort, seed):
    time.sleep(30)
    return Measured(value=1.0)


def test_a_deadline_ends_a_metric_in_the_middle_and_keeps_the_others() -> None:
    metrics = [_metric(_slow, "toy.slow", seconds=1.0), _metric(_gap_of_means)]
    start = time.monotonic()
    card = scorecard_of(_panels(), metrics, replace(QUICK, seconds=0.5))
    assert time.monotonic() - start < 10
    assert card.missing == ("toy.slow",)
    assert card["toy.mean"].synthetic.value is not None
    assert "time was up" in str(card["toy.slow"].synthetic.problem)
    assert any("1 of 2 rows" in note for note in card.notes)
    assert not card.stopped
    assert [score.name for score in card.scores] == ["toy.slow", "toy.mean"]


def test_a_deadline_leaves_the_alarm_of_its_caller_as_it_was() -> None:
    import signal

    rang = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
    signal.setitimer(signal.ITIMER_REAL, 60)
    try:
        scorecard_of(_panels(), [_metric(_gap_of_means)], replace(QUICK, seconds=30.0))
        left, _ = signal.getitimer(signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert 30 < left <= 60
    assert not rang


def test_what_was_measured_before_a_stop_is_kept() -> None:
    def stop(comparison, effort, seed):
        raise KeyboardInterrupt

    metrics = [_metric(_gap_of_means), _metric(stop, "toy.slow", seconds=1.0)]
    card = scorecard_of(_panels(), metrics, QUICK, stopping=(KeyboardInterrupt,))
    assert card.stopped
    assert card.missing == ("toy.slow",)
    assert card["toy.mean"].synthetic.value is not None
    with pytest.raises(KeyboardInterrupt):
        scorecard_of(_panels(), metrics, QUICK)


def test_what_matters_is_measured_before_what_is_slow() -> None:
    names = [metric.name for metric in in_order(metrics_of())]
    assert max(names.index(name) for name in MATTERS) < names.index("general.copied_warped")


def test_progress_is_the_share_of_the_time() -> None:
    """A metric that takes all of the time takes all of the bar, however many quick ones there are."""
    told = []

    def measure(comparison, effort, seed):
        time.sleep(0.05)
        return Measured(value=1.0)

    quick = [_metric(_gap_of_means, f"toy.{place}") for place in range(20)]
    slow = _metric(measure, "toy.slow", trained=True)
    scorecard_of(_panels(), [*quick, slow], QUICK, progress=lambda what, share: told.append(share))
    assert told[40] < 0.2  # two of seven looks of each quick one and more are done by then
    assert all(0 <= share <= 1 for share in told)
    assert told[-1] > 0.8


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
