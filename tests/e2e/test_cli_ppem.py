"""`ppem` from the command line: a marginal is named, stated, checked and reported; what makes no sense is refused."""

from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, make_clinic, run
from understudy.synthesizers.ppem import hot_deck

HIDDEN = ("--method", "ppem", "--set", "sensitive=ward")


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clinic:
    """Fewer donors than usual, to be quick."""
    monkeypatch.setattr(hot_deck, "_POOL", 1024)
    monkeypatch.setattr(hot_deck, "_KEPT", 1024)
    return make_clinic(tmp_path / "clinic")


def test_a_plan_says_from_which_effect_a_check_passes(clinic: Clinic) -> None:
    """It is timed on a few invented persons, whom no check could tell apart."""
    asked = (*HIDDEN, "--set", "target=uniform", "--set", "effect=0.1")
    told = run("plan", clinic.schema, "--epsilon", "2", "--population", "5000", *asked)
    assert told.code == 0
    assert "The check for 0.1 passes" in " ".join(told.out.split())


def test_a_stated_marginal_is_released_and_what_probes_found_is_told(clinic: Clinic) -> None:
    made = run(*clinic.synth(*HIDDEN, "--set", 'target={ward = ["north"]}', "--json"))
    assert made.code == 0
    (found,) = made.facts["findings"]
    assert "of the released values of x′" in found
    page = clinic.folder / "page.html"
    assert run("report", clinic.release, "--out", page).code == 0
    assert "Marginal obfuscation: no part of ε" in page.read_text()
    assert "not protection of a person" in page.read_text()
    drawn = clinic.folder / "drawn.csv"
    assert run("sample", clinic.release, "--n", "20", "--out", drawn).code == 0
    assert "south" not in drawn.read_text()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("sensitive=[]", "at least one attribute"),
        ('sensitive=["ward", "pulse"]', "nothing is left to keep"),
        ("sensitive=nobody", "a column or a level of a channel"),
        ('target={"ward": ["north"]}', "are written"),
        ('target={ward = ["west"]}', "north, south"),
        ("target=nowhere.csv", "does not exist"),
        ("effect=0.9", "passes only from"),
        ("effect=2", "below 1"),
        ("mode=paper", "'sound' or 'lmdp'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_charged(clinic: Clinic, option: str, words: str) -> None:
    before = clinic.files()
    refused = run(*clinic.synth(*HIDDEN, "--set", option))
    assert refused.code in (2, 3)
    assert words in " ".join(refused.err.split())
    assert clinic.files() == before
