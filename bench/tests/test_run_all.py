"""Of an earlier record whole results of the same scale are taken over, and nothing that is there is replaced."""

import json
from pathlib import Path

import pytest
from understudy_bench.cli import Scale
from understudy_bench.run_all import _in_turn, _take_over


def _write(folder: Path, scale: str = "quick", **data: str) -> str:
    folder.mkdir(exist_ok=True)
    found = {"name": "cost-voting", "scale": scale, "data": {"name": "numbers", **data}, "rows": [], "controls": []}
    text = json.dumps(found, indent=2) + "\n"
    (folder / "cost-voting.json").write_text(text)
    return text


@pytest.mark.parametrize(
    ("scale", "data", "taken"),
    [("quick", {}, True), ("target", {}, False), ("quick", {"kept": "in three digits"}, False)],
)
def test_what_an_earlier_record_holds_whole_is_taken(
    tmp_path: Path, scale: str, data: dict[str, str], taken: bool
) -> None:
    text, into = _write(tmp_path / "record", scale, **data), tmp_path / "results"
    into.mkdir()
    _take_over(tmp_path / "record", into, Scale.quick)
    assert [file.read_text() for file in into.iterdir()] == [text] * taken


def test_what_is_there_already_is_left_as_it_is(tmp_path: Path) -> None:
    _write(tmp_path / "record")
    own = _write(tmp_path / "results", name="other numbers")
    _take_over(tmp_path / "record", tmp_path / "results", Scale.quick)
    assert (tmp_path / "results" / "cost-voting.json").read_text() == own


def test_the_longest_are_begun_first_and_those_of_cost_run_alone() -> None:
    alone, others = _in_turn(["cost-a", "pets-b", "record-c", "vertical-d", "record-e"])
    assert alone == ["cost-a"]
    assert others == ["record-c", "record-e", "pets-b", "vertical-d"]
