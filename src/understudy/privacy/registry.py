"""Which ledger belongs to which population on this computer, so that nobody starts a second one by accident.

One small SQLite file, `populations.sqlite`, in the folder named by UNDERSTUDY_HOME (default ~/.understudy).
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from understudy.errors import LedgerError
from understudy.privacy.store import plain_errors


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


def claim(name: str, path: Path, identity: str) -> None:
    """Records that population `name` is accounted for in `path`; refuses if another ledger already is.

    Safe to call again for the same ledger, wherever its file has been moved to; a copy beside the original is
    refused, because each would spend the whole budget.
    """
    with _opened() as connection:
        found = connection.execute("SELECT path, identity FROM populations WHERE name = ?", (name,)).fetchone()
        if found is not None and (found[1] != identity or _is_copy(Path(found[0]), path)):
            raise _taken(name, found[0])
        if found is None or found[0] != str(path):  # a look at a ledger changes nothing
            connection.execute("INSERT OR REPLACE INTO populations VALUES (?, ?, ?)", (name, str(path), identity))


def check_free(name: str) -> None:
    """Refuses if population `name` has a ledger."""
    path = lookup(name)
    if path is not None:
        raise _taken(name, path)


def lookup(name: str) -> Path | None:
    """Where the ledger of population `name` was last seen, or None."""
    with _opened() as connection:
        found = connection.execute("SELECT path FROM populations WHERE name = ?", (name,)).fetchone()
    return Path(found[0]) if found else None


def populations() -> dict[str, Path]:
    """All registered populations and their ledgers."""
    with _opened() as connection:
        return {name: Path(path) for name, path in connection.execute("SELECT name, path FROM populations")}


def forget(name: str) -> None:
    """Removes a population, for example because its data were simulated. What it spent is forgotten here."""
    with _opened() as connection:
        connection.execute("DELETE FROM populations WHERE name = ?", (name,))


def _is_copy(registered: Path, path: Path) -> bool:
    return registered.exists() and not registered.samefile(path)


def _taken(name: str, path: Path | str) -> LedgerError:
    return LedgerError(
        f"The population '{name}' already has a ledger: '{path}'. A second one would forget what the "
        f"first has "
        "spent. Use that ledger; if this really is another population, rename it in the schema.",
        path=str(path),
    )


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
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.close()
