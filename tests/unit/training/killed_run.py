"""A training process for the kill tests: resumes if it can, writes every executed iteration down first.

Usage: python -m tests.unit.training.killed_run <directory> <seconds per iteration>
"""

import os
import sys
import time
from pathlib import Path

import torch

from tests.unit.training.toy import TARGET, plan_of, regression_task
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.training import Checkpoints, Optimisation, adam, train

PLAN = plan_of(iterations=400, expected_batch=100.0)


def main(directory: Path, pause: float) -> None:
    torch.set_num_threads(1)
    guarantee, noise = Guarantee(1e4, 1e-6), NoiseSource.secure()
    path = directory / "toy.ledger"
    if path.exists():
        ledger = Ledger.open(path)
    else:
        ledger = Ledger.create(path, name=str(directory), unit_sentence="A unit.", guarantee=guarantee)
    spending = SpendingPlan((PlanEntry("training", PLAN.event),), guarantee)
    grant = ledger.resume(1, noise=noise) if ledger.entries() else ledger.charge(spending, label="run", noise=noise)
    diary = os.open(directory / "executed", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(done: int) -> None:
        os.write(diary, b".")
        time.sleep(pause)

    task = regression_task(500, after_iteration=note)
    saves = Checkpoints(directory=directory / "saved", every=4)
    train(task, PLAN, grant, optimisation=Optimisation(make=adam(0.05)), checkpoints=saves)
    error = float((task.model.weight.detach() - TARGET).norm())
    (directory / "result").write_text(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
