"""Modes of `vflgan-ts` from the command line: asked for by name, priced before they run, some refused."""

from pathlib import Path

import pytest

from tests.e2e.commands import Clinic, make_clinic, run

SMALL = ("--set", "recipe.iterations=3", "--set", "recipe.batch=12")


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def test_a_plan_shows_what_local_noise_costs_and_what_sound_noises(clinic: Clinic) -> None:
    asked = ("plan", clinic.schema, "--epsilon", "1", "--method", "vflgan-ts", *SMALL)
    local = run(*asked, "--set", "mode=local")
    assert "Every value of every row gets noise" in " ".join(local.out.split())
    assert "per unit whose values are taken away" in " ".join(local.out.split())
    sound = run(*asked)
    assert "parties and an aggregator noise" in " ".join(sound.out.split())
    assert "per unit added or removed" in " ".join(sound.out.split())


@pytest.mark.parametrize("mode", ["plain", "paper"])
def test_a_mode_that_protects_nobody_is_refused_before_anything_is_charged(clinic: Clinic, mode: str) -> None:
    before = clinic.files()
    refused = run(*clinic.synth("--method", "vflgan-ts", "--set", f"mode={mode}"))
    assert refused.code == 2
    assert "protects no unit" in " ".join(refused.err.split())
    assert clinic.files() == before


def test_an_unknown_mode_is_answered_with_those_that_exist(clinic: Clinic) -> None:
    refused = run("plan", clinic.schema, "--method", "vflgan-ts", "--set", "mode=masked")
    assert refused.code == 2
    assert "sound" in refused.err
    assert "local" in refused.err
