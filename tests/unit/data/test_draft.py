"""Drafts: from names and types only, and of no use until a person has filled in the bounds."""

import tomllib

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from tests.unit.data.toy import toy_table
from understudy.data import Schema, draft_schema
from understudy.data.draft import AlikeColumns
from understudy.data.schema import CsvFormat
from understudy.errors import DataError, InputError, MissingData, SchemaError


def table():
    rows = toy_table(3)
    return rows.rename_columns(["patient_id" if name == "person" else name for name in rows.column_names])


def test_a_draft_is_toml_that_names_a_key_to_fill_in(tmp_path):
    pq.write_table(table(), tmp_path / "ward.parquet")
    text = draft_schema(tmp_path / "ward.parquet")
    document = tomllib.loads(text)
    assert document["name"] == "ward"
    assert document["unit"]["column"] == "patient_id"
    assert document["time"]["column"] == "when"
    kinds = {channel["name"]: channel["kind"] for channel in document["channels"] + document["static"]}
    assert kinds["visits"] == "integer"
    assert kinds["alarm"] == "binary"
    assert kinds["plan"] == "categorical"
    with pytest.raises(SchemaError) as caught:
        Schema.loads(text)
    assert caught.value.key == "time.frequency"


def test_filling_in_what_the_draft_asks_for_gives_a_schema():
    text = draft_schema(table(), name="ward")
    text = text.replace("# population", "population").replace("# frequency", "frequency").replace("# start", "start")
    text = text.replace("# steps", "steps").replace("# low", "low").replace("# high", "high")
    text = text.replace("# categories", "categories")
    text = text.replace("# [budget]", "[budget]").replace("# epsilon", "epsilon").replace("# max_runs", "max_runs")
    schema = Schema.loads(text)
    assert schema.budget.epsilon == 3.0
    assert schema.columns == tuple(table().column_names)


def test_no_value_reaches_the_draft(tmp_path):
    secret = table().set_column(4, "state", pa.array(["xyzzy-7719"] * 15))
    pacsv.write_csv(secret, tmp_path / "t.csv")
    feather.write_feather(secret, tmp_path / "t.feather")
    for source in (secret, secret.to_pandas(), tmp_path / "t.csv", tmp_path / "t.feather"):
        text = draft_schema(source)
        assert "xyzzy" not in text
        assert "p000" not in text


def test_the_draft_does_not_depend_on_the_rows():
    assert draft_schema(table()) == draft_schema(table().slice(0, 0))


def test_a_csv_header_is_enough(tmp_path):
    (tmp_path / "t.csv").write_text("household,timestamp,load\n")
    document = tomllib.loads(draft_schema(tmp_path / "t.csv"))
    assert [channel["name"] for channel in document["channels"]] == ["load"]


def test_tables_without_telling_names_ask_for_them():
    text = draft_schema(pa.table({"alpha": [1.0]}))
    assert '# column = "household"' in text
    assert '# column = "timestamp"' in text


def test_missing_and_damaged_files_are_refused(tmp_path):
    with pytest.raises(MissingData):
        draft_schema(tmp_path / "none.csv")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(DataError):
        draft_schema(tmp_path / "bad.parquet")


def test_a_table_with_two_columns_of_one_name_is_refused_without_quoting_it(tmp_path):
    (tmp_path / "headless.csv").write_text("secret-7719,31337,31337\n")
    with pytest.raises(DataError, match="same name") as caught:
        draft_schema(tmp_path / "headless.csv")
    assert "31337" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_column_names_that_are_no_utf_8_are_refused_without_quoting_them(suffix, tmp_path):
    rows, file = pa.table({"patient": ["a"], "pulse": [1.0]}), tmp_path / f"latin.{suffix}"
    if suffix == "csv":
        pacsv.write_csv(rows, file)
    elif suffix == "parquet":
        pq.write_table(rows, file, store_schema=False)
    else:
        feather.write_feather(rows, file, compression="uncompressed")
    file.write_bytes(file.read_bytes().replace(b"pulse", b"pu\xffse"))
    with pytest.raises(DataError, match="UTF-8") as caught:
        draft_schema(file)
    assert "pu" not in str(caught.value).replace(file.name, "")


def test_a_table_without_a_header_is_refused_without_quoting_its_first_row(tmp_path):
    """Names of columns go into the draft, and the first row of such a file is somebody."""
    (tmp_path / "bare.csv").write_text("Alice Smith,1234.5\nBob,7.25\n")
    with pytest.raises(DataError, match="header line") as caught:
        draft_schema(tmp_path / "bare.csv")
    assert "Alice" not in str(caught.value)
    (tmp_path / "wide.csv").write_text("home,0,1,2012-01-01\na,1.5,2.5,3.5\n")
    assert "2012-01-01" in draft_schema(tmp_path / "wide.csv")


