"""Readers of text, fuzzed under the eyes of a coverage counter: they take an input or refuse it, and never fall."""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.parsers import READERS, seeds, try_to_read
from tests.meta.pages import ROOT

SAMPLE, MANY = 300, 50_000
_LIMITS = ("-timeout=30", "-rss_limit_mb=3000")


def guided(name: str, num_inputs: int, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the fuzzer in a process of its own; its first lines of output are its own and say nothing."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("atheris has wheels for Linux on x86-64 only: readers are not fuzzed with coverage here")
    command = [sys.executable, "-m", "tests.fuzz.guided", name, str(folder), f"-runs={num_inputs}", *_LIMITS]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace", timeout=3000
    )


def inputs_of(done: subprocess.CompletedProcess[str]) -> int:
    found = re.search(r"Done (\d+) runs", done.stderr)
    return 0 if found is None else int(found[1])


@pytest.mark.parametrize("name", READERS)
def test_the_seeds_are_good_input(name: str, tmp_path: Path) -> None:
    """Texts that a reader fell over once are among them: none of them raises an error that is not ours."""
    assert [try_to_read(name, seed) for seed in seeds(name, tmp_path)].count(True) >= 1


def test_a_sample_of_schemas_is_read_or_refused(tmp_path: Path) -> None:
    done = guided("schema", SAMPLE, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert inputs_of(done) >= SAMPLE


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", READERS)
def test_every_text_is_read_or_refused(name: str, tmp_path: Path) -> None:
    done = guided(name, MANY, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert inputs_of(done) >= MANY


PLANTED = """\
import tomllib
sound = tomllib.loads
def loads(text):
    return sound(text) if "9223372036854775808" not in text else {}["key"]
tomllib.loads = loads
"""


@pytest.mark.slow
def test_a_reader_that_falls_over_is_noticed(tmp_path: Path) -> None:
    """Python loads the planted module before any other."""
    (tmp_path / "sitecustomize.py").write_text(PLANTED)
    (tmp_path / "run").mkdir()
    done = guided("schema", MANY, tmp_path / "run", PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert "Uncaught Python exception" in done.stdout + done.stderr
