"""Reading: every way in gives the same panel, and units never touch each other."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from tests.unit.data.toy import START, at, simple_schema, toy_schema, toy_table
from understudy.data import MIN_UNITS, Continuous, Integer, PrivacyUnit, read_panel
from understudy.errors import DataError, MissingData

TABLE = toy_table()
SCHEMA = toy_schema()


def same(one, two):
    """Bit for bit the same arrays."""
    arrays = ("values", "lengths", "unit", "static")
    return all(getattr(one, name).tobytes() == getattr(two, name).tobytes() for name in arrays)


def as_file(table, folder, suffix):
    path = folder / f"toy{suffix}"
    if suffix == ".csv":
        pacsv.write_csv(table, path)
    elif suffix == ".parquet":
        pq.write_table(table, path, row_group_size=100)
    else:
        feather.write_feather(table, path, chunksize=64)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".feather"])
def test_every_file_format_gives_the_same_panel(tmp_path, suffix):
    expected = read_panel(TABLE, SCHEMA)
    assert same(expected, read_panel(as_file(TABLE, tmp_path, suffix), SCHEMA))
    assert same(expected, read_panel(str(as_file(TABLE, tmp_path, suffix)), SCHEMA))


def test_pandas_and_polars_frames_give_the_same_panel():
    expected = read_panel(TABLE, SCHEMA)
    frame = TABLE.to_pandas()
    frame["plan"] = frame["plan"].astype("category")
    assert same(expected, read_panel(frame, SCHEMA))
    assert same(expected, read_panel(frame.sort_values(["when", "person"]), SCHEMA))
    polars = pl.from_arrow(TABLE).with_columns(pl.col("state").cast(pl.Categorical))
    assert same(expected, read_panel(polars, SCHEMA))


def test_values_are_where_the_table_says():
    panel = read_panel(TABLE, SCHEMA)
    assert panel.values.shape == (120, 5, 4)
    rows = TABLE.to_pylist()
    for row in (0, 7, 311):
        cell = panel.values[row // 5, row % 5]
        assert cell[1] == rows[row]["visits"]
        assert cell[2] == ["off", "idle", "on"].index(rows[row]["state"])
        assert cell[3] == rows[row]["alarm"]
        assert np.isnan(cell[0]) if rows[row]["power"] is None else cell[0] == np.float32(rows[row]["power"])
    assert panel.unit_ids[3] == "p0003"
    assert panel.label.tolist() == [["basic", "plus"].index(row["plan"]) for row in rows[::5]]


def test_rows_of_different_units_may_be_interleaved():
    by_time = TABLE.take(pc.sort_indices(TABLE, [("when", "ascending"), ("person", "ascending")]))
    assert same(read_panel(TABLE, SCHEMA), read_panel(by_time, SCHEMA))


def test_a_unit_added_leaves_every_other_unit_bit_identical():
    giant = toy_table(1, person=pa.array(["giant"] * 5), power=pa.array([10.0] * 5), visits=pa.array([50] * 5))
    without, with_it = read_panel(TABLE, SCHEMA), read_panel(pa.concat_tables([TABLE, giant]), SCHEMA)
    assert same(without, with_it.take_units(np.arange(120)))
    first = read_panel(pa.concat_tables([giant, TABLE]), SCHEMA)
    assert same(without, first.take_units(np.arange(1, 121)))


def test_an_outlier_that_is_clipped_moves_nobody_else():
    clipping = simple_schema((Continuous("x", 0.0, 100.0, out_of_bounds="clip"),))
    ids, times = np.repeat(np.arange(150), 4), pa.concat_arrays([at(0, 1, 2, 3)] * 150)
    values = np.random.default_rng(0).uniform(0, 100, 600)
    plain = read_panel(pa.table({"id": ids, "t": times, "x": values}), clipping)
    values[:4] = 1e30
    wild = read_panel(pa.table({"id": ids, "t": times, "x": values}), clipping)
    assert (wild.values[0] == 100).all()
    assert plain.values[1:].tobytes() == wild.values[1:].tobytes()


def hundred(rows):
    """Repeats one unit's rows under a hundred identifiers."""
    ids = np.repeat(np.arange(MIN_UNITS), len(rows["t"]))
    return pa.table({"id": ids, **{name: pa.concat_arrays([column] * MIN_UNITS) for name, column in rows.items()}})


def test_series_may_end_early_when_that_is_declared():
    table = hundred({"t": at(0, 1, 2), "x": pa.array([1.0, 2.0, None])})
    panel = read_panel(table, simple_schema(min_steps=2))
    assert (panel.lengths == 3).all()
    np.testing.assert_array_equal(panel.values[5, :, 0], [1, 2, np.nan, np.nan])
    with pytest.raises(DataError, match="min_steps"):
        read_panel(hundred({"t": at(0), "x": pa.array([1.0])}), simple_schema(min_steps=2))


