"""Votes and evolution in two places, from the command line."""

from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, charges, make_clinic, run


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def vote(clinic: Clinic, ballot: Path, *more: str | Path) -> list[str | Path]:
    return ["pets", "vote", clinic.table, "--schema", clinic.schema, "--out", ballot, *more]


def test_a_run_in_new_folders_ends_in_a_release(clinic: Clinic, tmp_path: Path) -> None:
    ballots, proposal, folder = tmp_path / "ballots", tmp_path / "proposals" / "1", tmp_path / "new" / "evolution"
    assert run(*vote(clinic, ballots / "0", "--epsilon", "1", "--iterations", "1")).code == 0
    begun = run("pets", "evolve", folder, "--ballot", ballots / "0", "--out", proposal)
    assert begun.code == 0, begun.err
    assert run(*vote(clinic, ballots / "1", "--proposal", proposal)).code == 0
    ended = run("pets", "evolve", folder, "--ballot", ballots / "1", "--out", tmp_path / "proposals" / "2")
    assert ended.code == 0, ended.err
    assert (folder / "release" / "certificate.json").is_file()


def test_a_place_that_can_hold_no_ballot_is_refused_before_the_charge(clinic: Clinic, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = run(*vote(clinic, tmp_path / "file" / "ballot", "--epsilon", "1"))
    assert outcome.code == 2
    assert "--out" in outcome.err
    assert not charges(clinic.ledger)
