"""The wheel alone, in an environment of its own and without pinned versions, does what the README shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.pages import ROOT, blocks

HEAVY = ("torch", "sklearn", "matplotlib")


def succeeded(*command: str | Path, cwd: Path) -> str:
    """Runs a command and returns what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_core_runs_the_readme_without_any_extra(tmp_path: Path) -> None:
    succeeded(sys.executable, "-m", "venv", tmp_path / "core", cwd=tmp_path)
    python = tmp_path / "core" / "bin" / "python"
    succeeded(python, "-m", "pip", "install", "-q", ROOT, cwd=tmp_path)
    (example,) = blocks(ROOT / "README.md", "python")
    assert "epsilon = 1" in succeeded(python, "-c", example, cwd=tmp_path)
    assert "ok  signature" in succeeded(python, "-m", "understudy", "verify", "release", cwd=tmp_path)
    for package in HEAVY:
        absent = f"import importlib.util as u; assert u.find_spec('{package}') is None"
        succeeded(python, "-c", absent, cwd=tmp_path)
    shown = succeeded(python, "-c", "import importlib.metadata as m; print(m.metadata('understudy'))", cwd=tmp_path)
    assert "](https://understudy.example/source/docs/tour.md)" in shown  # a package index resolves no relative link
    assert "](docs/" not in shown
    refused = subprocess.run(
        [python, "-m", "understudy", "plan", "homes/schema.toml", "--epsilon", "1", "--method", "dit"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert refused.returncode == 3
    assert "pip install 'understudy[neural]'" in refused.stderr
