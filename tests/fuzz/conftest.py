from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import THOROUGH
from tests.fuzz.harness import Harness
from understudy.planning import plans
from understudy.planning.cost import Expected, Finish


@contextmanager
def _untimed(*_: object) -> Iterator[Finish]:
    yield lambda plan: Expected(None, False, 0.0, 0.0)


@pytest.fixture(autouse=True)
def _plans_without_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan starts a process to time a run, which takes seconds and reads no file; `make test-all` lets it."""
    if not THOROUGH:
        monkeypatch.setattr(plans, "expected_cost", _untimed)


@pytest.fixture(scope="session")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """One folder for all: it is as it was after every input."""
    folder: Path = tmp_path_factory.mktemp("fuzz")
    return Harness(folder)
