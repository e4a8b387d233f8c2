"""Append-only, hash-chained rows: what a ledger is written on, whichever database keeps them.

`Storage` is all that a database has to offer; `privacy.sqlite` is one file, `privacy.postgresql` a server that a team
shares. Each change is one transaction with one writer at a time, across processes. After it returns, neither a crash
nor a power cut takes the row back. A connection lives for one operation, so that no handle crosses a fork.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, final

from understudy.errors import LedgerError
from understudy.privacy import canonical

FORMAT = 1
WAIT_SECONDS = 30.0  # for another writer
Stored = tuple[int, str, str, str]  # sequence, kind, body, hash


@dataclass(frozen=True)
class Queries:
    """How one kind of database is asked; every query gets what names the ledger first."""

    facts: str  # what was declared; exactly one text unless it is damaged
    rows: str  # with numbers larger than a parameter, in their order
    written: str  # the last number ever given out, so that rows missing at the end are missed
    insert: str
    structure: str  # names of the structures that are there and at work; all that is expected where nothing is damaged
    expected: frozenset[str]


@dataclass(frozen=True)
class Session:
    """One transaction on one ledger: it sees one moment."""

    connection: Any
    queries: Queries
    ledger: tuple[str, ...] = ()  # its name, in a database that has several

    def facts(self) -> list[str]:
        return [body for (body,) in self.connection.execute(self.queries.facts, self.ledger)]

    def rows(self, after: int) -> list[Stored]:
        found: list[Stored] = self.connection.execute(self.queries.rows, (*self.ledger, after)).fetchall()
        return found

    def written(self) -> int:
        (number,) = self.connection.execute(self.queries.written, self.ledger).fetchone() or (0,)
        return int(number)

    def is_sound(self) -> bool:
        found = self.connection.execute(self.queries.structure)
        return {name for (name,) in found} == self.queries.expected

    def insert(self, row: Stored) -> None:
        self.connection.execute(self.queries.insert, (*self.ledger, *row))


class Storage(Protocol):
    """Where one ledger lies."""

    @property
    def kind(self) -> str: ...  # "file", "postgresql" or "in-memory", as certificates say

    @property
    def place(self) -> Path | str | None: ...  # a file, or a URL without a password; None in memory

    def exists(self) -> bool: ...

    def require_free(self) -> None: ...  # refuses, before anything is written, where `create` would be refused

    def create(self, facts: str, rows: Sequence[Stored] = ()) -> None: ...  # all of it or nothing

    def session(self, *, write: bool) -> AbstractContextManager[Session]: ...  # kept if the block ends well


@dataclass(frozen=True)
class Row:
    """One entry with its place in the chain; `text` is its body as it is stored."""

    sequence: int
    kind: str
    text: str
    hash: str
    body: dict[str, Any]

    @property
    def stored(self) -> Stored:
        """The row as a database keeps it."""
        return self.sequence, self.kind, self.text, self.hash


@final
class Store:
    """Rows that can be added and read, never changed."""

    def __init__(self, storage: Storage) -> None:
        self.storage, self.place, self.kind = storage, storage.place, storage.kind
        self._lock = threading.RLock()
        self._rows: list[Row] = []
        with storage.session(write=False) as session:
            self.facts = self._read_facts(session)
            if not session.is_sound():
                raise damaged(self.place)
            self._refresh(session)

    @classmethod
    def create(cls, storage: Storage, facts: dict[str, Any]) -> "Store":
        """A new store; one that is already there is never overwritten."""
        storage.create(canonical.dumps({**facts, "format": FORMAT}))
        return cls(storage)

    @contextmanager
    def writing(self, *, thorough: bool = True) -> Iterator["Writer"]:
        """Exclusive use of the store; everything appended is kept if the block ends well, else nothing is.

        Args:
            thorough: compare all rows with those seen before, not just the last: for charges, not for the
                many small notes of a long training.
        """
        with self._lock:
            with self.storage.session(write=True) as session:
                self._refresh(session, thorough=thorough)
                writer = Writer(session, self.rows_cached(), self.genesis)
                yield writer
            self._rows += writer.appended

    def rows(self) -> tuple[Row, ...]:
        """All rows, each checked against the hash chain."""
        with self._lock, self.storage.session(write=False) as session:
            self._refresh(session)
            return self.rows_cached()

    def rows_cached(self) -> tuple[Row, ...]:
        """The rows seen at the last look."""
        return tuple(self._rows)

    def head(self) -> str:
        """Hash over everything written so far."""
        self.rows()
        return self.head_cached()

    def head_cached(self) -> str:
        """Hash over everything seen at the last look."""
        return self._rows[-1].hash if self._rows else self.genesis

    @property
    def genesis(self) -> str:
        """Hash of the facts the chain starts from."""
        return canonical.sha256("understudy ledger\n" + canonical.dumps(self.facts))

    def _read_facts(self, session: Session) -> dict[str, Any]:
        found = session.facts()
        facts = _object(found[0]) if len(found) == 1 else None
        if facts is None:
            raise damaged(self.place)
        if facts.get("format") != FORMAT:
            raise LedgerError(
                f"This ledger has format {facts.get('format')}, expected {FORMAT}: use the version that wrote it."
            )
        return facts

    def _refresh(self, session: Session, *, thorough: bool = True) -> None:
        """Checks that the rows seen before are still there, and that new ones continue their chain."""
        if canonical.dumps(self._read_facts(session)) != canonical.dumps(self.facts):
            raise damaged(self.place)
        start = 0 if thorough else max(0, len(self._rows) - 1)
        found, known = session.rows(start), [row.stored for row in self._rows[start:]]
        if found[: len(known)] != known or start + len(found) != session.written():
            raise damaged(self.place)
        previous = self.head_cached()
        for sequence, kind, text, digest in found[len(known) :]:
            body, number = _object(text) if isinstance(kind, str) else None, len(self._rows) + 1
            if body is None or sequence != number or digest != chain_hash(previous, sequence, kind, text):
                raise damaged(self.place)
            self._rows.append(Row(sequence, kind, text, digest, body))
            previous = digest


@dataclass
class Writer:
    """The open transaction of `Store.writing`, and the rows that were there before."""

    session: Session
    rows: tuple[Row, ...]
    genesis: str
    appended: list[Row] = field(default_factory=list)

    def append(self, kind: str, body: dict[str, Any]) -> str:
        """Adds one row with the time of day, for people who read it, and returns the new head of the chain."""
        row = chained((*self.rows, *self.appended), kind, body, self.genesis)
        self.session.insert(row.stored)
        self.appended.append(row)
        return row.hash


def chained(rows: Sequence[Row], kind: str, body: dict[str, Any], genesis: str = "") -> Row:
    """Returns the row that continues these, with the time of day."""
    sequence, text = len(rows) + 1, canonical.dumps({**body, "recorded_at": now()})
    digest = chain_hash(rows[-1].hash if rows else genesis, sequence, kind, text)
    return Row(sequence, kind, text, digest, canonical.loads(text))


def now() -> str:
    """The time of day; nothing is computed from it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def chain_hash(previous: str, sequence: int, kind: str, body: str) -> str:
    """Hash of one row and, through `previous`, of all rows before it."""
    return canonical.sha256(canonical.dumps([previous, sequence, kind, body]))


def _object(text: Any) -> dict[str, Any] | None:
    try:
        body = canonical.loads(text)
    except (TypeError, ValueError):
        return None
    return body if isinstance(body, dict) else None


def damaged(place: Path | str | None) -> LedgerError:
    """The error for rows that are not as they were written."""
    return LedgerError(
        f"The ledger '{place or 'in memory'}' is damaged: a row was changed, or the file is no ledger. "
        "Restore the last good copy; starting over would forget what has been spent."
    )
