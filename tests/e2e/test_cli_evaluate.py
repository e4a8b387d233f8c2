"""`understudy evaluate` judges our releases and tables made elsewhere, and says what to do with bad input."""

import json
import shutil
from pathlib import Path

import pytest

from tests.e2e.commands import MAGIC_PERSON, MAGIC_VALUE, Clinic, Outcome, make_clinic, run


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Clinic:
    """A clinic of 240 persons with a release that kept a third of them out."""
    clinic = make_clinic(tmp_path_factory.mktemp("evaluate"), persons=240)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERSTUDY_HOME", str(clinic.folder / "home"))
        assert run(*clinic.synth("--holdout", "0.34", epsilon="2")).code == 0
    return clinic


@pytest.fixture(autouse=True)
def _same_home(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSTUDY_HOME", str(clinic.folder / "home"))


def _evaluate(clinic: Clinic, *more: str | Path, target: Path | None = None, suite: str = "conditional") -> Outcome:
    return run("evaluate", target or clinic.release, "--real", clinic.table, "--suite", suite, *more)


def _holdout(clinic: Clinic) -> list[str | Path]:
    return ["--holdout", clinic.folder / "release.holdout.csv"]


def test_a_release_is_judged_against_the_units_that_its_run_kept_out(clinic: Clinic) -> None:
    outcome = _evaluate(clinic, *_holdout(clinic), "--json", suite="general")
    assert outcome.code == 0, outcome.err
    facts = outcome.facts
    assert facts["internal"] is True
    figures = {score["name"]: score for score in facts["scores"]}
    assert len(figures) > 15
    judged = [score for score in figures.values() if score["synthetic"]["value"] is not None]
    assert len(judged) > 15
    assert all(score["holdout"]["value"] is not None or score["holdout"]["problem"] for score in judged)
    assert sum(score["holdout"]["value"] is not None for score in judged) > 15
    assert not any("No holdout" in note for note in facts["notes"])


def test_without_a_holdout_the_output_says_what_stands_in_for_it(clinic: Clinic, tmp_path: Path) -> None:
    alone = tmp_path / "alone"  # without the list that lies next to the release, which is taken by default
    shutil.copytree(clinic.release, alone)
    outcome = _evaluate(clinic, target=alone)
    assert outcome.code == 0, outcome.err
    assert "No holdout was given" in outcome.out
    assert outcome.out.startswith("Internal")


def test_a_table_made_elsewhere_is_judged_by_the_same_schema(clinic: Clinic, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.csv"
    foreign.write_text(clinic.table.read_text().replace("person-", "copy-").replace(MAGIC_VALUE, "99"))
    assert _evaluate(clinic, target=foreign).code == 2
    outcome = _evaluate(clinic, "--schema", clinic.schema, target=foreign)
    assert outcome.code == 0, outcome.err


def test_report_and_record_are_written_and_never_replace_anything(clinic: Clinic, tmp_path: Path) -> None:
    report, record = tmp_path / "report.html", tmp_path / "record.json"
    outcome = _evaluate(clinic, *_holdout(clinic), "--report", report, "--record", record)
    assert outcome.code == 0, outcome.err
    assert report.read_text().startswith("<!doctype html>")
    assert json.loads(record.read_text())["internal"] is not None
    again = _evaluate(clinic, "--report", report)
    assert again.code == 2
    assert "--report" in again.err
    inside = _evaluate(clinic, "--report", clinic.release / "report.html")
    assert inside.code == 2


def test_bad_input_is_refused_with_a_word_on_what_to_do(clinic: Clinic, tmp_path: Path) -> None:
    shorter, narrow = tmp_path / "shorter.toml", tmp_path / "narrow.csv"
    shorter.write_text(clinic.schema.read_text().replace("steps = 6", "steps = 5"))
    few = tmp_path / "few.csv"
    few.write_text("".join(clinic.table.read_text().splitlines(keepends=True)[: 1 + 6 * 10]))
    narrow.write_text("person,when,other,ward\n" + "\n".join(clinic.table.read_text().splitlines()[1:]) + "\n")
    asked = {
        "unknown suite": _evaluate(clinic, suite="beauty"),
        "no real table": run("evaluate", clinic.release, "--real", tmp_path / "none.csv"),
        "another length": _evaluate(clinic, "--schema", shorter),
        "few series": _evaluate(clinic, "--schema", clinic.schema, target=few),
        "another column": _evaluate(clinic, "--schema", clinic.schema, target=narrow),
        "holdout that was learned from": _evaluate(clinic, "--holdout", clinic.table),
        "list of other units": _evaluate(clinic, "--holdout", _list(tmp_path, "nobody")),
    }
    for name, outcome in asked.items():
        assert outcome.code in (2, 3), name
        assert "Traceback" not in outcome.err, name
        assert MAGIC_PERSON not in outcome.err + outcome.out, name
        assert MAGIC_VALUE not in outcome.err + outcome.out, name


def _list(folder: Path, name: str) -> Path:
    file = folder / "list.csv"
    file.write_text(f"person\n{name}\n")
    return file


def test_the_default_is_bounded_and_all_of_it_is_asked_for_by_name(clinic: Clinic) -> None:
    from understudy.api.scoring import effort_of

    bounded = effort_of({})
    assert bounded.seconds is not None
    assert bounded.seconds < 120
    assert effort_of({"thorough": True}).seconds is None
    assert effort_of({"trainings": "paper"}).seconds is None


def test_the_output_has_a_headline_with_verdicts_and_numbers(clinic: Clinic) -> None:
    outcome = _evaluate(clinic, *_holdout(clinic), suite="general")
    assert outcome.code == 0, outcome.err
    assert "what matters" in outcome.out
    assert "pulse: synthetic" in outcome.out
    assert "maximum" in outcome.out


def test_a_release_damaged_on_disk_is_refused(clinic: Clinic, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(clinic.release, damaged)
    table = damaged / "synthetic.parquet"
    table.write_bytes(table.read_bytes()[:-8])
    outcome = _evaluate(clinic, target=damaged)
    assert outcome.code == 2
    assert "synthetic.parquet" in outcome.err
