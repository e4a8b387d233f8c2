"""Examples in docstrings are right."""

import doctest
import importlib
from pathlib import Path

import pytest

import understudy

PACKAGE = Path(understudy.__file__).parent
EXAMPLES = [path.relative_to(PACKAGE.parent) for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text()]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 10


@pytest.mark.parametrize("path", EXAMPLES, ids=str)
def test_the_examples_of_a_module_give_what_they_say(path: Path) -> None:
    module = importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