def test_a_step_without_a_row_is_missing():
    panel = read_panel(hundred({"t": at(0, 3), "x": pa.array([1.0, 2.0])}), simple_schema())
    np.testing.assert_array_equal(panel.values[0, :, 0], [1, np.nan, np.nan, 2])


def test_irregular_timestamps_go_onto_the_grid_only_by_declaration():
    table = hundred({"t": at(0.1, 0.9, 2.6), "x": pa.array([10.0, 20.0, 30.0])})
    with pytest.raises(DataError, match="off_grid"):
        read_panel(table, simple_schema())
    floor = read_panel(table, simple_schema(off_grid="floor"))
    np.testing.assert_array_equal(floor.values[0, :, 0], [15, np.nan, 30, np.nan])
    nearest = read_panel(table, simple_schema(off_grid="nearest"))
    np.testing.assert_array_equal(nearest.values[0, :, 0], [10, 20, np.nan, 30])


@pytest.mark.parametrize(
    ("aggregate", "expected"), [("mean", 3.0), ("sum", 6.0), ("last", 5.0), ("max", 5.0), ("min", 1.0)]
)
def test_several_rows_of_a_step_become_one_as_declared(aggregate, expected):
    schema = simple_schema((Continuous("x", 0.0, 100.0, missing=True, aggregate=aggregate),), off_grid="floor")
    panel = read_panel(hundred({"t": at(1.0, 1.2, 1.4), "x": pa.array([1.0, None, 5.0])}), schema)
    empty = 0.0 if aggregate == "sum" else np.nan
    np.testing.assert_array_equal(panel.values[0, :, 0], [empty, expected, empty, empty])


def test_events_are_binned_to_counts_and_sums():
    channels = (Integer("visits", 0, 10, aggregate="count"), Continuous("spent", 0.0, 100.0, aggregate="sum"))
    schema = simple_schema(channels, off_grid="floor")
    table = hundred({"t": at(0.5, 0.5, 3.25), "spent": pa.array([1.5, 2.0, 4.0])})
    panel = read_panel(table, schema)
    np.testing.assert_array_equal(panel.values[0], [[2, 3.5], [0, 0], [0, 0], [1, 4.0]])


def test_events_at_the_same_moment_need_no_more_than_an_event_aggregate():
    channels = (Continuous("spent", 0.0, 100.0, aggregate="sum"),)
    panel = read_panel(hundred({"t": at(1, 1), "spent": pa.array([1.0, 2.0])}), simple_schema(channels))
    np.testing.assert_array_equal(panel.values[0, :, 0], [0, 3, 0, 0])


def test_relative_alignment_starts_each_series_at_its_own_first_row():
    ids = np.repeat(np.arange(100), 2)
    times = START + (np.repeat(np.arange(100) * 7, 2) + np.tile([0, 2], 100)) * np.timedelta64(3600, "s")
    panel = read_panel(pa.table({"id": ids, "t": times, "x": np.ones(200)}), simple_schema(align="relative"))
    np.testing.assert_array_equal(panel.values[:, :, 0], np.tile([1, np.nan, 1, np.nan], (100, 1)))


def test_a_time_column_may_count_steps():
    table = pa.table({"id": np.repeat(np.arange(100), 2), "t": np.tile([0, 2], 100), "x": np.ones(200)})
    panel = read_panel(table, simple_schema(dtype="int64"))
    np.testing.assert_array_equal(panel.values[0, :, 0], [1, np.nan, 1, np.nan])


def test_months_are_steps_too():
    months = np.array(["2024-01-01", "2024-02-01", "2024-04-01"], dtype="datetime64[D]")
    panel = read_panel(hundred({"t": pa.array(months), "x": pa.array([1.0, 2.0, 3.0])}), simple_schema(frequency="1mo"))
    np.testing.assert_array_equal(panel.values[0, :, 0], [1, 2, np.nan, 3])


@pytest.mark.parametrize("zone", ["UTC", "Europe/Amsterdam"])
def test_time_zones_are_read_as_moments(zone):
    stamps = pa.array(at(0, 1, 2, 3).cast(pa.timestamp("s", tz="UTC"))).cast(pa.timestamp("s", tz=zone))
    table = hundred({"t": stamps, "x": pa.array([1.0, 2.0, 3.0, 4.0])})
    np.testing.assert_array_equal(read_panel(table, simple_schema()).values[0, :, 0], [1, 2, 3, 4])


