"""Drafts: from names and types only, and of no use until a person has filled in the bounds."""

import tomllib

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from tests.unit.data.toy import toy_table
from understudy.data.io import draft_schema
from understudy.data.schema import Schema
from understudy.errors import DataError, MissingData, SchemaError


def table():
    rows = toy_table(3)
    return rows.rename_columns(["patient_id" if name == "person" else name for name in rows.column_names])


def test_a_draft_is_toml_that_names_the_first_bound_to_fill_in(tmp_path):
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
    assert caught.value.key == "channels.power.low"


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
