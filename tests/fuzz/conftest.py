from pathlib import Path

import pytest

from tests.fuzz.harness import Harness


@pytest.fixture(scope="session")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """One folder for all: it is as it was after every input."""
    folder: Path = tmp_path_factory.mktemp("fuzz")
    return Harness(folder)
