"""Tables of databases and stores are read as files are, in partitions of whole units, and no secret is repeated."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.unit.data.toy import replaced, toy_schema, toy_table
from understudy.data import Schema, Time, open_table, read_panel
from understudy.data.io import stores
from understudy.errors import DataError, InputError, MissingData

if TYPE_CHECKING:
    from tests.postgresql import Server

COLUMNS = 'person text, "when" timestamp, power float8, visits bigint, state text, alarm bool, plan text, area float4'


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions of some units, for a table of 600 rows."""
    monkeypatch.setattr("understudy.data.table.ROWS_PER_PARTITION", 200)


@pytest.fixture(params=["duckdb", "postgresql"])
def put(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., str]:
    """What writes a table to a database, rows in no order, and returns its URL without a table."""
    if request.param == "duckdb":
        return lambda table: _in_duckdb(table, tmp_path / "toys.duckdb")
    server: Server = request.getfixturevalue("postgresql")
    return lambda table: _in_postgresql(table, server)


def _shuffled(table):
    return table.take(np.random.default_rng(0).permutation(table.num_rows))


def _in_duckdb(table, file: Path) -> str:
    with duckdb.connect(file) as connection:
        connection.register("given", _shuffled(table))
        connection.execute("create table toys as select * from given")
    return f"duckdb:{file}"


def _in_postgresql(table, server: "Server") -> str:
    import adbc_driver_postgresql.dbapi as driver

    url = server.database("toys")
    with driver.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE toys ({COLUMNS})")
        cursor.adbc_ingest("toys", _shuffled(table), mode="append")
        connection.commit()
    return url


def test_a_table_of_a_database_is_the_same_as_a_file(put: Callable[..., str], few_rows: None) -> None:
    url = f"{put(toy_table())}?table=toys"
    table, plain = open_table(url, toy_schema()), read_panel(toy_table(), toy_schema())
    assert len(table.partitions) == 5, "200 declared units of 5 steps, 200 rows in each"
    found = table.read()
    by_name = np.argsort(found.unit_ids)
    assert found.unit_ids[by_name].tolist() == sorted(plain.unit_ids)
    same = found.take_units(by_name)
    assert np.array_equal(same.values, plain.values, equal_nan=True)
    assert np.array_equal(same.static, plain.static)
    whole = read_panel(url, toy_schema())
    assert whole.unit_ids.tolist() == sorted(plain.unit_ids)
    assert np.array_equal(whole.values, plain.values, equal_nan=True)


def test_a_query_is_read_as_a_table_and_drafted_without_a_row(put: Callable[..., str]) -> None:
    url = put(toy_table())
    asked = f"{url}?query=SELECT * FROM toys WHERE power IS NULL OR power >= 0"
    assert open_table(asked, toy_schema()).num_units == 120
    assert Schema.draft(f"{url}?table=toys", unit="person", time="when").channels[0].name == "power"


def test_declared_types_are_asked_for(put: Callable[..., str]) -> None:
    url = put(toy_table())
    decimals = 'SELECT person, "when", power::numeric(9, 2) AS power, visits, state, alarm, plan, area FROM toys'
    schema = toy_schema(time=Time(column="when", frequency="1h", start="2024-01-01", steps=5, dtype="timestamp[us]"))
    assert open_table(f"{url}?query={decimals}", schema).num_units == 120


def test_bad_rows_and_tables_are_refused_without_quoting_them(put: Callable[..., str]) -> None:
    table = replaced(toy_table(), "power", 212, 31337.25)
    url = put(table)
    with pytest.raises(DataError, match="'power'") as caught:
        open_table(f"{url}?table=toys", toy_schema())
    assert "31337" not in str(caught.value)
    for asked in ("table=xyzzy", "query=SELECT 31337/0*visits FROM toys", "query=SELEKT 'xyzzy'"):
        with pytest.raises(DataError) as caught:
            open_table(f"{url}?{asked}", toy_schema())
        shown = "".join(traceback.format_exception(caught.value))
        assert "31337" not in shown.replace(asked, "")
        assert "SELEKT" not in str(caught.value)


