"""What newcomers get wrong with their own table: every error says what to do, and quotes no cell."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from understudy.data import Schema, open_table, read_panel, write_panel
from understudy.data.table import Table
from understudy.errors import DataError, InputError, MissingData, SchemaError

UNITS, STEPS = 104, 4
CELL = 7719.25  # in no message
FACTS: dict[str, Any] = {
    "population": UNITS,
    "bounds": {"kwh": (0, 9000)},
    "categories": {"tariff": ["day", "night"]},
    "frequency": "1h",
    "start": "2024-01-01",
    "steps": STEPS,
}


def frame(**columns: Any) -> pd.DataFrame:
    rows = UNITS * STEPS
    plain = pd.DataFrame(
        {
            "meter": np.repeat([f"m{unit:03d}" for unit in range(UNITS)], STEPS),
            "when": np.tile(pd.date_range("2024-01-01", periods=STEPS, freq="h"), UNITS),
            "kwh": np.full(rows, CELL),
            "tariff": np.repeat(["day", "night"], rows // 2),
        }
    )
    return plain.assign(**columns)


def schema(**facts: Any) -> Schema:
    return Schema.draft(frame(), unit="meter", time="when").with_facts(**{**FACTS, **facts})


def steps_schema() -> Schema:
    numbered = frame(when=np.tile(np.arange(STEPS), UNITS))
    return Schema.draft(numbered, unit="meter", time="when").with_facts(**{**FACTS, "start": "2024-01-01"})


def times(*spelled: Any) -> np.ndarray:
    return np.tile(np.array(spelled, dtype=object), UNITS)


def text(kwh: Any) -> pd.DataFrame:
    return frame(kwh=kwh)


def binary() -> Schema:
    return Schema.draft(frame(), unit="meter", time="when").with_facts(
        **{key: fact for key, fact in FACTS.items() if key != "categories"}, kinds={"tariff": "binary"}
    )


def twice(data: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([data, data[["kwh"]]], axis=1)


def csv(tmp_path: Path, written: str, **options: Any) -> Path:
    (tmp_path / "t.csv").write_text(written, **options)
    return tmp_path / "t.csv"


WHEN = pd.date_range("2024-01-01", periods=STEPS, freq="h")
MIXED = [WHEN[0], *WHEN[1:].tz_localize("UTC")]

MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    # what is handed over
    "a dictionary": (lambda: read_panel(frame().to_dict("list"), schema()), r"got dict\. Make a table of it"),
    "a list of rows": (lambda: read_panel(frame().to_dict("records"), schema()), r"got list\. .*from_pylist"),
    "a single column": (lambda: read_panel(frame()["kwh"], schema()), r"got Series\. .*to_frame"),
    "a frame for a panel": (lambda: Table.of(frame()), r"Panel is expected, got DataFrame\. .*read_panel"),
    "a frame to write": (lambda: write_panel(frame(), "out.csv"), r"Panel is expected, got DataFrame"),
    "a frame for a path": (lambda: open_table(frame(), schema()), r"open_table: path.*got DataFrame.*read_panel"),
    "the schema's file": (lambda: read_panel(frame(), "schema.toml"), r"Schema is expected, got str\. .*Schema\.load"),
    "frame and schema swapped": (lambda: read_panel(schema(), frame()), r"Schema is expected, got DataFrame"),
    "no such file": (lambda: read_panel("meters.parquet", schema()), r"No file at meters\.parquet"),
    "an array of rows and channels": (lambda: Schema.draft(np.zeros((9, 2))), r"array\[:, :, None\]"),
    "a draft that is not completed": (
        lambda: read_panel(frame(), Schema.draft(frame(), unit="meter", time="when")),
        r"population.*with_facts\(population=10_000\)",
    ),
    # names and indices
    "a column that is misspelt": (lambda: Schema.draft(frame(), unit="metre"), r"got 'metre'.*mean 'meter'"),
    "an index without a name": (
        lambda: Schema.draft(frame().set_index("meter").rename_axis(None), unit="meter"),
        r"got 'meter'.*index counts as a column if it has a name",
    ),
    "an index that lost its name": (
        lambda: read_panel(frame().set_index("meter").rename_axis(None), schema()),
        r"'meter'.*index counts as a column if it has a name",
    ),
    "an index called as a column": (
        lambda: read_panel(frame().set_index(frame()["kwh"].rename("kwh")), schema()),
        r"name of a column.*reset_index\(drop=True\)",
    ),
    "columns without names": (lambda: Schema.draft(pd.DataFrame(np.zeros((9, 3)))), r"Set frame\.columns"),
    "columns on two levels": (
        lambda: Schema.draft(frame().pivot(index="when", columns="meter", values=["kwh", "tariff"])),
        r"frame\.stack\(",
    ),
    "a column per person": (
        lambda: Schema.draft(frame().pivot(index="when", columns="meter", values="kwh")),
        r"frame\.melt\(\)",
    ),
    "a column twice": (lambda: read_panel(twice(frame()), schema()), r"twice|same name"),
    "a column too many": (lambda: read_panel(frame(note="x"), schema()), r"'note' is not in the schema.*ignore"),
    # facts
    "a fact about a misspelt column": (lambda: schema(bounds={"kWh": (0, 1)}), r"'kWh'.*mean 'kwh'"),
    "a fact that is none": (lambda: schema(frequence="1h"), r"'frequence'.*mean 'frequency'"),
    "bounds the wrong way round": (lambda: schema(bounds={"kwh": (9, 0)}), r"Swap"),
    "one bound": (lambda: schema(bounds={"kwh": 9}), r"bounds.*\(low, high\).*'kwh'"),
    "categories as one text": (lambda: schema(categories={"tariff": "day"}), r"categories.*list.*'tariff'"),
    "bounds of categories": (lambda: schema(bounds={"tariff": (0, 1)}), r"'tariff' is categorical.*kinds"),
    "a population that is text": (lambda: schema(population="10_000"), r"whole number is expected, got str"),
    "pandas' word for a frequency": (lambda: schema(frequency="H"), r"such as '15min', '1h'"),
    "a start as people write it": (lambda: schema(start="01.02.2024"), r"ISO 8601"),
    # times
    "times with and without a zone": (lambda: read_panel(frame(when=times(*MIXED)), schema()), r"'when'.*utc=True"),
    "days first": (
        lambda: read_panel(frame(when=times(*(f"31.01.2024 {hour}:00" for hour in range(STEPS)))), schema()),
        r"'when'.*2024-01-31T12:00:00",
    ),
    "seconds since 1970": (
        lambda: read_panel(frame(when=np.tile(WHEN.astype("int64") // 10**9, UNITS)), schema()),
        r"'when'.*unit=\"s\"",
    ),
    "periods": (lambda: read_panel(frame(when=np.tile(WHEN.to_period("h"), UNITS)), schema()), r"'when'.*to_timestamp"),
    "step numbers as floats": (
        lambda: read_panel(frame(when=np.tile(np.arange(STEPS) * 1.0, UNITS)), steps_schema()),
        r"'when'.*astype\(\"int64\"\)",
    ),
    "a start in another zone": (
        lambda: read_panel(frame(when=np.tile(WHEN.tz_localize("Asia/Tokyo"), UNITS)), schema()),
        r"compared in UTC.*time\.zone",
    ),
    "rows that are not sorted": (lambda: read_panel(frame()[::-1], schema()), r"Sort the table.*sort_values"),
    "rows twice": (lambda: read_panel(pd.concat([frame()] * 2).sort_values(["meter", "when"]), schema()), r"duplicate"),
    # values
    "decimal commas": (
        lambda: read_panel(text("7719,25"), schema()),
        r"'kwh': numbers are expected.*text.*str\.replace",
    ),
    "numbers that are text": (lambda: read_panel(text(str(CELL)), schema()), r"'kwh'.*to_numeric"),
    "numbers and text": (lambda: read_panel(text([CELL, "?"] * (UNITS * STEPS // 2)), schema()), r"'kwh'.*to_numeric"),
    "lists in cells": (lambda: read_panel(text([[CELL]] * UNITS * STEPS), schema()), r"'kwh': numbers are expected"),
    "yes and no": (lambda: read_panel(frame(), binary()), r"'tariff'.*true and false.*map"),
    "a gap": (lambda: read_panel(text(np.nan), schema(columns={"kwh": {"missing": False}})), r"missing = true"),
    "nobody's rows": (lambda: read_panel(frame(meter=None), schema()), r"misses an identifier"),
    "no rows": (lambda: read_panel(frame().head(0), schema()), r"empty"),
    "polars text for numbers": (lambda: read_panel(pl.DataFrame(text(str(CELL))), schema()), r"'kwh'.*to_numeric|cast"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_error_says_what_to_do(mistake: str) -> None:
    make, remedy = MISTAKES[mistake]
    with pytest.raises((InputError, SchemaError, DataError, MissingData), match=f"(?s){remedy}") as caught:
        make()
    shown = "".join(traceback.format_exception(caught.value)).partition("During handling")[0]
    assert not {"7719", "m103", "m000"} & set(str(caught.value).replace(".", " ").replace(",", " ").split())
    assert "pyarrow.lib.Arrow" not in shown, "Arrow's own text quotes cells"


FILES = {
    "semicolons": ("meter;when;kwh;tariff\nm;2024-01-01;1;day\n", {}, r'delimiter = ";"'),
    "decimal commas": ('meter,when,kwh,tariff\nm,2024-01-01,"7719,25",day\n', {}, r'decimal = ","'),
    "another encoding": ("meter,when,kwh,tariff\nm,2024-01-01,1,dæy\n", {"encoding": "latin-1"}, r"--encoding"),
    "no header": ("m1,2024-01-01,7719.25,day\n", {}, r"line of column names"),
    "a word for missing": ("meter,when,kwh,tariff\nm,2024-01-01,?,day\n", {}, r'missing = \["\?"\]'),
}


@pytest.mark.parametrize("mistake", FILES)
def test_the_error_about_a_csv_file_says_what_to_do(mistake: str, tmp_path: Path) -> None:
    written, options, remedy = FILES[mistake]
    with pytest.raises(DataError, match=remedy) as caught:
        read_panel(csv(tmp_path, written, **options), schema())
    assert "7719" not in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "t.csv", index=False, encoding="utf-8-sig")
    assert read_panel(tmp_path / "t.csv", schema()).num_units == UNITS


def test_a_good_frame_is_the_negative_control() -> None:
    assert read_panel(frame(), schema()).num_units == UNITS
    assert read_panel(frame().astype({"kwh": object}), schema()).num_units == UNITS
    assert read_panel(frame(when=np.tile(np.arange(STEPS), UNITS)), steps_schema()).num_units == UNITS
