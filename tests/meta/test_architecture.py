"""The walk on the page of architecture is what a run of `synth` really does, in that order."""

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import understudy
from tests.e2e.commands import make_clinic, run
from tests.meta.pages import ROOT

PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = Path(understudy.__file__).parent
HOP = re.compile(r"^\| (\d+) \| `([\w/]+\.py)` \| `(\w+)` \|", re.MULTILINE)


def hops() -> list[tuple[str, str]]:
    """Returns the file and the function of every step of the walk."""
    return [(file, function) for _, file, function in HOP.findall(PAGE.read_text(encoding="utf-8"))]


def first_calls(*arguments: str) -> dict[tuple[str, str], int]:
    """Returns when each function of the package was first called by a command, by file and name."""
    order: dict[tuple[str, str], int] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            place = Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_name
            order.setdefault(place, len(order))

    sys.setprofile(note)
    try:
        outcome = run(*arguments)
    finally:
        sys.setprofile(None)
    assert outcome.code == 0, outcome.err
    return order


def test_the_walk_has_at_most_fifteen_steps_numbered_from_one() -> None:
    numbers = [int(number) for number, _, _ in HOP.findall(PAGE.read_text(encoding="utf-8"))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 8 <= len(numbers) <= 15


def test_a_run_takes_these_steps_in_this_order(tmp_path: Path) -> None:
    clinic = make_clinic(tmp_path)
    order = first_calls(*clinic.synth("--allow-few-units", "a test", "--n", "3"))
    walk = hops()
    assert [hop for hop in walk if hop not in order] == []
    assert [order[hop] for hop in walk] == sorted(order[hop] for hop in walk)
    for number, (_, function) in enumerate(walk, 1):
        assert f"{number}. {function}" in (ROOT / "docs/images/architecture.svg").read_text(encoding="utf-8")
