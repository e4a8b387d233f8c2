"""Damaged ledgers, and every command that reads one.

Some damages are chained anew: every hash fits. That is what somebody leaves behind who knows how the chain is made,
and it lets the damage get past the first check and into every reader.
"""

import json
import sqlite3
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.case import Case, Contents
from tests.fuzz.commands import Command, buy_bounds, plan, synth
from tests.fuzz.edits import FEW, byte_edits, document_edits
from understudy.privacy import canonical
from understudy.privacy.store import chain_hash

LEDGER = "clinic.ledger"
COMPANIONS = tuple(f"{LEDGER}-{kind}" for kind in ("wal", "shm", "journal"))
READ: tuple[Command, ...] = (
    ("ledger", "show", LEDGER),
    ("ledger", "show", "schema.toml", "--json"),
    ("ledger", "check", LEDGER, "release"),
)
WRITE: tuple[Command, ...] = (
    *(synth("table.csv", "schema.toml"), buy_bounds("table.csv", "schema.toml")),
    *(plan("schema.toml"), ("ledger", "list")),
)
_STATEMENTS = (
    "DROP TABLE facts",
    "DROP TABLE entries",
    "DROP TRIGGER entries_stay",
    "DELETE FROM entries",
    "DELETE FROM facts",
    "DELETE FROM sqlite_sequence",
    "UPDATE sqlite_sequence SET seq = 9223372036854775807",
    "UPDATE entries SET sequence = -1",
    "UPDATE entries SET kind = X'00ff'",
    "UPDATE entries SET body = X'80'",
    "UPDATE entries SET body = CAST(X'ff' AS TEXT)",
    "UPDATE entries SET hash = 7",
    "UPDATE facts SET body = 17",
    "UPDATE facts SET body = 'null'",
    "INSERT INTO facts SELECT body FROM facts",
    "INSERT INTO entries SELECT sequence + 1, kind, body, hash FROM entries",
    "CREATE TABLE other (x); INSERT INTO other VALUES (zeroblob(5000))",
    "DROP TABLE facts; CREATE VIEW facts AS SELECT body FROM entries",
    "DROP TABLE facts; CREATE VIEW facts AS WITH RECURSIVE n(body) AS (VALUES (1) UNION ALL SELECT body FROM n) "
    "SELECT body FROM n",
    "ALTER TABLE entries RENAME COLUMN body TO text",
    "CREATE TRIGGER more AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
    "PRAGMA user_version = 7",
    "PRAGMA application_id = 99",
)


def ledger_cases(pristine: Contents) -> st.SearchStrategy[Case]:
    """Ledgers as a bad disk, a bad copy or a bad hand leaves them."""
    data = pristine[LEDGER]
    assert isinstance(data, bytes)

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        chained, read = draw(st.booleans()), draw(st.booleans())
        files: Contents = {LEDGER: _chained_anew(draw, data) if chained else _broken(draw, data)}
        if draw(st.integers(0, 9)) == 0:
            files[draw(st.sampled_from(COMPANIONS))] = draw(st.binary(max_size=64))
        arguments = draw(st.sampled_from(READ if read else WRITE))
        if chained and arguments[1] != "check":  # a release beside the ledger refuses every other chain at once
            files["release/certificate.json"] = None
        return Case(arguments=arguments, files=files, damaged=read and not chained)

    return cases()


def _broken(draw: st.DrawFn, data: bytes) -> bytes | None:
    """Broken bytes, no ledger at all, another database, or rows changed by hand."""
    damage = draw(st.sampled_from(("bytes", "bytes", "rows", "other")))
    if damage == "bytes":
        return byte_edits(draw, data)
    if damage == "rows":
        statement = draw(st.sampled_from(_STATEMENTS))
        return _edited(data, lambda connection: connection.executescript(statement))
    return draw(st.sampled_from((None, b"", b"SQLite format 3\x00", b"not a ledger", bytes(4096))))


def _chained_anew(draw: st.DrawFn, data: bytes) -> bytes:
    """A ledger with other facts and rows, and a chain that fits them."""
    facts, rows = _read(data)
    for _ in range(draw(FEW)):
        if draw(st.booleans()):
            facts = document_edits(draw, facts)
        else:
            place = draw(st.integers(0, len(rows) - 1))
            kind = draw(st.sampled_from((rows[place][0], rows[place][0], "charge", "executed", "resumed", "other")))
            rows = [*rows[:place], (kind, document_edits(draw, rows[place][1])), *rows[place + 1 :]]
    return _edited(data, lambda connection: _rewrite(connection, facts, rows))


@cache
def _read(data: bytes) -> tuple[Any, list[tuple[str, Any]]]:
    connection = _opened(data)
    facts = json.loads(connection.execute("SELECT body FROM facts").fetchone()[0])
    found = connection.execute("SELECT kind, body FROM entries ORDER BY sequence").fetchall()
    return facts, [(kind, json.loads(body)) for kind, body in found]


def _rewrite(connection: sqlite3.Connection, facts: Any, rows: list[tuple[str, Any]]) -> None:
    for statement in ("DELETE FROM facts", "DELETE FROM entries"):
        connection.execute(statement)
    body = json.dumps(facts)
    connection.execute("INSERT INTO facts VALUES (?)", (body,))
    try:
        previous = canonical.sha256("understudy ledger\n" + canonical.dumps(json.loads(body)))
        for number, (kind, row) in enumerate(rows, start=1):
            text = json.dumps(row)
            previous = chain_hash(previous, number, kind, text)
            connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (number, kind, text, previous))
    except ValueError:  # numbers and letters that can't be hashed; the chain ends here
        return
    connection.execute("UPDATE sqlite_sequence SET seq = ?", (len(rows),))


def _edited(data: bytes, edit: Callable[[sqlite3.Connection], object]) -> bytes:
    """The database after an edit by somebody who takes the triggers away first."""
    connection = _opened(data)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    try:
        edit(connection)
        for _, sql in triggers:
            connection.execute(sql)
    except sqlite3.Error:
        pass
    connection.commit()
    found = bytearray(connection.serialize())
    found[18:20] = data[18:20]
    return bytes(found)


def _opened(data: bytes) -> sqlite3.Connection:
    """The database in memory, where there is no write-ahead log for the header to speak of."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(data[:18] + b"\x01\x01" + data[20:])
    return connection
