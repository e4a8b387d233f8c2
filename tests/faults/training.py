"""A small private training that starts, or resumes where an earlier process died."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.faults.diary import DIARY

LEDGER = "toy.ledger"


def main(arguments: Sequence[str]) -> int:
    """Trains in the working directory: so many iterations, a checkpoint after each so many. Returns an exit code."""
    from understudy.errors import UnderstudyError

    try:
        print(_train(*(int(argument) for argument in arguments)))
    except (UnderstudyError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    return 0


def _train(iterations: int, block: int) -> float:
    """Returns how far the model stays from its target."""
    import torch

    from tests.unit.training.toy import TARGET, plan_of, regression_task
    from understudy.privacy.budget import Guarantee
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.noise import NoiseSource
    from understudy.privacy.plan import PlanEntry, SpendingPlan
    from understudy.training import Checkpoints, Optimisation, adam, train

    torch.set_num_threads(1)
    plan = plan_of(iterations=iterations, expected_batch=100.0)
    guarantee, noise, path = Guarantee(1e4, 1e-6), NoiseSource.secure(), Path(LEDGER)
    facts = {"name": "toy", "unit_sentence": "A unit.", "guarantee": guarantee}
    ledger = Ledger.open(path) if path.exists() else Ledger.create(path, **facts)
    spending = SpendingPlan((PlanEntry("training", plan.event),), guarantee)
    grant = ledger.resume(1, noise=noise) if ledger.entries() else ledger.charge(spending, label="run", noise=noise)
    task = regression_task(500, after_iteration=DIARY.note_iteration)
    saves = Checkpoints(directory=Path("saved"), every=block)
    train(task, plan, grant, optimisation=Optimisation(make=adam(0.05)), checkpoints=saves)
    return float((task.model.weight.detach() - TARGET).norm())
