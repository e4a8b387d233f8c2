"""Where tables lie: files of this machine or of a store (`s3://`, `memory://`), and tables of databases.

Credentials never enter: drivers find them in the environment or in files of their own. What a database says may quote
cells, hosts and users; errors here name the table and what to do.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

import pyarrow as pa

from understudy.data.channels import INTEGER_DTYPES, Binary, Categorical
from understudy.data.schema import Schema, column_names
from understudy.errors import DataError, InputError, MissingData
from understudy.extras import require_extra

TABLE_SUFFIXES = (".csv", ".parquet", ".arrow", ".feather")
_KIND = re.compile(r"\.[a-z]{1,8}")
_CHANGED = ("ETag", "etag", "mtime", "LastModified", "updated")
Fingerprint = tuple[int, str]

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
_STATES = {"CatalogException": "42", "BinderException": "42", "ParserException": "42"}  # DuckDB names its errors
_OTHERWISE = "Check the URL, the table and the declared types; the log of a server says more."


@dataclass(frozen=True)
class StoredFile:
    """A file of a store that fsspec or Arrow reaches, named and opened as a `Path` is."""

    url: str

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.partition("?")[0].rstrip("/").rsplit("/", 1)[-1]

    @property
    def suffix(self) -> str:
        """The ending of the name, with its dot."""
        return Path(self.name).suffix

    def open(self, mode: str = "r", encoding: str | None = None, newline: str | None = None) -> IO[Any]:
        """Opens the file for reading."""
        options = {} if "b" in mode else {"encoding": encoding, "newline": newline}
        opened: IO[Any] = _ask(self.url, "open", mode, **options)
        return opened

    def is_file(self) -> bool:
        """Returns whether a file is there."""
        return bool(_ask(self.url, "isfile"))

    def is_dir(self) -> bool:
        """Returns whether a folder is there."""
        return bool(_ask(self.url, "isdir"))

    def fingerprint(self) -> Fingerprint:
        """Returns size and time of the last change, or what the store has in its place."""
        info = _ask(self.url, "info")
        changed = next((str(info[key]) for key in _CHANGED if key in info), "")
        with suppress(NotImplementedError):
            changed = changed or str(_ask(self.url, "modified"))
        return int(info["size"] or 0), changed


@dataclass(frozen=True, repr=False)
class DatabaseTable:
    """A table or a query of a database, or the units of one partition of it."""

    address: str  # a file of DuckDB, or what libpq takes
    select: str  # what follows FROM
    name: str  # what errors call it
    kind: str
    share: str = ""  # the condition by which one of several partitions is told apart

    suffix: ClassVar[str] = ""

    @classmethod
    def at(cls, source: str) -> "DatabaseTable":
        """Returns the table that a URL names; refuses a URL with a password in it."""
        kind = _DUCKDB if source.startswith(f"{_DUCKDB}:") else _POSTGRESQL
        url, _, asked = source.partition("?")
        options = dict(parse_qsl(asked, keep_blank_values=True))
        user = url.partition("//")[2].split("/")[0].rpartition("@")[0]
        if ":" in user or any(key.lower() in _SECRETS for key in options):
            told = "A URL without a password is expected: URLs end up in logs and shell histories."
            raise InputError(f"{told} Give the password in PGPASSWORD or in ~/.pgpass.")
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

    def partitions(self, unit: str | None, number: int) -> list["DatabaseTable"]:
        """Returns the table in parts that share no unit, by a hash of its identifier; whole without a unit column."""
        if unit is None or number == 1:
            return [self]
        hashed = _SHARE[self.kind].format(_quoted(unit), number)
        return [replace(self, share=f" WHERE {hashed} = {part}") for part in range(number)]

    def types(self) -> pa.Schema:
        """Returns names and types of the columns; asks for no row."""
        with _asked(self, f"SELECT * FROM {self.select} LIMIT 0") as reader:
            return reader.schema

    def rows(self, schema: Schema, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yields these columns in the types that the schema declares, the rows of a series together and in order."""
        keys = (schema.unit.column, schema.time.series_column, schema.time.column)
        order = ", ".join(_quoted(key) for key in dict.fromkeys(keys) if key in columns)
        casts = _casts(schema)
        wanted = ", ".join(casts.get(name, "{}").format(_quoted(name)) for name in columns)
        text = f"SELECT {wanted} FROM {self.select}{self.share}" + (f" ORDER BY {order}" if order else "")
        with _asked(self, text) as reader:
            yield from reader

    def fingerprint(self) -> Fingerprint:
        """Returns the number of rows, by which a table that changed while it was read is recognised."""
        with _asked(self, f"SELECT count(*) AS n FROM {self.select}{self.share}") as reader:
            return int(reader.read_all()["n"][0].as_py()), ""


