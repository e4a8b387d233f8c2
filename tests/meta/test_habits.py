"""The machinery around the tests works: skips fail in CI, the suite is whole, shapes are checked."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.meta.pages import ROOT
from tests.slow import SLOW, is_slow

MIN_TESTS = 5300  # raise it as the suite grows; it stops tests from getting lost


@pytest.mark.parametrize(("ci", "exit_code"), [("true", 1), ("", 0)])
def test_a_skipped_test_fails_only_in_ci(ci: str, exit_code: int, tmp_path: Path) -> None:
    (tmp_path / "test_skips.py").write_text("import pytest\ndef test_it():\n    pytest.skip('no browser')\n")
    done = _pytest("-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path), CI=ci)
    assert done.returncode == exit_code, done.stdout + done.stderr


def test_the_suite_has_not_lost_tests(request: pytest.FixtureRequest) -> None:
    """Counts what a run of the whole suite has collected; runs of single files say nothing about it."""
    folders = {(request.config.rootpath / argument).resolve() for argument in request.config.args}
    assert len(request.session.items) >= MIN_TESTS or ROOT / "tests" not in folders


@pytest.mark.parametrize("name", SLOW)
def test_a_class_of_slow_tests_is_on_the_page_and_its_tests_are_there(name: str) -> None:
    assert f"| {name} |" in (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    for part in SLOW[name]:
        assert f"def {part.test}" in (ROOT / part.file).read_text(encoding="utf-8"), part


def test_where_a_part_is_slow_another_part_is_quick() -> None:
    """A pattern that marked all methods, or none, would go unnoticed otherwise."""
    contract = "tests/contract/test_methods.py::test_the_method_keeps_the_contract"
    assert [is_slow(f"{contract}[{name}]") for name in ("dit-short_series", "ppem-short_series")] == [False, True]
    assert not is_slow(f"{contract}[ppem-save_and_load_change_nothing]")


def test_ci_runs_the_tests_of_both_distributions_and_the_site_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    lines = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert os.access(script, os.X_OK)
    assert lines[-3:] == ["make test", "make bench-test", "make docs"]
    assert len(lines) == 6


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
