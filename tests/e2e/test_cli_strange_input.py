"""Input that no careful person writes, by way of commands; `tests/fuzz` found each of these."""

from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, charges, make_clinic, run
from understudy.privacy.ledger import Ledger


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def test_a_first_run_that_is_refused_leaves_no_ledger_behind(clinic: Clinic) -> None:
    before = clinic.files()
    outcome = run(*clinic.synth(epsilon="3"))
    assert outcome.code == 4
    assert clinic.files() == before


def test_names_from_a_file_move_no_cursor(clinic: Clinic) -> None:
    clinic.edit_schema('name = "pulse"', 'name = "\\u001b[2Jpulse\\nerror: all is well\\u202e"')
    outcome = run(*clinic.synth())
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert outcome.err[:-1].isprintable()


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_names_that_are_printed_in_an_answer_move_no_cursor_either(more: list[str], clinic: Clinic) -> None:
    clinic.edit_schema('column = "person"', 'column = "\\u001b[2Jperson\\u009b"')
    outcome = run("plan", clinic.schema, "--method", "independent", *more)
    assert outcome.code == 0
    assert outcome.out.replace("\n", "").isprintable()


def test_a_damaged_ledger_is_noticed_before_minutes_are_measured(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    from understudy.planning import plans

    clinic.ledger.write_bytes(b"no ledger")
    monkeypatch.setattr(plans, "expected_cost", None)
    outcome = run("plan", clinic.schema)
    assert outcome.code == 2
    assert "clinic.ledger" in outcome.err


def test_more_samples_than_the_disk_has_room_for_are_refused_at_once(clinic: Clinic) -> None:
    assert run(*clinic.synth("--method", "independent")).code == 0
    outcome = run("sample", clinic.release, "--n", str(10**15), "--out", clinic.folder / "more.csv")
    assert outcome.code == 2
    assert "MiB" in outcome.err
    assert not (clinic.folder / "more.csv").exists()


def test_a_schema_that_is_no_file_is_missing(clinic: Clinic) -> None:
    clinic.schema.unlink()
    clinic.schema.mkdir()
    assert run("plan", clinic.schema).code == 3


def test_what_was_refused_can_still_be_declared_differently(clinic: Clinic) -> None:
    """A ledger that a refused run had left behind would have fixed the budget for good."""
    assert run(*clinic.synth(epsilon="3")).code == 4
    clinic.edit_schema("epsilon = 2.0", "epsilon = 4.0")
    assert run(*clinic.synth(epsilon="3")).code == 0
    assert Ledger.open(clinic.ledger).guarantee.epsilon == 4.0


def test_more_series_than_identifiers_are_refused_before_the_charge(clinic: Clinic) -> None:
    clinic.edit_rows(lambda rows: [rows[0], *([str(place // 6), *row[1:]] for place, row in enumerate(rows[1:]))])
    clinic.edit_schema('column = "person"\ndtype = "string"', 'column = "person"\ndtype = "int8"')
    outcome = run(*clinic.synth("--n", "129"))
    assert outcome.code == 2
    assert "unit.dtype" in outcome.err
    assert charges(clinic.ledger) == []
    assert run(*clinic.synth("--n", "128", "--method", "independent")).code == 0
    assert run("sample", clinic.release, "--n", "129", "--out", clinic.folder / "more.csv").code == 2


def test_a_delta_that_would_round_to_nothing_is_refused_before_the_charge(clinic: Clinic) -> None:
    clinic.edit_schema("max_runs = 8", "max_runs = 1\ndelta = 5e-324")
    outcome = run(*clinic.synth())
    assert outcome.code == 2
    assert charges(clinic.ledger) == []
