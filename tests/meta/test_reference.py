"""The pages of reference are what the program says."""

import re

import pytest

import understudy
from scripts import reference


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.pages()


@pytest.mark.parametrize("name", ["command-line.md", "python.md", "schema.md"])
def test_a_page_of_reference_is_up_to_date(name: str, pages: dict[str, str]) -> None:
    written = (reference.FOLDER / name).read_text(encoding="utf-8")
    assert written == pages[name], "Run `.venv/bin/python scripts/reference.py`."


def test_the_folder_holds_these_pages_and_no_other(pages: dict[str, str]) -> None:
    assert {page.name for page in reference.FOLDER.iterdir()} == set(pages)


def test_keys_that_no_guide_explains_are_explained(pages: dict[str, str]) -> None:
    for key in ("off_grid", "series_column", "align", "out_of_bounds", "party", "count_epsilon"):
        assert re.search(rf"^\| `{key}` \| .* \| .{{20,}} \|$", pages["schema.md"], re.MULTILINE), key
    for kind in ("monotone", "sum", "zero-when"):
        assert f'kind = "{kind}"' in pages["schema.md"]
    assert "`reproduction`" in pages["python.md"]


def test_every_option_of_a_command_has_a_meaning(pages: dict[str, str]) -> None:
    assert pages["command-line.md"].count("\n| `--") > 100
    assert re.findall(r"^\| `.*` \|\s*\|$", pages["command-line.md"], re.MULTILINE) == []


def test_every_public_name_has_an_example() -> None:
    assert sorted(reference.examples()[1]) == sorted(understudy.__all__)
