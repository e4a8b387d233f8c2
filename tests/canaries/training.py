"""Runs iterations of private training with canary gradients: every unit's gradient is a given vector.

The network is linear in its parameters, so that a unit's gradient does not depend on them, and one run of the real
loop is as many independent runs of its mechanism as it has iterations.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.canaries.mechanisms import LABEL, Mechanism, grant_for
from understudy.training import DPSGDConfig, Optimisation, Task, UnitWindows, train


class CanaryNetwork(nn.Module):
    """Layers whose outputs are their weights; a loss ⟨output, g⟩ has the gradient g, whatever g is."""

    def __init__(self, blocks: Sequence[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(1, size, bias=False) for size in blocks)

    def forward(self, ones: Tensor) -> Tensor:
        return torch.cat([layer(ones) for layer in self.layers], dim=1)


def inner_product(model: nn.Module, batch: dict[str, Tensor], generator: torch.Generator) -> Tensor:
    """One loss per unit whose gradient is the unit's row of `gradient`."""
    gradient = batch["gradient"]
    losses: Tensor = (model(torch.ones(len(gradient), 1)) * gradient).sum(dim=1)
    return losses


def training_iteration(plan: DPSGDConfig, blocks: Sequence[int], *, rate: float = 1.0) -> Mechanism:
    """One iteration of `plan` as a mechanism: what it releases is the noisy sum, in units of the clip norm.

    Args:
        plan: any method's plan. Its event prices many iterations at its own rate; one iteration at `rate` 1, in
            which everybody takes part, is a Gaussian with the plan's noise multiplier.
        blocks: sizes of the layers; coordinates are in their order.
        rate: how likely a unit takes part.
    """

    def run(rows: NDArray[np.float64], runs: int) -> NDArray[np.float64]:
        config = DPSGDConfig(
            sampling_rate=rate,
            iterations=runs,
            expected_batch=plan.expected_batch,
            clipping_norm=plan.clipping_norm,
            noise_multiplier=plan.noise_multiplier,
        )
        return _moves(config, rows, blocks) * (plan.expected_batch / plan.clipping_norm)

    return run


def _moves(plan: DPSGDConfig, rows: NDArray[np.float64], blocks: Sequence[int]) -> NDArray[np.float64]:
    """How each iteration of the real loop moves the parameters from zero, against the gradient."""
    model = CanaryNetwork(blocks)
    moves: list[NDArray[np.float64]] = []

    def note(_iteration: int) -> None:
        with torch.no_grad():
            moves.append(-torch.cat([p.reshape(-1) for p in model.parameters()]).double().numpy())
            for parameter in model.parameters():
                parameter.zero_()

    note(0)  # the first iteration starts from zero, too
    windows = UnitWindows({"gradient": rows.astype(np.float32)}, np.arange(len(rows)), np.random.default_rng(0))
    task = Task(model=model, loss=inner_product, windows=windows, after_iteration=note)
    descent = Optimisation(make=lambda parameters: torch.optim.SGD(parameters, lr=1.0))
    train(task, plan, grant_for(plan.event), label=LABEL, optimisation=descent)
    return np.stack(moves[1:])
