"""A table of any order becomes files that share no unit, sorted, for their owner alone, and nothing is lost."""

import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tests.unit.data.test_table import by_unit, folder_of, parts_of
from tests.unit.data.toy import toy_columns, toy_schema
from understudy.data import Population, PrivacyUnit, open_table, read_panel
from understudy.data.repartition import default_partitions, partition_by_unit
from understudy.errors import DataError


def by_time(table: pa.Table) -> pa.Table:
    """The rows by time, so that no unit's rows are side by side."""
    return table.take(pa.array(np.argsort(np.arange(table.num_rows) % 5, kind="stable")))


def written(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]


@pytest.mark.parametrize("order", ["by unit", "by time", "units in two files", "csv"])
def test_files_share_no_unit_and_hold_all_rows(order: str, tmp_path: Path) -> None:
    table, schema = pa.table(toy_columns()), toy_schema()
    source: object = table if order == "by unit" else by_time(table)
    if order == "units in two files":
        source = folder_of(tmp_path / "meters", parts_of(by_time(table)))
    if order == "csv":
        pacsv.write_csv(by_time(table), tmp_path / "meters.csv")
        source = tmp_path / "meters.csv"
    made = partition_by_unit(source, schema, tmp_path / "parts", num_partitions=7)
    opened = open_table(made, schema)
    assert all(partition.grouped for partition in opened.partitions)  # nothing is left to sort
    assert len(opened.partitions) == 7
    assert by_unit(opened.read()) == by_unit(read_panel(table, schema))


def test_files_follow_from_the_rows_and_not_from_their_order(tmp_path: Path) -> None:
    table = pa.table(toy_columns())
    shuffled = table.take(pa.array(np.random.default_rng(1).permutation(600)))
    partition_by_unit(table, toy_schema(), tmp_path / "one", num_partitions=3)
    partition_by_unit(shuffled, toy_schema(), tmp_path / "other", num_partitions=3)
    assert written(tmp_path / "one") == written(tmp_path / "other")


def test_files_are_for_their_owner_and_nothing_else_is_left(tmp_path: Path) -> None:
    made = partition_by_unit(pa.table(toy_columns()), toy_schema(), tmp_path / "parts", num_partitions=2)
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()} == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_whole_numbers_ignored_columns_and_text_times(tmp_path: Path) -> None:
    schema = toy_schema(unit=PrivacyUnit(column="person", dtype="int64"), ignore=("note",))
    schema = replace(schema, time=replace(schema.time, dtype="string", zone="Europe/Paris"))
    columns = toy_columns()
    when = [f"{moment.as_py().isoformat()}+01:00" for moment in columns["when"]]
    person = np.repeat(np.random.default_rng(0).permutation(120), 5)
    table = pa.table({**columns, "person": person, "when": when, "note": ["x"] * 600})
    made = partition_by_unit(by_time(table), schema, tmp_path / "parts", num_partitions=4)
    kept = pq.read_schema(made / "part-00000.parquet")
    assert "note" not in kept.names
    assert kept.field("when").type == pa.timestamp("us", tz="UTC")
    assert by_unit(open_table(made, schema).read()) == by_unit(read_panel(table, schema))


def test_the_number_of_files_is_public() -> None:
    assert default_partitions(toy_schema()) == 1
    assert default_partitions(toy_schema(population=Population(4_000_000))) == 10
    assert default_partitions(toy_schema(population=Population(count_epsilon=1.0))) == 64


def test_what_can_not_be_partitioned_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    table = pa.table(toy_columns())
    nameless = toy_schema(unit=PrivacyUnit())
    with pytest.raises(DataError, match=r"unit\.column"):
        partition_by_unit(table, nameless, tmp_path / "parts")
    with pytest.raises(DataError, match="'when': it is expected once"):
        partition_by_unit(table.drop_columns(["when"]), toy_schema(), tmp_path / "parts")
    with pytest.raises(DataError, match="misses an identifier"):
        partition_by_unit(table.set_column(0, "person", pa.nulls(600, pa.string())), toy_schema(), tmp_path / "parts")
    with pytest.raises(DataError, match="empty"):
        partition_by_unit(table.slice(0, 0), toy_schema(), tmp_path / "parts")
    uneven = [table.slice(0, 300), table.slice(300).drop_columns(["area"])]
    with pytest.raises(DataError, match="same columns"):
        partition_by_unit(folder_of(tmp_path / "meters", uneven), toy_schema(), tmp_path / "parts")
    assert [path.name for path in tmp_path.iterdir()] == ["meters"]
