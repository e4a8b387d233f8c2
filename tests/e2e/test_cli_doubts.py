"""Before the charge, `plan` and `synth` say from public facts that a network would learn mostly noise."""

from pathlib import Path

import pytest

from tests.e2e.commands import OPTIONS, Clinic, charges, make_clinic, run
from understudy.privacy.budget import Guarantee
from understudy.synthesizers.contract.panels import plain_schema
from understudy.synthesizers.dit.method import DiT


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return make_clinic(tmp_path / "clinic")


def outlook(clinic: Clinic, method: str, *more: str) -> str:
    asked = ("plan", clinic.schema, "--epsilon", "1", "--method", method, *OPTIONS.get(method, ()), *more, "--json")
    outcome = run(*asked)
    assert outcome.code == 0, outcome.err
    return " ".join(outcome.facts["outlook"])


@pytest.mark.parametrize("method", ["dit", "vflgan-ts"])
def test_a_plan_doubts_a_network_of_few_units_and_names_what_does_better(method: str, clinic: Clinic) -> None:
    told = outlook(clinic, method)
    assert "Expect poor series" in told
    assert "--method spectral" in told


def test_a_plan_doubts_what_a_stranger_ran(clinic: Clinic) -> None:
    channel = '[[channels]]\nkind = "continuous"\nname = "pulse{n}"\nlow = 0\nhigh = 10\n\n'
    clinic.edit_schema("steps = 6", "steps = 48")
    clinic.edit_schema("[[static]]", "".join(channel.format(n=n) for n in range(6)) + "[[static]]")
    asked = ("plan", clinic.schema, "--epsilon", "2", "--method", "dit", "--population", "8000", "--json")
    assert "Expect poor series" in " ".join(run(*asked).facts["outlook"])


def test_a_plan_does_not_doubt_where_nothing_speaks_against_it(clinic: Clinic) -> None:
    assert "Expect poor series" not in outlook(clinic, "spectral")
    assert "Expect poor series" not in outlook(clinic, "dit", "--task", "complete")
    assert "Expect poor series" not in outlook(clinic, "dit", "--population", "1000000", "--epsilon", "2")


def test_public_weights_are_not_judged_by_networks_that_started_from_nothing() -> None:
    schema, guarantee = plain_schema(), Guarantee(1.0, 1e-5)
    assert DiT().gradient_noise(schema, guarantee) is not None
    assert DiT(pack="town.safetensors").gradient_noise(schema, guarantee) is None


def test_synth_says_so_before_the_charge(clinic: Clinic) -> None:
    clinic.table.write_text("not a table\n")
    outcome = run(*clinic.synth("--method", "dit", *OPTIONS["dit"]))
    assert outcome.code != 0
    assert "Expect poor series" in outcome.err
    assert not charges(clinic.ledger)


def test_synth_is_silent_where_there_is_no_doubt(clinic: Clinic) -> None:
    outcome = run(*clinic.synth("--json"))
    assert outcome.facts["cautions"] == []
    assert not outcome.err
