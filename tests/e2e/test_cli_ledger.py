"""The budget holds: refusals, and several processes at once. What crashes do is in `tests/faults`."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, charges, finish, make_clinic, run, start
from understudy.privacy.ledger import Ledger


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def test_a_ledger_of_two_refuses_the_run_that_would_exceed_it(clinic: Clinic) -> None:
    for number in (1, 2, 3):
        assert run(*clinic.synth(epsilon="0.6", out=clinic.folder / f"release-{number}")).code == 0
    before = clinic.files()
    outcome = run(*clinic.synth(epsilon="0.6"), "--json")
    assert outcome.code == 4
    assert outcome.facts["exit_code"] == 4
    assert "0.2" in outcome.err
    assert clinic.files() == before
    assert run(*clinic.synth(epsilon="0.2")).code == 0


@pytest.mark.parametrize("command", ["synth", "plan"])
def test_a_command_opens_the_ledger_once(command: str, clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every opening reads and checks the whole chain."""
    assert run(*clinic.synth("--method", "independent", epsilon="0.1", out=clinic.folder / "first")).code == 0
    opened, read = [], Ledger._read
    monkeypatch.setattr(Ledger, "_read", staticmethod(lambda storage: opened.append(storage) or read(storage)))
    asked = clinic.synth("--method", "independent", epsilon="0.1") if command == "synth" else ["plan", clinic.schema]
    assert run(*asked).code == 0
    assert len(opened) == 1


def test_a_ledger_refuses_one_run_more_than_declared(clinic: Clinic) -> None:
    clinic.edit_schema("max_runs = 8", "max_runs = 1")
    assert run(*clinic.synth(epsilon="0.1", out=clinic.folder / "first")).code == 0
    assert run(*clinic.synth(epsilon="0.1")).code == 4
    assert not clinic.release.exists()


def test_more_delta_than_a_run_may_use_is_refused_as_budget(clinic: Clinic) -> None:
    outcome = run(*clinic.synth("--delta", "8e-5"))
    assert outcome.code == 4
    assert not charges(clinic.ledger)


def test_new_data_of_the_same_people_charges_the_same_ledger(clinic: Clinic) -> None:
    assert run(*clinic.synth(out=clinic.folder / "january")).code == 0
    clinic.edit_rows(lambda rows: [rows[0], *([*row[:2], "5.5", row[3]] for row in rows[1:])])
    assert run(*clinic.synth(out=clinic.folder / "february")).code == 0
    shown = run("ledger", "show", clinic.schema, "--json").facts
    assert [charge["run"] for charge in shown["charges"]] == [1, 2]
    assert shown["remaining"]["epsilon"] == pytest.approx(1.0, rel=1e-4)


def test_a_copy_of_the_schema_elsewhere_gets_no_second_ledger(clinic: Clinic, tmp_path: Path) -> None:
    assert run(*clinic.synth()).code == 0
    copy = make_clinic(tmp_path / "copy")
    outcome = run(*copy.synth())
    assert outcome.code == 2
    assert "already has a ledger" in outcome.err
    assert not copy.ledger.exists()


def test_a_ledger_remembers_its_releases_and_an_old_copy_does_not(clinic: Clinic) -> None:
    assert run(*clinic.synth(out=clinic.folder / "first")).code == 0
    old = clinic.ledger.read_bytes()
    assert run(*clinic.synth()).code == 0
    assert run("ledger", "check", clinic.schema, clinic.release).code == 0
    clinic.ledger.write_bytes(old)
    assert run("ledger", "check", clinic.schema, clinic.release).code == 2
    assert run("ledger", "check", clinic.ledger, clinic.release).code == 2


def test_an_old_copy_of_the_ledger_does_not_give_the_budget_back(clinic: Clinic) -> None:
    assert run(*clinic.synth(epsilon="0.5", out=clinic.folder / "first")).code == 0
    old = clinic.ledger.read_bytes()
    assert run(*clinic.synth(epsilon="1.5", out=clinic.folder / "second")).code == 0
    clinic.ledger.write_bytes(old)
    outcome = run(*clinic.synth(epsilon="1.5"))
    assert outcome.code == 2
    assert "Put the newest copy back" in outcome.err
    assert "ledger adopt" in outcome.err
    assert not clinic.release.exists()
    assert run("ledger", "adopt", clinic.ledger, "--reason", "the disk died").code == 0
    assert run(*clinic.synth(epsilon="1.5")).code == 4


def test_a_raised_budget_stands_in_the_ledger_in_later_certificates_and_in_what_verify_says(clinic: Clinic) -> None:
    assert run(*clinic.synth(epsilon="2", out=clinic.folder / "first")).code == 0
    assert run(*clinic.synth(epsilon="0.5")).code == 4
    assert run("ledger", "raise", clinic.schema, "--epsilon", "1", "--reason", "less").code == 2
    assert run("ledger", "raise", clinic.schema, "--epsilon", "3", "--reason", "").code == 2
    assert run("ledger", "raise", clinic.schema, "--epsilon", "3", "--reason", "the board agreed").code == 0
    assert run(*clinic.synth(epsilon="0.5")).code == 0
    for command in (("ledger", "show", clinic.ledger), ("ledger", "check", clinic.ledger, clinic.release)):
        assert "the board agreed" in run(*command).out
        assert "the board agreed" in run(*command, "--json").facts["amendments"][0]
    assert "the board agreed" in run("verify", clinic.release).out
    assert "the board agreed" in run("verify", clinic.release, "--json").facts["amendments"][0]
    assert "the board agreed" in run("certificate", clinic.release).out
    assert not run("verify", clinic.folder / "first", "--json").facts["amendments"]


def test_two_processes_at_once_cannot_overspend(clinic: Clinic) -> None:
    processes = [start(*clinic.synth(epsilon="1.2", out=clinic.folder / f"release-{n}")) for n in range(3)]
    outcomes = [finish(process) for process in processes]
    assert sorted(outcome.code for outcome in outcomes) == [0, 4, 4], [outcome.err for outcome in outcomes]
    assert len(charges(clinic.ledger)) == 1
    assert len(list(clinic.folder.glob("release-*"))) == 1


def test_help_is_quick_and_the_spectral_path_never_loads_torch(clinic: Clinic) -> None:
    begin = time.monotonic()
    assert finish(start("--help")).code == 0
    assert time.monotonic() - begin < 3.0  # under one second when nobody else uses the machine
    arguments = [str(argument) for argument in clinic.synth()]
    code = (
        "import sys; from understudy.cli.main import main; "
        f"code = main({arguments!r}); sys.exit(code or 10 * ('torch' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
