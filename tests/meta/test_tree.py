"""The tree keeps its own rules: layers, public names, sizes, words that must not appear."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.pages import ROOT

SOURCE = sorted((ROOT / "src" / "understudy").rglob("*.py"))
LEFT_OUT = {".git", ".venv", "__pycache__", "understudy-demo", "understudy-results", "build", "dist"}
LEFT_OUT |= {".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache"}

PUBLIC = [
    "Certificate", "DiT", "Guarantee", "Ledger", "METHODS", "NoiseSource", "PETS", "PPEM", "Panel", "Plan",
    "PrivacyUnit", "Pub2Priv", "Release", "Schema", "Spectral", "UnderstudyError", "VFLGANTS", "Verification", "audit",
    "buy", "compare", "evaluate", "methods", "plan", "read_panel", "simulate_households", "synthesize", "verify",
    "write_panel",
]  # fmt: skip

# Written as expressions that do not match themselves.
FORBIDDEN = {
    "a path of somebody's machine": r"/(work|root|home|opt|Users)/\w|\bshared[/]",
    "a package host": r"pypi[.]org|python[h]osted|download[.]pytorch|index[-]url",
    "the name of an issue": r"\bissue [#]?\d|\(#\d+\)",
}
RUNS_CODE = r"import (pickle|dill)|joblib\.(load|dump)|torch\.(load|save)\(|allow_pickle=True|\beval\(|\bexec\("


def test_the_import_layers_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_the_privacy_core_and_the_data_room_load_without_torch() -> None:
    code = "import understudy.data, understudy.privacy, sys; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_the_public_names_are_these() -> None:
    import understudy

    assert sorted(understudy.__all__) == PUBLIC
    assert len(PUBLIC) <= 30
    for name in PUBLIC:
        assert getattr(understudy, name).__doc__ or name == "METHODS"


def test_no_module_is_a_drawer() -> None:
    assert not [path for path in SOURCE if path.stem in ("utils", "helpers", "common", "misc")]


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_no_file_holds(kind: str) -> None:
    assert _holding(FORBIDDEN[kind], _files()) == []


def test_a_forbidden_word_would_be_found() -> None:
    planted = ["/".join(["", "root", "x"]), "pypi" + ".org", "see issue " + "12"]
    for pattern, word in zip(FORBIDDEN.values(), planted, strict=True):
        assert re.search(pattern, word)


def test_the_package_reads_no_format_that_runs_code() -> None:
    assert _holding(RUNS_CODE, SOURCE) == []


def _holding(pattern: str, files: list[Path]) -> list[str]:
    found = []
    for path in files:
        text = path.read_text(encoding="utf-8", errors="ignore")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in re.finditer(pattern, text, re.MULTILINE)]
    return found


def _files() -> list[Path]:
    files = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in LEFT_OUT and not name.endswith(".egg-info")]
        files += [Path(folder) / name for name in names if name not in LEFT_OUT]  # .git is a file in a work tree
    return [path for path in files if path.suffix not in (".png", ".parquet")]


def test_tests_of_the_product_need_no_benchmark_but_the_instruments_of_audits() -> None:
    tests = sorted((ROOT / "tests").rglob("*.py"))
    instruments = [ROOT / "bench/src/understudy_bench/audit" / f"{name}.py" for name in ("canaries", "shift")]
    own = "understudy_" + "bench"  # split, since this file is read as well
    assert _holding(rf"(from|import) {own}(?!\.audit\.(canaries|shift) import)", tests) == []
    assert _holding(rf"(from|import) ({own}|opacus|pandas)", instruments) == []  # `make test` installs no more for them


def test_no_distribution_needs_the_tests() -> None:
    sources = [*SOURCE, *sorted((ROOT / "bench" / "src").rglob("*.py"))]
    assert _holding(r"^(from|import) tests\b", sources) == []
