from dataclasses import replace

import pyarrow as pa
import pytest

from understudy.data import Categorical, Continuous, Integer, Population, PrivacyUnit, Schema, Time, read_panel
from understudy.data.draft import reading_schema, still_open, with_bounds
from understudy.data.io.read import read_first_categories
from understudy.errors import DataError, InputError

UNITS = 120


def make_draft(**changes: object) -> Schema:
    plain = Schema(
        name="trips",
        population=Population(UNITS),
        unit=PrivacyUnit(column="person", dtype="int64"),
        time=Time(column="step", frequency="1h", steps=2, dtype="int64"),
        channels=(Continuous("speed"), Categorical("mode", missing=True)),
        static=(Integer("age"),),
    )
    return replace(plain, **changes)


def make_table(modes: list | None = None) -> pa.Table:
    rows = [(unit, step) for unit in range(UNITS) for step in range(2)]
    return pa.table(
        {
            "person": [unit for unit, _ in rows],
            "step": [step for _, step in rows],
            "speed": [float(unit + step) for unit, step in rows],
            "mode": modes or [("bus", "car")[step] for _, step in rows],
            "age": [unit for unit, _ in rows],
        }
    )


def test_open_columns_are_named_and_left_out_of_reading() -> None:
    draft = make_draft()
    assert still_open(draft) == ("speed", "mode", "age")
    panel = read_panel(make_table(), reading_schema(draft, {"age": (0, 50)}))
    assert panel.num_units == UNITS
    assert panel.static.max() == 50, "bought columns are clipped to public bounds"


def test_bounds_of_whole_numbers_stay_whole() -> None:
    age = with_bounds(make_draft(), {"age": (0.0, 120.0)}).static[0]
    assert (age.low, age.high, age.out_of_bounds) == (0, 120, "clip")
    assert isinstance(age.low, int)


def test_a_wide_table_leaves_out_every_column_of_an_open_channel() -> None:
    time = Time(frequency="1h", steps=2, layout="wide")
    draft = make_draft(time=time, channels=(Continuous("speed"), Continuous("noise")), static=())
    table = pa.table(
        {"person": range(UNITS), **{f"{c}_{s}": [1.0] * UNITS for c in ("speed", "noise") for s in (0, 1)}}
    )
    assert read_panel(table, reading_schema(draft, {"speed": (0, 9)})).num_units == UNITS
    with pytest.raises(InputError, match="still open"):
        reading_schema(draft, {})


def test_a_unit_votes_with_its_first_category() -> None:
    votes, whole = read_first_categories(make_table(), make_draft(), "mode")
    assert votes == ["bus"] * UNITS
    assert not whole
    gaps = read_first_categories(make_table([None, "car"] * UNITS), make_draft(), "mode")[0]
    assert gaps == ["car"] * UNITS


@pytest.mark.parametrize("form", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_text_may_be_stored_as(form: pa.DataType) -> None:
    table = make_table()
    table = table.set_column(3, "mode", table["mode"].combine_chunks().cast(form))
    assert read_first_categories(table, make_draft(), "mode")[0] == ["bus"] * UNITS


def test_whole_numbers_may_be_categories_and_fractions_may_not() -> None:
    assert read_first_categories(make_table([3, 4] * UNITS), make_draft(), "mode") == (["3"] * UNITS, True)
    with pytest.raises(DataError, match="whole numbers are expected"):
        read_first_categories(make_table([0.5, 4.0] * UNITS), make_draft(), "mode")


def test_votes_of_a_table_with_few_units_or_without_the_column_are_refused() -> None:
    with pytest.raises(DataError, match="fewer than 100"):
        read_first_categories(make_table().slice(0, 20), make_draft(), "mode")
    with pytest.raises(DataError, match="'mode'"):
        read_first_categories(make_table().drop_columns(["mode"]), make_draft(), "mode")


def test_a_wide_channel_votes_with_its_first_step_that_has_one() -> None:
    draft = make_draft(time=Time(frequency="1h", steps=2, layout="wide"), static=())
    table = pa.table({"person": range(UNITS), "mode_0": [None] * UNITS, "mode_1": ["tram"] * UNITS})
    assert read_first_categories(table, draft, "mode")[0] == ["tram"] * UNITS
