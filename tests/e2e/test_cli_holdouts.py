"""Units that are kept out: one list for several releases, refusals before the charge, no seen unit called unseen."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.commands import MAGIC_PERSON, Clinic, Outcome, charges, make_clinic, run
from understudy.api.holdouts import Holdout, split_table
from understudy.data import Table, simulate_households
from understudy.errors import InputError

PERSONS = 200


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Clinic:
    """Releases `first` with a drawn list, `second` with the list of the first, `third` with a list of its own."""
    clinic = make_clinic(tmp_path_factory.mktemp("holdouts"), persons=PERSONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERSTUDY_HOME", str(clinic.folder / "home"))
        lists = {"first": ("--holdout", "0.3"), "third": ("--holdout", "0.3")}
        lists["second"] = ("--holdout-list", str(_list(clinic, "first")))
        for name in ("first", "second", "third"):
            outcome = run(*clinic.synth(*lists[name], epsilon="0.4", out=clinic.folder / name))
            assert outcome.code == 0, outcome.err
            assert "Held-out units, private" in outcome.out
    return clinic


@pytest.fixture(autouse=True)
def _same_home(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSTUDY_HOME", str(clinic.folder / "home"))


def _list(clinic: Clinic, name: str) -> Path:
    return clinic.folder / f"{name}.holdout.csv"


def _units(file: Path) -> set[str]:
    with file.open(newline="") as lines:
        return {row[0] for row in csv.reader(lines)} - {"person"}


def _compare(clinic: Clinic, *names: str, report: Path, holdout: str = "first") -> Outcome:
    releases = (clinic.folder / name for name in names)
    given = ("--holdout", _list(clinic, holdout), "--report", report)
    return run("compare", *releases, "--real", clinic.table, *given, "--json")


def test_a_list_is_taken_over_as_it_is(clinic: Clinic) -> None:
    assert _units(_list(clinic, "second")) == _units(_list(clinic, "first"))
    assert _units(_list(clinic, "third")) != _units(_list(clinic, "first"))
    assert _list(clinic, "second").stat().st_mode & 0o077 == 0


def test_listed_units_have_no_influence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same noise on a table without the listed units gives the same model, to the last bit."""
    models = []
    for name in ("with-a-list", "without-them"):
        clinic = make_clinic(tmp_path / name, persons=PERSONS)
        monkeypatch.setenv("UNDERSTUDY_HOME", str(clinic.folder / "home"))
        listed = {f"person-{place:04d}" for place in range(30, 70)}
        (tmp_path / "list.csv").write_text("person\n" + "\n".join(sorted(listed)) + "\n")
        more = ["--holdout-list", str(tmp_path / "list.csv")]
        if name == "without-them":
            clinic.edit_rows(lambda rows: [row for row in rows if row[0] not in listed])  # noqa: B023
            more = []
        outcome = run(*clinic.synth("--seed", "5", *more))
        assert outcome.code == 0, outcome.err
        models.append((clinic.release / "model.safetensors").read_bytes())
    assert models[0] == models[1]


def test_rows_without_identifiers_are_not_listed() -> None:
    """One row less would move all that follow: neighbouring tables would differ in as many units as are listed."""
    panel = simulate_households(150, seed=1)
    numbered = Table.of(replace(panel, unit_ids=None))
    with pytest.raises(InputError, match="units with identifiers are expected"):
        split_table(numbered, Holdout(units=set(map(str, range(30)))), np.random.default_rng(0))
    _, held_out = split_table(numbered, Holdout(share=0.2), np.random.default_rng(0))  # coins of their own
    assert held_out is not None


def test_releases_with_one_list_are_compared_and_their_verdicts_printed(clinic: Clinic, tmp_path: Path) -> None:
    outcome = _compare(clinic, "first", "second", report=tmp_path / "page.html")
    assert outcome.code == 0, outcome.err
    cards = outcome.facts["scorecards"]
    assert set(cards) == {"first", "second"}
    for card in cards.values():
        assert card["headline"]["sentence"]
        assert all(score["verdict"] for score in card["scores"])
        assert any(score["synthetic"]["value"] is not None for score in card["scores"])
        assert set(card["numbers"]["pulse"]["real"]) == {"mean", "minimum", "1 %", "99 %", "maximum"}


def test_units_that_trained_one_of_the_releases_are_not_called_unseen(clinic: Clinic, tmp_path: Path) -> None:
    before = charges(clinic.ledger)
    outcome = _compare(clinic, "first", "third", report=tmp_path / "page.html")
    assert outcome.code == 2
    assert "trained 'third'" in outcome.err
    assert "--holdout-list" in outcome.err
    assert not (tmp_path / "page.html").exists()
    assert charges(clinic.ledger) == before
    assert MAGIC_PERSON not in outcome.out + outcome.err


def test_a_release_whose_list_is_unknown_is_not_compared(clinic: Clinic, tmp_path: Path) -> None:
    _list(clinic, "second").rename(tmp_path / "elsewhere.csv")
    try:
        outcome = _compare(clinic, "first", "second", report=tmp_path / "page.html")
    finally:
        (tmp_path / "elsewhere.csv").rename(_list(clinic, "second"))
    assert outcome.code == 2
    assert "second.holdout.csv" in outcome.err


def test_evaluate_refuses_the_list_of_another_release(clinic: Clinic) -> None:
    given = ("--real", clinic.table, "--suite", "conditional", "--holdout")
    assert run("evaluate", clinic.folder / "first", *given, _list(clinic, "third")).code == 2
    assert run("evaluate", clinic.folder / "first", *given, _list(clinic, "second")).code == 0


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--holdout", "0.6"), "at least 100 units are expected to remain, and 0.6 of the declared population"),
        (("--holdout", "0.05"), "at least 20 units are expected to be kept out"),
        (("--holdout-list", "LIST:110"), "fewer remain after others were kept out"),
        (("--holdout-list", "LIST:5"), "fewer were kept out"),
        (("--holdout-list", "LIST:0"), "none of the listed units"),
    ],
)
def test_a_split_that_leaves_too_few_is_refused_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, str], says: str
) -> None:
    clinic = make_clinic(tmp_path / "clinic", persons=PERSONS)
    monkeypatch.setenv("UNDERSTUDY_HOME", str(tmp_path / "home"))
    option, value = more
    if value.startswith("LIST:"):
        listed = [f"person-{place:04d}" for place in range(20, 20 + int(value[5:]))] or ["nobody"]
        (tmp_path / "list.csv").write_text("person\n" + "\n".join(listed) + "\n")
        value = str(tmp_path / "list.csv")
    outcome = run(*clinic.synth(option, value))
    assert outcome.code == 2, outcome.err
    assert says in outcome.err
    assert not charges(clinic.ledger)
    assert not clinic.release.exists()
    for private in ("110", "90", "195", MAGIC_PERSON):
        assert private not in outcome.err
