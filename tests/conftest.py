"""What every test gets: run-time checks of annotated shapes, a home of its own, and no silent skips in CI."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.run_time_types import check_shapes_in
from tests.slow import is_slow

if TYPE_CHECKING:
    from tests.postgresql import Server

THOROUGH = os.environ.get("THOROUGH") == "1"  # `make test-all`
if THOROUGH:  # checking every call takes a third of the time of a test
    check_shapes_in("understudy")  # before anything of it is imported

# Two tests share two cores, so a slow example says nothing; CI wants the same examples every time.
settings.register_profile(
    "understudy",
    deadline=None,
    max_examples=200 if THOROUGH else 20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("ci", settings.get_profile("understudy"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "understudy")


_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def understudy_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder for keys and the registry of ledgers: tests never touch the real one."""
    home = tmp_path_factory.mktemp(f"home-{next(_NUMBERS)}", numbered=False)  # numbering reads the folder every time
    monkeypatch.setenv("UNDERSTUDY_HOME", str(home))
    monkeypatch.delenv("UNDERSTUDY_DATA", raising=False)
    return home


@pytest.fixture(scope="session")
def postgresql() -> Iterator["Server"]:
    """One server for all tests of a process; each makes a database of its own."""
    from tests.postgresql import running

    with tempfile.TemporaryDirectory(prefix="understudy-postgresql-") as folder, running(Path(folder)) as server:
        yield server


def pytest_itemcollected(item: pytest.Item) -> None:
    if is_slow(item.nodeid):
        item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in _refused_skips(terminalreporter):
        terminalreporter.write_line(f"SKIPPED, a failure in CI: {report.nodeid}", red=True)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and exitstatus == pytest.ExitCode.OK and _refused_skips(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _refused_skips(reporter: pytest.TerminalReporter) -> list[pytest.TestReport]:
    return list(reporter.stats.get("skipped", [])) if os.environ.get("CI") == "true" else []