PEOPLE = {
    "numbers after letters": [f"MT_{person:03d}" for person in range(12)],
    "hashes": ["9f3a", "1c0d", "77ab", "e41c", "0d9f", "a1b2", "c3d4", "5e6f"],
    "mail addresses": [f"{chr(97 + place % 26)}{'x' * (place // 26)}nna@home.org" for place in range(30)],
    "whole numbers": [str(20_000 + place) for place in range(8)],
}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("kind", PEOPLE)
def test_a_column_per_person_is_refused_without_a_name_or_a_count(kind, suffix, tmp_path):
    rows, file = pa.table({"time": [1], **{name: [1.0] for name in PEOPLE[kind]}}), tmp_path / f"wide.{suffix}"
    (pacsv if suffix == "csv" else pq).__dict__["write_csv" if suffix == "csv" else "write_table"](rows, file)
    with pytest.raises(AlikeColumns, match="--columns-are-public") as caught:
        draft_schema(file)
    assert not any(name in str(caught.value) for name in PEOPLE[kind])
    assert str(len(PEOPLE[kind])) not in str(caught.value)
    assert PEOPLE[kind][0] in draft_schema(file, columns_are_public=True)


def test_without_a_look_the_kinds_of_a_csv_file_are_left_open(tmp_path):
    (tmp_path / "t.csv").write_text("id,ts,load,tariff\n1,2024-01-01,1.5,night\n")
    text = draft_schema(tmp_path / "t.csv")
    document = tomllib.loads(text)
    assert [table.get("kind") for table in document["channels"]] == [None, None]
    assert "no value was read" in text
    filled = text.replace("# population", "population").replace("# freq", "freq").replace("# steps", "steps")
    with pytest.raises(SchemaError, match="continuous, integer, categorical, binary") as caught:
        Schema.loads(filled)
    assert caught.value.key == "channels.load.kind"


ROWS = (
    "Kunde;Zeit;Last;n;an;Tarif;leer\n"
    + "7;2024-01-01T00:00:00;1,5;3;true;grün;\n7;2024-01-01T01:00:00;?;4;false;rot;\n"
)


def test_a_permitted_look_tells_kinds_by_the_shape_of_text_and_is_recorded(tmp_path):
    (tmp_path / "t.csv").write_bytes(ROWS.encode("latin-1"))
    form = CsvFormat(delimiter=";", decimal=",", encoding="latin-1", missing=("?",))
    text = draft_schema(tmp_path / "t.csv", csv=form, peek=True, unit="Kunde")
    document = tomllib.loads(text)
    kinds = {table["name"]: table.get("kind") for table in document["channels"] + document["static"]}
    expected = {"Last": "continuous", "n": "integer", "an": "binary", "Tarif": "categorical", "leer": None}
    assert kinds == expected
    assert document["unit"] == {"kind": "entity", "column": "Kunde", "dtype": "int64"}
    assert document["time"] == {"column": "Zeit", "dtype": "string"}
    assert document["csv"] == {"delimiter": ";", "decimal": ",", "encoding": "latin-1", "missing": ["?"]}
    assert text.startswith("# Peeked:")
    assert "no value was read" not in text
    assert not {"grün", "rot", "1,5", "1.5"} & set(text.replace('"', " ").split())


def test_a_look_goes_no_further_than_it_says(tmp_path):
    (tmp_path / "t.csv").write_text("id,ts,load\n" + "1,2024-01-01,3\n" * 1000 + "1,2024-01-01,xyzzy\n")
    document = tomllib.loads(draft_schema(tmp_path / "t.csv", peek=True))
    assert document["channels"][0]["kind"] == "integer"


def test_a_unit_that_is_named_is_no_channel(tmp_path):
    (tmp_path / "t.csv").write_text("who,ts,load\n")
    document = tomllib.loads(draft_schema(tmp_path / "t.csv", unit="who"))
    assert document["unit"]["column"] == "who"
    assert [table["name"] for table in document["channels"]] == ["load"]
    with pytest.raises(InputError, match="--unit"):
        draft_schema(tmp_path / "t.csv", unit="whom")


def test_a_unit_that_is_also_a_channel_is_told_by_both_places(tmp_path):
    (tmp_path / "t.csv").write_text("who,ts,load\n")
    text = draft_schema(tmp_path / "t.csv").replace('# column = "household"', 'column = "who"')
    for open_key in ("population", "frequency", "steps", 'kind = "binary"'):
        text = text.replace(f"# {open_key}", open_key)
    with pytest.raises(SchemaError, match=r"as unit\.column and under \[\[channels\]\]"):
        Schema.loads(text)


@pytest.mark.parametrize(("sign", "spelled"), [(";", '";"'), ("\t", '"\\t"'), ("|", '"|"')])
def test_another_delimiter_is_named_in_the_error(sign, spelled, tmp_path):
    (tmp_path / "t.csv").write_text(sign.join(["id", "ts", "load"]) + "\n")
    with pytest.raises(DataError, match="--delimiter") as caught:
        draft_schema(tmp_path / "t.csv")
    assert spelled in str(caught.value)


def test_row_numbers_without_a_name_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text(",id,ts\n0,a,2024-01-01\n")
    with pytest.raises(DataError, match="has no name"):
        draft_schema(tmp_path / "t.csv")


def test_a_zone_is_written_to_the_draft(tmp_path):
    (tmp_path / "t.csv").write_text("id,ts,load\n")
    document = tomllib.loads(draft_schema(tmp_path / "t.csv", zone="Europe/Paris"))
    assert document["time"] == {"column": "ts", "zone": "Europe/Paris"}
