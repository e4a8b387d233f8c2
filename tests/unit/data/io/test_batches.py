"""Tables that come in several batches, blocks or row groups read as in one, and a unit counts once however it is cut.

Rows are sorted by time, so that every unit has rows in many batches.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from tests.unit.data.toy import at, simple_schema, toy_schema, toy_table
from understudy.data import Binary, Continuous, Integer, Population, PrivacyUnit, Schema, read_context, read_panel
from understudy.data.channels import Categorical
from understudy.data.io import sources
from understudy.data.io.context import read_context_windows
from understudy.data.io.read import read_first_categories
from understudy.data.panel import Panel
from understudy.errors import DataError
from understudy.privacy.purchases import BuyBounds, BuyPopulation, one_per_unit

ROWS = 23  # of a batch
BY_TIME = toy_table().sort_by([("when", "ascending"), ("person", "ascending")])
SCHEMA = toy_schema()
Form = Callable[[pa.Table, Path], Any]


def in_batches(table: pa.Table, _folder: Path) -> pa.Table:
    return pa.Table.from_batches(table.combine_chunks().to_batches(max_chunksize=ROWS))


def as_stream(table: pa.Table, _folder: Path) -> pa.RecordBatchReader:
    """A stream that can be read once, with an empty batch at either end."""
    batches = table.combine_chunks().to_batches(max_chunksize=ROWS)
    return pa.RecordBatchReader.from_batches(table.schema, [batches[0].slice(0, 0), *batches, batches[0].slice(0, 0)])


def with_dictionaries(table: pa.Table, _folder: Path) -> pa.Table:
    """Text as codes, with a dictionary of its own in every batch: code 0 is another word each time."""
    batches = table.combine_chunks().to_batches(max_chunksize=ROWS)
    return pa.Table.from_arrays(
        [pa.chunked_array([_encoded(batch.column(name)) for batch in batches]) for name in table.column_names],
        names=table.column_names,
    )


def _encoded(array: pa.Array) -> pa.Array:
    return array.dictionary_encode() if pa.types.is_string(array.type) else array


def polars_frame(table: pa.Table, _folder: Path) -> pl.DataFrame:
    pieces = [pl.from_arrow(table.slice(begin, ROWS)) for begin in range(0, table.num_rows, ROWS)]
    return pl.concat(pieces, rechunk=False)  # type: ignore[type-var]


def parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "table.parquet", row_group_size=ROWS)
    return folder / "table.parquet"


def arrow(table: pa.Table, folder: Path) -> Path:
    feather.write_feather(table, folder / "table.arrow", chunksize=ROWS)
    return folder / "table.arrow"


def csv(table: pa.Table, folder: Path) -> Path:
    pacsv.write_csv(table, folder / "table.csv")
    return folder / "table.csv"


FORMS: dict[str, Form] = {
    "a table": in_batches,
    "a stream": as_stream,
    "dictionaries": with_dictionaries,
    "polars": polars_frame,
    "parquet": parquet,
    "arrow": arrow,
    "csv": csv,
    "one large batch": lambda table, _folder: table.combine_chunks(),
}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's blocks and our slices as small as the batches here."""
    options = pacsv.ReadOptions
    monkeypatch.setattr(pacsv, "ReadOptions", lambda **given: options(**{**given, "block_size": 1024}))
    batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda self, _rows, **given: batches(self, ROWS, **given))
    monkeypatch.setattr(sources, "BATCH_ROWS", ROWS)


def whole(table: pa.Table, monkeypatch: pytest.MonkeyPatch, read: Callable[[Any], Any]) -> Any:
    """What is read from the table in one piece."""
    with monkeypatch.context() as patch:
        patch.setattr(sources, "BATCH_ROWS", 1 << 20)
        return read(table.combine_chunks())


