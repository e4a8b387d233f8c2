"""Files and folders are there whole or not at all, whenever the process dies, the power fails or the disk does."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.tracing import ERRORS, KILLS, Fault, run
from understudy.files import sync, whole_file, whole_folder

FAULTS = (*KILLS, *ERRORS)
OLD, NEW = "old " * 9, "new " * 9


def replaced(folder: Path) -> int:
    with whole_file(folder / "page") as draft:
        draft.write_text(NEW)
    return 0


def made(folder: Path) -> int:
    with whole_file(folder / "fresh", replace=False) as draft:
        draft.write_text(NEW)
    return 0


def filled(folder: Path) -> int:
    with whole_folder(folder / "release") as draft:
        (draft / "inner").mkdir()
        for name in ("model", "inner/table"):
            (draft / name).write_text(NEW)
    return 0


def places(act: Callable[[Path], int], folder: Path) -> int:
    folder.mkdir()
    return len(run(lambda: act(folder), [folder]).points)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_file_is_the_old_one_or_the_new_one(kind: str, tmp_path: Path) -> None:
    for place in range(places(replaced, tmp_path / "count")):
        folder = tmp_path / str(place)
        folder.mkdir()
        (folder / "page").write_text(OLD)
        sync(folder / "page")
        outcome = run(lambda folder=folder: replaced(folder), [folder], Fault(kind, place))
        text = (folder / "page").read_text()
        assert text in (OLD, NEW)
        assert text == NEW or outcome.code != 0


@pytest.mark.parametrize("kind", FAULTS)
def test_a_new_file_is_whole_or_absent_and_its_writer_never_believes_otherwise(kind: str, tmp_path: Path) -> None:
    for place in range(places(made, tmp_path / "count")):
        folder = tmp_path / str(place)
        folder.mkdir()
        outcome = run(lambda folder=folder: made(folder), [folder], Fault(kind, place))
        there = (folder / "fresh").exists()
        assert not there or (folder / "fresh").read_text() == NEW
        assert there or outcome.code != 0


@pytest.mark.parametrize("kind", FAULTS)
def test_a_folder_is_whole_or_absent(kind: str, tmp_path: Path) -> None:
    for place in range(places(filled, tmp_path / "count")):
        folder = tmp_path / str(place)
        folder.mkdir()
        outcome = run(lambda folder=folder: filled(folder), [folder], Fault(kind, place))
        release = folder / "release"
        if release.exists():
            assert [(release / name).read_text() for name in ("model", "inner/table")] == [NEW, NEW]
        assert release.exists() or outcome.code != 0


@pytest.mark.parametrize("name", ["page", "a[1].csv"])
def test_nothing_is_left_of_a_block_that_fails(name: str, tmp_path: Path) -> None:
    def fail(draft: Path) -> None:
        draft.write_text("half")
        raise KeyError

    with pytest.raises(KeyError), whole_file(tmp_path / name) as draft:
        fail(draft)
    with pytest.raises(KeyError), whole_folder(tmp_path / name) as folder:
        fail(folder / "half")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_never_replaces_one_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "fresh").write_text(OLD)
    with pytest.raises(FileExistsError):
        made(tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("fresh", OLD)]


def test_a_folder_is_private_until_it_is_whole(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "release") as draft:
        assert stat.S_IMODE(draft.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "release").stat().st_mode) == 0o755


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "gone" / "page") as draft:
        draft.write_text(NEW)
    assert caught.value.filename == str(tmp_path / "gone" / "page")
