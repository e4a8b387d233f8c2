"""An evaluation that trains networks for minutes is stopped, and keeps what was measured."""

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, make_clinic, run, start


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    made = make_clinic(tmp_path / "clinic")
    outcome = run(*made.synth("--allow-few-units", "a test", "--n", "60"))
    assert outcome.code == 0, outcome.err
    return made


def test_a_stop_keeps_what_was_measured(clinic: Clinic, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    target = ("evaluate", clinic.release, "--real", clinic.table, "--record", record)
    process = start(*target, "--suite", "general", "--suite", "pub2priv", "--trainings", "paper", "--json")
    assert process.stderr is not None
    assert "Estimate" in process.stderr.readline()
    assert "%" in process.stderr.readline()  # the quick ones are done by the first line
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    card = json.loads(out)
    assert 0 < len(card["missing"]) < len(card["scores"])
    late = {score["name"]: score for score in card["scores"]}[card["missing"][-1]]
    assert (late["verdict"], late["synthetic"]["value"]) == ("unknown", None)
    assert json.loads(record.read_text())["internal"]["scorecard"]["missing"] == card["missing"]
