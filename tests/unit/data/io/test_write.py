"""Writing: the user's columns, order, dtypes and timestamps come back."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.unit.data.toy import at, simple_schema, toy_schema, toy_table
from understudy.data import (
    Binary,
    Categorical,
    Continuous,
    Integer,
    PrivacyUnit,
    panel_to_arrow,
    read_panel,
    write_panel,
)
from understudy.data.io.write import shortest_decimal
from understudy.data.simulators import simulate_households
from understudy.errors import InputError


def test_a_table_comes_back_as_it_was():
    table = toy_table()
    assert panel_to_arrow(read_panel(table, toy_schema())).equals(table)


def test_the_users_order_of_columns_comes_back():
    order = ("area", "power", "when", "plan", "visits", "person", "alarm", "state")
    table = toy_table().select(list(order))
    assert panel_to_arrow(read_panel(table, toy_schema(columns=order))).equals(table)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".feather", ".npz"])
def test_every_format_is_read_back_bit_for_bit(tmp_path, suffix):
    panel = read_panel(toy_table(), toy_schema())
    path = write_panel(panel, tmp_path / f"out{suffix}")
    again = read_panel(path, toy_schema())
    assert again.values.tobytes() == panel.values.tobytes()
    assert again.static.tobytes() == panel.static.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == [f"out{suffix}"]


def test_synthetic_units_get_new_identifiers():
    panel = replace(read_panel(toy_table(), toy_schema()), unit_ids=None, private=False)
    assert panel_to_arrow(panel)["person"][5].as_py() == "synthetic-000002"
    whole = replace(panel, schema=toy_schema(unit=PrivacyUnit(column="person", dtype="int32")))
    assert panel_to_arrow(whole)["person"].type == pa.int32()
    assert panel_to_arrow(whole)["person"][5].as_py() == 1


DTYPES = [
    (Continuous("x", 0.0, 9.0, dtype="float32"), pa.float32()),
    (Integer("x", 0, 9, dtype="int16"), pa.int16()),
    (Integer("x", 0, 9, dtype="float64"), pa.float64()),
    (Binary("x", dtype="int8"), pa.int8()),
    (Binary("x", dtype="bool"), pa.bool_()),
    (Categorical("x", ("a", "b"), dtype="dictionary"), pa.dictionary(pa.int32(), pa.string())),
    (Categorical("x", ("a", "b"), dtype="large_string"), pa.large_string()),
    (Categorical("x", (7, 3), dtype="int8"), pa.int8()),
]


@pytest.mark.parametrize(("channel", "expected"), DTYPES, ids=[f"{c.kind}-{c.dtype}" for c, _ in DTYPES])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_declared_dtypes_come_back(tmp_path, channel, expected, suffix):
    channel = replace(channel, missing=True)
    values = np.tile(np.array([0, 1, np.nan, 1], dtype=np.float32)[:, None], (100, 1, 1))
    panel = read_panel(values, simple_schema((channel,)))
    table = panel_to_arrow(panel)
    assert table["x"].type == expected
    assert table["x"].null_count == 100
    path = write_panel(panel, tmp_path / f"out{suffix}")
    assert read_panel(path, simple_schema((channel,))).values.tobytes() == panel.values.tobytes()


@pytest.mark.parametrize(
    "dtype",
    ["timestamp[s]", "timestamp[ms]", "timestamp[ns]", "timestamp[us, tz=Europe/Paris]", "string", "int32"],
)
def test_time_comes_back_in_its_own_type(tmp_path, dtype):
    schema = simple_schema(dtype=dtype)
    panel = read_panel(np.ones((100, 4, 1)), schema)
    table = panel_to_arrow(panel)
    assert str(table["t"].type) == dtype
    assert read_panel(table, schema).values.tobytes() == panel.values.tobytes()
    assert read_panel(write_panel(panel, tmp_path / "t.csv"), schema).values.tobytes() == panel.values.tobytes()


def test_dates_come_back_as_dates():
    schema = simple_schema(dtype="date32", frequency="1d")
    table = panel_to_arrow(read_panel(np.ones((100, 4, 1)), schema))
    assert table["t"].type == pa.date32()
    assert read_panel(table, schema).num_units == 100


def test_early_ends_have_no_rows_and_gaps_have_nulls():
    ids = np.repeat(np.arange(100), 3)
    table = pa.table({"id": ids, "t": pa.concat_arrays([at(0, 1, 2)] * 100), "x": pa.array([1.0, None, 3.0] * 100)})
    assert panel_to_arrow(read_panel(table, simple_schema(min_steps=1))).equals(table)


def test_wide_tables_come_back_wide():
    table = pa.table({"id": np.arange(100), **{f"x_{step}": np.arange(100) / 4 for step in range(4)}})
    assert panel_to_arrow(read_panel(table, simple_schema(layout="wide", column=None))).equals(table)


def test_several_series_of_a_unit_are_told_apart():
    unit = PrivacyUnit(column="id", dtype="int64", max_series=2)
    schema = simple_schema(unit=unit, series_column="trip")
    table = pa.table(
        {
            "id": np.repeat(np.arange(100), 4),
            "trip": np.tile([0, 0, 1, 1], 100),
            "t": pa.concat_arrays([at(0, 1)] * 200),
            "x": np.arange(400) % 90.0,
        }
    )
    panel = read_panel(table, schema)
    again = read_panel(panel_to_arrow(panel), schema)
    assert again.values.tobytes() == panel.values.tobytes()
    assert again.unit.tolist() == panel.unit.tolist()


def test_windows_of_papers_are_written_with_a_number_and_read_back():
    unit = PrivacyUnit(kind="overlapping-window", column="window", dtype="int64")
    schema = simple_schema(unit=unit, column=None)
    panel = read_panel(pa.table({"x": np.arange(130) % 100.0}), schema)
    table = panel_to_arrow(panel)
    assert table.column_names == ["window", "x"]
    assert read_panel(table, schema).values.tobytes() == panel.values.tobytes()


def test_values_never_leave_the_declared_bounds_when_written():
    schema = simple_schema((Continuous("x", 0.0, 0.1),))
    panel = read_panel(np.full((100, 4, 1), 0.1), schema)
    assert max(panel_to_arrow(panel)["x"].to_pylist()) <= 0.1


@given(arrays(np.float32, 40, elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_short_decimals_are_the_same_float32(values):
    assert shortest_decimal(values).astype(np.float32).tobytes() == values.tobytes()


def test_numbers_of_a_table_come_back_without_float32_dust():
    numbers = np.round(np.random.default_rng(0).uniform(-999, 999, 2000), 3)
    np.testing.assert_array_equal(shortest_decimal(numbers.astype(np.float32)), numbers)


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.parquet"):
        write_panel(read_panel(toy_table(), toy_schema()), tmp_path / "out.xlsx")


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(InputError, match="No space left"):
        write_panel(read_panel(toy_table(), toy_schema()), tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("dtype", "high"), [("float32", 10**9), ("float64", 2**60), ("int64", 2**62), ("uint64", 2**63)]
)
def test_large_whole_numbers_are_written_whatever_the_column_stores(dtype, high):
    schema = simple_schema((Integer("x", 0, high, dtype=dtype),))
    ids, times = np.repeat(np.arange(100), 4), pa.concat_arrays([at(0, 1, 2, 3)] * 100)
    rows = pa.table({"id": ids, "t": times, "x": np.tile(np.array([0, 7, high // 2, high], dtype=dtype), 100)})
    written = panel_to_arrow(read_panel(rows, schema))
    assert written["x"].type == pa.type_for_alias(dtype)
    assert written["x"].to_pylist() == rows["x"].to_pylist()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".feather"])
@pytest.mark.parametrize("dtype", ["auto", "timestamp[ms]", "timestamp[ns]", "string", "int32"])
def test_no_two_steps_share_a_time_whatever_the_file(tmp_path, dtype, suffix):
    schema = simple_schema(frequency="20ms", dtype=dtype, steps=120)
    panel = read_panel(np.ones((100, 120, 1)), schema)
    again = read_panel(write_panel(panel, tmp_path / f"t{suffix}"), schema)
    assert again.values.tobytes() == panel.values.tobytes()
    assert len(panel_to_arrow(panel)["t"].unique()) == 120


def test_times_of_a_context_that_the_dtype_can_not_hold_are_refused():
    panel = read_panel(np.ones((100, 4, 1)), simple_schema())
    between = replace(panel, ticks=np.tile(np.arange(4, dtype=np.int64) * 20_000, (100, 1)))
    with pytest.raises(InputError, match=r"time\.dtype"):
        panel_to_arrow(between)


@pytest.mark.skipif(os.name != "posix", reason="permissions are Unix's")
@pytest.mark.parametrize(("private", "others_may_read"), [(True, False), (False, True)])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_a_file_of_private_series_is_its_owners_only(
    tmp_path: Path, suffix: str, private: bool, others_may_read: bool
) -> None:
    previous = os.umask(0o022)
    try:
        path = write_panel(replace(simulate_households(5), private=private), tmp_path / f"series{suffix}")
    finally:
        os.umask(previous)
    assert bool(path.stat().st_mode & 0o044) == others_may_read