def assert_same(one: Panel, two: Panel) -> None:
    for name in ("values", "lengths", "unit", "static", "context", "ticks"):
        first, second = getattr(one, name), getattr(two, name)
        assert (first is None) == (second is None), name
        assert first is None or np.asarray(first).tobytes() == np.asarray(second).tobytes(), name
    assert one.unit_ids is None or one.unit_ids.tolist() == two.unit_ids.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_do_come_in_several_batches(form: str, tmp_path: Path) -> None:
    """Negative control: in one batch the other tests would say nothing."""
    batches = [batch for batch in sources.open_source(FORMS[form](BY_TIME, tmp_path), SCHEMA).batches if batch.num_rows]
    assert len(batches) > 10
    assert sum(batch.num_rows for batch in batches) == BY_TIME.num_rows
    first = set(batches[0].column("person").to_pylist())
    assert any(first & set(batch.column("person").to_pylist()) for batch in batches[1:])


@pytest.mark.parametrize("form", FORMS)
def test_a_long_table_is_the_same_in_several_batches(form: str, tmp_path: Path, monkeypatch: Any) -> None:
    read = lambda source: read_panel(source, SCHEMA)  # noqa: E731
    assert_same(whole(BY_TIME, monkeypatch, read), read(FORMS[form](BY_TIME, tmp_path)))


def several_series() -> tuple[pa.Table, Schema]:
    """Two series of each of a hundred units, events that are counted, added up and averaged within a step."""
    rng = np.random.default_rng(3)
    hours = np.sort(rng.integers(0, 8, 1600) / 2.0)
    table = pa.table(
        {
            "id": pa.array(rng.permutation(np.arange(1600) % 100)),
            "meter": pa.array([f"m{n}" for n in rng.integers(0, 2, 1600)]),
            "t": at(*hours),
            "paid": rng.integers(0, 9, 1600).astype(float),
            "level": rng.random(1600),
        }
    )
    channels = (
        Integer("events", 0, 1000, aggregate="count"),
        Continuous("paid", 0, 10_000, aggregate="sum"),
        Continuous("level", 0, 1, aggregate="mean", missing=True),
    )
    unit = PrivacyUnit(column="id", dtype="int64", max_series=2)
    return table, simple_schema(channels, unit=unit, series_column="meter", off_grid="floor")


@pytest.mark.parametrize("form", FORMS)
def test_series_of_a_unit_and_events_of_a_step_meet_across_batches(form: str, tmp_path: Path, monkeypatch: Any) -> None:
    table, schema = several_series()
    read = lambda source: read_panel(source, schema)  # noqa: E731
    expected = whole(table, monkeypatch, read)
    assert expected.num_units == 100
    assert float(expected.values[:, :, 0].sum()) == 1600
    assert_same(expected, read(FORMS[form](table, tmp_path)))


def wide() -> tuple[pa.Table, Schema]:
    """Two rows of each unit, far apart."""
    ids = np.concatenate([np.arange(100), np.arange(100)[::-1]])
    steps = {f"x_{step}": np.arange(200.0) / 10 + step for step in range(4)}
    unit = PrivacyUnit(column="id", dtype="int64", max_series=2)
    return pa.table({"id": ids, **steps}), simple_schema(unit=unit, layout="wide", column=None)


@pytest.mark.parametrize("form", FORMS)
def test_a_wide_table_is_the_same_in_several_batches(form: str, tmp_path: Path, monkeypatch: Any) -> None:
    table, schema = wide()
    read = lambda source: read_panel(source, schema)  # noqa: E731
    expected = whole(table, monkeypatch, read)
    assert expected.num_units == 100
    assert_same(expected, read(FORMS[form](table, tmp_path)))


@pytest.mark.parametrize("form", FORMS)
def test_windows_are_cut_across_the_borders_of_batches(form: str, tmp_path: Path, monkeypatch: Any) -> None:
    table = pa.table({"x": np.arange(120.0) / 2})
    schema = simple_schema(unit=PrivacyUnit(kind="overlapping-window"), column=None)
    read = lambda source: read_panel(source, schema)  # noqa: E731
    expected = whole(table, monkeypatch, read)
    assert expected.num_series > 110
    assert_same(expected, read(FORMS[form](table, tmp_path)))


