"""Which ledger belongs to which population on this computer, and the newest row it has shown of each.

One small SQLite file, `populations.sqlite`, in the folder named by UNDERSTUDY_HOME (default ~/.understudy).

Order of durable writes: first the ledger's rows, then the registry. A process killed in between leaves a ledger that is
ahead of the registry, which contradicts nothing; a charge is granted only when both are on the disk.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from understudy.errors import LedgerError
from understudy.privacy.charges import paid_charges, require_reason
from understudy.privacy.sqlite import plain_errors
from understudy.privacy.store import Row, Store, Writer


def home() -> Path:
    """The folder for keys and the registry, made on first use and readable by its owner only."""
    folder = Path(os.environ.get("UNDERSTUDY_HOME") or Path.home() / ".understudy").expanduser()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise LedgerError(
            f"'{folder}' can't be made ({problem.strerror}): set UNDERSTUDY_HOME to a folder you may write to."
        ) from problem
    return folder


@contextmanager
def claiming(name: str, place: Path | str | None, identity: str, *, moved: bool = False) -> Iterator[None]:
    """Records where the ledger of a population is, if the block ends well; refuses another one, or a second copy.

    A file that was moved is recorded at its new place. Two copies would each spend the whole budget.

    Args:
        moved: whether the ledger itself records that it left the place that is known here, which is closed since.
    """
    with _opened() as connection:
        found = connection.execute("SELECT path, identity FROM populations WHERE name = ?", (name,)).fetchone()
        if found is not None:
            registered = _place_of(found[0])
            is_copy = not moved and not _is_same(registered, place)
            if found[1] != identity or is_copy:
                raise LedgerError(
                    f"The population '{name}' already has a ledger: '{registered}'. A second one would forget what the "
                    "first has spent. Use that ledger; if this really is another population, rename it in the schema.",
                    path=str(registered),
                )
        yield
        if found is None or found[0] != str(place):  # a look at a ledger changes nothing
            connection.execute("INSERT OR REPLACE INTO populations VALUES (?, ?, ?)", (name, str(place), identity))


def claim(name: str, place: Path | str | None, identity: str, *, moved: bool = False) -> None:
    """Records where the ledger of a population is, as `claiming` does."""
    with claiming(name, place, identity, moved=moved):
        pass


def _is_same(registered: Path | str, place: Path | str | None) -> bool:
    """Whether a ledger lies where it was registered, or its file is there no more."""
    if isinstance(registered, Path):
        return not registered.exists() or (isinstance(place, Path) and place.exists() and registered.samefile(place))
    return registered == place


def _place_of(text: str) -> Path | str:
    """The place that a text names: a URL as it is, a file by its whole path."""
    return text if "://" in text else Path(text).absolute()


def is_there(place: Path | str) -> bool:
    """Whether a registered ledger may be asked: its file exists, or it is a database, which says so itself."""
    return isinstance(place, str) or place.exists()


def lookup(name: str) -> Path | str | None:
    """Where the ledger of population `name` was last seen, or None."""
    return populations().get(name)


def populations() -> dict[str, Path | str]:
    """All registered populations and their ledgers."""
    with _opened() as connection:
        return {name: _place_of(place) for name, place in connection.execute("SELECT name, path FROM populations")}


class Seen(NamedTuple):
    """A row that was the newest of a ledger when this computer wrote it, and what was spent by then."""

    sequence: int  # 0 is a ledger without rows
    head: str  # the row's hash; that of the declared facts if there is none
    runs: int  # that had cost something
    amount: float  # what they had cost, in the currency of the ledger's composition


def _heads(identity: str, order: str = "DESC LIMIT 1") -> tuple[Seen, ...]:
    """Return what was remembered of the ledger with this identity: the newest row unless all are wanted."""
    query = f"SELECT sequence, head, runs, amount FROM heads WHERE identity = ? ORDER BY sequence {order}"
    with _opened() as connection:
        return tuple(Seen(*row) for row in connection.execute(query, (identity,)))


@contextmanager
def _opened() -> Iterator[sqlite3.Connection]:
    path = home() / "populations.sqlite"
    with plain_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=30.0)
        try:
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS populations (name TEXT PRIMARY KEY, path TEXT, identity TEXT)"
            )
            connection.execute(
                "CREATE TABLE IF NOT EXISTS heads (identity TEXT, sequence INTEGER, head TEXT, runs INTEGER, "
                "amount REAL, PRIMARY KEY (identity, sequence))"
            )
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()


@contextmanager
def writing(store: Store, identity: str, *, thorough: bool = True) -> Iterator[Writer]:
    """Exclusive use of the newest copy of a ledger; the registry learns of new rows when they are on the disk."""
    with store.writing(thorough=thorough) as writer:
        if store.place is not None:
            _require_newest(store, writer.rows, _heads(identity))
        yield writer
    remember(store, identity)


def check_newest(store: Store, identity: str) -> None:
    """Refuses an older copy than this computer has seen."""
    last = _heads(identity)  # before the rows: another process may add one meanwhile
    _require_newest(store, store.rows(), last)


def remember(store: Store, identity: str, *, instead: bool = False) -> None:
    """Records the newest row of a ledger, after the ledger itself has it on the disk; one in memory is not recorded.

    Args:
        instead: forget all other rows, because a person decided to go on with an older copy.
    """
    if store.place is None:
        return
    rows = store.rows_cached()
    paid = paid_charges(rows)
    amount = sum(float(body["amount"]) for body in paid)
    row = Seen(len(rows), store.head_cached(), len(paid), amount)
    with _opened() as connection:
        if instead:
            connection.execute("DELETE FROM heads WHERE identity = ?", (identity,))
        newer = "WHERE NOT EXISTS (SELECT 1 FROM heads WHERE identity = ? AND sequence >= ?)"
        connection.execute(f"INSERT INTO heads SELECT ?, ?, ?, ?, ? {newer}", (identity, *row, identity, row.sequence))


def adopt(store: Store, identity: str, reason: str, releases: Mapping[str, float], *, moved: bool) -> None:
    """Goes on with an older copy, on the record; what the newer one had spent is counted as spent.

    Args:
        releases: what releases cost that the ledger does not know, by their heads.
        moved: whether the ledger is at another address than before, which needs no older copy.
    """
    require_reason(reason)
    with store.writing() as writer:
        remembered = _heads(identity, "")
        own = Seen(len(writer.rows), store.head_cached(), 0, 0.0)
        shared = [row for row in remembered if _knows(writer.rows, store.genesis, row)]
        lost, common = remembered[-1] if remembered else own, shared[-1] if shared else own
        unseen = {head: amount for head, amount in releases.items() if head not in {row.head for row in remembered}}
        if (not remembered or lost in shared) and not releases and not moved:
            raise LedgerError("This ledger is the newest that this computer has seen: there is nothing to adopt.")
        body = {
            "forgotten_sequence": lost.sequence,
            "forgotten_head": lost.head,
            "releases": sorted(releases),
            "runs": lost.runs - common.runs + len(unseen),
            "amount": (lost.amount - common.amount if lost.amount > common.amount else 0.0) + sum(unseen.values()),
            "reason": reason.strip(),
        }
        writer.append("adopted", body)
    remember(store, identity, instead=True)


def _knows(rows: Sequence[Row], genesis: str, row: Seen) -> bool:
    if row.sequence == 0:
        return genesis == row.head
    return row.sequence <= len(rows) and rows[row.sequence - 1].hash == row.head


def _require_newest(store: Store, rows: Sequence[Row], last: Sequence[Seen]) -> None:
    """Refuses a ledger that lacks the newest row that this computer has seen of it."""
    if last and not _knows(rows, store.genesis, last[0]):
        raise older_copy(store, "this computer")


def older_copy(store: Store, witness: str) -> LedgerError:
    """The error for a ledger that has forgotten a charge, with its remedy."""
    return LedgerError(
        f"The ledger '{store.place}' lacks the last charge that {witness} has recorded for it: it was replaced by an "
        "older copy, which lacks the last charges. Put the newest copy back. If it is lost, "
        f"`understudy ledger adopt {store.place} --reason TEXT` goes on with this copy: what was spent stays spent, "
        "runs charged before can't be resumed, and every later certificate says so.",
        path=str(store.place),
    )
