"""kill -9 again and again in one training, resumed each time: charged ≥ executed, and the model is as good."""

import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.invariants import account
from tests.faults.scenes import SCENES, Stage, staged
from tests.faults.server import Server
from tests.faults.tracing import Fault

START_ERROR = 2.3  # before training
ITERATIONS = 400
SCENE = replace(SCENES["training"], arguments=(str(ITERATIONS), "4"))
FARTHEST = 250  # changes of the disk that a process makes before it is killed: some seven blocks


def long_training(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = replace(staged("training", server, folder), scene=SCENE)
    stage.set_up()
    monkeypatch.setenv("UNDERSTUDY_HOME", str(stage.folder / "home"))
    return stage


def killed(stage: Stage, kills: int) -> float:
    """Kills the training so many times, lets it end, and returns its error."""
    executed = 0
    for _ in range(kills):
        report = stage.act(Fault("kill before", random.randrange(FARTHEST)))
        executed += report.executed
        assert report.code == -signal.SIGKILL, report.err
        assert executed <= account(stage).executed <= ITERATIONS
    report = stage.act()
    assert report.code == 0, report.err
    assert executed + report.executed <= account(stage).executed == ITERATIONS
    return float(report.out)


Train = Callable[[str], Stage]


@pytest.fixture
def training(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    return lambda name: long_training(server, tmp_path / name, monkeypatch)


def test_a_run_killed_a_few_times_is_charged_for_all_it_executed(training: Train) -> None:
    assert killed(training("killed"), 3) < 0.5 * START_ERROR


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_killed_fifty_times_is_charged_for_all_it_executed_and_learns_as_well(training: Train) -> None:
    error = killed(training("killed"), 50)
    whole = [killed(training(f"whole {index}"), 0) for index in range(5)]
    assert error < 0.5 * START_ERROR
    assert error <= max(whole) + 2 * (max(whole) - min(whole))
