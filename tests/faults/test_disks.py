"""Disks that are full or read-only: real ones where this process may mount them, else as the layer imitates them.

The imitation runs everywhere, in `test_crashes`; names in brackets say which disk a test had.
"""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.invariants import Account, account, check_charged, check_told, check_whole
from tests.faults.scenes import Stage
from tests.faults.server import Report
from tests.faults.tracing import Fault
from tests.faults.ways import TRUSTING

SIZES = range(72, 200, 12)  # KiB: what is there before the run fits, and at some point the run does
NOBODY = Account(())


def _may_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        try:
            with mounted(Path(folder), "size=64k"):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """Lays a small disk in memory over a folder."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


REAL = ["tmpfs"] if _may_mount() else []


@pytest.mark.parametrize("disk", REAL or ["imitated"])
def test_a_disk_that_fills_up_on_the_way_leaves_everything_charged_and_whole(
    disk: str, stage: Callable[[str], Stage]
) -> None:
    built = stage("synth")
    failed = []
    for size in SIZES:
        if disk == "tmpfs":
            built.folder.mkdir(exist_ok=True)
            with mounted(built.folder, f"size={size}k"):
                built.refill()
                report = built.act(way=(TRUSTING,))
                _remount(built.folder, "size=2m")  # checks need room
                failed.append(_check(built, report))
        else:
            built.set_up()
            failed.append(_check(built, built.act(Fault("ENOSPC", 2 * size), way=(TRUSTING,))))
    assert 3 <= sum(failed) < len(failed), f"the disk filled up {sum(failed)} times"


def _check(stage: Stage, report: Report) -> bool:
    """Returns whether the run failed."""
    now = check_charged(stage, NOBODY, report)
    check_whole(stage)
    check_told(NOBODY, now, report)
    return report.code != 0


@pytest.mark.parametrize("disk", REAL)
def test_a_disk_that_is_read_only_from_the_start_is_refused_and_nothing_changes(
    disk: str, stage: Callable[[str], Stage]
) -> None:
    built = stage("synth again")
    built.folder.mkdir()
    with mounted(built.folder, "size=100m"):
        built.refill()
        before = _files(built.folder)
        _remount(built.folder, "ro")
        report = built.act()
        assert report.code == 2
        check_told(NOBODY, NOBODY, report)
        assert _files(built.folder) == before
        _remount(built.folder, "rw")
        assert len(account(built).entries) == 1
        assert built.act().code == 0


def test_a_disk_that_is_read_only_from_the_start_as_imitated_is_refused_too(stage: Callable[[str], Stage]) -> None:
    built = stage("synth again")
    built.set_up()
    before = _files(built.folder)
    report = built.act(Fault("EROFS", 0))
    assert report.code == 2
    check_told(NOBODY, NOBODY, report)
    assert _files(built.folder) == before
    assert built.act().code == 0


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