File = Path | StoredFile | DatabaseTable


class Files(NamedTuple):
    """The files of a table."""

    name: str  # what errors call the table
    files: tuple[File, ...]
    single: bool  # whether the table is one file, and not a folder or a pattern


def is_url(text: str) -> bool:
    """Returns whether a text names a store or a database, and no path of this machine."""
    return "://" in text or _is_database(text)


def is_array_file(source: Any) -> bool:
    """Returns whether a source is a numpy file."""
    return isinstance(source, str | Path) and Path(source).suffix.lower() in (".npy", ".npz")


def table_files(place: str | Path) -> Files:
    """Returns the files at a path or a URL: one, or those of a folder or a pattern with `*`, by name.

    Hidden files (`.name`, `_name`) are left out.

    Privacy: names of files may be identifiers. Errors name the folder and kinds of files, never a file.
    """
    text = str(place).removeprefix("file://")
    if _is_database(text):
        table = DatabaseTable.at(text)
        if table.kind == _DUCKDB and not Path(table.address).is_file():
            raise MissingData(f"No file at {table.address}. Check the path after duckdb:.")
        table.types()  # or the error of a table that can't be read
        return Files(table.name, (table,), single=True)
    here = StoredFile(text) if "://" in text else Path(text)
    if "*" not in text and not here.is_dir():
        if not here.is_file():
            raise MissingData(f"No file at {place}. Check the path.")
        return Files(here.name, (here,), single=True)
    found = [file for file in _inside(text) if not file.name.startswith((".", "_"))]
    kinds, name = ", ".join(TABLE_SUFFIXES), here.name
    for file in found:
        if file.is_dir():
            raise DataError(f"{name}: files are expected in the folder, and it holds another folder. Move it.")
        if file.suffix.lower() not in TABLE_SUFFIXES:
            kind = f" of kind '{file.suffix}'" if _KIND.fullmatch(file.suffix) else ""
            told = f"files ending in {kinds} are expected in the folder, and it holds a file{kind}."
            raise DataError(f"{name}: {told} Move it elsewhere, or convert it.")
    if not found:
        raise MissingData(f"{name}: files ending in {kinds} are expected, and there is no table.")
    return Files(name, tuple(sorted(found, key=lambda file: file.name)), single=False)


def fingerprint(file: File) -> Fingerprint:
    """Returns size and time of the last change, by which a file that was written again is recognised."""
    if not isinstance(file, Path):
        return file.fingerprint()
    facts = file.stat()
    return facts.st_size, str(facts.st_mtime_ns)


def require_unchanged(file: File, before: Fingerprint) -> None:
    """Refuses a file that is not the one that was checked."""
    with suppress(OSError, MissingData):
        if fingerprint(file) == before:
            return
    raise InputError(
        "The table is expected to stay as it was when it was opened, and a file of it was changed or removed. Open the "
        "table again, and leave its files alone while it is read."
    )


def _is_database(text: str) -> bool:
    return text.startswith((f"{_DUCKDB}:", f"{_POSTGRESQL}://", "postgres://"))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _casts(schema: Schema) -> dict[str, str]:
    """Returns how columns are asked for, as SQL around their names; flags as they are: true/false or 0/1."""
    types = {schema.unit.column or "": "text" if schema.unit.dtype not in INTEGER_DTYPES else "bigint"}
    for channel in (*schema.channels, *schema.static, *schema.context):
        words = isinstance(channel, Categorical) and channel.dtype not in INTEGER_DTYPES
        names = column_names(schema, channel.name) if channel in schema.channels else [channel.name]
        if not isinstance(channel, Binary):
            types |= dict.fromkeys(names, "text" if words else "double precision")
    return {name: f"CAST({{0}} AS {cast}) AS {{0}}" for name, cast in types.items()}


