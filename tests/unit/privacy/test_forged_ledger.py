"""Ledgers by somebody who knows how the hash chain is made: it fits, and the ledger is refused all the same."""

import json
import sqlite3

import numpy as np
import pytest

from tests.releases import released
from tests.unit.privacy.conftest import gaussian_plan, make_schema
from understudy.errors import LedgerError
from understudy.privacy import registry
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.sqlite import Sqlite
from understudy.privacy.store import Store


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr("understudy.privacy.store.now", lambda: "2024-01-01T00:00:00+00:00")
    ledger = Ledger.open_for(make_schema(), tmp_path)
    grant = ledger.charge(gaussian_plan(), label="run", noise=NoiseSource.secure())
    released(grant, "mean", np.zeros((1, 1)))
    return tmp_path / "meters.ledger"


def forge(path, change):
    """Rewrites the file with other facts and rows, and a chain that fits them."""
    store = Store(Sqlite(path))
    facts, rows = dict(store.facts), [(row.kind, json.loads(json.dumps(row.body))) for row in store.rows()]
    change(facts, rows)
    path.unlink()
    with Store.create(Sqlite(path), facts).writing() as writer:
        for kind, body in rows:
            writer.append(kind, body)


def set_fact(key, value):
    return lambda facts, rows: facts.update({key: value})


def set_field(place, key, value):
    return lambda facts, rows: rows[place][1].update({key: value})


FORGED = {
    "a name that is a number": set_fact("name", 7),
    "no identity": lambda facts, rows: facts.pop("identity"),
    "a population in words": set_fact("population", "many"),
    "an epsilon below zero": set_fact("epsilon", -1.0),
    "half a run": set_fact("max_runs", 0.5),
    "an unknown composition": set_fact("composition", "wishful"),
    "a charge without a plan": lambda facts, rows: rows[0][1].pop("plan"),
    "a plan without entries": set_field(0, "plan", {}),
    "an unknown event": set_field(
        0,
        "plan",
        {"guarantee": {"epsilon": 1, "delta": 1e-7}, "entries": [{"label": "x", "event": {"type": "Magic"}}]},
    ),
    "a charge that gives back": set_field(0, "amount", -1.0),
    "an amount in words": set_field(0, "amount", "little"),
    "a run out of order": set_field(0, "run", 3),
    "a kind that nobody writes": lambda facts, rows: rows.append(("refund", {"run": 1})),
    "executions of a run that was not charged": set_field(1, "run", 2),
    "executions of another label": set_field(1, "label", "median"),
    "more executions than were charged": set_field(1, "total", 2),
    "executions before the charge": lambda facts, rows: rows.reverse(),
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_ledger_is_refused_that_has(kind, path):
    forge(path, FORGED[kind])
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(path)


def test_a_ledger_rewritten_without_a_change_is_the_negative_control(path):
    forge(path, lambda facts, rows: None)
    assert len(Ledger.open(path).entries()) == 1


STATEMENTS = {
    "a view without an end": "DROP TABLE facts; CREATE VIEW facts AS WITH RECURSIVE n(body) AS "
    "(VALUES ('{\"format\": 1}') UNION ALL SELECT body FROM n) SELECT body FROM n",
    "a table of its own": "CREATE TABLE other (x)",
    "a trigger that forgets": "CREATE TRIGGER more AFTER INSERT ON entries BEGIN SELECT 1; END",
    "no triggers": "DROP TRIGGER entries_stay",
    "a kind of raw bytes": "DROP TRIGGER entries_stay; UPDATE entries SET kind = X'00ff'",
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_file_is_refused_that_has(kind, path):
    connection = sqlite3.connect(path)
    connection.executescript(STATEMENTS[kind])
    connection.close()
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(path)


def test_bytes_that_are_no_text_in_the_rows_are_damage(path):
    data = path.read_bytes()
    path.write_bytes(data.replace(b"entries_kept", b"entries_\xff\xfe\xfd\xfc"))
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(path)


def test_a_ledger_of_other_people_is_refused_before_it_is_registered(path):
    forge(path, set_fact("name", "strangers"))
    with pytest.raises(LedgerError, match="strangers"):
        Ledger.open_for(make_schema(), path.parent)
    assert "strangers" not in registry.populations()


def test_a_look_at_a_ledger_leaves_the_registry_as_it_is(path, understudy_home):
    before = (understudy_home / "populations.sqlite").read_bytes()
    Ledger.open(path)
    assert (understudy_home / "populations.sqlite").read_bytes() == before