def test_a_table_that_changed_is_refused(put: Callable[..., str], request: pytest.FixtureRequest) -> None:
    url = put(toy_table())
    table = open_table(f"{url}?table=toys", toy_schema())
    if url.startswith("duckdb"):
        with duckdb.connect(url.removeprefix("duckdb:")) as connection:
            connection.execute("delete from toys where person = 'p0042'")
    else:
        request.getfixturevalue("postgresql").sql("DELETE FROM toys WHERE person = 'p0042'", database="toys")
    with pytest.raises(InputError, match="stay as it was"):
        list(table.panels())


def test_a_query_that_would_change_the_table_is_refused(put: Callable[..., str]) -> None:
    url = put(toy_table())
    with pytest.raises(DataError):
        open_table(f"{url}?query=DELETE FROM toys RETURNING *", toy_schema())
    assert open_table(f"{url}?table=toys", toy_schema()).num_units == 120


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hunter2@host/db?table=t",  # pragma: allowlist secret
        "postgresql://host/db?table=t&password=hunter2",
        "postgres://host/db?table=t&sslpassword=hunter2",
        "s3://AKIA:hunter2@bucket/folder",  # pragma: allowlist secret
        "duckdb:file.duckdb?table=t&motherduck_token=hunter2",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InputError, match="URL without") as caught:
        open_table(url, toy_schema())
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_server_that_does_not_answer_is_named_by_the_remedy() -> None:
    with pytest.raises(DataError, match=r"(?s)^t: .*(No connection|Check the URL)") as caught:
        open_table("postgresql://ann@127.0.0.1:9/db?table=t", toy_schema())
    assert "ann" not in str(caught.value)


def test_a_url_without_a_table_says_how_it_is_named() -> None:
    with pytest.raises(InputError, match="duckdb:FILE"):
        open_table("duckdb:file.duckdb", toy_schema())


@pytest.mark.parametrize("store", ["", "memory://"])
def test_a_pattern_is_a_folder_of_the_files_that_match(store: str, tmp_path: Path) -> None:
    folder = f"{store}{tmp_path}"
    for place in range(2):
        file = f"{folder}/part-{place}.parquet"
        if store:
            system, path = stores._store(file)
            system.pipe(path, b"")
        with system.open(path, "wb") if store else Path(file).open("wb") as sink:
            pq.write_table(toy_table().slice(place * 300, 300), sink)
    assert open_table(f"{folder}/part-*.parquet", toy_schema()).num_units == 120
    assert read_panel(f"{folder}/*.parquet", toy_schema()).num_units == 120
    for place in (folder, f"{folder}/part-*.parquet", f"{folder}/part-0.parquet"):
        assert Schema.draft(place, unit="person", time="when").channels[0].name == "power"


def test_stores_that_arrow_knows_need_no_package_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's own file system of this machine stands for S3."""
    pq.write_table(toy_table(), tmp_path / "toys.parquet")
    monkeypatch.setattr(stores, "_store", lambda url: stores._arrow_store(url.replace("s3://", "file://")))
    assert open_table(f"s3://{tmp_path}/toys.parquet", toy_schema()).num_units == 120
    assert open_table(f"s3://{tmp_path}", toy_schema()).num_units == 120


def test_a_database_that_is_not_there_and_a_table_it_lacks_are_told_apart(tmp_path: Path) -> None:
    url = _in_duckdb(toy_table(), tmp_path / "toys.duckdb")
    with pytest.raises(MissingData, match="after duckdb:"):
        open_table(f"duckdb:{tmp_path}/nowhere.duckdb?table=toys", toy_schema())
    for asked in ("table=nowhere", "query=SELECT nothing FROM toys", "query=SELEKT"):
        with pytest.raises(DataError, match="the table and its columns are there"):
            open_table(f"{url}?{asked}", toy_schema())


def test_a_store_that_refuses_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def isdir(self, path: str) -> bool:
            raise PermissionError("key AKIAXYZZY may not list p0042")

    monkeypatch.setattr(stores, "_store", lambda url: (Refusing(), "bucket"))
    with pytest.raises(InputError, match=r"s3://.*can't be reached or refuses.*credentials") as caught:
        open_table("s3://bucket/folder", toy_schema())
    assert "XYZZY" not in "".join(traceback.format_exception(caught.value))
