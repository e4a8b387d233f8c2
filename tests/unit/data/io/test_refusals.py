"""Bad input gets a clear error that names columns and never a value, an identifier or a count."""

import traceback

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.unit.data.toy import at, replaced, simple_schema, toy_schema, toy_table
from understudy.data import Continuous, read_panel
from understudy.errors import DataError, SchemaError

MAGIC_NUMBER, MAGIC_TEXT, MAGIC_UNIT = 31337.25, "xyzzy-7719", "p0042-secret"
MAGIC = ("31337", MAGIC_TEXT, "secret", "2024-01-01 03", "119", "120", "595", "600")


def planted():
    """A good table whose unit 42 has a telling identifier."""
    names = [MAGIC_UNIT if name == "p0042" else name for name in toy_table()["person"].to_pylist()]
    return toy_table(person=pa.array(names))


def drop(name):
    return planted().drop_columns([name])


def renamed(old, new):
    table = planted()
    return table.rename_columns([new if name == old else name for name in table.column_names])


def swapped_rows():
    order = np.arange(600)
    order[[211, 212]] = [212, 211]
    return planted().take(pa.array(order))


def shifted(hours):
    times = planted()["when"].to_numpy().copy()
    times[212] += np.timedelta64(int(hours * 3600), "s")
    return planted().set_column(1, "when", pa.array(times))


BAD = {
    "unknown column": (renamed("power", "pwr"), "pwr"),
    "missing column": (drop("alarm"), "alarm"),
    "missing unit column": (drop("person"), "person"),
    "twice the same column": (renamed("alarm", "visits"), "visits"),
    "above bounds": (replaced(planted(), "power", 212, MAGIC_NUMBER), "power"),
    "below bounds": (replaced(planted(), "visits", 212, -31337), "visits"),
    "static out of bounds": (planted().set_column(7, "area", pa.array([MAGIC_NUMBER] * 600)), "area"),
    "infinite": (replaced(planted(), "power", 212, float("inf")), "power"),
    "not whole": (replaced(planted(), "visits", 212, 31337.5), "visits"),
    "missing where not allowed": (replaced(planted(), "visits", 212, None), "visits"),
    "missing row": (planted().take(pa.array(np.delete(np.arange(600), 212))), "visits"),
    "unknown category": (replaced(planted(), "state", 212, MAGIC_TEXT), "state"),
    "unknown static category": (replaced(planted(), "plan", 212, MAGIC_TEXT), "plan"),
    "static that changes": (replaced(planted(), "area", 212, 31.337), "area"),
    "text for numbers": (planted().set_column(2, "power", pa.array([MAGIC_TEXT] * 600)), "power"),
    "numbers for text": (planted().set_column(4, "state", pa.array([31337] * 600)), "state"),
    "not binary": (planted().set_column(5, "alarm", pa.array([31337] * 600)), "alarm"),
    "duplicate timestamp": (shifted(-1), "when"),
    "unsorted timestamps": (swapped_rows(), "when"),
    "timestamp between steps": (shifted(0.5), "when"),
    "timestamp outside the axis": (
        planted().set_column(1, "when", pa.array(np.full(600, 31337, "datetime64[D]"))),
        "when",
    ),
    "unparsable timestamps": (planted().set_column(1, "when", pa.array([MAGIC_TEXT] * 600)), "when"),
    "timestamps that are numbers": (planted().set_column(1, "when", pa.array([31337] * 600)), "when"),
    "missing timestamp": (replaced(planted(), "when", 212, None), "when"),
    "missing identifier": (replaced(planted(), "person", 212, None), "person"),
    "all missing": (planted().set_column(2, "power", pa.nulls(600, pa.float64())), "power"),
    "empty table": (planted().slice(0, 0), None),
    "one unit": (planted().slice(210, 5), "person"),
    "too few units": (planted().slice(0, 495), "person"),
}


@pytest.mark.parametrize("case", BAD, ids=list(BAD))
def test_bad_tables_are_refused_without_quoting_them(case):
    table, column = BAD[case]
    with pytest.raises(DataError) as caught:
        read_panel(table, toy_schema())
    assert caught.value.column == column
    assert caught.value.exit_code == 2
    assert column is None or column in str(caught.value) or "unit" in str(caught.value)
    report = "".join(traceback.format_exception_only(caught.value))
    assert not [magic for magic in MAGIC if magic in report]


