"""The pages say what is so: links lead somewhere, claims name tests that exist, commands are real."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
import typer

from tests.meta.pages import CLAIMS, PAGES, ROOT, anchors, blocks, links, name

EXPECTED = [
    "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "CITATION.cff", "LICENSE",
    "docs/tour.md", "docs/choosing-a-method.md", "docs/privacy-unit.md", "docs/sharp-edges.md",
    "docs/known-limits.md", "docs/glossary.md", "docs/dependencies.md", "bench/README.md",
]  # fmt: skip
CLAIM_OF = {
    "Gaussian": "gaussian",
    "DiscreteGaussian": "discrete-gaussian",
    "SubsampledGaussian": "poisson-subsampled-gaussian",
    "MixtureOfGaussians": "mixture-of-gaussians",
    "PureDP": "exponential-quantile",
    "ApproximateDP": "stability-domain",
}
CLAIMS_NOTHING = {"NonPrivate"}


@pytest.mark.parametrize("page", EXPECTED)
def test_the_page_is_there(page: str) -> None:
    assert (ROOT / page).stat().st_size > 200


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_resolve(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name(page)} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{name(page)} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_named_in_prose_exist(page: Path) -> None:
    from understudy.cli.app import app

    existing = set(typer.main.get_command(app).commands)
    named = set(re.findall(r"`(?:\$ )?understudy ([a-z]+)", page.read_text(encoding="utf-8")))
    assert named <= existing, f"{name(page)} names commands that do not exist: {named - existing}"


def test_there_are_claims_pages() -> None:
    assert len(CLAIMS) >= 3


@pytest.mark.parametrize("page", CLAIMS, ids=name)
def test_a_claims_page_names_tests_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"\btest_\w+(?!\.py)\b", text)) - set(re.findall(r"\b(test_\w+)\.py", text))
    assert named, f"{name(page)} names no test: a claim is a number that a test can refute."
    assert named <= _all_tests(), f"{name(page)} names tests that do not exist: {sorted(named - _all_tests())}"
    assert all((ROOT / path).exists() for path in re.findall(r"(?:bench/)?\btests/[\w/]+\.py", text))


def test_every_event_that_can_be_charged_has_a_claims_page() -> None:
    from understudy.privacy import events

    kinds = {kind.__name__ for kind in events.Event.__subclasses__()}
    assert kinds - CLAIMS_NOTHING == set(CLAIM_OF)
    assert set(CLAIM_OF.values()) <= {page.stem for page in CLAIMS}


@pytest.mark.parametrize("page", sorted((ROOT / "docs/adr").glob("*.md")), ids=name)
def test_a_decision_record_is_numbered_short_and_complete(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", page.name)
    assert len(text.splitlines()) <= 60
    for part in ("## Why", "## What was decided", "## Consequences"):
        assert part in text, f"{name(page)} lacks '{part}'"


def test_schemas_printed_in_the_pages_load() -> None:
    from understudy.data import Schema

    printed = [block for page in PAGES for block in blocks(page, "toml") if "[time]" in block]
    assert printed
    for block in printed:
        Schema.loads(block)


def test_every_dependency_has_a_line_and_a_pin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    pins = {_plain(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    extra_packages = [
        package for extra in extras.values() for package in extra if not package.startswith("understudy[")
    ]
    for requirement in [*project["dependencies"], *extra_packages]:
        package = re.split(r"[\[<>=~!; ]", requirement)[0]
        assert f"| {package} |" in page, f"docs/dependencies.md has no line for {package}"
    for requirement in [*project["dependencies"], *(one for one in extra_packages if one not in extras["flower"])]:
        package = re.split(r"[\[<>=~!; ]", requirement)[0]
        assert _plain(package) in pins, f"constraints.txt does not pin {package}"


def test_torch_is_pinned_and_one_version_is_told_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().splitlines()
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{version}]" in changelog
    assert "### Privacy" in changelog


def test_the_citation_names_the_authors_of_the_package() -> None:
    (author,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["authors"]
    assert f"authors:\n  - name: {author['name']}\n" in (ROOT / "CITATION.cff").read_text()


def _plain(package: str) -> str:
    return package.lower().replace("_", "-")


@cache
def _all_tests() -> set[str]:
    files = [path for folder in ("tests", "bench/tests") for path in (ROOT / folder).rglob("test_*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
