"""The page of help is made from one table; every line of it leads to a command that can be loaded."""

import os
import subprocess
import sys

import pytest

from tests.e2e.commands import run
from understudy.cli.app import _COMMANDS


@pytest.mark.parametrize("name", _COMMANDS)
def test_every_command_on_the_page_of_help_has_a_page_of_its_own(name: str) -> None:
    line, page = _COMMANDS[name][1], run(name, "--help")
    assert page.code == 0
    assert " ".join(line.split()[:2]) in " ".join(page.out.replace("│", "").split())


@pytest.mark.parametrize(
    ("words", "answer"),
    [("understudy sy", "synth"), ("understudy synth --met", "--method"), ("understudy keys r", "rotate")],
)
def test_the_shell_completes_commands_and_options(words: str, answer: str) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_UNDERSTUDY_COMPLETE": "complete_bash"}
    program = [sys.executable, "-m", "understudy"]
    done = subprocess.run(program, env=os.environ | asked, capture_output=True, text=True, check=True)
    assert answer in done.stdout.split()


def test_help_loads_neither_numpy_nor_a_module_of_a_command() -> None:
    code = (
        "import sys; from understudy.cli.main import main; main(['--help'])\n"
        "print([name for name in ('numpy', 'pyarrow', 'understudy.cli.synth') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