@pytest.mark.parametrize("case", ["above bounds", "unknown category", "text for numbers", "unparsable timestamps"])
def test_bad_files_are_refused_without_quoting_them(tmp_path, case):
    table, column = BAD[case]
    pacsv.write_csv(table, tmp_path / "bad.csv")
    with pytest.raises(DataError) as caught:
        read_panel(tmp_path / "bad.csv", toy_schema())
    assert caught.value.column == column
    shown = "".join(traceback.format_exception(caught.value))
    message = str(caught.value)
    assert not [magic for magic in MAGIC[:3] if magic in message]
    assert "ArrowInvalid" not in shown  # Arrow's own text quotes the cell


def test_a_good_table_is_the_negative_control():
    assert read_panel(planted(), toy_schema()).num_units == 120


def test_bounds_that_are_not_declared_stop_reading_before_the_data(tmp_path):
    draft = toy_schema(channels=(Continuous("power", None, None), *toy_schema().channels[1:]), constraints=())
    with pytest.raises(SchemaError, match=r"power\.low") as caught:
        read_panel(tmp_path / "not even there.parquet", draft)
    assert caught.value.key == "power.low"


def test_values_may_be_clipped_by_declaration():
    schema = simple_schema((Continuous("x", 0.0, 1.0, out_of_bounds="clip"),))
    ids, times = np.repeat(np.arange(100), 4), pa.concat_arrays([at(0, 1, 2, 3)] * 100)
    panel = read_panel(pa.table({"id": ids, "t": times, "x": np.tile([-5.0, 0.5, 1e300, 7.0], 100)}), schema)
    assert panel.values[3, :, 0].tolist() == [0.0, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("name", ["damaged.parquet", "damaged.arrow", "damaged.npy", "damaged.npz", "table.xlsx"])
def test_damaged_and_unknown_files_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"secret, not a table")
    with pytest.raises(DataError) as caught:
        read_panel(tmp_path / name, toy_schema())
    assert "secret" not in str(caught.value)


def test_an_arrow_file_with_an_offset_that_leads_anywhere_is_refused(tmp_path):
    """Arrow believes offsets: reading such a column would end the process."""
    table = planted().combine_chunks()
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    whole = (tmp_path / "t.arrow").read_bytes()
    place = whole.index(table["person"].chunk(0).buffers()[1].to_pybytes()[:2400]) + 1200
    (tmp_path / "t.arrow").write_bytes(whole[:place] + b"\xff\xff\xff\x7f" + whole[place + 4 :])
    with pytest.raises(DataError, match="damaged"):
        read_panel(tmp_path / "t.arrow", toy_schema())


def test_text_that_is_no_text_is_refused(tmp_path):
    broken = pa.array([b"p\xff%d" % number for number in range(600)]).view(pa.string())
    pq.write_table(planted().set_column(0, "person", broken), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="damaged"):
        read_panel(tmp_path / "t.parquet", toy_schema())


def test_an_empty_csv_and_ragged_rows_are_refused(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match="empty"):
        read_panel(tmp_path / "empty.csv", toy_schema())
    header = ",".join(toy_table().column_names)
    (tmp_path / "ragged.csv").write_text(f"{header}\nsecret,1\n")
    with pytest.raises(DataError) as caught:
        read_panel(tmp_path / "ragged.csv", toy_schema())
    assert "secret" not in str(caught.value)


def test_a_csv_without_a_header_is_refused_without_quoting_its_first_row(tmp_path):
    headless = pacsv.WriteOptions(include_header=False)
    pacsv.write_csv(BAD["above bounds"][0].slice(212), tmp_path / "t.csv", headless)
    with pytest.raises(DataError, match="column names") as caught:
        read_panel(tmp_path / "t.csv", toy_schema())
    assert "31337" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_truncated_parquet_file_is_refused(tmp_path):
    pq.write_table(planted(), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged"):
        read_panel(tmp_path / "cut.parquet", toy_schema())


def test_what_is_not_a_table_is_refused():
    with pytest.raises(DataError, match="dict"):
        read_panel({"power": [1.0]}, toy_schema())


HEADLESS = {
    "no header, and text that is no UTF-8": b"secret-7719,31.337,x\nsecret-7719\xff,31.337,x\n",
    "a header that runs into the first row": b"person,when,power,visits,state,alarm,plan,area,secret-7719,31.337\n",
    "a header and a name twice": b"person,secret-7719,secret-7719\np1,a,b\n",
}


@pytest.mark.parametrize("kind", HEADLESS)
def test_names_in_a_csv_file_that_nobody_declared_are_not_quoted(tmp_path, kind):
    (tmp_path / "t.csv").write_bytes(HEADLESS[kind])
    with pytest.raises(DataError) as caught:
        read_panel(tmp_path / "t.csv", toy_schema())
    assert not {"secret", "31.337"} & set(str(caught.value).replace("'", " ").replace("-", " ").split())
    assert caught.value.column is None
