"""What the pages tell a reader to type works as printed."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.pages import PAGES, ROOT, blocks, commands, name

README = ROOT / "README.md"
PYTHON = [(page, block) for page in PAGES for block in blocks(page, "python")]
CONSOLE = [page for page in PAGES if commands(page)]


def test_the_readme_shows_one_example_of_at_most_twenty_lines() -> None:
    (example,) = blocks(README, "python")
    assert len(example.splitlines()) <= 20


@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[name(page) for page, _ in PYTHON])
def test_python_blocks_run_in_an_empty_folder(page: Path, block: str, tmp_path: Path) -> None:
    done = _run([sys.executable, "-c", block], tmp_path)
    assert done.returncode == 0, f"{name(page)}:\n{block}\n{done.stderr}"


@pytest.mark.parametrize("page", CONSOLE, ids=name)
def test_console_blocks_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    for command in commands(page):
        program, *arguments = shlex.split(command.line)
        if program == "understudy":
            done = _run([sys.executable, "-m", "understudy.cli.main", *arguments], tmp_path)
            assert done.returncode == command.exit_code, f"{command.line}\n{done.stdout}\n{done.stderr}"


def test_make_targets_named_in_the_pages_exist() -> None:
    targets = {line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if "## " in line}
    named = {c.line.split()[1] for page in PAGES for c in commands(page) if c.line.startswith("make ")}
    assert {"demo", "test", "test-all", "check", "bench", "bench-test", "clean"} <= targets
    assert {"demo", "test"} <= named <= targets


def _run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "MPLBACKEND": "agg"}
    return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
