"""Append-only, hash-chained rows in one SQLite file: what a ledger is written on.

Each change is one `BEGIN IMMEDIATE` transaction (one writer at a time, across processes) in write-ahead-log
mode with `synchronous=FULL`: after commit returns, neither a crash nor a power cut takes the row back.
A connection lives for one operation, so that no handle crosses a fork and no log file is left behind.
"""

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final
from urllib.parse import quote

from understudy.errors import LedgerError
from understudy.files import whole_file
from understudy.privacy import canonical

FORMAT = 1
_WAIT_SECONDS = 30.0
_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT)
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


@dataclass(frozen=True)
class Row:
    """One entry with its place in the chain; `text` is its body as it is stored."""

    sequence: int
    kind: str
    text: str
    hash: str
    body: dict[str, Any]


@final
class Store:
    """Rows that can be added and read, never changed. `path` None keeps them in memory."""

    def __init__(self, path: Path | None, connection: sqlite3.Connection | None = None) -> None:
        self.path = path
        self._memory = connection
        self._lock = threading.RLock()
        self._rows: list[Row] = []
        with self._connected() as opened:
            self.facts = self._read_facts(opened)
            if path is not None and not _is_sound(opened):
                raise _damaged(path)
            self._refresh(opened)

    @classmethod
    def create(cls, path: Path | None, facts: dict[str, Any]) -> "Store":
        """A new store; a file that is already there is never overwritten."""
        body = canonical.dumps({**facts, "format": FORMAT})
        if path is None:
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            _write_tables(connection, body)
            return cls(None, connection)
        with plain_errors(path):
            _create_file(path, body)
        return cls(path)

    @contextmanager
    def writing(self, *, thorough: bool = True) -> Iterator["Writer"]:
        """Exclusive use of the store; everything appended is kept if the block ends well, else nothing is.

        Args:
            thorough: compare all rows with those seen before, not just the last: for charges, not for the
                many small notes of a long training.
        """
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._refresh(connection, thorough=thorough)
                yield Writer(connection, self.rows_cached(), self.genesis)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self._refresh(connection, thorough=False)

    def rows(self) -> tuple[Row, ...]:
        """All rows, each checked against the hash chain."""
        with self._connected() as connection:
            self._refresh(connection)
        return self.rows_cached()

    def rows_cached(self) -> tuple[Row, ...]:
        """The rows seen at the last look."""
        return tuple(self._rows)

    def head(self) -> str:
        """Hash over everything written so far."""
        rows = self.rows()
        return rows[-1].hash if rows else self.genesis

    @property
    def genesis(self) -> str:
        """Hash of the facts the chain starts from."""
        return canonical.sha256("understudy ledger\n" + canonical.dumps(self.facts))

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._memory is not None:
                yield self._memory
                return
            assert self.path is not None
            with plain_errors(self.path):
                connection = _connect(self.path, "rw")
                try:
                    yield connection
                finally:
                    connection.close()

    def _read_facts(self, connection: sqlite3.Connection) -> dict[str, Any]:
        found = connection.execute("SELECT body FROM facts LIMIT 2").fetchall()
        facts = _object(found[0][0]) if len(found) == 1 else None
        if facts is None:
            raise _damaged(self.path)
        if facts.get("format") != FORMAT:
            raise LedgerError(
                f"This ledger has format {facts.get('format')}, expected {FORMAT}: use the version that wrote it."
            )
        return facts

    def _refresh(self, connection: sqlite3.Connection, *, thorough: bool = True) -> None:
        """Checks that the rows seen before are still there, and that new ones continue their chain.

        All in one transaction: between two looks another process may add some.
        """
        if not connection.in_transaction:
            connection.execute("BEGIN")
            try:
                self._refresh(connection, thorough=thorough)
            finally:
                connection.execute("ROLLBACK")  # nothing was written
            return
        if canonical.dumps(self._read_facts(connection)) != canonical.dumps(self.facts):
            raise _damaged(self.path)
        start = 0 if thorough else max(0, len(self._rows) - 1)
        query = "SELECT sequence, kind, body, hash FROM entries WHERE sequence > ? ORDER BY sequence"
        found = connection.execute(query, (start,)).fetchall()
        written = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
        known = [(row.sequence, row.kind, row.text, row.hash) for row in self._rows[start:]]
        # SQLite remembers the last number it gave out, so rows deleted from the end are missed too.
        if found[: len(known)] != known or start + len(found) != (written[0] if written else 0):
            raise _damaged(self.path)
        previous = self._rows[-1].hash if self._rows else self.genesis
        for sequence, kind, text, digest in found[len(known) :]:
            body, number = _object(text) if isinstance(kind, str) else None, len(self._rows) + 1
            if body is None or sequence != number or digest != chain_hash(previous, sequence, kind, text):
                raise _damaged(self.path)
            self._rows.append(Row(sequence, kind, text, digest, body))
            previous = digest


