"""The fault-injecting layer does what it says, and the checks after a crash notice what they should."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.faults.careless import MAIN
from tests.faults.scenes import Stage
from tests.faults.tracing import ERRORS, KILLS, Fault, run
from tests.faults.trials import points, spread, survive


def written_and_renamed(folder: Path) -> Callable[[], int]:
    def act() -> int:
        (folder / "draft").write_text("hello world")
        (folder / "draft").rename(folder / "whole")
        return 0

    return act


LEFT = {
    ("kill before", 0): {},
    ("kill before", 1): {"draft": ""},
    ("kill before", 2): {"draft": "hello world"},
    ("kill after", 0): {"draft": ""},
    ("kill after", 1): {"draft": "hello world"},
    ("kill after", 2): {"whole": "hello world"},
    ("torn write", 1): {"draft": "hello"},
    ("power cut", 1): {"draft": ""},
    ("power cut", 2): {"whole": ""},
    ("ENOSPC", 0): {},
    ("ENOSPC", 1): {"draft": ""},
    ("EROFS", 2): {"draft": "hello world"},
    ("EIO", 2): {"draft": "hello world"},
}


def test_every_change_of_the_disk_is_counted(tmp_path: Path) -> None:
    outcome = run(written_and_renamed(tmp_path), [tmp_path])
    assert outcome.code == 0
    assert outcome.points == ["open draft", "write draft", "rename whole"]


@pytest.mark.parametrize(("kind", "place"), LEFT)
def test_a_fault_strikes_exactly_where_it_was_asked_to(kind: str, place: int, tmp_path: Path) -> None:
    outcome = run(written_and_renamed(tmp_path), [tmp_path], Fault(kind, place))
    assert (outcome.code == -9) == (kind in KILLS)
    assert (outcome.code > 0) == (kind in ERRORS)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == LEFT[kind, place]


def test_a_power_cut_takes_only_what_was_not_synced(tmp_path: Path) -> None:
    def act() -> int:
        for name in ("synced", "lost"):
            with (tmp_path / name).open("w") as file:
                file.write("first")
                file.flush()
                if name == "synced":
                    os.fsync(file.fileno())
        (tmp_path / "last").mkdir()
        return 0

    place = run(act, [tmp_path]).points.index("mkdir last")
    (tmp_path / "last").rmdir()
    (tmp_path / "synced").unlink()
    (tmp_path / "lost").unlink()
    (tmp_path / "older").write_text("was there before")
    run(act, [tmp_path], Fault("power cut", place))
    assert (tmp_path / "synced").read_text() == "first"
    assert (tmp_path / "lost").read_text() == ""
    assert (tmp_path / "older").read_text() == "was there before"


def test_native_code_is_seen_and_other_folders_are_not(tmp_path: Path) -> None:
    watched, other = tmp_path / "watched", tmp_path / "other"
    watched.mkdir()
    other.mkdir()

    def act() -> int:
        pq.write_table(pa.table({"x": [1.0]}), watched / "table.parquet")
        connection = sqlite3.connect(watched / "rows.sqlite")
        connection.execute("CREATE TABLE rows (x)")
        connection.commit()
        (other / "file").write_text("nobody looks here")
        return 0

    found = run(act, [watched]).points
    assert {"write table.parquet", "write rows.sqlite", "sync rows.sqlite"} <= set(found)
    assert not any("file" in name for name in found)


MISTAKES = {
    "write in place": ("keys create", "kill before"),
    "never sync": ("synth again", "power cut"),
    "charge at the end": ("synth again", "kill before"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_checks_after_a_crash_would_notice(mistake: str, stage: Callable[[str], Stage]) -> None:
    """Negative control: the same trials on a package with a mistake in it; some crash has to bring it to light."""
    scene, kind = MISTAKES[mistake]
    built = stage(scene)
    total, caught = len(points(built)), []
    for place in spread(total, 40):
        try:
            survive(built, Fault(kind, place), way=(MAIN, mistake), again=False)
        except Exception as problem:
            caught.append(problem)
            break
    assert caught, "no crash brought the mistake to light"
