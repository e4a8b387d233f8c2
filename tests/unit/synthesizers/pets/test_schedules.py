"""Schedules as the paper prints them."""

import re

import pytest

from understudy.errors import InputError
from understudy.synthesizers.pets.schedules import SCHEDULES, schedule

PRINTED = {
    "traffic": "[40, 35, 30, 25, 20, 15, 15, 10, 10, 10, 5 × 51] (61 total)",
    "activity": "[25, 20, 20, 15, 15, 15, 10, 10, 10, 10, 5 × 11] (21 total)",
    "S1": "[20 × 3, 15 × 3, 10 × 2, 5 × 3] (11 iterations)",
    "S2": "[25, 25, 20, 20, 15, 15, 10, 10, 8, 6, 5] (11 iterations)",
    "S3": "[40, 35, 30, 25, 20, 15, 10, 5 × 4] (11 iterations)",
    "S4": "[45, 40, 35, 30, 25, 20, 15, 10, 10, 5, 5] (11 iterations)",
    "S5": "[50, 45, 40, 35, 30, 25, 20, 15, 10, 5, 5] (11 iterations)",
    "S6": "[60, 55, 50, 45, 40, 35, 30, 25, 20, 15, 10] (11 iterations)",
    "S7": "[95, 85, 75, 65, 55, 45, 35, 25, 20, 15, 10] (11 iterations)",
}


def test_every_schedule_of_the_paper_is_there_and_no_other() -> None:
    assert set(SCHEDULES) == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_degrees_are_as_printed(name: str) -> None:
    body, total = re.fullmatch(r"\[(.*)\] \((\d+) .*\)", PRINTED[name]).groups()  # type: ignore[union-attr]
    expected: list[float] = []
    for item in body.split(", "):
        degree, _, times = item.partition(" × ")
        expected += [float(degree)] * int(times or 1)
    assert schedule(name) == tuple(expected)
    assert len(schedule(name)) == int(total)


def test_another_number_of_iterations_walks_the_same_curve() -> None:
    assert schedule("S3", 11) == schedule("S3")
    assert schedule("S6", 21)[::2] == pytest.approx(schedule("S6"))
    shorter = schedule("S3", 5)
    assert shorter[0] == 40
    assert shorter[-1] == 5
    assert list(shorter) == sorted(shorter, reverse=True)
    assert schedule("S3", 1) == (40.0,)


def test_unknown_names_and_no_iterations_are_refused() -> None:
    with pytest.raises(InputError, match="one of traffic, activity, S1"):
        schedule("S8")
    with pytest.raises(InputError, match="at least 1"):
        schedule("S3", 0)
