"""What the pages tell a reader to type works as printed."""

import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.e2e.commands import run
from tests.meta.pages import PAGES, ROOT, blocks, commands, name

README = ROOT / "README.md"
PYTHON = [(page, block) for page in PAGES for block in blocks(page, "python")]
CONSOLE = [page for page in PAGES if commands(page)]


def test_the_readme_shows_one_example_of_at_most_twenty_lines() -> None:
    (example,) = blocks(README, "python")
    assert len(example.splitlines()) <= 20


@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[name(page) for page, _ in PYTHON])
def test_python_blocks_run_in_an_empty_folder(
    page: Path, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with redirect_stdout(io.StringIO()):
        exec(compile(block, name(page), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", CONSOLE, ids=name)
def test_console_blocks_run_one_after_the_other(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in commands(page):
        program, *arguments = shlex.split(command.line)
        if program == "understudy":
            done = run(*arguments)
            assert done.code == command.exit_code, f"{command.line}\n{done.out}\n{done.err}"


def test_make_targets_named_in_the_pages_exist() -> None:
    targets = {line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if "## " in line}
    named = {c.line.split()[1] for page in PAGES for c in commands(page) if c.line.startswith("make ")}
    assert {"demo", "test", "test-all", "check", "bench", "bench-test", "clean"} <= targets
    assert {"demo", "test"} <= named <= targets
