"""Ledgers in a database that a team shares: the same account as in a file, for several computers and roles."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.postgresql import Server
from tests.unit.privacy.conftest import gaussian_plan, make_schema
from understudy.errors import BudgetExceeded, InputError, LedgerError
from understudy.privacy import postgresql as shared
from understudy.privacy import registry
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import PureDP
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

NOISE = NoiseSource.secure()
FACTS = {"unit_sentence": "One household.", "guarantee": Guarantee(2.0, 1e-6), "max_runs": 2, "population": 10_000}
RACERS = 16


@pytest.fixture
def database(postgresql: Server) -> str:
    return postgresql.database("ledgers")


@pytest.fixture
def anothers_computer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "another-home"))


def charge(ledger: Ledger, label: str = "run") -> None:
    ledger.charge(gaussian_plan(5.4), label=label, noise=NOISE)


def test_a_charge_on_one_computer_is_spent_on_another(database: str, anothers_computer: Callable[[], None]) -> None:
    first = Ledger.create(database, name="meters", **FACTS)
    charge(first)
    anothers_computer()
    second = Ledger.open(f"{database}?population=meters")
    assert [entry.label for entry in second.entries()] == ["run"]
    charge(second)
    with pytest.raises(BudgetExceeded):
        charge(first)
    assert first.head() == second.head()
    assert len(first.entries()) == 2


def test_a_receipt_names_the_kind_of_ledger(database: str) -> None:
    ledger = Ledger.create(database, name="meters", **FACTS)
    assert ledger.charge(gaussian_plan(), label="run", noise=NOISE).receipt.ledger_kind == "postgresql"


def test_populations_share_a_database_and_nothing_else(database: str) -> None:
    one, other = (Ledger.create(database, name=name, **FACTS) for name in ("meters", "clinic"))
    charge(one)
    assert (len(one.entries()), len(other.entries())) == (1, 0)
    with pytest.raises(InputError, match="the database has 'clinic', 'meters'"):
        Ledger.open(database)


def test_the_only_population_needs_no_name(database: str) -> None:
    Ledger.create(database, name="meters", **FACTS)
    assert Ledger.open(database).name == "meters"


def test_a_second_ledger_of_a_population_is_refused(database: str, anothers_computer: Callable[[], None]) -> None:
    Ledger.create(database, name="meters", **FACTS)
    anothers_computer()
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(database, name="meters", **FACTS)


def test_no_password_is_kept_or_shown(postgresql: Server, database: str) -> None:
    secret = "correct-horse"  # pragma: allowlist secret
    url = database.replace("owner@", f"owner:{secret}@") + f"?sslpassword={secret}&application_name=x"
    ledger = Ledger.create(url, name="meters", **FACTS)
    with pytest.raises(LedgerError) as caught:
        Ledger.open(url + "&population=nobody")
    shown_before = repr(ledger)
    postgresql.sql("DROP SCHEMA understudy CASCADE", database="ledgers")
    with pytest.raises(LedgerError) as gone:
        ledger.entries()
    for shown in (str(ledger.path), str(registry.populations()), str(caught.value), str(gone.value), shown_before):
        assert secret not in shown
    assert "application_name=x" in str(ledger.path)


# --- roles -------------------------------------------------------------------------------------------------


@pytest.fixture
def team(postgresql: Server, database: str) -> Iterator[str]:
    """A database with a ledger, a role that reads and a role that charges; their names."""
    for role in ("reader", "charger"):
        postgresql.sql(f"CREATE ROLE {role} LOGIN")
    Ledger.create(database, name="meters", **FACTS)
    shared.prepare(database, [("reader", "reader"), ("charger", "charger")])
    yield database
    for role in ("reader", "charger"):
        postgresql.sql(f"DROP OWNED BY {role}", database="ledgers")
        postgresql.sql(f"DROP ROLE {role}")


def role(database: str, name: str) -> str:
    return database.replace("owner@", f"{name}@")


def opened_by(name: str, database: str, home: Callable[[], None]) -> Ledger:
    home()
    return Ledger.open(f"{role(database, name)}?population=meters")


def test_a_reader_reads_and_cannot_charge(team: str, anothers_computer: Callable[[], None]) -> None:
    ledger = opened_by("reader", team, anothers_computer)
    assert ledger.remaining().runs == 2
    with pytest.raises(LedgerError, match="may not do that"):
        charge(ledger)
    assert ledger.entries() == ()


def test_a_charger_charges_and_can_neither_raise_nor_make_a_ledger(
    team: str, anothers_computer: Callable[[], None]
) -> None:
    ledger = opened_by("charger", team, anothers_computer)
    charge(ledger)
    with pytest.raises(LedgerError, match="may not do that"):
        ledger.raise_budget(epsilon=9.0, reason="more")
    with pytest.raises(LedgerError, match="may not do that"):
        Ledger.create(role(team, "charger"), name="others", **FACTS)
    assert (len(ledger.entries()), ledger.guarantee.epsilon) == (1, 2.0)


FORBIDDEN = (
    "UPDATE understudy.entries SET body = '{}'",
    "DELETE FROM understudy.entries",
    "TRUNCATE understudy.entries",
    "UPDATE understudy.ledgers SET written = 0",
    "UPDATE understudy.ledgers SET facts = '{}'",
    "DELETE FROM understudy.ledgers",
    "TRUNCATE understudy.ledgers CASCADE",
    "INSERT INTO understudy.entries VALUES ('meters', 1, 'charge', '{}', '')",
    "INSERT INTO understudy.entries VALUES ('meters', 3, 'charge', '{}', '')",
)


@pytest.mark.parametrize("who", ["charger", "owner"])
def test_no_role_changes_deletes_or_renumbers(who: str, team: str, postgresql: Server) -> None:
    """Not by mistake: an owner who drops the triggers first is found out by the hash chain and by the registry."""
    import psycopg

    ledger = Ledger.open(team)
    charge(ledger)
    for statement in FORBIDDEN:
        with pytest.raises((psycopg.errors.RaiseException, psycopg.errors.InsufficientPrivilege)):
            postgresql.sql(statement, role=who, database="ledgers")
    assert len(ledger.entries()) == 1


def test_a_charger_cannot_write_what_is_for_the_owner(team: str, postgresql: Server) -> None:
    import psycopg

    for kind in ("raised", "adopted", "moved", "arrived"):
        row = f"INSERT INTO understudy.entries VALUES ('meters', 1, '{kind}', '{{}}', '')"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            postgresql.sql(row, role="charger", database="ledgers")
        postgresql.sql("BEGIN", row, "ROLLBACK", database="ledgers")


DAMAGES = (
    "UPDATE understudy.entries SET body = replace(body, '\"amount\":0.', '\"amount\":0.0')",
    "DELETE FROM understudy.entries",
    "UPDATE understudy.ledgers SET facts = replace(facts, '\"epsilon\":2.0', '\"epsilon\":9.0')",
)


@pytest.mark.parametrize("statement", DAMAGES)
def test_damage_by_a_superuser_is_noticed(
    statement: str, database: str, postgresql: Server, anothers_computer: Callable[[], None]
) -> None:
    charge(Ledger.create(database, name="meters", **FACTS))
    postgresql.sql("SET session_replication_role = replica", statement, database="ledgers")
    anothers_computer()
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(database)


def test_tables_without_their_triggers_are_refused(database: str, postgresql: Server) -> None:
    Ledger.create(database, name="meters", **FACTS)
    postgresql.sql("ALTER TABLE understudy.entries DISABLE TRIGGER entries_kept", database="ledgers")
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(database)


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_forgets_when_its_power_fails_is_refused(setting: str, database: str, postgresql: Server) -> None:
    ledger = Ledger.create(database, name="meters", **FACTS)
    postgresql.sql(f"ALTER SYSTEM SET {setting} = off", "SELECT pg_reload_conf(), pg_sleep(0.3)")
    try:
        with pytest.raises(LedgerError, match="fsync = on"):
            charge(ledger)
    finally:
        postgresql.sql(f"ALTER SYSTEM RESET {setting}", "SELECT pg_reload_conf(), pg_sleep(0.3)")
    charge(ledger)


def test_a_commit_waits_for_the_disk_whatever_the_database_says(database: str, postgresql: Server) -> None:
    postgresql.sql("ALTER DATABASE ledgers SET synchronous_commit = off")
    with shared._connected(database) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


# --- versions ----------------------------------------------------------------------------------------------


def test_tables_of_another_version_are_refused_and_older_ones_migrated(database: str, postgresql: Server) -> None:
    ledger = Ledger.create(database, name="meters", **FACTS)
    postgresql.sql("UPDATE understudy.version SET number = 9", database="ledgers")
    with pytest.raises(LedgerError, match=r"version 9, expected 1\. Use the version"):
        charge(ledger)
    with pytest.raises(LedgerError, match="version 9"):
        shared.prepare(database)
    postgresql.sql("DROP SCHEMA understudy CASCADE", "CREATE SCHEMA understudy", database="ledgers")
    with pytest.raises(LedgerError, match=r"version 0, expected 1\. Run `understudy ledger prepare"):
        charge(ledger)
    assert shared.prepare(database) == 1
    with pytest.raises(LedgerError, match="There is no ledger"):
        Ledger.open(f"{database}?population=meters")


def test_a_migration_is_applied_once_and_keeps_every_row(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(database, name="meters", **FACTS)
    charge(ledger)
    later = "ALTER TABLE understudy.ledgers ADD COLUMN note TEXT"  # twice would be an error
    monkeypatch.setattr(shared, "_MIGRATIONS", (*shared._MIGRATIONS, later))
    with pytest.raises(LedgerError, match="version 1, expected 2"):
        charge(ledger)
    assert shared.prepare(database) == shared.prepare(database) == 2
    charge(ledger)
    assert len(ledger.entries()) == 2


# --- moving ------------------------------------------------------------------------------------------------


def test_a_moved_ledger_keeps_its_chain_and_its_file_is_closed(tmp_path: Path, database: str) -> None:
    old = Ledger.open_for(make_schema(), tmp_path)
    charge(old)
    head = old.head()
    moved = Ledger.move(tmp_path / "meters.ledger", database)
    assert moved.knows(head)
    assert moved.remaining().runs == 1
    for attempt in (lambda: charge(old), lambda: Ledger.open(tmp_path / "meters.ledger")):
        with pytest.raises(LedgerError, match="was moved to"):
            attempt()
    found = Ledger.open_for(make_schema(), tmp_path)
    assert found.path == moved.path
    charge(found)
    with pytest.raises(BudgetExceeded):
        charge(moved)


def test_a_moved_ledger_is_found_by_a_computer_that_knew_the_file(
    tmp_path: Path, database: str, anothers_computer: Callable[[], None], understudy_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    Ledger.open_for(make_schema(), tmp_path)
    anothers_computer()
    Ledger.open_for(make_schema(), tmp_path)
    Ledger.move(tmp_path / "meters.ledger", database)
    monkeypatch.setenv("UNDERSTUDY_HOME", str(understudy_home))
    with pytest.raises(LedgerError, match="was moved to"):
        Ledger.open_for(make_schema(), tmp_path)
    shown = Ledger.open(database)
    assert Ledger.open_for(make_schema(), tmp_path).path == shown.path


def test_a_move_that_is_cut_short_leaves_nothing_to_charge_and_is_completed(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Ledger.open_for(make_schema(), tmp_path)
    charge(old)
    with monkeypatch.context() as broken:
        broken.setattr(shared.Postgres, "create", lambda *_: (_ for _ in ()).throw(LedgerError("lost")))
        with pytest.raises(LedgerError, match="lost"):
            Ledger.move(tmp_path / "meters.ledger", database)
    with pytest.raises(LedgerError, match="completed by the same"):
        Ledger.open_for(make_schema(), tmp_path)
    assert len(Ledger.move(tmp_path / "meters.ledger", database).entries()) == 1


def test_a_move_that_would_be_refused_closes_nothing(tmp_path: Path, database: str, postgresql: Server) -> None:
    old = Ledger.open_for(make_schema(), tmp_path)
    gone = database.replace(str(postgresql.port), "1")
    with pytest.raises(LedgerError, match="did not answer"):
        Ledger.move(tmp_path / "meters.ledger", gone)
    charge(old)


def test_a_ledger_moves_back_into_a_file(tmp_path: Path, database: str) -> None:
    charge(Ledger.create(database, name="meters", **FACTS))
    back = Ledger.move(f"{database}?population=meters", tmp_path / "meters.ledger")
    charge(back)
    with pytest.raises(LedgerError, match="was moved to"):
        Ledger.open(database)
    assert Ledger.open(tmp_path / "meters.ledger").remaining().runs == 0


def test_a_server_at_a_new_address_is_adopted_on_the_record(database: str) -> None:
    charge(Ledger.create(database, name="meters", **FACTS))
    alias = database.replace("127.0.0.1", "localhost")
    with pytest.raises(LedgerError, match="already has a ledger"):
        Ledger.open(alias)
    Ledger.adopt(alias, reason="a new name for the server")
    assert "a new name" in Ledger.open(alias).amendments()[0]
    assert Ledger.open(alias).remaining().runs == 1


def test_a_team_names_its_database_once(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSTUDY_LEDGERS", database)
    assert Ledger.find_for(make_schema(), tmp_path) is None
    made = Ledger.open_for(make_schema(), tmp_path)
    assert made.path == f"{database}?population=meters"
    assert not any(tmp_path.iterdir())
    assert Ledger.open_for(make_schema(), tmp_path).head() == made.head()


def test_an_older_backup_of_the_database_is_refused_where_newer_charges_were_made(
    database: str, postgresql: Server
) -> None:
    ledger = Ledger.create(database, name="meters", **FACTS)
    charge(ledger)
    postgresql.sql(
        "SET session_replication_role = replica",
        "DELETE FROM understudy.entries",
        "UPDATE understudy.ledgers SET written = 0",
        database="ledgers",
    )
    with pytest.raises(LedgerError, match="older copy"):
        Ledger.open(database)
    assert Ledger.adopt(database, reason="restored from a backup").remaining().runs == 1


# --- several writers ---------------------------------------------------------------------------------------


def _charge_until_refused(url: str, home: str, results: "multiprocessing.Queue[int]") -> None:
    os.environ["UNDERSTUDY_HOME"] = home
    ledger, granted = Ledger.open(url), 0
    plan = SpendingPlan((PlanEntry("count", PureDP(0.05)),), Guarantee(0.1, 1e-9))
    while True:
        try:
            ledger.charge(plan, label="race", noise=NOISE)
            granted += 1
        except BudgetExceeded:
            break
    results.put(granted)


def test_sixteen_computers_racing_for_the_last_budget_never_overspend(database: str, tmp_path: Path) -> None:
    ledger = Ledger.create(database, name="meters", **FACTS | {"guarantee": Guarantee(1.0, 1e-6), "max_runs": 1000})
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[int] = context.Queue()
    arguments = [(f"{database}?population=meters", str(tmp_path / str(number)), results) for number in range(RACERS)]
    racers = [context.Process(target=_charge_until_refused, args=each) for each in arguments]
    for racer in racers:
        racer.start()
    granted = sum(results.get(timeout=120) for _ in racers)
    for racer in racers:
        racer.join()
    assert granted == len(ledger.entries()) in (19, 20)
    assert sum(entry.epsilon for entry in ledger.entries()) <= 1.0 + 1e-6


def test_a_writer_waits_for_another_and_gives_up_with_a_sentence(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from understudy.privacy import store

    monkeypatch.setattr(store, "WAIT_SECONDS", 0.3)
    ledger = Ledger.create(database, name="meters", **FACTS)
    with shared._connected(database) as other:
        other.execute(shared._LOCK, ("meters",))
        with pytest.raises(LedgerError, match="in use by another process"):
            charge(ledger)
    charge(ledger)


def test_a_writer_that_hangs_is_cut_off_and_charges_nothing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.privacy import store

    ledger = Ledger.create(database, name="meters", **FACTS)
    monkeypatch.setattr(store, "WAIT_SECONDS", 2.0)

    def hang() -> None:
        with ledger._store.writing() as writer:
            writer.append("resumed", {"run": 1, "secure_noise": True})
            charge(Ledger.open(database), "patient")

    with pytest.raises(LedgerError, match="did not answer"):
        hang()
    assert [entry.label for entry in Ledger.open(database).entries()] == ["patient"]
