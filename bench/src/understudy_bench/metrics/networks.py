"""The small networks that papers judge synthetic series with, and the two ways they train them."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from understudy_bench.metrics.gated_recurrent import GatedRecurrent

Checkpoint = Literal["best", "worst_val"]


def deal(
    unit: np.ndarray, shares: Sequence[float], rng: np.random.Generator, strata: np.ndarray | None = None
) -> list[np.ndarray]:
    """Returns the rows of series, dealt at random into parts; the series of one unit stay together.

    Args:
        unit: Unit of each series, as in a panel.
        shares: Share of units in each part; they add up to 1.
        strata: Class of each series; every class is dealt in the same shares.
    """
    units, first = np.unique(unit, return_index=True)
    classes = np.zeros(len(units)) if strata is None else strata[first]
    part = np.empty(len(units), dtype=np.int64)
    for kind in np.unique(classes):
        members = rng.permutation(np.flatnonzero(classes == kind))
        borders = np.rint(np.cumsum(shares)[:-1] * len(members)).astype(int)
        for place, chosen in enumerate(np.split(members, borders)):
            part[chosen] = place
    of_series = part[np.searchsorted(units, unit)]
    return [np.flatnonzero(of_series == place) for place in range(len(shares))]


class Recurrent(nn.Module):
    """A recurrent layer and a linear one behind its states: at every step, or at the last one only."""

    def __init__(
        self, cell: Literal["gru", "lstm"], *, inputs: int, hidden: int, outputs: int, every_step: bool = False
    ) -> None:
        super().__init__()
        lstm = cell == "lstm"
        self.recurrent = nn.LSTM(inputs, hidden, batch_first=True) if lstm else GatedRecurrent(inputs, hidden)
        self.output = nn.Linear(hidden, outputs)
        self.every_step = every_step

    def forward(self, steps: Tensor) -> Tensor:
        """Returns [series, output], or [series, step, output], from [series, step, input]."""
        states = self.recurrent(steps)[0]
        predicted: Tensor = self.output(states if self.every_step else states[:, -1])
        return predicted


def perceptron(widths: Sequence[int], *, dropout: float = 0.0) -> nn.Sequential:
    """Returns linear layers of the given widths with ReLU and dropout between them, fed with flattened series."""
    layers: list[nn.Module] = [nn.Flatten()]
    for place, (inputs, outputs) in enumerate(pairwise(widths)):
        layers += [nn.ReLU(), nn.Dropout(dropout)] if place else []
        layers.append(nn.Linear(inputs, outputs))
    return nn.Sequential(*layers)


@contextmanager
def seeded(seed: int) -> Iterator[np.random.Generator]:
    """Trains on one thread with a seed of its own; torch's generator and threads are as before afterwards."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield np.random.default_rng(seed)
        finally:
            torch.set_num_threads(threads)


def seeds(seed: int, repeats: int) -> list[int]:
    """Returns one seed for each training."""
    return [int(state) for state in np.random.SeedSequence(seed).generate_state(repeats)]


def tensor(values: np.ndarray) -> Tensor:
    """Returns a copy of the values as torch wants them; a panel's own arrays are read-only."""
    return torch.from_numpy(np.array(values, dtype=np.float32, order="C"))


def train_iterations(model: nn.Module, loss: Callable[[], Tensor], iterations: int) -> None:
    """Follows `loss`, which draws its own batch, for a number of updates of Adam at 1e-3."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for _ in range(iterations):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Training by epochs, watched on series put aside.

    Attributes:
        patience: Epochs without improvement after which it stops; None never stops early.
        checkpoint: Which epoch's weights are kept: the `best` on the watched series, or `worst_val`, those of the
            greatest loss, as the code released with VFLGAN-TS does.
    """

    epochs: int
    batch: int
    patience: int | None = None
    checkpoint: Checkpoint = "best"

    def within(self, most_iterations: int | None, num_series: int) -> "Schedule":
        """Returns the schedule cut to as many whole epochs as fit into a number of updates, at least one."""
        if most_iterations is None:
            return self
        per_epoch = math.ceil(num_series / self.batch)
        return replace(self, epochs=max(1, min(self.epochs, most_iterations // per_epoch)))


def train_epochs(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    loss: Callable[[Tensor], Tensor],
    watch: Callable[[], float],
    num_series: int,
    schedule: Schedule,
) -> None:
    """Trains `model` and leaves it with the weights that the schedule's checkpoint keeps.

    Args:
        loss: Loss of the series in the given rows.
        watch: Loss on the series put aside.
    """
    worst = schedule.checkpoint == "worst_val"
    kept, stale = math.inf, 0
    weights: dict[str, Tensor] = {}
    for _ in range(schedule.epochs):
        model.train()
        for rows in torch.randperm(num_series).split(schedule.batch):
            optimiser.zero_grad()
            loss(rows).backward()
            optimiser.step()
        model.train(False)
        with torch.no_grad():
            found = -watch() if worst else watch()
        stale += 1
        if found < kept or not weights:
            kept, stale = found, 0
            weights = {name: value.clone() for name, value in model.state_dict().items()}
        if schedule.patience is not None and stale >= schedule.patience:
            break
    model.load_state_dict(weights)
