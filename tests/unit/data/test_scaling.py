"""Scaling knows public bounds and nothing else."""

import numpy as np

from tests.unit.data.toy import toy_schema, toy_table
from understudy.data.io import read_panel
from understudy.data.scaling import from_unit_interval, to_unit_interval
from understudy.data.schema import Categorical, Continuous, Integer

CHANNELS = (Continuous("x", -5.0, 15.0), Integer("n", 0, 10), Categorical("c", ("a", "b", "c")))


def test_bounds_become_zero_and_one():
    ends = np.array([[-5.0, 0.0, 0.0], [15.0, 10.0, 2.0]])
    assert to_unit_interval(ends, CHANNELS).tolist() == [[0, 0, 0], [1, 1, 1]]


def test_values_come_back_and_whole_numbers_come_back_whole():
    rng = np.random.default_rng(0)
    values = np.stack([rng.uniform(-5, 15, 500), rng.integers(0, 11, 500), rng.integers(0, 3, 500)], axis=1)
    back = from_unit_interval(to_unit_interval(values, CHANNELS), CHANNELS)
    np.testing.assert_allclose(back[:, 0], values[:, 0], atol=20 * 1e-6)
    np.testing.assert_array_equal(back[:, 1:], values[:, 1:])
    jittered = from_unit_interval(rng.random((500, 3)), CHANNELS)
    np.testing.assert_array_equal(jittered[:, 1:], np.rint(jittered[:, 1:]))


def test_missing_stays_missing_and_outliers_are_clipped():
    scaled = to_unit_interval(np.array([[np.nan, 99.0, -1.0]]), CHANNELS)
    assert np.isnan(scaled[0, 0])
    assert scaled[0, 1:].tolist() == [1.0, 0.0]


def test_a_single_category_has_no_width_and_does_no_harm():
    only = (Categorical("c", ("a",)),)
    assert to_unit_interval(np.zeros((2, 1)), only).tolist() == [[0], [0]]


def test_an_outlier_unit_leaves_every_other_units_scaled_values_bit_identical():
    schema = toy_schema()
    base = read_panel(toy_table(120), schema)
    more = read_panel(toy_table(121), schema)
    scaled, scaled_more = (to_unit_interval(panel.values[:120], schema.channels) for panel in (base, more))
    # toy tables of different sizes differ; scaling the same rows must not depend on who else is there
    together = to_unit_interval(np.concatenate([base.values, more.values * 1e6]), schema.channels)[:120]
    assert scaled.tobytes() == together.tobytes()
    assert scaled.shape == scaled_more.shape