@dataclass(frozen=True)
class Writer:
    """The open transaction of `Store.writing`, and the rows that were there before."""

    connection: sqlite3.Connection
    rows: tuple[Row, ...]
    genesis: str

    def append(self, kind: str, body: dict[str, Any]) -> str:
        """Adds one row with the time of day, for people who read it, and returns the new head of the chain."""
        query = "SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1"
        last, previous = self.connection.execute(query).fetchone() or (0, self.genesis)
        text = canonical.dumps({**body, "recorded_at": now()})
        digest = chain_hash(previous, last + 1, kind, text)
        self.connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (last + 1, kind, text, digest))
        return digest


def now() -> str:
    """The time of day; nothing is computed from it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def chain_hash(previous: str, sequence: int, kind: str, body: str) -> str:
    """Hash of one row and, through `previous`, of all rows before it."""
    return canonical.sha256(canonical.dumps([previous, sequence, kind, body]))


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
            raise _damaged(path) from problem
        raise LedgerError(
            f"'{path}' can't be read and written ({problem}): free some disk space, or choose a directory you may "
            "write to."
        ) from problem
    except OSError as problem:
        raise LedgerError(
            f"'{path}' can't be written ({problem.strerror}). Choose a directory you may write to."
        ) from problem


def _create_file(path: Path, body: str) -> None:
    """Builds the file beside its place and links it there: it appears whole or not at all."""
    try:
        with whole_file(path, replace=False) as draft:
            connection = _connect(draft, "rwc")
            try:
                _write_tables(connection, body)
                connection.execute("PRAGMA journal_mode=WAL")  # last: what is in a log would not come along
            finally:
                connection.close()
    except FileExistsError:
        raise LedgerError(f"'{path}' exists already: open it instead of creating it.") from None


def _write_tables(connection: sqlite3.Connection, body: str) -> None:
    connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}")
    connection.execute("INSERT INTO facts VALUES (?)", (body,))
    connection.execute("COMMIT")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_WAIT_SECONDS)
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def _is_sound(connection: sqlite3.Connection) -> bool:
    """Whether SQLite finds its file in order, with our tables in it and nothing that only looks like them."""
    found = connection.execute("SELECT type, name FROM sqlite_master").fetchall()
    made = {(kind.lower(), name) for kind, name in re.findall(r"CREATE (TABLE|TRIGGER) (\w+)", _TABLES)}
    ours = {*made, ("table", "sqlite_sequence")}
    return set(found) == ours and connection.execute("PRAGMA quick_check").fetchone() == ("ok",)


def _object(text: Any) -> dict[str, Any] | None:
    try:
        body = canonical.loads(text)
    except (TypeError, ValueError):
        return None
    return body if isinstance(body, dict) else None


def _damaged(path: Path | None) -> LedgerError:
    return LedgerError(
        f"The ledger '{path or 'in memory'}' is damaged: a row was changed, or the file is no ledger. "
        "Restore the last good copy; starting over would forget what has been spent."
    )
