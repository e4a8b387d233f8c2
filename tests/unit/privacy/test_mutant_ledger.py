"""How a ledger is written: on the disk before it returns, by one writer at a time, and only forwards."""

from pathlib import Path

import pytest

from understudy.errors import BudgetExceeded, LedgerError
from understudy.privacy import sqlite, store
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

EXTRA = 3  # as SQLite numbers its settings of `synchronous`


def test_a_row_is_on_the_disk_before_the_commit_returns(tmp_path: Path) -> None:
    """A power cut can't be staged here, so the setting that guards against it is looked at."""
    path = tmp_path / "rows.ledger"
    store.Store.create(sqlite.Sqlite(path), {"name": "meters"})
    connection = sqlite.connect(path, "rw")
    try:
        assert connection.execute("PRAGMA synchronous").fetchone() == (EXTRA,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    finally:
        connection.close()


def test_a_ledger_without_its_last_row_is_refused_where_it_was_never_seen(tmp_path: Path) -> None:
    """The registry is asked later: on another computer, SQLite's own count of rows has to do."""
    path = tmp_path / "rows.ledger"
    with store.Store.create(sqlite.Sqlite(path), {"name": "meters"}).writing() as writer:
        for run in (1, 2):
            writer.append("charge", {"run": run})
    connection = sqlite.connect(path, "rw")
    (trigger,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_kept'").fetchone()
    for statement in ("DROP TRIGGER entries_kept", "DELETE FROM entries WHERE sequence = 2", trigger):
        connection.execute(statement)
    connection.close()
    with pytest.raises(LedgerError, match="damaged"):
        store.Store(sqlite.Sqlite(path))


def test_a_second_writer_waits_before_it_has_read_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two processes could both find room for the same budget."""
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.1)
    path = tmp_path / "rows.ledger"
    first = store.Store.create(sqlite.Sqlite(path), {"name": "meters"})
    second = store.Store(sqlite.Sqlite(path))
    entered = []
    with first.writing(), pytest.raises(LedgerError, match="in use"), second.writing():
        entered.append("second")
    assert not entered


def test_executions_of_many_grants_add_up() -> None:
    guarantee = Guarantee(100.0, 1e-6)
    plan = SpendingPlan((PlanEntry("sgd", SubsampledGaussian(0.01, 1.0, 100)),), guarantee)
    ledger = Ledger.in_memory(guarantee)
    ledger.charge(plan, label="run", noise=NoiseSource.secure()).begin_block("sgd", 30)
    for total in (60, 90):
        ledger.resume(1, noise=NoiseSource.secure()).begin_block("sgd", 30)
        assert ledger.entries()[0].executed == {"sgd": total}
    with pytest.raises(BudgetExceeded):
        ledger.resume(1, noise=NoiseSource.secure()).begin_block("sgd", 11)