def test_several_series_of_one_unit_stay_together():
    table = pa.table(
        {
            "id": np.tile(np.repeat(np.arange(100), 2), 2),
            "trip": np.repeat(["b", "a"], 200),
            "t": pa.concat_arrays([at(0, 1)] * 200),
            "x": np.arange(400) % 100.0,
        }
    )
    two = PrivacyUnit(column="id", dtype="int64", max_series=2)
    panel = read_panel(table, simple_schema(unit=two, series_column="trip"))
    assert panel.unit.tolist() == np.repeat(np.arange(100), 2).tolist()
    assert panel.num_units == 100
    with pytest.raises(DataError, match="max_series = 1"):
        read_panel(table, simple_schema(series_column="trip"))


def wide_table(units=100, steps=4):
    values = np.arange(units * steps).reshape(units, steps) % 90 / 1.0
    return pa.table({"id": np.arange(units), **{f"x_{step}": values[:, step] for step in range(steps)}})


def test_wide_tables_have_a_row_per_series(tmp_path):
    schema = simple_schema(layout="wide", column=None)
    panel = read_panel(wide_table(), schema)
    assert panel.values[7, :, 0].tolist() == [28, 29, 30, 31]
    pq.write_table(wide_table(), tmp_path / "w.parquet")
    pacsv.write_csv(wide_table(), tmp_path / "w.csv")
    assert same(panel, read_panel(tmp_path / "w.parquet", schema))
    assert same(panel, read_panel(tmp_path / "w.csv", schema))


def test_wide_series_end_with_their_last_value_when_length_varies():
    table = wide_table().set_column(4, "x_3", pa.nulls(100, pa.float64()))
    panel = read_panel(table, simple_schema(layout="wide", column=None, min_steps=1))
    assert (panel.lengths == 3).all()


def test_wide_rows_of_a_unit_are_brought_together():
    table = pa.concat_tables([wide_table(), wide_table()])
    two = PrivacyUnit(column="id", dtype="int64", max_series=2)
    panel = read_panel(table, simple_schema(unit=two, layout="wide", column=None))
    assert panel.unit.tolist() == np.repeat(np.arange(100), 2).tolist()
    assert panel.values[6].tolist() == panel.values[7].tolist()


def test_arrays_and_numpy_files_are_read(tmp_path):
    values = np.random.default_rng(0).uniform(0, 100, (100, 4, 1))
    schema = simple_schema(unit=PrivacyUnit(column="id", dtype="int64", max_series=2))
    panel = read_panel(values, schema)
    assert panel.num_units == 100
    np.save(tmp_path / "a.npy", values)
    assert same(panel, read_panel(tmp_path / "a.npy", schema))
    np.savez(tmp_path / "a.npz", values=np.concatenate([values, values]), unit=np.tile(np.arange(100), 2))
    grouped = read_panel(tmp_path / "a.npz", schema)
    assert grouped.unit.tolist() == np.repeat(np.arange(100), 2).tolist()
    with pytest.raises(DataError, match="channels"):
        read_panel(values[:, :2], schema)


def test_overlapping_windows_are_cut_from_one_long_table():
    schema = simple_schema(unit=PrivacyUnit(kind="overlapping-window", column="id", dtype="int64"), column=None)
    panel = read_panel(pa.table({"x": np.arange(110) % 100.0}), schema)
    assert panel.values.shape == (106, 4, 1)
    assert panel.values[3, :, 0].tolist() == [3, 4, 5, 6]


def test_small_tables_pass_only_with_the_named_override():
    few = toy_table(99)
    with pytest.raises(DataError, match="allow_few_units"):
        read_panel(few, SCHEMA)
    assert read_panel(few, SCHEMA, allow_few_units=True).num_units == 99


def test_ignored_columns_are_left_out(tmp_path):
    table = TABLE.append_column("note", pa.array(["x"] * TABLE.num_rows))
    ignoring = toy_schema(ignore=("note",))
    assert same(read_panel(TABLE, SCHEMA), read_panel(table, ignoring))
    assert same(read_panel(TABLE, SCHEMA), read_panel(as_file(table, tmp_path, ".csv"), ignoring))


def test_a_file_that_is_not_there_is_missing_data(tmp_path):
    with pytest.raises(MissingData):
        read_panel(tmp_path / "none.parquet", SCHEMA)


def test_a_category_spelled_like_a_null_survives_csv(tmp_path):
    schema = toy_schema(static=(toy_schema().static[1],), label=None, channels=toy_schema().channels[:2])
    frame = pd.DataFrame({name: TABLE[name].to_pandas() for name in ("person", "when", "power", "visits", "area")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert read_panel(tmp_path / "t.csv", schema).num_units == 120
