"""One person more or less changes nothing in a log, a run record or a metrics file but times and memory."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import MAGIC_PERSON, MAGIC_VALUE, Rows, run
from tests.twins.test_commands import as_it_is, clinic_with, one_less, one_more
from understudy.api import synthesis
from understudy.cli.console import note

LEFT = ("--log-json", "log.jsonl", "--run-record", "run.json", "--metrics", "run.prom")
BUY = ("buy", "categories", "clinic.csv", "--schema", "wards.toml", "--column", "ward", "--epsilon", "20")
SYNTH = ("synth", "clinic.csv", "--schema", "schema.toml", "--epsilon", "0.5", "--out", "release")
CHANGING = {"at", "started", "ended", "seconds", "processor_seconds", "peak_bytes"}


def left_by(folder: Path, edit: Callable[[Rows], Rows], command: tuple[str, ...], patch: pytest.MonkeyPatch) -> Any:
    """Returns what a command leaves for machines, without times and memory."""
    clinic_with(folder, edit)
    with patch.context() as inside:
        inside.chdir(folder)
        inside.setenv("UNDERSTUDY_HOME", str(folder / "home"))
        assert run(*command, *LEFT).code == 0
    texts = [(folder / name).read_text() for name in LEFT[1::2]]
    for private in (MAGIC_PERSON, MAGIC_VALUE, str(folder)):
        assert not any(private in text for text in texts)
    log, record, metrics = texts
    figures = re.sub(r"(?m)^(\S+_(?:seconds|bytes)) .*$", r"\1", metrics)
    return [_still(json.loads(line)) for line in log.splitlines()], _still(json.loads(record)), figures


def _still(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _still(one) for name, one in found.items() if name not in CHANGING}
    return [_still(one) for one in found] if isinstance(found, list) else found


@pytest.mark.parametrize("command", [SYNTH, (*BUY, "--out", "bought.toml")], ids=["synth", "buy"])
def test_neighbours_leave_the_same(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = left_by(tmp_path / "as it is", as_it_is, command, monkeypatch)
    assert [event["event"] for event in first[0]][:1] == ["started"]
    assert first[1]["charges"]
    assert left_by(tmp_path / "one more", one_more("north"), command, monkeypatch) == first
    assert left_by(tmp_path / "one less", one_less, command, monkeypatch) == first


def test_a_count_in_a_log_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a stage that tells how many persons there are."""
    split = synthesis.split_table

    def telling(table: Any, *more: Any) -> Iterator[Any]:
        note("stage", stage=f"{table.num_units} units")
        return split(table, *more)

    monkeypatch.setattr(synthesis, "split_table", telling)
    first = left_by(tmp_path / "as it is", as_it_is, SYNTH, monkeypatch)
    assert left_by(tmp_path / "one more", one_more("north"), SYNTH, monkeypatch) != first
