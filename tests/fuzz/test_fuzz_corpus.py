"""Inputs that broke a rule once. `fuzz` puts new ones here by itself; whoever repairs the defect commits them."""

from pathlib import Path

import pytest

from tests.fuzz.case import Case
from tests.fuzz.harness import Harness
from tests.fuzz.kinds import CORPUS


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*.json")), ids=lambda file: file.stem)
def test_an_input_breaks_no_rule_any_more(file: Path, harness: Harness) -> None:
    harness.check(Case.loads(file.read_text()))
