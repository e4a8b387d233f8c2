"""CSV files as strangers write them: read in the declared format, refused with the declaration that may be wrong."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.data.toy import simple_schema
from understudy.data import Categorical, Continuous, PrivacyUnit, Schema, read_panel, write_panel
from understudy.data.schema import CsvFormat
from understudy.errors import DataError, SchemaError

GERMAN = CsvFormat(delimiter=";", decimal=",", encoding="latin-1", missing=("?",))
COLOUR = Categorical("farbe", ("grün", "rot"))


def schema(written=GERMAN, **time):
    made = simple_schema(
        channels=(Continuous("x", 0.0, 100.0, missing=True), COLOUR),
        unit=PrivacyUnit(column="id"),
        **{"dtype": "string", **time},
    )
    return replace(made, csv=written)


def lines(cell="1,5", sign=";", offset=""):
    rows = [sign.join(["id", "t", "x", "farbe"])]
    for person in range(100):
        rows += [sign.join([f"p{person}", f"2024-01-01T0{step}:00:00{offset}", cell, "grün"]) for step in range(4)]
    return "\n".join(rows) + "\n"


def written(folder, text, encoding="latin-1"):
    (folder / "t.csv").write_bytes(text.encode(encoding))
    return folder / "t.csv"


def test_semicolons_decimal_commas_and_latin_1_are_read_as_declared(tmp_path):
    panel = read_panel(written(tmp_path, lines()), schema())
    assert panel.values[:, :, 0].tolist() == [[1.5] * 4] * 100
    assert panel.values[:, :, 1].tolist() == [[0.0] * 4] * 100


def test_a_declared_word_stands_for_missing_values(tmp_path):
    assert (
        np.isnan(read_panel(written(tmp_path, lines("?").replace("?", "1", 1)), schema()).values[:, :, 0]).sum() == 399
    )


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    file = written(tmp_path, "\ufeff" + lines("1.5", ","), "utf-8")
    assert read_panel(file, schema(CsvFormat())).num_units == 100


@pytest.mark.parametrize("form", [GERMAN, CsvFormat(delimiter="\t", encoding="utf-16"), CsvFormat(delimiter="|")])
def test_what_is_written_is_read_back_in_the_same_format(form, tmp_path):
    panel = read_panel(written(tmp_path, lines()), schema())
    again = replace(panel, schema=schema(form))
    assert read_panel(write_panel(again, tmp_path / "u.csv"), schema(form)).values.tobytes() == panel.values.tobytes()


def test_the_format_comes_back_from_a_schema_file():
    assert Schema.loads(schema().dumps()).csv == GERMAN
    assert "[csv]" not in schema(CsvFormat()).dumps()


CAUSES = {
    "semicolons": (lines(), CsvFormat(encoding="latin-1"), 'delimiter = ";"'),
    "decimal commas": (lines(), replace(GERMAN, decimal="."), 'decimal = ","'),
    "decimal commas between commas": (lines("1,5", ","), CsvFormat(encoding="latin-1"), "decimal commas"),
    "a word for missing values": (lines("?"), replace(GERMAN, missing=()), 'missing = ["?"]'),
    "another encoding": (lines(), replace(GERMAN, encoding="utf-8"), "latin-1"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_format_that_was_not_declared_is_refused_with_what_to_declare(cause, tmp_path):
    text, form, remedy = CAUSES[cause]
    with pytest.raises(DataError) as caught:
        read_panel(written(tmp_path, text), schema(form))
    assert remedy in str(caught.value)
    assert "damaged" not in str(caught.value)
    assert "p0" not in str(caught.value)
    assert "1,5" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "given"),
    [("delimiter", ";;"), ("delimiter", "a"), ("decimal", "'"), ("decimal", ","), ("encoding", "klingon"),
     ("missing", "?"), ("delimiter", 3)],
)  # fmt: skip
def test_a_format_that_can_not_be_is_refused(field, given):
    with pytest.raises(SchemaError) as caught:
        CsvFormat(**{field: given})
    assert caught.value.key == f"csv.{field}"


def test_text_without_an_offset_is_local_where_a_zone_is_declared(tmp_path):
    local = schema(GERMAN, zone="Europe/Paris")
    panel = read_panel(written(tmp_path, lines()), local)
    assert panel.num_units == 100
    back = write_panel(panel, tmp_path / "u.csv")
    assert "2024-01-01T00:00:00+0100" in back.read_text("latin-1")
    assert read_panel(back, local).values.tobytes() == panel.values.tobytes()
    assert read_panel(written(tmp_path, lines(offset="+01:00")), local).values.tobytes() == panel.values.tobytes()


def test_an_offset_that_the_start_does_not_have_is_explained(tmp_path):
    with pytest.raises(DataError, match=r"time\.zone") as caught:
        read_panel(written(tmp_path, lines(offset="+01:00")), schema())
    assert "+01:00" in str(caught.value)


def test_a_local_time_that_occurs_twice_is_refused(tmp_path):
    autumn = lines().replace("2024-01-01", "2024-10-27")
    with pytest.raises(DataError, match="occurs twice or never"):
        read_panel(written(tmp_path, autumn), schema(GERMAN, zone="Europe/Paris", start="2024-10-27T00:00:00"))


def extended(names, place):
    """The table with further columns put in at a place of every row."""
    rows = [line.split(",") for line in lines("1.5", ",").splitlines()]
    cells = [names, *([["7"] * len(names)] * (len(rows) - 1))]
    return (
        "\n".join(",".join([*row[:place], *more, *row[place:]]) for row, more in zip(rows, cells, strict=True)) + "\n"
    )


def refused(tmp_path, names, place):
    with pytest.raises(DataError, match="not in the schema") as caught:
        read_panel(written(tmp_path, extended(names, place), "utf-8"), schema(CsvFormat()))
    return str(caught.value)


def test_a_column_that_is_not_declared_is_named_where_the_header_is_whole(tmp_path):
    assert "column 'temperature'" in refused(tmp_path, ["temperature"], 2)


def test_a_column_after_the_last_declared_one_is_told_by_its_neighbour(tmp_path):
    told = refused(tmp_path, ["Anna Smith"], 4)
    assert "column number 5, after 'farbe'" in told
    assert "Anna" not in told


def test_columns_that_are_called_like_people_are_not_named(tmp_path):
    told = refused(tmp_path, [f"MT_{person:03d}" for person in range(9)], 2)
    assert "column number 3" in told
    assert "MT_" not in told


def test_a_column_without_a_name_is_said_to_have_none(tmp_path):
    assert "has no name" in refused(tmp_path, [""], 0)
