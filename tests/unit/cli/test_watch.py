"""What commands leave for machines: lines of JSON, a record, and a file that OpenMetrics allows."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, make_clinic, run
from understudy.cli.watch import openmetrics

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABELS = r'\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)+\}'
SAMPLE = re.compile(rf"({NAME})({LABELS})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|\+Inf|-Inf|NaN)")


def families(text: str) -> dict[str, list[str]]:
    """Parses an exposition as OpenMetrics 1.0 has it, strictly; returns samples by family."""
    *lines, last, end = text.split("\n")
    assert (last, end) == ("# EOF", "")
    found: dict[str, list[str]] = {}
    name, kind = "", ""
    for line in lines:
        if line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            assert re.fullmatch(NAME, name)
            assert name not in found, "a family comes once"
            assert kind in ("gauge", "info")
            found[name] = []
        elif line.startswith("# UNIT "):
            assert line == f"# UNIT {name} {name.rpartition('_')[2]}"
            assert not found[name], "units come before samples"
        elif line.startswith("# HELP "):
            assert line.startswith(f"# HELP {name} ")
            assert not found[name]
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == (f"{name}_info" if kind == "info" else name)
            found[name].append(line)
    assert all(found.values())
    return found


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clinic:
    clinic = make_clinic(tmp_path / "clinic")
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "home"))
    return clinic


def test_a_run_leaves_its_charge_and_what_is_left(clinic: Clinic, tmp_path: Path) -> None:
    log, records, metrics = tmp_path / "logs" / "log.jsonl", tmp_path / "records", tmp_path / "metrics" / "run.prom"
    left = ("--log-json", log, "--run-record", f"{records}/", "--metrics", metrics)
    for release in ("first", "second"):
        outcome = run(*clinic.synth(epsilon="0.5", out=tmp_path / release), *left)
        assert outcome.code == 0, outcome.err
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["event"] for event in events if event["event"] != "stage"] == [
        "started",
        "charged",
        "found",
        "ended",
    ] * 2
    made = [json.loads(file.read_text()) for file in sorted(records.iterdir())]
    assert [record["charges"][0]["run"] for record in made] == [1, 2]
    assert made[1]["found"]["ledger"]["runs_left"] == 6
    assert made[1]["options"]["--schema"] == clinic.schema.name, "files by name, never by place"
    figures = families(metrics.read_text())
    assert figures["understudy_run_runs_left"] == ["understudy_run_runs_left 6.0"]
    assert 'run="2"' in figures["understudy_run_charged_epsilon"][0]


def test_a_refusal_is_one_line_of_json_on_standard_error(clinic: Clinic, tmp_path: Path) -> None:
    record = tmp_path / "run.json"
    outcome = run(*clinic.synth(epsilon="50"), "--log-json", "-", "--run-record", record)
    assert outcome.code == 4
    events = [json.loads(line) for line in outcome.err.splitlines()]
    assert events[-1]["outcome"] == "refused"
    assert "epsilon = 50" in events[-1]["error"]
    made = json.loads(record.read_text())
    assert (made["exit_code"], made["charges"]) == (4, [])
    again = run(*clinic.synth(epsilon="0.5"), "--run-record", record)
    assert again.code == 2
    assert "--run-record" in again.err
    assert not clinic.ledger.exists(), "refused before the charge"


def test_of_an_error_that_is_not_ours_only_its_type_is_written(
    clinic: Clinic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from understudy.api import synthesis

    def careless(*_: object) -> None:
        raise ValueError("person-0007 has 9.87")

    monkeypatch.setattr(synthesis, "split_table", careless)
    record = tmp_path / "run.json"
    assert run(*clinic.synth(), "--run-record", record).code == 1
    assert json.loads(record.read_text())["error"] == "ValueError"


def test_internal_scores_are_in_no_record(clinic: Clinic, tmp_path: Path) -> None:
    assert run(*clinic.synth(epsilon="1")).code == 0
    record = tmp_path / "run.json"
    judged = ("--real", clinic.table, "--suite", "conditional", "--run-record", record)
    assert run("evaluate", clinic.release, *judged).code == 0
    assert json.loads(record.read_text())["found"] == {"ledger": {}}


def test_servers_folders_and_passwords_are_left_out(tmp_path: Path) -> None:
    record = tmp_path / "run.json"
    place = "postgresql://alice:secret@db.example/ledgers?population=clinic"  # pragma: allowlist secret
    assert run("ledger", "show", place, "--run-record", record).code != 0
    written = json.loads(record.read_text())["options"]
    assert written == {"WHERE": "postgresql://…"}


def test_labels_are_escaped() -> None:
    record = {
        "command": 'a "b"\\\n',
        "outcome": "done",
        "ended": "2026-01-01T00:00:00+00:00",
        "versions": {"understudy": "0.2.0"},
        "found": {},
        "charges": [],
        "seconds": 1.5,
        "processor_seconds": 1e-7,
        "peak_bytes": 2**26,
        "exit_code": 0,
    }
    assert 'command="a \\"b\\"\\\\\\n"' in families(openmetrics(record))["understudy_run"][0]
