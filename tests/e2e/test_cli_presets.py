"""`--preset paper` on the command line, for every method that has a paper; forms that protect no unit say so first."""

import json
from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, make_clinic, run, schema_for

PAPER = ("--preset", "paper")
NOT_PRIVATE = ("--epsilon", "none", "--not-private")
BRIEF = {  # a batch of the whole population needs no accounting of subsampling, which takes seconds
    "pub2priv": tuple(f"--set=recipe.{part}" for part in ("iterations=1", "batch=120", "sampling_steps=2")),
    "dit": ("--set", "recipe.iterations=1", "--set", "recipe.batch=120", "--set", "sampling_steps=1"),
    "pets": ("--set", "recipe.iterations=1"),
    "ppem": ("--set", "sensitive=mean(pulse)", "--set", "recipe.iterations=5"),
    "vflgan-ts": ("--set", "recipe.iterations=5"),
}


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def synth(clinic: Clinic, method: str, *more: str) -> list[str]:
    places = [clinic.folder / name if name.endswith((".toml", ".csv")) else name for name in schema_for(clinic, method)]
    asked = ["--method", method, *PAPER, *BRIEF[method], "--out", clinic.release, "--n", "4", *more, "--json"]
    return [str(part) for part in ("synth", clinic.table, *places, *asked)]


@pytest.mark.parametrize("method", ["pub2priv", "dit"])
def test_a_published_form_that_is_sound_is_private(clinic: Clinic, method: str) -> None:
    made = run(*synth(clinic, method, "--epsilon", "0.5"))
    assert made.code == 0, made.err
    assert made.facts["status"] == "private"


def test_pets_as_published_says_what_to_set_and_protects_no_person(clinic: Clinic) -> None:
    refused = run(*synth(clinic, "pets", "--epsilon", "0.5"))
    assert refused.code == 2
    assert "Set unit.kind = 'overlapping-window' in the schema" in refused.facts["error"]
    clinic.edit_schema('column = "person"', 'kind = "overlapping-window"\ncolumn = "person"')
    made = run(*synth(clinic, "pets", "--epsilon", "0.5", "--window-steps", "4", "--window-stride", "1"))
    assert made.code == 0, made.err
    assert made.facts["status"].startswith("not private: protects no person")


@pytest.mark.parametrize(
    ("method", "more"),
    [("ppem", ()), ("vflgan-ts", ()), ("vflgan-ts", ("--set", "mode=plain"))],
)
def test_a_form_that_protects_no_unit_runs_and_is_recorded_as_not_private(
    clinic: Clinic, method: str, more: tuple[str, ...]
) -> None:
    made = run(*synth(clinic, method, *more, *NOT_PRIVATE))
    assert made.code == 0, made.err
    certificate = json.loads((clinic.release / "certificate.json").read_text(encoding="utf-8"))
    assert next(iter(certificate)) == "status"
    assert certificate["status"].startswith("not private: ")
    assert (certificate["epsilon"], certificate["ledger"]["kind"]) == ("inf", "in-memory")
    assert made.facts["status"] == certificate["status"]
    assert run("verify", clinic.release, "--json").facts["holds"]
    ledger = run("ledger", "show", clinic.schema, "--json").facts
    assert [charge["label"] for charge in ledger["charges"]] == [f"{method}: not private, covered by no guarantee"]
    assert ledger["remaining"]["epsilon"] == made.facts["ledger"]["epsilon_left"] == 2.0
    checked = run("ledger", "check", clinic.schema, clinic.release)
    assert checked.code == 2
    assert "charged in memory only" in checked.err


def test_later_certificates_name_a_release_that_is_not_private(clinic: Clinic) -> None:
    assert run(*synth(clinic, "vflgan-ts", *NOT_PRIVATE)).code == 0
    clinic.release.rename(clinic.release.with_name("first"))
    assert run(*clinic.synth("--method", "spectral")).code == 0
    certificate = (clinic.release / "certificate.json").read_text(encoding="utf-8")
    assert "about the same units is not private, covered by no guarantee" in certificate
    assert "no charge" in run("ledger", "show", clinic.schema).out


@pytest.mark.parametrize("method", ["ppem", "vflgan-ts"])
@pytest.mark.parametrize("flags", [("--epsilon", "0.5"), ("--epsilon", "none"), ("--epsilon", "1", "--not-private")])
def test_both_flags_are_named_where_one_is_missing(clinic: Clinic, method: str, flags: tuple[str, ...]) -> None:
    before = clinic.files()
    refused = run(*synth(clinic, method, *flags))
    assert refused.code == 2
    assert "--epsilon none --not-private" in refused.facts["error"]
    assert clinic.files() == before


def test_a_method_that_protects_units_is_not_run_without_privacy(clinic: Clinic) -> None:
    for method in ("spectral", "independent"):
        refused = run(*clinic.synth("--method", method, "--not-private", epsilon="none"))
        assert refused.code == 2, method
        assert "a finite" in refused.err


def test_a_plan_says_that_a_run_is_not_private(clinic: Clinic) -> None:
    told = run("plan", clinic.schema, "--method", "vflgan-ts", *PAPER, *BRIEF["vflgan-ts"], *NOT_PRIVATE, "--json")
    assert told.code == 0, told.err
    assert told.facts["verdict"] == "This run is not private: no guarantee covers what it releases."
    assert told.facts["epsilon"] == "inf"
    assert any(line.startswith("Not private: ") for line in told.facts["outlook"])


def test_a_method_without_a_paper_says_so(clinic: Clinic) -> None:
    refused = run(*clinic.synth("--method", "spectral", *PAPER))
    assert refused.code == 2
    assert "No paper describes it" in refused.err
