"""The scans of `make check` find what they look for: planted keys, and advisories where a database answers."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.meta.pages import ROOT

# Put together here, so that this file holds none of them.
PLANTED = {
    "a cloud key": "key = '" + "AKIA" + "QYLPMN5H" + "HHFPZAM2" + "'",
    "a private key": "-----BEGIN " + "PRIVATE KEY-----",
    "a word to pass": "pass" + "word = " + repr("correct horse"),
    "a token": "value = 'ghp_" + "wWPw5k4aXcaT4fNP" + "0UcnZwJUVFk6LO0pINUx" + "'",
}


def script(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_secret_is_found_and_not_repeated(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "settings.py").write_text(f"first = 1\n{PLANTED[kind]}\n")
    (tmp_path / "harmless.py").write_text("second = 2\n")
    assert script("find_secrets").main([str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "settings.py:2: looks like a secret" in shown
    assert PLANTED[kind].split("'")[-2 if "'" in PLANTED[kind] else 0] not in shown


def test_make_test_passes_where_make_demo_ran_before(tmp_path: Path) -> None:
    """Demo and benchmarks leave keys and hashes in folders that git ignores; the same key elsewhere is found."""
    scan = script("find_secrets")
    (tmp_path / "harmless.py").write_text("second = 2\n")
    for folder, code in (("understudy-demo", 0), ("understudy-results", 0), ("other", 1)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "default.key").write_text(PLANTED["a private key"] + "\n")
        assert scan.main([str(tmp_path)]) == code
    ignored, make = ((ROOT / name).read_text(encoding="utf-8") for name in (".gitignore", "Makefile"))
    assert {f"{scan.DEMO}/", f"{scan.RESULTS}/"} <= set(ignored.splitlines())
    assert f"--out {scan.DEMO}" in make
    assert f"--into {scan.RESULTS}" in make


def test_a_folder_without_secrets_passes_and_an_empty_one_does_not(tmp_path: Path) -> None:
    assert script("find_secrets").main([str(tmp_path)]) == 1  # nothing looked at is nothing shown
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("answer = 42\n")
    assert script("find_secrets").main([str(tmp_path)]) == 0


def test_the_scan_covers_sources_tests_scripts_and_pages() -> None:
    names = script("find_secrets").files_of(ROOT)
    assert {"src/understudy/privacy/keys.py", "tests/conftest.py", "scripts/set-up.sh", "README.md", ".ci/run"} <= set(
        names
    )
    assert not [name for name in names if name.startswith((".git/", ".venv/"))]


LOOKED_UP = {"name": "sound", "version": "1.0", "vulns": []}
VULNERABLE = {"name": "leaky", "version": "2.0", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}]}
UNKNOWN = {"name": "private", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "exit_code", "said"),
    [
        ([LOOKED_UP, VULNERABLE], 1, "leaky 2.0 has a known vulnerability: CVE-1 (fixed in 2.1)"),
        ([LOOKED_UP, UNKNOWN], 0, "not checked: private"),
        ([LOOKED_UP], 0, "1 packages checked, 0 advisories"),
        ([UNKNOWN], 0, "NOT CHECKED"),
        (None, 0, "NOT CHECKED"),
    ],
)
def test_advisories_fail_where_a_database_answers_and_silence_is_said_aloud(
    packages: list | None, exit_code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = "no connection" if packages is None else json.dumps({"dependencies": packages})
    assert script("advisories").main([sys.executable, "-c", f"print({answer!r})"]) == exit_code
    assert said in capsys.readouterr().out


def test_without_pip_audit_the_check_fails(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        script("advisories").main([str(tmp_path / "pip-audit")])


def test_make_check_runs_both_and_bench_check_scans_what_check_leaves_out() -> None:
    recipes = {part.split(":")[0]: part for part in (ROOT / "Makefile").read_text().split("\n\n")}
    assert "scripts/find_secrets.py\n" in recipes["check"]
    assert "scripts/advisories.py" in recipes["check"]
    assert "scripts/find_secrets.py bench" in recipes["bench-check"]
    assert "bench-check" in recipes["bench-test"]
