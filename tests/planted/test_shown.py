"""No object that a command makes on its way shows a private value, identifier or count when it is printed.

Tracebacks, debuggers and log lines print objects. Here every object of the package that a function holds when it
returns is printed in full and searched for planted values; and of those that hold private arrays none prints an array,
whose length would tell how many series there are.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tests.e2e.commands import Clinic, run
from tests.planted.search import Planted, found
from tests.planted.test_commands import BOUNDS, BUY, PLANTED, SYNTH, clinic  # noqa: F401 - a fixture
from understudy.privacy.contributions import Cells

EACH_KIND = 5  # objects of one class that are looked at
# Their arrays were released, are drawn from what was, or follow from the schema alone.
PUBLIC = {
    "Release",
    "SampleRequest",
    "Normals",
    "Marginal",
    "Distribution",
    "Covariance",
    "Profile",
    "Strengths",
    "Coupling",
    "Model",
    "Kind",
}
NAMES = Planted(words=PLANTED.words, moments=PLANTED.moments)  # released numbers hit a planted one now and then


@contextmanager
def shown() -> Iterator[dict[str, list[str]]]:
    """Collects how objects of the package print in full, by class."""
    texts: dict[str, list[str]] = {}

    def look(frame: FrameType, event: str, result: Any) -> None:
        if event != "return" or not str(frame.f_globals.get("__name__")).startswith("understudy"):
            return
        sys.setprofile(None)
        for item in (*frame.f_locals.values(), result):
            known = texts.setdefault(type(item).__qualname__, [])
            if type(item).__module__.startswith("understudy") and len(known) < EACH_KIND:
                with np.printoptions(threshold=10**9):
                    known.append(repr(item))
        sys.setprofile(look)

    sys.setprofile(look)
    try:
        yield texts
    finally:
        sys.setprofile(None)


def revealing(texts: dict[str, list[str]]) -> list[str]:
    """Names the classes that show a planted value, or an array that is not public."""
    printed = {kind: " ".join(known) for kind, known in texts.items()}
    quoting = [kind for kind, text in printed.items() if found(text, NAMES if kind in PUBLIC else PLANTED)]
    return quoting + [kind for kind, text in printed.items() if "array(" in text and kind not in PUBLIC]


COMMANDS = {
    "synth": (*SYNTH, "--method", "spectral", "--holdout", "0.4", "--allow-few-units", "a test", "--out", "release"),
    "synth in windows": (*SYNTH, "--method", "spectral", "--window-steps", "3", "--out", "release"),
    "buy": ("buy", "bounds", "clinic.csv", *BUY, "open.toml", *BOUNDS),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_object_on_the_way_shows_private_data_during(name: str, clinic: Clinic) -> None:  # noqa: F811
    with shown() as texts:
        assert run(*COMMANDS[name]).code == 0
    assert {"Panel", "Grid", "Grant"} <= set(texts), "the run was not watched"
    assert revealing(texts) == []


def test_an_object_that_shows_its_votes_is_found(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Negative control: what units add to a sum prints like any other dataclass."""
    fields = Cells.__dataclass_fields__
    monkeypatch.setattr(Cells, "__repr__", lambda self: str({name: getattr(self, name) for name in fields}))
    with shown() as texts:
        assert run(*COMMANDS["synth"]).code == 0
    assert revealing(texts) == ["Cells"]
