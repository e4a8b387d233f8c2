"""One warmed server for all tests, and stages whose home is the one that checks look into."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.scenes import Stage, staged
from tests.faults.server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A process that runs commands and is told how they die."""
    with Server() as started:
        yield started


@pytest.fixture
def stage(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Stage]:
    """Builds the stage of a scene by name; checks in this process use the keys and registry of that stage."""

    def build(name: str) -> Stage:
        built = staged(name, server, tmp_path)
        monkeypatch.setenv("UNDERSTUDY_HOME", str(built.folder / "home"))
        return built

    return build
