"""Shadows of a method that copies its data are told apart, those of a private one are not, and a kill loses nothing.

The copying method is told apart for certain. For a private one the audit may alarm falsely with probability 1e-2 by
its own statement; what its target really moves is far less than it was charged for, so it does far more seldom.
"""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from understudy.auditing.shadows import ARMS, Shadows, attack, fit_shadows
from understudy.data import Continuous, Panel, Population, Schema, Time
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Progress, SampleRequest
from understudy.synthesizers.contract.panels import plain_schema
from understudy.synthesizers.spectral import Spectral

SCHEMA = plain_schema(
    channels=(Continuous("load", 0.0, 20.0),), time=Time(column="when", steps=8), population=Population(500)
)
ONE = Guarantee(1.0, 1e-6)


@dataclass(frozen=True, kw_only=True)
class Copying(Spectral):
    """Releases the series themselves, whatever it was charged."""

    name: ClassVar[str] = "copying"

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        return {**super().learn(private, grant, progress), "copies": private.panel.values.copy()}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        values = request.rng.choice(arrays["copies"], request.num_series)
        lengths = np.full(request.num_series, schema.num_steps, dtype=np.int32)
        return request.panel(schema, values, lengths, np.zeros((request.num_series, 0)))


def shadows(method: Spectral, per_arm: int = 21, guarantee: Guarantee = ONE) -> Shadows:
    values = np.random.default_rng(3).uniform(5, 8, size=(40, 8, 1)).astype(np.float32)
    values[7] = 19.0
    lengths, unit = np.full(40, 8, dtype=np.int32), np.arange(40, dtype=np.int64)
    panel = Panel(schema=SCHEMA, values=values, lengths=lengths, unit=unit, static=np.zeros((40, 0), np.float32))
    return Shadows(method=method, panel=panel, target=7, guarantee=guarantee, per_arm=per_arm, num_samples=400)


def test_a_method_that_copies_is_told_apart_by_every_feature(tmp_path: Path) -> None:
    found = attack(fit_shadows(shadows(Copying()), tmp_path), delta=1e-6)
    assert all(area.low > 0.5 for area in found.areas.values()), found.areas
    assert found.areas["knn"].estimate == 1.0
    assert found.result.epsilon > 0


def test_a_private_method_is_not_contradicted(tmp_path: Path) -> None:
    made = fit_shadows(shadows(Spectral(), per_arm=39), tmp_path)
    assert made["absent"]["naive"].shape == (39, 24)
    assert attack(made, delta=1e-6, confidence=0.99).result.epsilon <= 1.0


def test_shadows_that_are_there_are_not_made_again(tmp_path: Path) -> None:
    plan = shadows(Spectral(), per_arm=3)
    fit_shadows(plan, tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    (tmp_path / "present-00001.safetensors").unlink()
    calls: list[tuple[int, int]] = []
    fit_shadows(plan, tmp_path, progress=lambda *counts: calls.append(counts))
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.safetensors")}
    assert calls == [(6, 6)]
    assert {name for name in before if before[name] != after[name]} == {"present-00001.safetensors"}


def test_a_folder_of_another_audit_is_refused(tmp_path: Path) -> None:
    fit_shadows(shadows(Spectral(), per_arm=1), tmp_path)
    with pytest.raises(InputError, match="another"):
        fit_shadows(shadows(Spectral(), per_arm=1, guarantee=Guarantee(2.0, 1e-6)), tmp_path)


def test_too_few_shadows_for_any_conclusion_are_refused(tmp_path: Path) -> None:
    made = fit_shadows(shadows(Spectral(), per_arm=4), tmp_path)
    with pytest.raises(InputError, match="prove anything"):
        attack(made, delta=1e-6)


SCRIPT = """
import sys
from pathlib import Path
from tests.unit.auditing.test_shadow_models import Spectral, fit_shadows, shadows
fit_shadows(shadows(Spectral(), per_arm=400), Path(sys.argv[1]), workers=2)
"""


def test_a_killed_audit_goes_on_where_it_was(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], cwd=root, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while len(list(tmp_path.glob("*.safetensors"))) < 6 and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    made = {path.name: path.read_bytes() for path in tmp_path.glob("*.safetensors")}
    assert 6 <= len(made) < 800
    per_arm = max(int(name.split("-")[1][:5]) for name in made) + 2
    features = fit_shadows(shadows(Spectral(), per_arm=per_arm), tmp_path)
    assert all((tmp_path / name).read_bytes() == content for name, content in made.items())
    assert all(len(features[arm]["knn"]) == per_arm for arm in ARMS)
