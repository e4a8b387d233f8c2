"""The page of help is made from one table; every line of it leads to a command that can be loaded."""

import subprocess
import sys

import pytest

from tests.e2e.commands import run
from understudy.cli.app import _COMMANDS


@pytest.mark.parametrize("name", _COMMANDS)
def test_every_command_on_the_page_of_help_has_a_page_of_its_own(name: str) -> None:
    line, page = _COMMANDS[name], run(name, "--help")
    assert page.code == 0
    assert " ".join(line.split()[:2]) in " ".join(page.out.replace("│", "").split())


def test_help_loads_neither_numpy_nor_a_module_of_a_command() -> None:
    code = (
        "import sys; from understudy.cli.main import main; main(['--help'])\n"
        "print([name for name in ('numpy', 'pyarrow', 'understudy.cli.synth') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
