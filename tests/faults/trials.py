"""One trial: a command meets a fault, and everything that has to hold afterwards is looked at."""

import random
import signal
from collections.abc import Iterable

from tests.faults.invariants import Account, account, check_charged, check_one_can_go_on, check_told, check_whole
from tests.faults.scenes import Stage
from tests.faults.tracing import KILLS, Fault


def points(stage: Stage) -> list[str]:
    """Runs the scene's command without a fault and returns its changes of the disk."""
    stage.set_up()
    before = account(stage)
    report = stage.act()
    assert report.code == 0, report.err
    check_charged(stage, before, report)
    check_whole(stage)
    return report.points


def spread(total: int, number: int) -> list[int]:
    """Returns about so many places among `total`, evenly spread from a random one on."""
    step = max(1, total // number)
    return list(range(random.randrange(step), total, step))


def survive(stage: Stage, fault: Fault, *, way: tuple[str, ...] = (), again: bool = True) -> None:
    """Lets the command meet the fault and checks what is left; `again` also runs it once more."""
    stage.set_up()
    before = _as_it_was(stage)
    report = stage.act(fault, way=way)
    try:
        if fault.kind in KILLS:
            assert report.code == -signal.SIGKILL, f"ended with {report.code}: {report.err}"
        now = check_charged(stage, before, report)
        check_whole(stage)
        if fault.kind not in KILLS:
            check_told(before, now, report)
        if again:
            check_one_can_go_on(stage, before)
    except Exception as problem:
        where = report.points[fault.place] if fault.place < len(report.points) else "nowhere"
        problem.add_note(f"{fault.kind} at change {fault.place} of the disk ({where}); {report.err}")
        raise


def survive_all(stage: Stage, kinds: Iterable[str], places: Iterable[int], *, often: int = 1) -> int:
    """Tries every kind of fault at every place, going on afterwards every `often` times. Returns the trials."""
    faults = [Fault(kind, place) for kind in kinds for place in places]
    for number, fault in enumerate(faults):
        survive(stage, fault, again=number % often == 0)
    return len(faults)


def _as_it_was(stage: Stage) -> Account:
    """Reads the account without leaving a trace: opening a ledger registers it."""
    found = account(stage)
    stage.set_up()
    return found
