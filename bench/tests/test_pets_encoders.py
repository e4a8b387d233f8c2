"""What "votes as well" means: agreement of distances, and groups that share nobody."""

import numpy as np
import pytest
from understudy_bench.pets.data import Windows
from understudy_bench.pets.encoders import agreement, election, same_activity


def test_equal_distances_agree_and_unrelated_ones_do_so_by_chance() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.random((2, 2000, 100))
    same = agreement(ours, 3 * ours + 1)
    assert same["same_nearest"] == same["nearest_among_ten"] == 1
    assert same["histogram_correlation"] == pytest.approx(1)
    chance = agreement(ours, theirs)
    assert abs(chance["same_nearest"] - 0.01) < 0.014  # 6.3 deviations
    assert abs(chance["nearest_among_ten"] - 0.1) < 0.043
    assert abs(chance["histogram_correlation"]) < 0.63


def test_a_vote_for_the_second_nearest_is_among_ten_but_not_the_same() -> None:
    ours = np.array([[0.0, 1.0, 2.0], [5.0, 4.0, 3.0]])
    found = agreement(ours, np.array([[1.0, 0.0, 2.0], [5.0, 4.0, 3.0]]))
    assert found["same_nearest"] == 0.5
    assert found["nearest_among_ten"] == 1


def _raw(series: np.ndarray) -> np.ndarray:
    return series.reshape(len(series), -1)


def windows(owners: int = 9, each: int = 20) -> Windows:
    rng = np.random.default_rng(1)
    activity = np.tile([0, 1], owners * each // 2)
    values = np.where(activity[:, None] == 0, np.sin(np.arange(16)), np.cos(2 * np.arange(16)))
    values = (values + 0.1 * rng.normal(size=values.shape)).astype(np.float32)
    owner = np.repeat(np.arange(owners), each)
    return Windows(values=values[:, :, None], owner=owner, sha256="0", activity=activity)


def test_the_three_groups_share_no_owner() -> None:
    made = election(windows())
    groups = [set(part.owner) for part in (made.public, made.voters, made.candidates)]
    assert [len(group) for group in groups] == [3, 3, 3]
    assert not groups[0] & groups[1] | groups[1] & groups[2] | groups[0] & groups[2]


def test_activities_that_look_different_are_told_apart_and_shuffled_ones_are_not() -> None:
    made = election(windows())
    assert same_activity(_raw, made) == 1
    shuffled = windows()
    np.random.default_rng(2).shuffle(shuffled.activity)
    assert 0.2 < same_activity(_raw, election(shuffled)) < 0.8
