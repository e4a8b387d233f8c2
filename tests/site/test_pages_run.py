"""What the pages tell a reader to type works as printed."""

import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import run
from tests.meta.pages import PAGES, ROOT, blocks, commands, name

README = ROOT / "README.md"
PYTHON = [(page, block) for page in PAGES for block in blocks(page, "python")]
CONSOLE = [page for page in PAGES if commands(page)]


def test_the_readme_shows_one_example_of_at_most_twenty_lines() -> None:
    (example,) = blocks(README, "python")
    assert len([line for line in example.splitlines() if line and not line.startswith("#")]) <= 20


def test_the_readme_example_takes_a_frame_whose_index_holds_times_with_a_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (example,) = blocks(README, "python")
    homes = "us.simulate_households(200).to_pandas()\n"
    zoned = homes.replace("\n", '.set_index("timestamp").tz_localize("Europe/Paris")\n')
    assert homes in example
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(example.replace(homes, zoned), name(README), "exec"), names)
    synthetic = names["synthetic"]
    assert synthetic.index.dtype == names["meters"].index.dtype
    assert list(synthetic.columns) == list(names["meters"].columns)
    assert "Everything agrees" in printed.getvalue()


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
