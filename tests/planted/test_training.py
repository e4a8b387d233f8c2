"""Recognisable values in private windows are in nothing that private training writes."""

from pathlib import Path

import numpy as np

from tests.planted.search import VALUE, Finding, Planted, found
from tests.unit.training.toy import plan_of, regression_arrays, regression_task, windows_of
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.training import Checkpoints, train

NUMBERS = (6.283181, 2.718281, 3.141591)
PLANTED = Planted(numbers=NUMBERS)


def trained(folder: Path, *, leak: bool = False) -> list[Finding]:
    """Trains on windows of which every row of x is planted; a leak saves one of them beside the checkpoint."""
    arrays = regression_arrays(50)
    arrays["x"][:] = np.array(NUMBERS, dtype=np.float32)
    task = regression_task(windows=windows_of(arrays))
    plan, guarantee = plan_of(iterations=6), Guarantee(1e4, 1e-6)
    spending = SpendingPlan((PlanEntry("training", plan.event),), guarantee)
    ledger = Ledger.create(folder / "toy.ledger", name="toy", unit_sentence="A unit.", guarantee=guarantee)
    grant = ledger.charge(spending, label="run", noise=NoiseSource.secure())
    train(task, plan, grant, checkpoints=Checkpoints(directory=folder / "saved", every=2))
    if leak:
        np.save(folder / "saved" / "batch.npy", arrays["x"][:1])
    return found(folder, PLANTED)


def test_checkpoints_and_ledger_hold_nothing_planted(tmp_path: Path) -> None:
    assert trained(tmp_path) == []


def test_a_saved_batch_would_be_found(tmp_path: Path) -> None:
    """Negative control."""
    assert {finding.what for finding in trained(tmp_path, leak=True) if finding.how == VALUE} == {*map(str, NUMBERS)}
