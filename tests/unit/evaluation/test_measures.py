"""Autocorrelations of single series."""

import numpy as np
import pytest

from understudy.evaluation.measures import autocorrelations


def test_autocorrelations_are_those_of_the_textbook() -> None:
    values = np.random.default_rng(0).normal(size=(3, 20, 2)).cumsum(axis=1)
    found = autocorrelations(values, 5)
    for series in range(3):
        for channel in range(2):
            centred = values[series, :, channel] - values[series, :, channel].mean()
            full = np.correlate(centred, centred, mode="full")[19:]
            np.testing.assert_allclose(found[series, :, channel], full[1:6] / full[0], atol=1e-12)


def test_a_series_that_flips_at_every_step_has_minus_one_less_the_missing_pair() -> None:
    flipping = np.tile([1.0, -1.0], 10).reshape(1, 20, 1)
    assert autocorrelations(flipping, 2)[0, :, 0] == pytest.approx([-19 / 20, 18 / 20])


def test_a_series_at_rest_has_none_and_one_too_short_has_nothing_to_say() -> None:
    values = np.full((2, 6, 1), 0.1, dtype=np.float32)
    values[1, 2:] = np.nan
    found = autocorrelations(values, 3)[:, :, 0]
    np.testing.assert_array_equal(found, [[0, 0, 0], [0, np.nan, np.nan]])


def test_a_short_series_is_taken_by_its_own_length() -> None:
    values = np.random.default_rng(1).normal(size=(1, 12, 1))
    padded = np.concatenate([values, np.full((1, 8, 1), np.nan)], axis=1)
    np.testing.assert_allclose(autocorrelations(padded, 4), autocorrelations(values, 4), atol=1e-12)
