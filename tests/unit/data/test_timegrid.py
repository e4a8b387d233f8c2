"""The time axis: timestamps to steps and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.data.timegrid import (
    Time,
    hours_of_day,
    parse_frequency,
    start_microseconds,
    step_ticks,
    steps_since,
)
from understudy.errors import SchemaError


@given(
    st.sampled_from(["1us", "250ms", "1s", "15min", "1h", "1d", "2w", "1mo", "3mo", "1y"]),
    st.integers(1, 300),
    st.sampled_from(["refuse", "floor", "nearest"]),
    st.sampled_from(["1850-02-01", "1969-12-01T00:00:00", "2024-02-01"]),
)
def test_every_step_finds_its_way_back(frequency, steps, off_grid, start):
    time = Time(column="t", frequency=frequency, start=start, steps=steps, off_grid=off_grid)
    found, on_grid = steps_since(step_ticks(time, steps), start_microseconds(time), time)
    assert on_grid
    assert found.tolist() == list(range(steps))


@pytest.mark.parametrize("frequency", ["", "h", "0h", "1.5h", "hourly", "1 h", "-1h"])
def test_unreadable_frequencies_are_refused(frequency):
    with pytest.raises(SchemaError, match=r"time\.frequency"):
        parse_frequency(frequency)


def test_a_time_zone_in_the_start_is_honoured():
    east = Time(column="t", start="2024-01-01T02:00:00+02:00")
    assert start_microseconds(east) == start_microseconds(Time(column="t"))


def test_hours_of_the_day_wrap_around():
    time = Time(column="t", start="2024-01-01T22:30:00", frequency="30min")
    assert hours_of_day(time, 5).tolist() == [22, 23, 23, 0, 0]


def test_off_grid_times_are_noticed_before_the_epoch_too():
    time = Time(column="t", start="1960-01-01")
    ticks = step_ticks(time, 3) + np.array([0, 1, 0])
    assert not steps_since(ticks, start_microseconds(time), time)[1]


@pytest.mark.parametrize(
    "fields",
    [
        {"steps": 0},
        {"min_steps": 0},
        {"min_steps": 200},
        {"start": "soon"},
        {"start": "2024-01-15", "frequency": "1mo"},
        {"dtype": "float64"},
        {"align": "diagonal"},
        {"wide_columns": "{channel}"},
        {"wide_columns": "{other}"},
        {"wide_columns": "{channel}{step!r:>99999999}"},
        {"wide_columns": "{channel}{step}{{"},
        {"steps": 1_000_001},
        {"dtype": "timestamp[us, tz=Mars/Base]"},
        {"frequency": "9" * 18 + "h"},
        {"frequency": "9" * 5000 + "h"},
        {"frequency": "300000y"},
        {"start": "9999-12-31T23:00:00"},
    ],
)
def test_axes_that_make_no_sense_are_refused(fields):
    with pytest.raises(SchemaError, match=r"'time\."):
        Time(column="t", **fields)


HOLDING = [
    ("20ms", "2024-01-01T00:00:00", "timestamp[ms]"),
    ("5us", "2024-01-01T00:00:00", "timestamp[us]"),
    ("1h", "2024-01-01T00:00:00.5", "timestamp[ms]"),
    ("1h", "2024-01-01T00:00:00", "timestamp[s]"),
    ("1mo", "2024-01-01T00:00:00", "timestamp[s]"),
]


@pytest.mark.parametrize(("frequency", "start", "dtype"), HOLDING)
def test_without_a_declared_dtype_the_coarsest_timestamp_that_holds_every_step_is_chosen(frequency, start, dtype):
    assert Time(column="t", frequency=frequency, start=start, steps=50).dtype == dtype


TOO_COARSE = [
    ("20ms", "2024-01-01T00:00:00", "timestamp[s]"),
    ("20us", "2024-01-01T00:00:00", "timestamp[ms]"),
    ("1h", "2024-01-01T00:00:00.5", "timestamp[s]"),
    ("1h", "2024-01-01T00:00:00", "date32"),
    ("36h", "2024-01-01T00:00:00", "date32"),
    ("1d", "2024-01-01T12:00:00", "date32"),
    ("1d", "2024-01-01T00:00:00+01:00", "date32"),
    ("1y", "2240-01-01T00:00:00", "timestamp[ns]"),
    ("20ms", "2024-01-01T00:00:00", "timestamp[s, tz=UTC]"),
]


@pytest.mark.parametrize(("frequency", "start", "dtype"), TOO_COARSE)
def test_a_dtype_in_which_steps_would_share_a_time_is_refused(frequency, start, dtype):
    with pytest.raises(SchemaError, match="holds every step") as caught:
        Time(column="t", frequency=frequency, start=start, steps=50, dtype=dtype)
    assert caught.value.key == "time.dtype"
    assert f"'{dtype}'" in str(caught.value)


@pytest.mark.parametrize(
    ("frequency", "dtype"), [("1d", "date32"), ("1mo", "date32"), ("20ms", "string"), ("1h", "int8")]
)
def test_a_dtype_that_holds_every_step_is_kept(frequency, dtype):
    assert Time(column="t", frequency=frequency, steps=50, dtype=dtype).dtype == dtype


def test_a_start_without_an_offset_is_a_time_of_the_declared_zone():
    local = Time(column="t", start="2024-07-01T00:00:00", zone="Europe/Paris", steps=24)
    assert step_ticks(local, 24).tolist() == step_ticks(Time(column="t", start="2024-06-30T22:00:00"), 24).tolist()
    assert hours_of_day(local, 3).tolist() == [0, 1, 2]
    assert local.dtype == "timestamp[s, tz=Europe/Paris]"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"zone": "Mars/Base"}, "time.zone"),
        ({"zone": "Europe/Paris", "frequency": "1d"}, "time.zone"),
        ({"zone": "Europe/Paris", "frequency": "1mo"}, "time.zone"),
        ({"zone": "Europe/Paris", "dtype": "timestamp[s]"}, "time.dtype"),
        ({"zone": "Europe/Paris", "start": "2024-10-27T02:30:00"}, "time.start"),
        ({"zone": "Europe/Paris", "start": "2024-03-31T02:30:00"}, "time.start"),
    ],
)
def test_a_zone_that_can_not_hold_is_refused(changes, key):
    with pytest.raises(SchemaError) as caught:
        Time(column="t", **{"frequency": "1h", **changes})
    assert caught.value.key == key
