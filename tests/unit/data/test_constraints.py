"""Constraints: whatever goes in, what comes out obeys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.unit.data.toy import simple_schema
from understudy.data import Continuous, Integer, Monotone, NonNegative, Schema, Sum, Time, ZeroWhen
from understudy.data.constraints import apply, name_of, violations
from understudy.errors import DataError

CHANNELS = (
    Continuous("total", 0.0, 10.0),
    Continuous("a", 0.0, 8.0),
    Continuous("b", 0.0, 8.0),
    Continuous("meter", 0.0, 100.0),
    Continuous("solar", -5.0, 5.0),
)
CONSTRAINTS = (
    Sum("total", ("a", "b")),
    Monotone("meter"),
    NonNegative("solar"),
    ZeroWhen("solar", hours=(0, 1)),
    ZeroWhen("solar", channel_is_zero="b"),
)


def schema(constraints=CONSTRAINTS, channels=CHANNELS, context=()):
    base = simple_schema(channels)
    return Schema(
        name="c",
        population=base.population,
        unit=base.unit,
        time=Time(column="t", steps=4),
        channels=channels,
        context=context,
        constraints=constraints,
    )


VALUES = arrays(np.float32, (3, 4, 5), elements=st.floats(-200, 200, width=32) | st.just(float("nan")))


@given(VALUES)
def test_whatever_goes_in_obeys_afterwards(values):
    settled = apply(values, schema())
    assert violations(settled, schema()) == []
    np.testing.assert_array_equal(np.isnan(settled), np.isnan(values))
    low, high = np.array([channel.bounds for channel in CHANNELS]).T
    assert (np.isnan(settled) | ((settled >= low - 1e-5) & (settled <= high + 1e-5))).all()


@given(VALUES)
def test_values_that_obey_are_left_alone(values):
    settled = apply(values, schema())
    np.testing.assert_allclose(apply(settled, schema()), settled, rtol=0, atol=2e-5)


def test_each_broken_constraint_is_named():
    values = np.full((1, 4, 5), 1.0, dtype=np.float32)
    values[0, :, 3] = [4, 3, 2, 1]
    values[0, 2, 4] = -1
    values[0, 2, 2] = 0
    assert violations(values, schema()) == [name_of(constraint) for constraint in CONSTRAINTS]


def test_a_monotone_channel_steps_over_gaps():
    values = np.zeros((1, 4, 5), dtype=np.float32)
    values[0, :, 3] = [2.0, np.nan, 1.0, 3.0]
    np.testing.assert_array_equal(apply(values, schema())[0, :, 3], [2.0, np.nan, 2.0, 3.0])
    down = schema((Monotone("meter", "decreasing"),))
    np.testing.assert_array_equal(apply(values, down)[0, :, 3], [2.0, np.nan, 1.0, 1.0])


def test_parts_shrink_in_proportion_when_the_total_is_full():
    values = np.zeros((1, 4, 5), dtype=np.float32)
    values[0, 0, 1:3] = [8.0, 4.0]
    settled = apply(values, schema())[0, 0]
    np.testing.assert_allclose(settled[:3], [10.0, 20 / 3, 10 / 3], rtol=1e-6)


def test_parts_grow_when_the_total_would_be_too_small():
    channels = (Continuous("total", 6.0, 10.0), Continuous("a", 0.0, 8.0), Continuous("b", 0.0, 8.0))
    declared = schema((Sum("total", ("a", "b")),), channels)
    settled = apply(np.zeros((1, 4, 3), dtype=np.float32), declared)
    np.testing.assert_allclose(settled[0, 0], [6.0, 3.0, 3.0])


def test_whole_parts_stay_whole():
    channels = (Integer("total", 0, 10), Integer("a", 0, 9), Integer("b", 0, 9))
    declared = schema((Sum("total", ("a", "b")),), channels)
    values = np.random.default_rng(0).integers(0, 10, (50, 4, 3)).astype(np.float32)
    settled = apply(values, declared)
    np.testing.assert_array_equal(settled, np.rint(settled))
    assert violations(settled, declared) == []


def test_zero_while_a_public_context_is_low():
    declared = schema((ZeroWhen("solar", context="daylight", below=0.5),), context=(Continuous("daylight", 0, 1),))
    context = np.array([[0.0], [0.4], [0.5], [1.0]], dtype=np.float32)
    values = np.ones((2, 4, 5), dtype=np.float32)
    assert apply(values, declared, context=context)[0, :, 4].tolist() == [0, 0, 1, 1]
    assert violations(values, declared, context=context) != []
    with pytest.raises(DataError, match="context"):
        apply(values, declared)


def test_hours_follow_the_first_step():
    values = np.ones((1, 4, 5), dtype=np.float32)
    assert apply(values, schema())[0, :, 4].tolist() == [0, 0, 1, 1]
    assert apply(values, schema(), first_step=23)[0, :, 4].tolist() == [1, 0, 0, 1]


def test_the_input_is_not_changed():
    values = np.full((1, 4, 5), -3.0, dtype=np.float32)
    apply(values, schema())
    assert (values == -3.0).all()
