"""No module outside the privacy core and training makes a private sum or adds noise to one."""

import ast
from pathlib import Path

from tests.meta.pages import ROOT

SOURCE = ROOT / "src" / "understudy"
INSIDE = ("privacy", "training")
CALLS = {"discrete_gaussian", "discrete_laplace", "clipped_sum", "partition_sum", "Bounded", "NormalReserve", "total"}
ALLOWED = {
    ("synthesizers/vflgan_ts/published.py", "NormalReserve"),  # the published rule: `NonPrivate`, and said so
}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in INSIDE)


def calls_of(path: Path) -> set[str]:
    """Names of all functions and methods that a module calls."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            found.add(getattr(node.func, "attr", getattr(node.func, "id", "")))
    return found


def test_no_module_sums_private_vectors_or_adds_noise() -> None:
    found = {(path.relative_to(SOURCE).as_posix(), call) for path in MODULES for call in calls_of(path) & CALLS}
    assert found == ALLOWED


def test_the_search_finds_such_calls() -> None:
    assert {"discrete_gaussian", "total"} <= calls_of(SOURCE / "privacy" / "grant.py")
