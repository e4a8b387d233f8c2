"""A ledger file and a key at every point at which a process can die, the power can fail or the disk can refuse."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.faults.tracing import ERRORS, KILLS, Fault, run
from understudy.errors import UnderstudyError
from understudy.privacy import keys
from understudy.privacy.sqlite import Sqlite
from understudy.privacy.store import Store

FAULTS = (*(kind for kind in KILLS if kind != "kill after"), *ERRORS)  # after one point is before the next
FACTS = {"name": "meters"}


def told(folder: Path, act: object) -> int:
    """Runs `act` and writes down beside the folder what it complained of; 3 if it did."""
    try:
        act()  # type: ignore[operator]
    except (UnderstudyError, OSError) as problem:
        folder.with_suffix(".error").write_text(str(problem))
        return 3
    except BaseException as problem:
        print(repr(problem), file=sys.stderr)
        raise
    return 0


def words(folder: Path) -> str:
    error = folder.with_suffix(".error")
    return error.read_text() if error.exists() else ""


@pytest.mark.parametrize("kind", FAULTS)
def test_a_ledger_file_is_made_whole_or_not_at_all(kind: str, tmp_path: Path) -> None:
    def make(folder: Path) -> int:
        return told(folder, lambda: Store.create(Sqlite(folder / "x.ledger"), FACTS))

    counted = tmp_path / "count"
    counted.mkdir()
    for place in range(len(run(lambda: make(counted), [counted]).points)):
        folder = tmp_path / str(place)
        folder.mkdir()
        outcome = run(lambda folder=folder: make(folder), [folder], Fault(kind, place))
        if (folder / "x.ledger").exists():
            assert Store(Sqlite(folder / "x.ledger")).facts["name"] == "meters", f"{kind} at {place}"
        assert (folder / "x.ledger").exists() or outcome.code in (3, -9), f"{kind} at {place}"
        assert "damaged" not in words(folder), f"{kind} at {place}"


@pytest.mark.parametrize("kind", FAULTS)
def test_a_row_that_was_acknowledged_stays_and_a_failing_disk_is_not_called_damage(kind: str, tmp_path: Path) -> None:
    """Restoring an older copy would give budget back, so nobody is told to because a disk was full for a moment."""
    first = tmp_path / "first"
    first.mkdir()
    store = Store.create(Sqlite(first / "x.ledger"), FACTS)
    with store.writing() as writer:
        writer.append("charge", {"amount": 1})

    def charge(folder: Path) -> int:
        def twice() -> None:
            opened = Store(Sqlite(folder / "x.ledger"))
            for amount in (2, 3):
                with opened.writing(thorough=amount == 2) as writer:
                    writer.append("charge", {"amount": amount})
                folder.with_suffix(".granted").write_text(str(amount))

        return told(folder, twice)

    counted = tmp_path / "count"
    shutil.copytree(first, counted)
    for place in range(len(run(lambda: charge(counted), [counted]).points)):
        folder = tmp_path / str(place)
        shutil.copytree(first, folder)
        run(lambda folder=folder: charge(folder), [folder], Fault(kind, place))
        granted = folder.with_suffix(".granted")
        known = {row.body["amount"] for row in Store(Sqlite(folder / "x.ledger")).rows()}
        assert known >= {1} | ({int(granted.read_text())} if granted.exists() else set()), f"{kind} at {place}"
        assert "damaged" not in words(folder), f"{kind} at {place}"


@pytest.mark.parametrize("kind", FAULTS)
def test_a_key_is_made_whole_or_not_at_all(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty key under its final name would refuse every later run."""

    def make(folder: Path) -> int:
        monkeypatch.setenv("UNDERSTUDY_HOME", str(folder))
        return told(folder, lambda: keys.create("alice"))

    counted = tmp_path / "count"
    for place in range(len(run(lambda: make(counted), [counted]).points)):
        folder = tmp_path / str(place)
        run(lambda folder=folder: make(folder), [folder], Fault(kind, place))
        monkeypatch.setenv("UNDERSTUDY_HOME", str(folder))
        assert len(keys.trusted()) <= 1, f"{kind} at {place}"
        assert keys.load_or_create("alice").public.name == "alice"
