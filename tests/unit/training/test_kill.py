"""kill -9 at random moments of training, resumed each time: charged ≥ executed, and the model is as good."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.training.killed_run import PLAN
from understudy.privacy.ledger import Ledger

START_ERROR = 2.3  # before training


def start(directory: Path, pause: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.unit.training.killed_run", str(directory), str(pause)]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})


def executed(directory: Path) -> int:
    diary = directory / "executed"
    return diary.stat().st_size if diary.exists() else 0


def charged(directory: Path) -> int:
    entries = Ledger.open(directory / "toy.ledger").entries() if (directory / "toy.ledger").exists() else ()
    return entries[0].executed.get("training", 0) if entries else 0


def kill_at_a_random_moment(directory: Path, rng: random.Random) -> None:
    process, before = start(directory, 0.01), executed(directory)
    try:
        while executed(directory) == before and process.poll() is None:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()


def result_of(directory: Path) -> float:
    directory.mkdir(exist_ok=True)
    assert start(directory, 0.0).wait() == 0
    return float((directory / "result").read_text())


def check(tmp_path: Path, kills: int, whole_runs: int) -> None:
    rng, directory = random.Random(5), tmp_path / "killed"
    directory.mkdir()
    for _ in range(kills):
        kill_at_a_random_moment(directory, rng)
        assert executed(directory) <= charged(directory) <= PLAN.sampler.iterations
    error = result_of(directory)
    assert executed(directory) <= charged(directory) == PLAN.sampler.iterations
    assert error < 0.5 * START_ERROR
    whole = [result_of(tmp_path / f"whole {index}") for index in range(whole_runs)]
    if whole:
        assert error <= max(whole) + 2 * (max(whole) - min(whole))


def test_a_run_killed_a_few_times_is_charged_for_all_it_executed(tmp_path: Path) -> None:
    check(tmp_path, kills=3, whole_runs=0)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_killed_fifty_times_is_charged_for_all_it_executed_and_learns_as_well(tmp_path: Path) -> None:
    check(tmp_path, kills=50, whole_runs=5)
