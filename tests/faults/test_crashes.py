"""kill -9, power cuts and failing disks at the changes a command makes: no under-charge, nothing half-written.

`make test` tries some places, spread over the run; `make test-all` tries each. A trial that fails names its place.
"""

from collections.abc import Callable

import pytest

from tests.faults.invariants import account, check_charged, check_told
from tests.faults.scenes import SCENES, Stage
from tests.faults.tracing import ERRORS, KILLS, Fault
from tests.faults.trials import points, spread, survive_all

QUICK = ("synth", "buy bounds", "sample parquet", "keys create", "training")
Build = Callable[[str], Stage]


@pytest.mark.parametrize("scene", QUICK)
def test_a_process_killed_now_and_then_leaves_everything_charged_and_whole(scene: str, stage: Build) -> None:
    built = stage(scene)
    total = len(points(built))
    for kind in KILLS:
        survive_all(built, [kind], spread(total, 2), often=2)


@pytest.mark.parametrize("scene", QUICK)
def test_a_disk_that_fails_now_and_then_is_told_in_one_line_and_costs_what_is_said(scene: str, stage: Build) -> None:
    built = stage(scene)
    total = len(points(built))
    for kind in ERRORS:
        survive_all(built, [kind], spread(total, 2), often=2)


def test_an_error_after_the_charge_says_that_the_charge_stays(stage: Build) -> None:
    """The run is charged and the last note into the ledger fails; nothing may sound as if it had been free."""
    built = stage("synth again")
    last = max(place for place, name in enumerate(points(built)) if name == "open clinic.ledger-journal")
    built.set_up()
    before = account(built)
    built.set_up()
    report = built.act(Fault("EIO", last))
    assert report.code == 2
    assert "stays charged" in report.err
    check_told(before, check_charged(built, before, report), report)


def test_a_crash_between_ledger_and_registry_loses_no_charge_and_locks_nobody_out(stage: Build) -> None:
    """The registry learns of a charge after the ledger has it; going on afterwards works, and is charged."""
    built = stage("synth again")
    found = points(built)
    begin = found.index("open populations.sqlite-journal")
    end = found.index("unlink populations.sqlite-journal", begin)
    survive_all(built, ["kill before"], range(begin, end + 2, 3))
    survive_all(built, ["power cut"], (begin, end))


def test_a_run_that_fails_leaves_no_list_of_kept_out_units(stage: Build) -> None:
    """The list holds identifiers; it is written before the release, and without one it has no purpose."""
    built = stage("synth")
    found = points(built)
    assert (built.clinic / "release.holdout.csv").exists()
    for place in (found.index("open model.safetensors"), found.index("rename release")):
        built.set_up()
        assert built.act(Fault("EIO", place)).code == 2
        assert not (built.clinic / "release").exists()
        assert not list(built.clinic.glob("*release.holdout*"))


EVERY_POINT = pytest.mark.timeout(3600)
STANDING_FOR_ALL = ["synth", "buy bounds", "sample parquet", "certificate", "keys create", "training"]


@pytest.mark.slow
@EVERY_POINT
@pytest.mark.parametrize("scene", SCENES)
def test_a_process_killed_before_any_point_leaves_everything_charged_and_whole(scene: str, stage: Build) -> None:
    built = stage(scene)
    survive_all(built, ["kill before"], range(len(points(built))), often=3)


@pytest.mark.slow
@EVERY_POINT
def test_a_run_killed_after_any_point_leaves_everything_charged_and_whole(stage: Build) -> None:
    """The disk is as before the next point; what the process did in between, it did for nobody."""
    built = stage("synth")
    survive_all(built, ["kill after"], range(len(points(built))), often=3)


@pytest.mark.slow
@EVERY_POINT
@pytest.mark.parametrize("scene", STANDING_FOR_ALL)
def test_a_torn_write_or_a_power_cut_at_any_point_leaves_everything_charged_and_whole(scene: str, stage: Build) -> None:
    built = stage(scene)
    found = points(built)
    survive_all(built, ["torn write"], [n for n, name in enumerate(found) if name.startswith("write ")], often=9)
    survive_all(built, ["power cut"], range(len(found)), often=3)


@pytest.mark.slow
@EVERY_POINT
@pytest.mark.parametrize("scene", STANDING_FOR_ALL)
def test_a_disk_that_fails_at_any_point_is_told_in_one_line_and_costs_what_is_said(scene: str, stage: Build) -> None:
    """A bad sector strikes once, at every point; a disk that fills up or goes read-only from every third point on."""
    built = stage(scene)
    total = len(points(built))
    survive_all(built, ["EIO"], range(total), often=3)
    survive_all(built, ["ENOSPC", "EROFS"], range(0, total, 3), often=3)


@pytest.mark.slow
def test_these_are_more_than_a_thousand_kills(stage: Build) -> None:
    """Counts the points again: a process is killed before each, and those of `synth` once more after each."""
    found = {scene: len(points(stage(scene))) for scene in SCENES}
    assert sum(found.values()) + found["synth"] > 1000
