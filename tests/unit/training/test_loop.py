"""The private loop: it learns, it counts, it stops, it resumes, it shows nothing private."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.training.toy import (
    TARGET,
    grant_for,
    plan_of,
    regression_arrays,
    regression_task,
    squared_error,
    windows_of,
)
from understudy.errors import InputError, ReleaseError
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.training import Checkpoints, Optimisation, adam, train
from understudy.training.checkpoint import FILE

QUICK = plan_of(iterations=12)


def error_of(task: object) -> float:
    return float((task.model.weight.detach() - TARGET).norm())


def test_a_model_learns_under_noise() -> None:
    task = regression_task(500)
    before = error_of(task)
    plan = plan_of(iterations=150, expected_batch=100.0, clipping_norm=1.0)
    train(task, plan, grant_for(plan), optimisation=Optimisation(make=adam(0.05), warm_up=10))
    assert error_of(task) < 0.2 * before


def test_exactly_the_charged_iterations_are_executed() -> None:
    grant = grant_for(QUICK)
    train(regression_task(), QUICK, grant)
    assert grant.executed == {"training": 12}
    assert grant.remaining("training") == 0


def test_a_plan_other_than_the_charged_one_is_refused() -> None:
    with pytest.raises(InputError, match="charged under 'training'"):
        train(regression_task(), plan_of(iterations=13), grant_for(QUICK))


def test_no_units_at_all_trains_on_noise() -> None:
    task = regression_task(windows=windows_of({"x": np.zeros((0, 3), np.float32), "y": np.zeros((0, 1), np.float32)}))
    before = task.model.weight.detach().clone()
    train(task, QUICK, grant_for(QUICK))
    assert not torch.equal(task.model.weight, before)


def test_the_learning_rate_warms_up() -> None:
    moves = []
    for warm_up in (0, 100):
        task = regression_task()
        before = task.model.weight.detach().clone()
        train(task, QUICK, grant_for(QUICK), optimisation=Optimisation(make=adam(0.1), warm_up=warm_up))
        moves.append(float((task.model.weight.detach() - before).norm()))
    assert moves[1] < 0.2 * moves[0]


def test_the_running_average_becomes_the_model() -> None:
    last, averaged = regression_task(), regression_task()
    for task, decay in ((last, None), (averaged, 0.9)):
        optimisation = Optimisation(make=adam(0.1), average_decay=decay)
        train(task, QUICK, grant_for(QUICK, NoiseSource.seeded(4)), optimisation=optimisation)
    start = regression_task().model.weight.detach()
    moved = [float((task.model.weight.detach() - start).norm()) for task in (averaged, last)]
    assert moved[0] < moved[1]


def test_post_processing_runs_every_iteration() -> None:
    seen: list[int] = []
    train(regression_task(after_iteration=seen.append), QUICK, grant_for(QUICK))
    assert seen == list(range(1, 13))


def test_a_model_in_double_precision_stays_so() -> None:
    arrays = {name: array.astype(np.float64) for name, array in regression_arrays(50).items()}
    task = regression_task(model=nn.Linear(3, 1).double(), windows=windows_of(arrays), loss=squared_error)
    train(task, QUICK, grant_for(QUICK))
    assert task.model.weight.dtype == torch.float64


def test_progress_tells_iterations_and_nothing_else() -> None:
    told = []
    train(regression_task(), QUICK, grant_for(QUICK), progress=lambda done, planned: told.append((done, planned)))
    assert told == [(done, 12) for done in range(1, 13)]


def ledger_and_plan(directory: Path) -> tuple[Ledger, SpendingPlan]:
    guarantee = Guarantee(1e4, 1e-6)
    ledger = Ledger.create(directory / "toy.ledger", name="toy", unit_sentence="A unit.", guarantee=guarantee)
    return ledger, SpendingPlan((PlanEntry("training", QUICK.event),), guarantee)


class Stop(Exception):
    pass


def stop_after(iterations: int):
    def stop(done: int) -> None:
        if done == iterations:
            raise Stop

    return stop


def test_a_stopped_run_resumes_from_its_checkpoint_and_lost_iterations_stay_counted(tmp_path: Path) -> None:
    ledger, spending = ledger_and_plan(tmp_path)
    grant = ledger.charge(spending, label="run", noise=NoiseSource.secure())
    saves = Checkpoints(directory=tmp_path / "saved", every=5)
    with pytest.raises(Stop):
        train(regression_task(after_iteration=stop_after(7)), QUICK, grant, checkpoints=saves)
    assert ledger.entries()[0].executed == {"training": 10}  # two blocks were begun
    done = []
    resumed = ledger.resume(1, noise=NoiseSource.secure())
    train(regression_task(after_iteration=done.append), QUICK, resumed, checkpoints=saves)
    assert done == [6, 7]  # five were saved, five are lost, two were left
    assert ledger.entries()[0].executed == {"training": 12}


def test_a_finished_run_resumes_to_the_same_model_without_touching_data(tmp_path: Path) -> None:
    ledger, spending = ledger_and_plan(tmp_path)
    saves = Checkpoints(directory=tmp_path / "saved", every=5)
    optimisation = Optimisation(average_decay=0.9)
    first, second = regression_task(), regression_task()
    grant = ledger.charge(spending, label="run", noise=NoiseSource.secure())
    train(first, QUICK, grant, checkpoints=saves, optimisation=optimisation)
    train(second, QUICK, ledger.resume(1, noise=NoiseSource.secure()), checkpoints=saves, optimisation=optimisation)
    assert torch.equal(first.model.weight, second.model.weight)


def test_a_resumed_run_draws_other_noise(tmp_path: Path) -> None:
    ledger, spending = ledger_and_plan(tmp_path)
    grant = ledger.charge(spending, label="run", noise=NoiseSource.secure())
    saves = Checkpoints(directory=tmp_path / "saved", every=6)
    with pytest.raises(Stop):
        train(regression_task(after_iteration=stop_after(7)), QUICK, grant, checkpoints=saves)
    saved = (tmp_path / "saved" / FILE).read_bytes()
    finals = []
    for copy in range(2):
        folder = tmp_path / f"copy {copy}"
        folder.mkdir()
        (folder / FILE).write_bytes(saved)
        other = Ledger.in_memory(Guarantee(1e4, 1e-6), name="toy")
        again = other.charge(spending, label="run", noise=NoiseSource.secure())
        again.begin_block("training", 6)
        task = regression_task()
        train(task, QUICK, again, checkpoints=Checkpoints(directory=folder, every=6))
        finals.append(task.model.weight.detach().clone())
    assert not torch.equal(*finals)
    assert b"key" not in saved.lower()


def test_a_checkpoint_of_another_run_or_ahead_of_its_ledger_is_refused(tmp_path: Path) -> None:
    saves = Checkpoints(directory=tmp_path, every=5)
    train(regression_task(), QUICK, grant_for(QUICK), checkpoints=saves)
    with pytest.raises(ReleaseError, match="ahead of its ledger"):
        train(regression_task(), QUICK, grant_for(QUICK), checkpoints=saves)
    other = plan_of(iterations=12, noise_multiplier=2.0)
    with pytest.raises(ReleaseError, match="another run"):
        train(regression_task(), other, grant_for(other), checkpoints=saves)


def test_a_damaged_checkpoint_is_named_and_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00not a header....")
    with pytest.raises(ReleaseError, match="can't be read"):
        train(regression_task(), QUICK, grant_for(QUICK), checkpoints=Checkpoints(directory=tmp_path))
