"""One unit more or less changes nothing about private training but the numbers in its model."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.twins.view import rows, tensors
from tests.unit.training.toy import plan_of, regression_task
from understudy.privacy.budget import Guarantee
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.training import Checkpoints, Task, train
from understudy.training.loop import _Run

UNITS, ITERATIONS, BLOCK = 60, 6, 4


@dataclass(frozen=True, kw_only=True)
class View:
    """What can be seen of a training: progress, files, ledger rows and the iterations that ran."""

    progress: list[tuple[int, int]]
    iterations: list[int]
    files: dict[str, Any]
    ledger: list[Any]
    printed: str


def view(folder: Path, num_units: int, capsys: pytest.CaptureFixture[str]) -> View:
    """Trains on so many units, stopped once at a checkpoint and resumed."""
    folder.mkdir()
    plan, guarantee = plan_of(iterations=ITERATIONS), Guarantee(1e4, 1e-6)
    spending = SpendingPlan((PlanEntry("training", plan.event),), guarantee)
    ledger = Ledger.create(folder / "toy.ledger", name=folder.name, unit_sentence="A unit.", guarantee=guarantee)
    saves = Checkpoints(directory=folder / "saved", every=BLOCK)
    progress, iterations, noise = [], [], NoiseSource.secure()

    def task(after: Callable[[int], None]) -> Task:
        return regression_task(num_units, after_iteration=after)

    def stop(done: int) -> None:
        iterations.append(done)
        if done == BLOCK + 1:
            raise KeyboardInterrupt

    report = lambda done, planned: progress.append((done, planned))  # noqa: E731
    grant = ledger.charge(spending, label="run", noise=noise)
    with suppress(KeyboardInterrupt):
        train(task(stop), plan, grant, checkpoints=saves, progress=report)
    train(task(iterations.append), plan, ledger.resume(1, noise=noise), checkpoints=saves, progress=report)
    captured = capsys.readouterr()
    saved = sorted((folder / "saved").iterdir())
    return View(
        progress=progress,
        iterations=iterations,
        files={path.name: (path.stat().st_size, tensors(path)) for path in saved},
        ledger=list(rows(folder / "toy.ledger")),
        printed=captured.out + captured.err,
    )


@pytest.mark.parametrize("other", [UNITS + 1, UNITS - 1, 1, 0])
def test_other_units_change_nothing_but_numbers(other: int, tmp_path: Path, capsys: Any) -> None:
    """Nobody and everybody look alike as well: empty batches are noised and counted like others."""
    first = view(tmp_path / "first", UNITS, capsys)
    assert len(first.iterations) >= ITERATIONS - 1
    assert view(tmp_path / "second", other, capsys) == first


def tell_the_batch(iterate: Any) -> Any:
    def leaky(self: Any, drawn: Any) -> Any:
        print("drew", len(drawn))
        return iterate(self, drawn)

    return leaky


def skip_empty_batches(iterate: Any) -> Any:
    return lambda self, drawn: iterate(self, drawn) if len(drawn) else None


@pytest.mark.parametrize(("leak", "other"), [(tell_the_batch, 3 * UNITS), (skip_empty_batches, 0)])
def test_a_planted_leak_is_seen(leak: Any, other: int, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    """Negative control: the size of batches on the screen, and iterations that happen only if somebody was drawn."""
    monkeypatch.setattr(_Run, "_iterate", leak(_Run._iterate))
    assert view(tmp_path / "first", UNITS, capsys) != view(tmp_path / "second", other, capsys)
