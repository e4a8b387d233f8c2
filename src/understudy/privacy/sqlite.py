"""A ledger in one SQLite file, or in memory.

A rollback journal and `synchronous=EXTRA`: when a commit returns, the file alone holds every row, and the folder's
entry of the journal is gone from the disk too. Whoever copies or moves the one file forgets nothing.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from understudy.errors import LedgerError
from understudy.files import whole_file
from understudy.privacy import store
from understudy.privacy.store import Queries, Session, Stored, damaged

_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT)
_OPTIONS: dict[str, Any] = {"isolation_level": None, "check_same_thread": False}
_TABLES = """
CREATE TABLE facts (body TEXT NOT NULL);
CREATE TABLE entries (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TRIGGER facts_once BEFORE INSERT ON facts WHEN (SELECT count(*) FROM facts) > 0
  BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER facts_stay BEFORE UPDATE ON facts BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER facts_kept BEFORE DELETE ON facts BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER entries_kept BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END;
"""


_QUERIES = Queries(
    facts="SELECT body FROM facts LIMIT 2",
    rows="SELECT sequence, kind, body, hash FROM entries WHERE sequence > ? ORDER BY sequence",
    written="SELECT seq FROM sqlite_sequence WHERE name = 'entries'",
    insert="INSERT INTO entries VALUES (?, ?, ?, ?)",
    structure="SELECT type || ' ' || name FROM sqlite_master UNION ALL SELECT quick_check FROM pragma_quick_check",
    expected=frozenset(
        {"ok", "table sqlite_sequence"}
        | {f"{kind.lower()} {name}" for kind, name in re.findall(r"CREATE (TABLE|TRIGGER) (\w+)", _TABLES)}
    ),
)


class Sqlite:
    """One file, or a database in memory that ends with the process."""

    def __init__(self, place: Path | None) -> None:
        self.place, self.kind = place, "in-memory" if place is None else "file"
        self._memory = sqlite3.connect(":memory:", **_OPTIONS) if place is None else None

    def exists(self) -> bool:
        return self.place is not None and self.place.is_file()

    def require_free(self) -> None:
        if self.exists():
            raise LedgerError(f"'{self.place}' exists already: open it instead of creating it.")

    def create(self, facts: str, rows: Sequence[Stored] = ()) -> None:
        """Builds the file beside its place and links it there: it appears whole or not at all."""
        if self.place is None:
            assert self._memory is not None
            _write(self._memory, facts, rows)
            return
        with plain_errors(self.place):
            try:
                with whole_file(self.place, replace=False) as draft, closing(connect(draft, "rwc")) as connection:
                    _write(connection, facts, rows)
            except FileExistsError:
                self.require_free()
                raise

    @contextmanager
    def session(self, *, write: bool) -> Iterator[Session]:
        """One transaction; a connection to a file lives as long as it."""
        if self.place is None:
            assert self._memory is not None
            with _transaction(self._memory, write=write) as session:
                yield session
            return
        with plain_errors(self.place), closing(connect(self.place, "rw")) as connection:
            if write:  # an older version may have left a log beside the file
                connection.execute("PRAGMA journal_mode=DELETE")
            with _transaction(connection, write=write) as session:
                yield session


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection of which a commit returns when the row is on the disk and the journal is off it."""
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"
    connection: sqlite3.Connection = sqlite3.connect(address, uri=True, timeout=store.WAIT_SECONDS, **_OPTIONS)
    connection.execute("PRAGMA synchronous=EXTRA")
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection, *, write: bool) -> Iterator[Session]:
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield Session(connection, _QUERIES)
        connection.execute("COMMIT" if write else "ROLLBACK")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _write(connection: sqlite3.Connection, facts: str, rows: Sequence[Stored]) -> None:
    connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}")
    connection.execute("INSERT INTO facts VALUES (?)", (facts,))
    for row in rows:
        Session(connection, _QUERIES).insert(row)
    connection.execute("COMMIT")


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turns what SQLite and the file system say into errors that name the file and a remedy."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as problem:  # the second if SQLite's message quotes the damage
        kind = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the rest says where it happened
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LedgerError(f"'{path}' is in use by another process: wait until it has finished.") from problem
        # A disk that fails is not a damaged ledger: restoring an older copy would forget what has been spent.
        if kind in _DAMAGE:
            raise damaged(path) from problem
        raise LedgerError(
            f"'{path}' can't be read and written ({problem}): free some disk space, or choose a directory you may "
            "write to."
        ) from problem
    except OSError as problem:
        raise LedgerError(
            f"'{path}' can't be written ({problem.strerror}). Choose a directory you may write to."
        ) from problem
