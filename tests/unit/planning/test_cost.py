"""The time of a run follows from short trials, and what is not known is said."""

from dataclasses import replace

import pytest

from understudy.data import Continuous, Population, PrivacyUnit, Schema, Time
from understudy.planning.cost import (
    Expected,
    Trial,
    extrapolated,
    num_updates,
    sizes,
    with_updates,
)
from understudy.synthesizers import METHODS


def schema(units: int, steps: int, channels: int) -> Schema:
    return Schema(
        name="many",
        population=Population(units),
        unit=PrivacyUnit(column="person", dtype="int64"),
        time=Time(column="hour", steps=steps),
        channels=tuple(Continuous(f"c{number}", 0.0, 1.0) for number in range(channels)),
    )


def trial(series: int, updates: int, *, told: bool = True, batch: int = 512) -> Trial:
    """A trial of a run that takes 2 s, 5 ms for each series, and 1 ms for each drawn series of an update."""
    update = 0.001 * min(series, batch)
    seconds = 2 + 0.005 * series + updates * update
    return Trial(series, updates, seconds, 0.005 * series, update if told else None, 2**29)


def test_seconds_of_a_run_follow_from_one_trial_that_tells_its_updates() -> None:
    found = extrapolated([trial(64, 4)], 10_000, 300, 512)
    assert found is not None
    assert found[0] == pytest.approx(2 + 50 + 300 * 0.512, rel=0.01)
    assert not found[1]


def test_a_method_without_updates_takes_a_straight_line_in_series() -> None:
    few, many = (trial(size, 1, told=False, batch=0) for size in (2, 64))
    found = extrapolated([replace(many, seconds=9.0), many, few], 10_000, 1, 0)
    assert found == (pytest.approx(2 + 50, rel=0.01), False)


def test_a_batch_far_larger_than_a_trial_makes_the_figure_rough() -> None:
    found = extrapolated([trial(4, 4)], 10_000, 300, 512)
    assert found is not None
    assert found[1]


def test_a_single_trial_without_updates_bounds_a_run_from_above() -> None:
    found = extrapolated([trial(64, 1, told=False)], 640, 1, 0)
    assert found == (pytest.approx(10 * trial(64, 1).seconds), True)


def test_a_trial_that_was_ended_says_nothing() -> None:
    assert extrapolated([], 100, 1, 0) is None
    assert extrapolated([trial(64, 4, told=False)], 100, 300, 64) is None


def test_whole_runs_do_where_updates_are_not_told() -> None:
    few, many = (trial(size, 300, told=False, batch=2) for size in (2, 64))
    found = extrapolated([trial(64, 4, told=False), many, few], 10_000, 300, 0)
    assert found == (pytest.approx(2 + 50 + 300 * 0.002, rel=0.01), False)
    assert extrapolated([trial(64, 4, told=False), many], 640, 300, 0) == (pytest.approx(10 * many.seconds), True)


def test_sentences_say_what_is_known() -> None:
    assert "about 2.0 minutes" in Expected(120.0, False, 2**30, 2**34).sentence()
    assert "0.0 minutes" not in Expected(2.0, False, 2**30, 2**34).sentence()
    assert "rough" in Expected(120.0, True, 2**30, 2**34).sentence()
    assert "No estimate" in Expected(None, False, 2**30, 2**34).sentence()
    assert "would not fit" in Expected(120.0, False, 2**35, 2**34).sentence()


@pytest.mark.parametrize("shape", [(500, 24, 1), (2, 24, 1), (10**6, 35_064, 500)])
def test_trials_have_few_series_whatever_the_schema(shape: tuple[int, int, int]) -> None:
    few, many = sizes(schema(*shape), shape[0])
    assert 1 <= few <= many <= shape[0]
    assert many * shape[1] * shape[2] <= max(700_000, 4 * shape[1] * shape[2])


@pytest.mark.parametrize("name", sorted(METHODS.own))
def test_a_rehearsal_shortens_what_a_method_repeats(name: str) -> None:
    method = METHODS[name]()
    total = num_updates(method)
    assert num_updates(with_updates(method, 3)) == (3 if method.rehearsed else total)
    assert (total > 1) == bool(method.rehearsed)
