"""A table in partitions holds what `read_panel` reads, and refuses what it refuses, without saying more."""

import os
import pickle
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from tests.unit.data.toy import toy_columns, toy_schema
from understudy.data import (
    Continuous,
    Panel,
    Partition,
    Population,
    PrivacyUnit,
    Table,
    Time,
    open_table,
    read_panel,
)
from understudy.data import table as partitioned
from understudy.errors import DataError, InputError, MissingData

WRITERS = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=64),
    "feather": lambda table, path: feather.write_feather(table, path, compression="uncompressed"),
    "csv": lambda table, path: pacsv.write_csv(table, path),
}


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks and several partitions, although the tables are small."""
    monkeypatch.setattr(partitioned, "CHUNK_VALUES", 240)
    monkeypatch.setattr(partitioned, "_WHOLE_VALUES", 240 * 40)


def by_unit(panel: Panel) -> dict[object, tuple[bytes, bytes, bytes]]:
    """What a panel holds of each unit, whatever their order."""
    assert panel.unit_ids is not None
    return {
        identifier: tuple(
            np.ascontiguousarray(array[panel.unit == unit]).tobytes()
            for array in (panel.values, panel.static, panel.lengths)
        )
        for unit, identifier in enumerate(panel.unit_ids.tolist())
    }


def parts_of(table: pa.Table, num_parts: int = 3, steps: int = 5) -> list[pa.Table]:
    units = table.num_rows // steps
    borders = [steps * (units * part // num_parts) for part in range(num_parts + 1)]
    return [table.slice(a, b - a) for a, b in pairwise(borders)]


def folder_of(place: Path, tables: list[pa.Table], kind: str = "parquet") -> Path:
    place.mkdir()
    for number, table in enumerate(tables):
        WRITERS[kind](table, place / f"part-{number}.{kind}")
    return place


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("order", ["as written", "shuffled files", "shuffled rows"])
def test_a_folder_holds_what_one_table_holds(kind: str, order: str, tmp_path: Path) -> None:
    table, schema = pa.table(toy_columns()), toy_schema()
    parts = parts_of(table)
    if order == "shuffled files":
        parts = [parts[2], parts[0], parts[1]]
    if order == "shuffled rows":  # by time, so that no unit's rows are side by side
        parts = [part.take(pa.array(np.argsort(np.arange(part.num_rows) % 5, kind="stable"))) for part in parts]
    opened = open_table(folder_of(tmp_path / "meters", parts, kind), schema)
    assert len(opened.partitions) == 3
    assert by_unit(opened.read()) == by_unit(read_panel(table, schema))
    assert [panel.values.tobytes() for panel in opened.panels()] == [p.values.tobytes() for p in opened.panels()]
    assert by_unit(read_panel(tmp_path / "meters", schema)) == by_unit(opened.read())


@pytest.mark.parametrize("rows", [5, 7, 64, 100_000])
def test_row_groups_of_one_file_are_partitions_of_whole_units(rows: int, tmp_path: Path) -> None:
    table, schema = pa.table(toy_columns()), toy_schema()
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=rows)
    opened = open_table(tmp_path / "one.parquet", schema)
    assert (len(opened.partitions) > 1) == (rows < 100_000)
    assert by_unit(opened.read()) == by_unit(read_panel(table, schema))
    seen = [identifier for panel in opened.panels() for identifier in panel.unit_ids.tolist()]
    assert len(seen) == len(set(seen)) == 120


def test_a_unit_may_be_longer_than_chunks_and_row_groups(tmp_path: Path) -> None:
    schema = toy_schema(static=(), label=None, constraints=(), channels=(Continuous("power", 0.0, 10.0),))
    schema = replace(schema, time=replace(schema.time, steps=500))
    rows = 500 * 4
    hours = np.datetime64("2024-01-01T00:00:00", "s") + np.arange(500) * np.timedelta64(1, "h")
    columns = {
        "person": np.repeat(["a", "b", "c", "d"], 500),
        "when": np.tile(hours, 4),
        "power": np.arange(rows) % 10.0,
    }
    pq.write_table(pa.table(columns), tmp_path / "one.parquet", row_group_size=30)
    opened = open_table(tmp_path / "one.parquet", schema, allow_few_units=True)
    whole = read_panel(pa.table(columns), schema, allow_few_units=True)
    assert by_unit(opened.read()) == by_unit(whole)


def test_gaps_and_several_series_go_the_general_way(tmp_path: Path) -> None:
    schema = toy_schema(time=replace(toy_schema().time, series_column="day", min_steps=1))
    schema = replace(schema, unit=replace(schema.unit, max_series=2))
    columns = toy_columns()
    person = [f"p{i // 2:04d}" for i in range(120) for _ in range(5)]
    table = pa.table({**columns, "person": person, "day": pa.array(np.repeat(np.arange(120) % 2, 5))})
    table = table.filter(pa.array(np.arange(600) % 11 != 3)).drop_columns(["alarm"])
    schema = replace(schema, channels=tuple(c for c in schema.channels if c.name != "alarm"), columns=())
    channels = tuple(replace(c, missing=True) for c in schema.channels)
    schema = replace(schema, channels=channels)
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=50)
    opened = open_table(tmp_path / "one.parquet", schema, allow_few_units=True)
    assert by_unit(opened.read()) == by_unit(read_panel(table, schema, allow_few_units=True))


def test_wide_tables_and_arrays_open_too(tmp_path: Path) -> None:
    schema = toy_schema(
        time=Time(layout="wide", steps=4, frequency="1h"), channels=(Continuous("power", 0.0, 10.0),), static=(),
        label=None, constraints=(),
    )  # fmt: skip
    values = np.random.default_rng(0).uniform(0, 10, (150, 4, 1)).astype(np.float32)
    columns = {"person": [f"p{i}" for i in range(150)], **{f"power_{step}": values[:, step, 0] for step in range(4)}}
    table = pa.table(columns)
    opened = open_table(folder_of(tmp_path / "wide", [table.slice(0, 70), table.slice(70)]), schema)
    assert by_unit(opened.read()) == by_unit(read_panel(table, schema))
    np.save(tmp_path / "values.npy", values)
    bare = replace(schema, unit=replace(schema.unit, column=None))
    assert np.array_equal(open_table(tmp_path / "values.npy", bare).read().values, values)


def test_a_store_of_fsspec_is_read_like_a_folder(tmp_path: Path) -> None:
    import fsspec

    table, schema = pa.table(toy_columns()), toy_schema()
    store = fsspec.filesystem("memory")
    for number, (kind, part) in enumerate(zip(WRITERS, parts_of(table), strict=True)):
        WRITERS[kind](part, tmp_path / f"{number}.{kind}")
        store.pipe_file(f"/meters/{number}.{kind}", (tmp_path / f"{number}.{kind}").read_bytes())
    try:
        opened = open_table("memory://meters", schema)
        assert by_unit(opened.read()) == by_unit(read_panel(table, schema))
        assert by_unit(read_panel("memory://meters", schema)) == by_unit(read_panel(table, schema))
        one = open_table("memory://meters/0.parquet", schema, allow_few_units=True)
        assert by_unit(one.read()).items() <= by_unit(opened.read()).items()
        store.pipe_file("/meters/2.csv", b"person,when\n")
        with pytest.raises(InputError, match="changed or removed"):
            list(opened.panels())
        with pytest.raises(MissingData, match="No file"):
            open_table("memory://nowhere", schema)
    finally:
        store.rm("/meters", recursive=True)
    folder_of(tmp_path / "local", parts_of(table))
    assert by_unit(open_table(f"file://{tmp_path}/local", schema).read()) == by_unit(read_panel(table, schema))
    with pytest.raises(InputError, match="fsspec or Arrow knows"):
        open_table("nonsense://meters", schema)


@pytest.mark.parametrize("workers", [1, 2])
def test_context_comes_from_a_table_or_from_all_files_together(workers: int, tmp_path: Path) -> None:
    schema = toy_schema(context=(Continuous("warmth", -30.0, 50.0),))
    table = pa.table(toy_columns())
    warmth = np.arange(5.0)
    inside = table.append_column("warmth", pa.array(np.tile(warmth, 120)))
    given = pa.table({"when": table.column("when").slice(0, 5), "warmth": warmth})
    for tables, context in ((inside, None), (table, given), (table, warmth[:, None].astype(np.float32))):
        place = folder_of(tmp_path / f"of {type(context).__name__}", parts_of(tables))
        opened = open_table(place, schema, context=context, workers=workers)
        assert opened.shared_context is not None
        assert opened.shared_context[:, 0].tolist() == warmth.tolist()
        assert all(np.array_equal(panel.shared_context, opened.shared_context) for panel in opened.panels())
    with pytest.raises(DataError, match="declared and was not given"):
        open_table(folder_of(tmp_path / "without", parts_of(table)), schema)
    other = parts_of(inside)
    other[2] = other[2].set_column(8, "warmth", pa.array(np.full(other[2].num_rows, 7.0)))
    with pytest.raises(DataError, match="two values at one time"):
        open_table(folder_of(tmp_path / "contradicting", other), schema, workers=workers)


def test_series_with_their_own_start_find_their_own_context(tmp_path: Path) -> None:
    schema = toy_schema(
        context=(Continuous("warmth", -30.0, 500.0),), time=replace(toy_schema().time, align="relative")
    )
    columns = toy_columns()
    start = np.repeat(np.arange(120), 5)
    hours = start + np.tile(np.arange(5), 120)
    when = np.datetime64("2024-01-01T00:00:00", "s") + hours * np.timedelta64(1, "h")
    table = pa.table({**columns, "when": when, "warmth": hours.astype(np.float64)})
    opened = open_table(folder_of(tmp_path / "meters", parts_of(table)), schema)
    assert opened.shared_context is None
    whole, again = read_panel(table, schema), opened.read()
    assert np.array_equal(whole.context, again.context)


def test_partitions_travel_and_panels_in_memory_stay_the_same(tmp_path: Path) -> None:
    table, schema = pa.table(toy_columns()), toy_schema()
    opened = open_table(folder_of(tmp_path / "meters", parts_of(table)), schema)
    sent = pickle.dumps(opened.partitions)
    assert len(sent) < 20_000
    panels = [panel for partition in pickle.loads(sent) for panel in partition.panels()]
    assert [p.values.tobytes() for p in panels] == [p.values.tobytes() for p in opened.panels()]
    assert all(isinstance(partition, Partition) for partition in opened.partitions)
    panel = read_panel(table, schema)
    inside = Table.of(panel)
    assert [id(p) for p in inside.panels()] == [id(p) for p in inside.panels()]
    assert by_unit(inside.read()) == by_unit(panel)


@pytest.mark.parametrize("name", ["meters", "one.parquet"])
def test_a_table_opened_by_a_relative_path_is_read_from_any_directory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, schema = pa.table(toy_columns()), toy_schema()
    monkeypatch.chdir(tmp_path)
    folder_of(Path("meters"), parts_of(table))
    pq.write_table(table, "one.parquet", row_group_size=64)
    opened = open_table(name, schema)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # as in a worker process that was started there
    assert by_unit(opened.read()) == by_unit(read_panel(table, schema))


def test_a_large_panel_is_cut_at_units_into_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.data.panel._CHUNK_VALUES", 100)  # five series of five steps and four channels
    panel = read_panel(pa.table(toy_columns()), toy_schema())
    doubled = replace(panel, unit=panel.unit // 3, unit_ids=panel.unit_ids[::3], schema=panel.schema)
    pieces = list(Table.of(doubled).panels())
    assert len(pieces) > 10
    assert all(np.shares_memory(piece.values, panel.values) for piece in pieces)
    assert all((np.bincount(piece.unit) == 3).all() for piece in pieces)
    assert by_unit(Table.of(doubled).read()) == by_unit(doubled)


def test_a_table_shows_its_schema_and_nothing_else(tmp_path: Path) -> None:
    opened = open_table(folder_of(tmp_path / "meters", parts_of(pa.table(toy_columns()))), toy_schema())
    assert "toy" in repr(opened)
    assert "power" in str(opened)
    for shown in (repr(opened), repr(opened.partitions)):
        assert "part-" not in shown
        assert "120" not in re.sub(r"0x[0-9a-f]+", "", shown)  # addresses in memory may hold any digits


@pytest.mark.parametrize("whole", [False, True])
def test_a_unit_in_two_files_is_refused_with_the_way_out(whole: bool, tmp_path: Path) -> None:
    table = pa.table(toy_columns())
    parts = [table.slice(0, 303), table.slice(303)]
    if whole:  # both files hold all of it
        parts[0] = table.slice(0, 305)
        parts[1] = table.slice(300)
    place = folder_of(tmp_path / "meters", parts)
    with pytest.raises(InputError, match="understudy data partition FILE --by-unit --out FOLDER") as told:
        open_table(place, toy_schema())
    assert "p00" not in str(told.value)
    assert "part-" not in str(told.value)


def test_a_large_file_in_another_order_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitioned, "_WHOLE_VALUES", 480)
    table = pa.table(toy_columns())
    table = table.take(pa.array(np.argsort(np.arange(600) % 5, kind="stable")))
    pq.write_table(table, tmp_path / "one.parquet")
    with pytest.raises(InputError, match=r"side by side.*data partition"):
        open_table(tmp_path / "one.parquet", toy_schema())


def edited(column: str, row: int, value: object) -> pa.Table:
    columns = toy_columns()
    values = columns[column].to_pylist()
    values[row] = value
    return pa.table({**columns, column: pa.array(values, type=columns[column].type)})


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (edited("power", 599, 11.0), "leaves its declared bounds"),
        (edited("visits", 599, None), "has a missing value"),
        (edited("state", 599, "unknown"), "not declared"),
        (edited("plan", 599, None), "changes within a series"),
        (edited("person", 599, None), "misses an identifier"),
        (edited("when", 599, toy_columns()["when"][3].as_py()), "same timestamp twice"),
        (edited("when", 599, toy_columns()["when"][1].as_py()), "not in order"),
        (edited("when", 599, toy_columns()["when"][4].as_py().replace(minute=30)), "between two steps"),
        (edited("when", 599, toy_columns()["when"][4].as_py().replace(day=20)), "outside the declared"),
        (pa.table(toy_columns()).drop_columns(["area"]), "not in the table"),
        (pa.table(toy_columns()).append_column("extra", pa.array(np.zeros(600))), "not in the schema"),
        (pa.table(toy_columns()).slice(0, 495), "fewer than 100 units"),
        (pa.table(toy_columns()).slice(0, 5), "a single unit"),
        (pa.table(toy_columns()).slice(0, 0), "table is empty"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
@pytest.mark.parametrize("kind", ["folder", "folder, two processes", "one file"])
def test_what_read_panel_refuses_is_refused(table: pa.Table, told: str, kind: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=told) as expected:
        read_panel(table, toy_schema())
    place = tmp_path / "one.parquet"
    if kind.startswith("folder"):
        place = folder_of(tmp_path / "meters", parts_of(table))
    else:
        pq.write_table(table, place, row_group_size=32)
    with pytest.raises(DataError, match=told) as raised:
        open_table(place, toy_schema(), workers=2 if "two" in kind else 1)
    assert raised.value.column == expected.value.column
    assert "part-" not in str(raised.value)


def test_a_duplicate_across_row_groups_is_refused(tmp_path: Path) -> None:
    table = pa.table(toy_columns())
    with pq.ParquetWriter(tmp_path / "one.parquet", table.schema) as writer:
        for part in (table.slice(0, 300), table.slice(295, 305)):  # the last unit of the first group comes again
            writer.write_table(part)
    with pytest.raises(DataError, match=r"same timestamp twice|not in order"):
        open_table(tmp_path / "one.parquet", toy_schema())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_column_may_be_missing_in_one_file_but_not_in_all(workers: int, tmp_path: Path) -> None:
    columns = toy_columns()
    empty = pa.array([None] * 600, type=pa.float64())
    half = pa.array([None] * 300 + columns["power"].to_pylist()[300:], type=pa.float64())
    place = folder_of(tmp_path / "half", parts_of(pa.table({**columns, "power": half})))
    open_table(place, toy_schema(), workers=workers)
    place = folder_of(tmp_path / "all", parts_of(pa.table({**columns, "power": empty})))
    with pytest.raises(DataError, match="missing everywhere"):
        open_table(place, toy_schema(), workers=workers)


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "meters", parts_of(pa.table(toy_columns())))
    opened = open_table(place, toy_schema())
    facts = (place / "part-1.parquet").stat()
    os.utime(place / "part-1.parquet", ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    with pytest.raises(InputError, match="changed or removed"):
        opened.read()
    (place / "part-1.parquet").unlink()
    with pytest.raises(InputError, match="changed or removed"):
        opened.read()


def test_folders_hold_tables_and_hidden_files_alone(tmp_path: Path) -> None:
    place = folder_of(tmp_path / "meters", parts_of(pa.table(toy_columns())))
    for hidden in (".crc", "_SUCCESS"):
        (place / hidden).write_text("x")
    assert open_table(place, toy_schema()).read().num_units == 120
    (place / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"kind '\.txt'"):
        open_table(place, toy_schema())
    (place / "notes.txt").rename(place / "home.p0007-Zx")
    with pytest.raises(DataError, match="expected in the folder") as told:
        open_table(place, toy_schema())
    assert "p0007" not in str(told.value)
    (place / "home.p0007-Zx").unlink()
    (place / "inner").mkdir()
    with pytest.raises(DataError, match="another folder"):
        open_table(place, toy_schema())
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingData, match="no table"):
        open_table(tmp_path / "empty", toy_schema())
    with pytest.raises(MissingData, match="No file"):
        open_table(tmp_path / "nowhere", toy_schema())


def test_one_series_in_several_files_is_refused_and_in_one_file_read(tmp_path: Path) -> None:
    schema = toy_schema(
        population=Population(1), unit=PrivacyUnit(kind="event"), static=(), label=None, constraints=(),
        channels=(Continuous("power", 0.0, 10.0),), time=replace(toy_schema().time, steps=600),
    )  # fmt: skip
    hours = np.datetime64("2024-01-01T00:00:00", "s") + np.arange(600) * np.timedelta64(1, "h")
    table = pa.table({"when": hours, "power": np.arange(600) % 10.0})
    with pytest.raises(DataError, match=r"needs unit\.column"):
        open_table(folder_of(tmp_path / "meters", parts_of(table)), schema)
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=50)
    assert np.array_equal(open_table(tmp_path / "one.parquet", schema).read().values, read_panel(table, schema).values)


def test_a_sample_of_units_is_random_and_of_the_size_asked_for(tmp_path: Path) -> None:
    opened = open_table(folder_of(tmp_path / "meters", parts_of(pa.table(toy_columns()))), toy_schema())
    drawn = [opened.sample_units(30, np.random.default_rng(seed)) for seed in range(40)]
    assert {panel.num_units for panel in drawn} == {30}
    assert all(by_unit(panel).items() <= by_unit(opened.read()).items() for panel in drawn[:3])
    counts = np.bincount([int(name[1:]) for panel in drawn for name in panel.unit_ids], minlength=120)
    assert counts.min() >= 1  # each is drawn 10 times on average
    assert counts.max() <= 25
    assert opened.sample_units(500, np.random.default_rng(0)).num_units == 120
    assert opened.sample_units(9, np.random.default_rng(0), among=lambda panel: np.arange(0)).num_units == 0


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    parts = parts_of(pa.table(toy_columns()))
    schema = toy_schema(context=(Continuous("warmth", 0.0, 9.0),))
    parts[0] = parts[0].append_column("warmth", pa.array(np.tile(np.arange(5.0), parts[0].num_rows // 5)))
    with pytest.raises(DataError, match="same columns"):
        open_table(folder_of(tmp_path / "meters", parts), schema)


def test_one_unit_more_changes_no_message(tmp_path: Path) -> None:
    """Twins: the same defects, with and without one more unit, are told in the same words."""

    def told(name: str, num_units: int, **defects: object) -> str:
        columns = toy_columns(num_units)
        table = pa.table(columns)
        if "bounds" in defects:
            table = table.set_column(2, "power", pa.array(np.full(table.num_rows, 99.0)))
        parts = parts_of(table)
        if "twice" in defects:
            parts[1] = pa.concat_tables([parts[1], parts[0].slice(0, 5)])
        with pytest.raises(InputError) as raised:
            open_table(folder_of(tmp_path / name / "meters", parts), toy_schema())
        return str(raised.value)

    for number, defects in enumerate(({"bounds": True}, {"twice": True})):
        for name in ("fewer", "more"):
            (tmp_path / f"{name}{number}").mkdir()
        assert told(f"fewer{number}", 120, **defects) == told(f"more{number}", 121, **defects)
    for name in ("few", "less"):
        (tmp_path / name).mkdir()
    assert told("few", 60) == told("less", 61)