@contextmanager
def _asked(table: DatabaseTable, text: str) -> Iterator[pa.RecordBatchReader]:
    """Opens a connection for one query; turns what the database says into a message that quotes nothing of it."""
    kind = "adbc_driver_postgresql" if table.kind == _POSTGRESQL else "duckdb"
    require_extra(kind, by=f"a table in {'PostgreSQL' if table.kind == _POSTGRESQL else 'DuckDB'}")
    try:
        if table.kind == _DUCKDB:
            with import_module("duckdb").connect(table.address, read_only=True) as connection:
                yield connection.sql(text).to_arrow_reader()
        else:
            driver = import_module("adbc_driver_postgresql.dbapi")
            with driver.connect(table.address) as connection, connection.cursor() as cursor:
                cursor.execute(text)
                yield cursor.fetch_record_batch()
    except (DataError, InputError):
        raise
    except Exception as problem:
        if not isinstance(problem, pa.ArrowException | OSError) and not type(problem).__module__.startswith(_DRIVERS):
            raise
        state = str(getattr(problem, "sqlstate", None) or _STATES.get(type(problem).__name__, ""))[:2]
        remedy = _REMEDIES.get(state, _OTHERWISE)
        told = f"{table.name}: the database can't give the table as the schema declares it. {remedy}"
        raise DataError(told) from None


def _ask(url: str, question: str, *arguments: Any, **options: Any) -> Any:
    """Asks the file system of a URL about its path; what a store says of its trouble may quote names and keys."""
    system, path = _store(url)
    try:
        return getattr(system, question)(path, *arguments, **options)
    except (FileNotFoundError, NotImplementedError):
        raise
    except Exception:
        raise _wrong_store(url, "a store that answers is expected, and it can't be reached or refuses.") from None


def _inside(text: str) -> list[Path | StoredFile]:
    """Returns what a folder holds, or what matches a pattern."""
    if "://" not in text:
        path = Path(text)
        return list(Path(path.anchor).glob(str(path.relative_to(path.anchor))) if "*" in text else path.iterdir())
    names, inside = _ask(text, "glob") if "*" in text else _ask(text, "ls", detail=False), _store(text)[1].strip("/")
    protocol, options = text.partition("://")[0], "".join(text.partition("?")[1:])
    return [StoredFile(f"{protocol}://{name}{options}") for name in map(str, names) if name.strip("/") != inside]


@cache
def _store(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system of a URL and the path in it."""
    require_extra("fsspec", by="a table in a store")
    import fsspec

    protocol, _, rest = url.partition("://")
    user, at, _ = rest.split("/")[0].partition("@")
    if at and ":" in user:
        raise InputError(
            f"A URL without credentials is expected after '{protocol}://'. Give them in the environment (such as "
            "AWS_ACCESS_KEY_ID) or in the store's own configuration."
        )
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError:  # no package of fsspec for it: Arrow knows S3, Google's and Azure's stores
        return _arrow_store(url)
    except ValueError:
        raise _wrong_store(url, "a kind of store that fsspec or Arrow knows is expected.") from None
    return system, path


def _arrow_store(url: str) -> tuple[Any, str]:
    """Returns Arrow's file system of a URL, as fsspec would, and the path in it."""
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import FileSystem

    try:
        system, path = FileSystem.from_uri(url)
    except pa.ArrowInvalid:
        raise _wrong_store(url, "a kind of store that fsspec or Arrow knows is expected.") from None
    except (pa.ArrowException, OSError):
        raise _wrong_store(url, "a store that answers is expected, and it can't be reached or refuses.") from None
    return ArrowFSWrapper(system), path


def _wrong_store(url: str, problem: str) -> InputError:
    remedy = "Check the URL, the network and the credentials, or install the store's package."
    return InputError(f"'{url.partition('://')[0]}://': {problem} {remedy}")
