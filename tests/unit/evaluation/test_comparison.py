"""Views that metrics share: scaled by real series, without gaps, categories one-hot."""

import numpy as np

from tests.unit.evaluation.sets import panel_of, waves
from understudy.data import Categorical, Continuous
from understudy.evaluation.panels import Comparison, Scale


def test_real_series_fill_the_unit_interval_and_others_keep_its_scale() -> None:
    real = panel_of(np.array([[[0.2], [0.4]], [[0.6], [0.4]]]))
    scale = Scale.of(real)
    assert (scale.unit(real).min(), scale.unit(real).max()) == (0, 1)
    assert np.allclose(scale.unit(panel_of(np.array([[[0.8], [0.2]]]))), [[[1.5], [0.0]]])


def test_gaps_are_closed_by_straight_lines_and_an_empty_series_stands_at_the_mean() -> None:
    values = np.array([[0.0, np.nan, 1.0], [np.nan] * 3, [np.nan, 0.5, np.nan]])[:, :, None]
    unit = Scale.of(panel_of(values)).unit(panel_of(values))[:, :, 0]
    assert np.allclose(unit, [[0, 0.5, 1], [0.5] * 3, [0.5] * 3])


def test_categories_become_one_feature_each_and_are_not_numeric() -> None:
    channels = (Continuous("level", 0, 1), Categorical("state", ("off", "idle", "on")))
    values = np.stack([np.full((4, 5), 0.5), np.tile([0, 1, 2, 1, 0], (4, 1))], axis=2)
    panel = panel_of(values, channels=channels)
    comparison = Comparison(real=panel, candidate=panel, reference=panel, unseen=panel)
    assert comparison.unit(comparison.real).shape == (4, 5, 4)
    assert np.array_equal(comparison.unit(comparison.real)[0, 2, 1:], [0, 0, 1])
    assert comparison.numeric_names == ["level"]
    assert comparison.numeric(panel).shape == (4, 5, 1)
    assert comparison.feature_channels == [0, 1, 1, 1]
    assert np.array_equal(comparison.numeric_unit(panel), comparison.unit(comparison.real)[:, :, :1])
    further = panel_of(values + np.array([0.25, 0]), channels=channels)  # none of the comparison's own panels
    assert np.allclose(comparison.numeric_unit(further), 0.25)


def test_a_constant_channel_is_scaled_without_division_by_zero() -> None:
    panel = panel_of(np.full((3, 4, 1), 0.3))
    assert np.isfinite(Scale.of(panel).unit(waves(3, steps=4, channels=1))).all()
