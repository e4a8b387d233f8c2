"""Noise of a training run is fresh every time, stays in memory, and units are what is drawn."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

from tests.unit.training.toy import grant_for, plan_of, regression_arrays, regression_task, windows_of
from understudy.errors import UnsafeModule
from understudy.privacy.noise import NoiseSource
from understudy.training import Checkpoints, Optimisation, train
from understudy.training.checkpoint import FILE

QUICK = plan_of(iterations=12)


def test_two_runs_over_nobody_end_in_different_models() -> None:
    """Without units a run is its noise; equal models would mean equal noise."""
    ends = []
    for _ in range(2):
        task = regression_task(windows=windows_of(regression_arrays(0)))
        train(task, QUICK, grant_for(QUICK, NoiseSource.secure()))
        ends.append(task.model.weight.detach().clone())
    assert not torch.equal(*ends)


def test_a_checkpoint_is_one_file_and_holds_none_of_the_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[np.ndarray] = []
    genuine = NoiseSource.normal

    def listening(source: NoiseSource, scale: float, size: int) -> np.ndarray:
        drawn.append(genuine(source, scale, size).copy())
        return drawn[-1].copy()

    monkeypatch.setattr(NoiseSource, "normal", listening)
    saves = Checkpoints(directory=tmp_path / "saved", every=5)
    optimisation = Optimisation(average_decay=0.9)
    task = regression_task()
    train(task, QUICK, grant_for(QUICK, NoiseSource.secure()), checkpoints=saves, optimisation=optimisation)
    assert [path.name for path in saves.directory.iterdir()] == [FILE]
    with safe_open(saves.directory / FILE, framework="pt") as opened:
        names = set(opened.keys())
    assert {name for name in names if not name.startswith("optimiser.")} == {"values", "average"}
    content = (saves.directory / FILE).read_bytes()
    assert drawn
    for normals in drawn:  # eight bytes at a time: fewer would be found by chance
        assert not [place for place in range(200) if normals[place : place + 1].tobytes() in content]
        rounded = normals.astype(np.float32)
        assert not [place for place in range(200) if rounded[place : place + 2].tobytes() in content]


class Remembering(nn.Module):
    """Keeps the sum of what it has seen in a buffer; its outputs look innocent."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.seen += x.detach().sum(0)
        return self.layer(x)


def test_a_buffer_that_remembers_private_series_is_refused() -> None:
    with pytest.raises(UnsafeModule, match="buffers"):
        train(regression_task(model=Remembering()), QUICK, grant_for(QUICK))


def test_a_unit_is_drawn_once_however_many_windows_it_has() -> None:
    windows = windows_of(regression_arrays(5), unit=np.array([0, 0, 0, 0, 1]))
    assert windows.num_candidates == 2


class Forgetful(nn.Module):
    """Drops inputs by torch's own generator, which a program may have seeded for all to see."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.layer = nn.Dropout(0.5), nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.drop(x))


def test_masks_of_dropout_are_nobodys_to_know_and_the_program_keeps_its_generator() -> None:
    """With known masks, dealt by place in the batch, one unit more would move everybody's gradient."""
    ends, states = [], []
    for _ in range(2):
        torch.manual_seed(0)
        task = regression_task(model=Forgetful())
        before = torch.get_rng_state()
        train(task, QUICK, grant_for(QUICK, NoiseSource.constant(0)))
        states.append(torch.equal(before, torch.get_rng_state()))
        ends.append(task.model.layer.weight.detach().clone())
    assert states == [True, True]
    assert not torch.equal(*ends)
