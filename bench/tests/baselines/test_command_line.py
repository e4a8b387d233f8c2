"""Baselines run by the commands of the product; one that protects no unit says so in its certificate's first field."""

import json
from pathlib import Path

from tests.e2e.commands import make_clinic, run


def test_ads_gan_runs_from_the_command_line_and_is_recorded_as_not_private(tmp_path: Path) -> None:
    clinic = make_clinic(tmp_path / "clinic")
    brief = ("--set", "mode=ads-gan", "--set", "recipe.iterations=5", "--set", "recipe.batch=20")
    refused = run(*clinic.synth("--method", "dp-gan", *brief))
    assert refused.code == 2
    assert "--epsilon none --not-private" in refused.err
    made = run(*clinic.synth("--method", "dp-gan", *brief, "--not-private", epsilon="none"))
    assert made.code == 0, made.err
    certificate = json.loads((clinic.release / "certificate.json").read_text(encoding="utf-8"))
    assert next(iter(certificate)) == "status"
    assert certificate["status"].startswith("not private: ADS-GAN as published")
