"""How a contest is run: with private gradients, or, where nobody is protected, with ordinary ones."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from understudy.privacy.grant import Grant
from understudy.synthesizers.ppem.contest import BETAS, Contest
from understudy.training import MechanismPlan, Optimisation, Task, UnitWindows, train

Told = Callable[[float], None]  # share of the iterations done


def train_privately(
    contest: Contest, windows: UnitWindows, plan: MechanismPlan, grant: Grant, label: str, told: Told
) -> None:
    """Runs DP-SGD on the energies; generators follow between iterations.

    Privacy: `train`'s, for one clip over all parameters of both energies.
    """
    task = Task(
        model=contest.energies,
        loss=contest.private_loss,
        windows=windows,
        public_loss=contest.public_loss,
        after_iteration=contest.after_iteration,
    )
    rate = contest.recipe.energy_rate
    optimisation = Optimisation(make=lambda parameters: _adam(parameters, rate))
    train(
        task, plan, grant, label=label, optimisation=optimisation, progress=lambda done, planned: told(done / planned)
    )
    contest.take_average()


def train_plainly(contest: Contest, arrays: Mapping[str, np.ndarray], told: Told) -> None:
    """Runs Algorithm 1 of paper 002 as it is.

    Privacy: none of its own; rows are synthetic, or nobody is protected.
    """
    recipe, model = contest.recipe, contest.energies
    rng, generator = np.random.default_rng(contest.seed), torch.Generator().manual_seed(contest.seed + 1)
    optimiser = _adam(model.parameters(), recipe.energy_rate)
    number = len(arrays["rest"])
    for done in range(1, recipe.iterations + 1):
        loss = contest.public_loss(model, generator)
        if number:
            rows = rng.integers(0, number, recipe.batch)
            batch = {name: torch.from_numpy(np.array(array[rows])) for name, array in arrays.items()}
            loss = loss + contest.private_loss(model, batch, generator).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        contest.after_iteration(done)
        told(done / recipe.iterations)
    contest.take_average()


def _adam(parameters: Iterable[Tensor], rate: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=rate, betas=BETAS)