def with_context() -> tuple[pa.Table, Schema]:
    base = simple_schema(steps=40)
    hours = np.arange(40)
    weather = pa.table({"t": at(*hours), "warmth": hours / 2.0, "rain": np.where(hours % 3, "no", "yes")})
    context = (Continuous("warmth", 0.0, 50.0), Categorical("rain", ("no", "yes")))
    return weather, replace(base, context=context)


@pytest.mark.parametrize("form", FORMS)
def test_public_context_is_the_same_in_several_batches(form: str, tmp_path: Path, monkeypatch: Any) -> None:
    weather, schema = with_context()
    expected = whole(weather, monkeypatch, lambda source: read_context(source, schema))
    assert expected.shape == (40, 2)
    np.testing.assert_array_equal(expected, read_context(FORMS[form](weather, tmp_path), schema))
    shorter = replace(schema, time=replace(schema.time, steps=9))
    windows = lambda source: read_context_windows(source, shorter, 20, np.random.default_rng(0))[0]  # noqa: E731
    np.testing.assert_array_equal(whole(weather, monkeypatch, windows), windows(FORMS[form](weather, tmp_path)))


@pytest.mark.parametrize("form", FORMS)
def test_context_in_the_private_table_is_the_same_in_several_batches(
    form: str, tmp_path: Path, monkeypatch: Any
) -> None:
    weather, schema = with_context()
    ids = np.tile(np.arange(100), 40)
    columns = {
        name: weather[name].combine_chunks().take(pa.array(np.repeat(np.arange(40), 100)))
        for name in weather.column_names
    }
    table = pa.table({"id": ids, "x": np.arange(4000) % 100.0, **columns})
    read = lambda source: read_panel(source, schema)  # noqa: E731
    assert_same(whole(table, monkeypatch, read), read(FORMS[form](table, tmp_path)))
    changed = table.sort_by([("id", "ascending"), ("t", "ascending")]).to_pydict()  # no time twice in a batch
    changed["warmth"][77] += 1.0  # one person's own value of what is the same for everybody
    with pytest.raises(DataError, match="two values at one time"):
        read(FORMS[form](pa.table(changed, schema=table.schema), tmp_path))


