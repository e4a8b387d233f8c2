"""Panels of any size are cut to what two minutes allow, and the notes say how."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.evaluation.sets import waves
from understudy.data import Panel, Time
from understudy.evaluation.metric import BRIEF, QUICK
from understudy.evaluation.panels import subsampled


def _prepared(panel: Panel, other: Panel):
    return subsampled(panel, other, None, BRIEF)


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((3_000, 344, 2), "581 of the 1500 real units."),
        ((40, 8_760, 5), "Windows of 504 of the 8760 steps"),
        ((60, 24, 300), "64 of the 300 channels"),
    ],
)
def test_large_panels_are_cut_and_say_so(shape: tuple[int, int, int], says: str) -> None:
    number, steps, channels = shape
    panels = _prepared(*(waves(number, seed=seed, steps=steps, channels=channels) for seed in (1, 2)))
    assert any(says in note for note in panels.notes), panels.notes
    for panel in (panels.real, panels.synthetic, panels.other):
        assert panel.values.size <= 2 * BRIEF.max_values
    assert panels.real.schema == panels.synthetic.schema


def test_windows_begin_at_the_same_hour() -> None:
    panels = _prepared(*(waves(40, seed=seed, steps=8_760, channels=1) for seed in (1, 2)))
    assert panels.real.num_steps % 24 == 0
    assert panels.real.num_units == 20
    assert panels.real.num_series > panels.real.num_units


def test_series_of_many_lengths_are_cut_at_their_beginning() -> None:
    time = Time(column="when", frequency="1h", start="2024-01-01T00:00:00", steps=1_000, min_steps=10)
    cut = []
    for seed in (1, 2):
        panel = waves(40, seed=seed, steps=1_000, time=time)
        lengths = np.random.default_rng(seed).integers(10, 1_000, 40).astype(np.int32)
        values = np.where(np.arange(1_000)[None, :, None] < lengths[:, None, None], panel.values, np.nan)
        cut.append(replace(panel, lengths=lengths, values=values.astype(np.float32)))
    panels = _prepared(*cut)
    assert any("The first 504 of 1000 steps." in note for note in panels.notes)
    assert panels.real.num_units == 20


def test_small_panels_and_thorough_efforts_are_left_whole() -> None:
    small = _prepared(waves(80), waves(80, seed=1))
    assert (small.real.num_series, small.real.num_steps) == (40, 24)
    whole = subsampled(waves(60, steps=1_000), waves(60, seed=1, steps=1_000), None, QUICK)
    assert whole.real.num_steps == 1_000
