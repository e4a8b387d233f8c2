"""Public tables and arrays in working scale."""

import numpy as np
import pytest

from understudy.data import simulate_households
from understudy.errors import InputError
from understudy.synthesizers.pets.pretraining import one_channel_each, scaled_array, scaled_panel, windows_of


def test_a_public_panel_is_bridged_and_standardised() -> None:
    series = scaled_panel(simulate_households(50))
    assert series.shape == (50, 168, 2)
    assert np.isfinite(series).all()
    assert abs(series[:, :, 0].mean()) < 0.2
    assert 0.5 < series[:, :, 0].std() < 1.2


def test_a_private_panel_is_refused() -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match="public panel"):
        scaled_panel(replace(simulate_households(5), private=True))


def test_an_array_is_bridged_and_standardised() -> None:
    array = np.random.default_rng(0).normal(5, 3, (40, 20, 2))
    array[3, 4:7, 1] = np.nan
    series = scaled_array(array)
    np.testing.assert_allclose(series.mean(axis=(0, 1)), 0, atol=0.05)
    np.testing.assert_allclose(series.std(axis=(0, 1)), 1, atol=0.05)
    assert np.isfinite(series).all()
    assert scaled_array(array[:, :, 0]).shape == (40, 20, 1)
    assert (scaled_array(np.ones((4, 9))) == 0).all()


@pytest.mark.parametrize(
    "array",
    [np.zeros(3), np.zeros((2, 0, 1)), np.array([["a", "b"]]), np.full((2, 3), np.inf), np.full((2, 3), np.nan)],
    ids=["flat", "no steps", "text", "infinite", "empty"],
)
def test_other_arrays_are_refused(array: np.ndarray) -> None:
    with pytest.raises(InputError, match="Public array"):
        scaled_array(array)


def test_windows_of_a_series_stay_together_and_keep_their_channels() -> None:
    series = np.arange(2 * 20 * 3).reshape(2, 20, 3)
    windows = windows_of(series, 8)
    assert windows.shape == (14, 8, 3)
    np.testing.assert_array_equal(windows[1], series[0, 2:10])
    np.testing.assert_array_equal(windows[7], series[1, :8])
    np.testing.assert_array_equal(one_channel_each(series)[4, :, 0], series[1, :, 1])
    with pytest.raises(InputError, match="at most the 20 steps"):
        windows_of(series, 21)
