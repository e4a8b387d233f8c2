"""Masks hide what they say."""

import numpy as np
import pytest

from understudy.data import masks
from understudy.data.masks import MASKS


def test_a_random_mask_hides_any_step() -> None:
    hidden = MASKS["random"](500, 20, np.random.default_rng(0))
    assert hidden.any(axis=0).all()
    assert len(np.unique(hidden, axis=0)) > 400


@pytest.mark.parametrize(("steps", "runs"), [(40, {4: 2, 8: 4}), (7, {4: 2, 8: 3})])
def test_a_stride_mask_hides_every_second_block(steps: int, runs: dict[int, int]) -> None:
    hidden = MASKS["stride"](2, steps, np.random.default_rng(0))
    starts = (np.diff(hidden.astype(int), axis=1) == 1).sum(axis=1)
    assert starts.tolist() == list(runs.values())
    assert not hidden[:, 0].any()


@pytest.mark.parametrize("steps", [2, 3, 24, 168])
@pytest.mark.parametrize("kind", MASKS)
def test_evaluated_masks_fit_any_length(kind: str, steps: int) -> None:
    hidden = MASKS[kind](40, steps, np.random.default_rng(0))
    assert hidden.shape == (40, steps)
    assert hidden.any(axis=1).all()
    assert kind == "full" or not hidden.all(axis=1).any()


def test_evaluated_masks_are_those_of_the_plan() -> None:
    rng = np.random.default_rng(0)
    shares = MASKS["random"](40, 168, rng).mean(axis=1).reshape(4, 10)
    np.testing.assert_allclose(shares.mean(axis=1), [0.125, 0.25, 0.375, 0.5])
    assert (MASKS["block"](4, 168, rng).sum(axis=1) == 24).all()
    changes = np.abs(np.diff(MASKS["stride"](4, 168, rng).astype(int), axis=1)).sum(axis=1)
    assert changes.tolist() == [3, 3, 7, 7]


def test_training_masks_hide_in_four_ways_within_the_papers_ranges() -> None:
    hidden = masks.training_masks(168, _uniform(8000))
    number, last = hidden.sum(axis=1), hidden[:, -1]
    full = number == 168
    runs = np.diff(hidden.astype(int), axis=1, prepend=0).clip(0).sum(axis=1)  # blocks of hidden steps
    forecast = ~full & last & (runs == 1)
    stride = ~full & ~forecast & (runs >= 2) & (runs <= 4) & np.isin(number % 21, (0, 2, 4, 6, 12, 14, 16, 18, 20))
    assert 0.22 < full.mean() < 0.28
    assert 0.22 < forecast.mean() < 0.28
    assert (number[forecast].min(), number[forecast].max()) == (24, 96)
    assert 0.15 < stride.mean() < 0.35
    others = number[~full & ~forecast & (runs > 4)] / 168
    assert 0.09 < others.min() < 0.13
    assert 0.47 < others.max() < 0.51


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_training_masks_fit_any_length(steps: int) -> None:
    assert masks.training_masks(steps, _uniform(50)).shape == (50, steps)


def _uniform(num_series: int) -> masks.Uniform:
    rng = np.random.default_rng(0)
    return lambda columns: rng.random((num_series, columns))
