"""A ledger moves into a database, and commands go on charging it from there."""

from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, make_clinic, run
from tests.postgresql import Server


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def test_a_study_moves_to_the_database_of_a_team(
    clinic: Clinic, postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = postgresql.database("clinics")
    postgresql.sql("DROP ROLE IF EXISTS colleague", "CREATE ROLE colleague LOGIN")
    assert run(*clinic.synth(epsilon="0.5", out=clinic.folder / "january")).code == 0
    assert run("ledger", "prepare", database, "--charger", "colleague", "--json").facts["version"] == 1
    moved = run("ledger", "move", clinic.ledger, database, "--json")
    assert moved.facts["file"] == f"{database}?population=clinic"
    assert "was moved to" in run("ledger", "show", clinic.ledger).err
    assert run(*clinic.synth(epsilon="0.5", out=clinic.folder / "february")).code == 0

    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "colleague"))
    theirs = f"{postgresql.url('colleague', 'clinics')}?population=clinic"
    shown = run("ledger", "show", theirs, "--json").facts
    assert shown["remaining"]["epsilon"] == pytest.approx(1.0, rel=1e-4)
    assert run(*clinic.synth(epsilon="1.0", out=clinic.folder / "march")).code == 0
    assert run(*clinic.synth(epsilon="0.5")).code == 4
    assert run("ledger", "raise", theirs, "--epsilon", "9", "--reason", "more").code == 2
    assert run("ledger", "check", theirs, clinic.folder, "--json").facts["releases"] == 3
    assert run("verify", clinic.folder / "march").code == 0
    assert "clinic" in run("ledger", "list").out
    postgresql.sql("DROP OWNED BY colleague", database="clinics")


def test_a_server_that_is_gone_is_one_line_and_no_run(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://nobody:hidden@127.0.0.1:1/ledgers"  # pragma: allowlist secret
    monkeypatch.setenv("UNDERSTUDY_LEDGERS", url)
    outcome = run(*clinic.synth())
    assert outcome.code == 2
    assert "did not answer" in outcome.err
    assert "hidden" not in outcome.err
    assert not clinic.release.exists()


def test_a_ledger_is_compared_with_all_releases_in_a_folder(clinic: Clinic) -> None:
    for month in ("january", "february"):
        assert run(*clinic.synth(epsilon="0.1", out=clinic.folder / "releases" / month)).code == 0
        if month == "january":
            older = clinic.ledger.read_bytes()
    assert run("ledger", "check", clinic.ledger, clinic.folder / "releases", "--json").facts["releases"] == 2
    clinic.ledger.write_bytes(older)
    outcome = run("ledger", "check", clinic.ledger, clinic.folder / "releases")
    assert outcome.code == 2
    assert "february'" in outcome.err
    assert run("ledger", "check", clinic.ledger, clinic.folder / "releases" / "january").code == 0
    assert run("ledger", "check", clinic.ledger, clinic.schema.parent / "nothing").code == 3
