"""Tables of databases: `duckdb:FILE?table=NAME` and `postgresql://HOST/DATABASE?table=NAME`, as Arrow batches.

Credentials never enter: the driver finds them (PGPASSWORD, ~/.pgpass, a service file). What a database says may quote
cells, hosts and users; errors here name the table and what to do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import pyarrow as pa

from understudy.data.channels import Binary, Categorical
from understudy.data.dtypes import INTEGER_DTYPES
from understudy.data.schema import Schema, column_names
from understudy.errors import DataError, InputError
from understudy.extras import require_extra

_DUCKDB, _POSTGRESQL = "duckdb", "postgresql"
_SECRETS = ("password", "sslpassword", "passfile", "motherduck_token", "token")
_EXAMPLE = "duckdb:FILE?table=NAME or postgresql://HOST/DATABASE?table=NAME"
# In PostgreSQL a read-only transaction, so that a query can't change what it reads.
_READ_ONLY = "-c default_transaction_read_only=on"
# The unit's share of the table: the same in every session, of as many shares as there are partitions.
_SHARE = {
    _DUCKDB: "hash(CAST({} AS VARCHAR)) % {}",
    _POSTGRESQL: "mod(abs(hashtext(CAST({} AS text))::bigint), {})",
}
_REMEDIES = {
    "08": "No connection: check host, port and database, and that the server takes connections from here.",
    "28": "The server refused user or password: give PGUSER and PGPASSWORD, or a line in ~/.pgpass.",
    "3D": "There is no such database: check the URL.",
    "42": "Check that the table and its columns are there, that the query is right, and that the user may read it.",
    "25": "Only reading is allowed: give a query that changes nothing.",
    "57": "The server ended the query: run it again, or ask its administrator.",
}

_DRIVERS = ("adbc_driver", "duckdb", "_duckdb")  # modules whose errors quote cells
_OTHERWISE = "Check the URL, the table and the declared types; the database's log says more."


@dataclass(frozen=True, repr=False)
class DatabaseTable:
    """A table or a query of a database, or the units of one partition of it."""

    address: str  # a file of DuckDB, or what libpq takes
    select: str  # what follows FROM
    name: str  # what errors call it
    kind: str
    unit: str | None = None  # column by which partitions are told apart
    part: int = 0
    parts: int = 1

    suffix = ""

    @classmethod
    def at(cls, source: str) -> "DatabaseTable":
        """Returns the table that a URL names; refuses a URL with a password in it."""
        kind = _DUCKDB if source.startswith(f"{_DUCKDB}:") else _POSTGRESQL
        url, _, asked = source.partition("?")
        options = dict(parse_qsl(asked, keep_blank_values=True))
        user = url.partition("//")[2].split("/")[0].rpartition("@")[0]
        if ":" in user or any(key.lower() in _SECRETS for key in options):
            raise InputError(
                "A URL without a password is expected: URLs end up in logs and shell histories. Give the password in "
                "PGPASSWORD or in ~/.pgpass."
            )
        table, query = options.pop("table", None), options.pop("query", None)
        if (table is None) == (query is None):
            raise InputError(f"One of ?table= and ?query= is expected in the URL of a database: {_EXAMPLE}.")
        select = f"({query.rstrip().rstrip(';')}) AS asked" if query else ".".join(map(_quoted, str(table).split(".")))
        if kind == _DUCKDB:
            address = str(Path(url.removeprefix("duckdb:").removeprefix("//")).absolute())
        else:
            options["options"] = f"{options.get('options', '')} {_READ_ONLY}".strip()
            address = f"{url}?{urlencode(options, quote_via=quote)}"
        return cls(address, select, table or "query", kind)

    def is_dir(self) -> bool:
        """Returns whether several files are meant: never."""
        return False

    def is_file(self) -> bool:
        """Returns True, or raises the error of a table that can't be read."""
        return len(self.types()) > 0

    def partitions(self, unit: str | None, number: int) -> list["DatabaseTable"]:
        """Returns the table in parts that share no unit, by a hash of its identifier; whole without a unit column."""
        if unit is None:
            return [self]
        return [replace(self, unit=unit, part=part, parts=number) for part in range(number)]

    def types(self) -> pa.Schema:
        """Returns names and types of the columns; asks for no row."""
        with _asked(self, f"SELECT * FROM {self.select} LIMIT 0") as reader:
            return reader.schema

    def rows(self, schema: Schema, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yields these columns in the types that the schema declares, the rows of a series together and in order."""
        keys = (schema.unit.column, schema.time.series_column, schema.time.column)
        order = ", ".join(_quoted(key) for key in dict.fromkeys(keys) if key in columns)
        wanted = ", ".join(self._typed(name, schema) for name in columns)
        text = f"SELECT {wanted} FROM {self.select}{self._where()}" + (f" ORDER BY {order}" if order else "")
        with _asked(self, text) as reader:
            yield from reader

    def fingerprint(self) -> tuple[int, str]:
        """Returns the number of rows, by which a table that changed while it was read is recognised."""
        with _asked(self, f"SELECT count(*) AS n FROM {self.select}{self._where()}") as reader:
            return int(reader.read_all()["n"][0].as_py()), ""

    def _where(self) -> str:
        if self.unit is None or self.parts == 1:
            return ""
        return f" WHERE {_SHARE[self.kind].format(_quoted(self.unit), self.parts)} = {self.part}"

    def _typed(self, name: str, schema: Schema) -> str:
        types: dict[str | None, str | None] = {
            schema.unit.column: "text" if schema.unit.dtype not in INTEGER_DTYPES else "bigint"
        }
        for channel in (*schema.channels, *schema.static, *schema.context):
            words = isinstance(channel, Categorical) and channel.dtype not in INTEGER_DTYPES
            kept = isinstance(channel, Binary)  # true/false and 0/1 are both read
            cast = None if kept else "text" if words else "double precision"
            names = column_names(schema, channel.name) if channel in schema.channels else [channel.name]
            types |= dict.fromkeys(names, cast)
        cast = types.get(name)
        return _quoted(name) if cast is None else f"CAST({_quoted(name)} AS {cast}) AS {_quoted(name)}"


def is_database(source: Any) -> bool:
    """Returns whether a source is the URL of a table in a database."""
    return isinstance(source, str) and source.startswith((f"{_DUCKDB}:", f"{_POSTGRESQL}://", "postgres://"))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _asked(table: DatabaseTable, text: str) -> Iterator[pa.RecordBatchReader]:
    """Opens a connection for one query; turns what the database says into a message that quotes nothing of it."""
    kind = "adbc_driver_postgresql" if table.kind == _POSTGRESQL else "duckdb"
    require_extra(kind, by=f"a table in {'PostgreSQL' if table.kind == _POSTGRESQL else 'DuckDB'}")
    try:
        with _connected(table) as reader_of:
            yield reader_of(text)
    except (DataError, InputError):
        raise
    except Exception as problem:
        if not isinstance(problem, pa.ArrowException | OSError) and not type(problem).__module__.startswith(_DRIVERS):
            raise
        remedy = _REMEDIES.get(str(getattr(problem, "sqlstate", None) or "")[:2], _OTHERWISE)
        told = f"{table.name}: the database can't give the table as the schema declares it. {remedy}"
        raise DataError(told) from None


@contextmanager
def _connected(table: DatabaseTable) -> Iterator[Any]:
    """Yields what turns a query into a stream of batches."""
    if table.kind == _DUCKDB:
        connection = import_module("duckdb").connect(table.address, read_only=True)
        try:
            yield lambda text: connection.sql(text).to_arrow_reader()
        finally:
            connection.close()
        return
    driver = import_module("adbc_driver_postgresql.dbapi")
    with driver.connect(table.address) as connection, connection.cursor() as cursor:

        def reader_of(text: str) -> pa.RecordBatchReader:
            cursor.execute(text)
            reader: pa.RecordBatchReader = cursor.fetch_record_batch()
            return reader

        yield reader_of
