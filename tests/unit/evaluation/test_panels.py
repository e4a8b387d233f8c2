"""Panels are made comparable, or refused with a word on what to do."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Continuous
from understudy.errors import InputError
from understudy.evaluation.panels import MIN_SERIES, Panels


def test_all_that_is_judged_has_the_same_number_of_series() -> None:
    panels = Panels.prepare(waves(100), waves(70, seed=1), waves(90, seed=2), max_series=1000)
    sizes = {panel.num_series for panel in (panels.synthetic, panels.other, panels.reference, panels.independent)}
    assert sizes == {45}
    assert panels.real.num_series == 100


def test_subsampling_is_stated() -> None:
    panels = Panels.prepare(waves(300), waves(300, seed=1), waves(300, seed=2), max_series=50)
    assert panels.real.num_series == 50
    assert "50 of the 300 real units." in panels.notes


def test_without_a_holdout_the_real_series_are_halved_and_the_notes_say_so() -> None:
    panels = Panels.prepare(waves(200), waves(200, seed=1), max_series=1000)
    assert (panels.real.num_series, panels.other.num_series, panels.reference.num_series) == (100, 50, 50)
    assert "No holdout was given" in panels.notes[0]


def test_splits_deal_every_real_series_once() -> None:
    panels = Panels.prepare(waves(100), waves(100, seed=1), waves(80, seed=2), max_series=1000)
    given = np.sort(np.concatenate([panels.real.values, panels.other.values, panels.reference.values]).sum((1, 2)))
    for split in panels.splits(3, seed=5):
        dealt = np.concatenate([split.real.values, split.candidate.values, split.reference.values]).sum((1, 2))
        assert np.array_equal(np.sort(dealt), given)
        assert split.unseen is panels.reference


@pytest.mark.parametrize(
    ("synthetic", "holdout", "words"),
    [
        (waves(50, steps=12), None, "12"),
        (waves(50, channels=3), None, "channels"),
        (panel_of(waves(50).values, channels=(Continuous("other", 0, 1), Continuous("wave1", 0, 1))), None, "other"),
        (waves(MIN_SERIES - 1), None, "20 synthetic units"),
        (waves(50), waves(0), "holdout units"),
        (waves(50), waves(100), "shares units"),
        (waves(50), waves(50, steps=12, seed=2), "The holdout series"),
    ],
    ids=["steps", "number of channels", "names", "few", "empty holdout", "overlap", "holdout of another length"],
)
def test_what_cant_be_compared_is_refused_with_a_word_on_what_to_do(synthetic, holdout, words) -> None:
    with pytest.raises(InputError, match=words):
        Panels.prepare(waves(100), synthetic, holdout, max_series=1000)


def test_units_of_the_same_name_on_both_sides_are_refused() -> None:
    real = replace(waves(100), unit_ids=np.array([f"p{place}" for place in range(100)]))
    holdout = replace(waves(100, seed=9), unit_ids=np.array([f"p{place + 99}" for place in range(100)]))
    with pytest.raises(InputError, match="shares units"):
        Panels.prepare(real, waves(50, seed=3), holdout, max_series=1000)


def test_series_at_rest_do_not_make_a_holdout_overlap() -> None:
    still = np.full((1, 24, 2), 0.5)
    real, holdout = (panel_of(np.concatenate([waves(99, seed=seed).values, still])) for seed in (1, 2))
    Panels.prepare(real, waves(50, seed=3), holdout, max_series=1000)
