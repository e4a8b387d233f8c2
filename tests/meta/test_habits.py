"""The machinery around the tests works: skips fail in CI, the suite is whole, shapes are checked."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.meta.pages import ROOT

MIN_TESTS = 5500  # raise it as the suite grows; it stops tests from getting lost


@pytest.mark.parametrize(("ci", "exit_code"), [("true", 1), ("", 0)])
def test_a_skipped_test_fails_only_in_ci(ci: str, exit_code: int, tmp_path: Path) -> None:
    (tmp_path / "test_skips.py").write_text("import pytest\ndef test_it():\n    pytest.skip('no browser')\n")
    done = _pytest("-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path), CI=ci)
    assert done.returncode == exit_code, done.stdout + done.stderr


def test_the_suite_has_not_lost_tests(request: pytest.FixtureRequest) -> None:
    """Counts what this run has collected, or collects if it is a run of single files."""
    collected = len(request.session.items)
    if collected < MIN_TESTS:
        done = _pytest("--collect-only", "-qq", "tests")
        counts = [line.rsplit(": ", 1)[1] for line in done.stdout.splitlines() if line.startswith("tests/")]
        assert done.returncode == 0, done.stdout
        collected = sum(int(count) for count in counts)
    assert collected >= MIN_TESTS


def test_ci_runs_the_tests_of_both_distributions_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    lines = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert os.access(script, os.X_OK)
    assert lines[-2:] == ["make test", "make bench-test"]
    assert len(lines) == 5


@pytest.mark.slow
def test_a_wrong_shape_is_refused_where_shapes_are_checked() -> None:
    from understudy.data.panel import broadcast_context

    with pytest.raises(Exception, match="broadcast_context"):
        broadcast_context(np.zeros((2, 3, 4, 5), dtype=np.float32), 7)


@pytest.mark.slow
def test_what_names_no_shape_is_left_as_it_is() -> None:
    """A call through the checker takes longer than most of what it would check."""
    from understudy.data.panel import broadcast_context
    from understudy.privacy.plan import round_up

    assert inspect.unwrap(broadcast_context) is not broadcast_context
    assert inspect.unwrap(round_up) is round_up


def test_tests_have_a_home_of_their_own(understudy_home: Path) -> None:
    assert os.environ["UNDERSTUDY_HOME"] == str(understudy_home)
    assert not list(understudy_home.iterdir())


def _pytest(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