SPOILT: dict[str, tuple[Callable[[dict[str, list]], None], str]] = {
    "a static column that changes": (lambda rows: rows["area"].__setitem__(-1, 1.0), "changes within a series"),
    "a timestamp twice": (lambda rows: rows["when"].__setitem__(-1, rows["when"][-121]), "twice"),
    "time that goes back": (lambda rows: rows["when"].__setitem__(-1, rows["when"][0]), "not in order|twice"),
    "a category in the last batch": (lambda rows: rows["state"].__setitem__(-1, "Quux"), "not declared"),
    "a value beyond in the last batch": (
        lambda rows: rows["power"].__setitem__(-1, 11.0),
        "leaves its declared bounds",
    ),
    "a missing identifier in the last batch": (
        lambda rows: rows["person"].__setitem__(-1, None),
        "misses an identifier",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", SPOILT)
def test_what_is_wrong_between_two_batches_is_refused(kind: str, form: str, tmp_path: Path) -> None:
    spoil, message = SPOILT[kind]
    rows = BY_TIME.to_pydict()
    spoil(rows)
    with pytest.raises(DataError, match=message):
        read_panel(FORMS[form](pa.table(rows, schema=BY_TIME.schema), tmp_path), SCHEMA)


def test_more_series_than_declared_are_refused_wherever_they_lie() -> None:
    table, schema = wide()
    third = pa.concat_tables([table, table.slice(0, 1)])
    with pytest.raises(DataError, match=r"max_series"):
        read_panel(in_batches(third, Path()), schema)


VOTERS: dict[str, tuple[PrivacyUnit, Callable[[np.ndarray], pa.Array]]] = {
    "text": (PrivacyUnit(column="id"), lambda ids: pa.array([f"p{number}" for number in ids])),
    "numbers": (PrivacyUnit(column="id", dtype="int64"), lambda ids: pa.array(ids)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("voters", VOTERS)
def test_a_unit_votes_once_however_many_batches_it_is_in(voters: str, form: str, tmp_path: Path) -> None:
    """Each unit holds another category at every step, and none at the first: its vote is that of the second."""
    unit, identifiers = VOTERS[voters]
    schema = replace(simple_schema((Categorical("mode", (), missing=True),), unit=unit), population=Population(100))
    ids = np.tile(np.arange(100), 4)
    modes = [None if row < 100 else f"{'abc'[row // 100 - 1]}{row % 3}" for row in range(400)]
    table = pa.table({"id": identifiers(ids), "t": at(*np.repeat(np.arange(4), 100)), "mode": pa.array(modes)})
    votes, whole_numbers = read_first_categories(FORMS[form](table, tmp_path), schema, "mode")
    assert not whole_numbers
    assert sorted(votes) == sorted(f"a{row % 3}" for row in range(100, 200))


@pytest.mark.parametrize("form", FORMS)
def test_a_unit_with_several_rows_of_a_wide_table_votes_once(form: str, tmp_path: Path) -> None:
    unit = PrivacyUnit(column="id", dtype="int64", max_series=2)
    schema = simple_schema((Categorical("mode", (), missing=True),), unit=unit, layout="wide", column=None)
    ids = np.concatenate([np.arange(100), np.arange(100)[::-1]])
    steps = {
        f"mode_{step}": pa.array([f"s{step}" if row >= 100 or step else None for row in range(200)])
        for step in range(4)
    }
    votes, _ = read_first_categories(FORMS[form](pa.table({"id": ids, **steps}), tmp_path), schema, "mode")
    assert votes == ["s1"] * 100


@pytest.mark.parametrize("form", FORMS)
def test_a_table_without_units_has_a_vote_for_each_row(form: str, tmp_path: Path) -> None:
    schema = simple_schema((Categorical("mode", ()),), unit=PrivacyUnit(), layout="wide", column=None)
    table = pa.table({f"mode_{step}": pa.array([f"s{row % 2}" for row in range(150)]) for step in range(4)})
    assert len(read_first_categories(FORMS[form](table, tmp_path), schema, "mode")[0]) == 150


@pytest.mark.parametrize("form", FORMS)
def test_bought_bounds_and_counts_see_one_value_of_each_unit(form: str, tmp_path: Path, monkeypatch: Any) -> None:
    purchase = BuyBounds(columns=("power",), low=0.0, high=20.0)
    for read in (lambda source: purchase.read(source, SCHEMA), lambda source: BuyPopulation().read(source, SCHEMA)):
        expected, found = whole(BY_TIME, monkeypatch, read), read(FORMS[form](BY_TIME, tmp_path))
        assert found.num_units == expected.num_units == 120
        for statistic in ("min", "max"):
            ours, theirs = (one_per_unit(table.read(), "power", statistic) for table in (found, expected))
            assert ours.shape == (120,)
            np.testing.assert_array_equal(ours, theirs)


def test_a_column_empty_in_some_batches_is_not_missing_everywhere(tmp_path: Path) -> None:
    """Flags, whose type comes from the schema and not from a first block without any."""
    schema = simple_schema((Binary("flag", missing=True),))
    flags = pa.array([None] * 300 + [True] * 100)
    table = pa.table({"id": np.tile(np.arange(100), 4), "t": at(*np.repeat(np.arange(4), 100)), "flag": flags})
    for form in FORMS.values():
        panel = read_panel(form(table, tmp_path), schema)
        assert np.isnan(panel.values[:, :3]).all()
        assert (panel.values[:, 3] == 1).all()
