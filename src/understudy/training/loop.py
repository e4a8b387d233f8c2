"""The private training loop, and networks that learn by it from the series of a table."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import nn

from understudy.errors import InputError
from understudy.privacy.events import MixtureOfGaussians, SubsampledGaussian, to_json
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.training import checkpoint
from understudy.training.batches import UnitWindows
from understudy.training.networks import ExponentialMovingAverage, meta_device, num_parameters
from understudy.training.plan import TRAINING, DPSGDConfig, noise_ratio
from understudy.training.private_gradient import Loss, MakeOptimiser, PrivateGradient
from understudy.training.validation import seed_torch, try_out, validate_module

Report = Callable[[int, int], None]  # iterations executed, iterations planned
_TRIAL_UNITS = 3
_MOSTLY_NOISE = 3.0  # ratio above which a network learns mostly noise
_BEFORE = 0.3  # share of the progress that releases before the training take


def adam(learning_rate: float, weight_decay: float = 0.0) -> MakeOptimiser:
    """Returns a factory of Adam optimisers, or of AdamW where weights decay."""
    if weight_decay:
        return lambda parameters: torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=weight_decay, fused=True)
    return lambda parameters: torch.optim.Adam(parameters, lr=learning_rate, fused=True)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A network, its loss and the private windows it is trained on."""

    model: nn.Module  # its trainable parameters are updated in place
    loss: Loss
    windows: UnitWindows
    after_iteration: Callable[[int], None] | None = None  # takes the number of finished iterations; post-processing


@dataclass(frozen=True, kw_only=True)
class Optimisation:
    """How noisy gradients become parameters.

    Privacy:
        Post-processing of noisy gradients: free of charge, whatever it does.
    """

    make: MakeOptimiser = field(default_factory=lambda: adam(1e-3))  # element-wise; sees a few flat vectors
    warm_up: int = 0  # iterations over which the learning rate rises from near zero
    average_decay: float | None = None  # of the moving average that becomes the result; None: the last iterate


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """Where to save, and how many iterations one ledger entry and one checkpoint cover."""

    directory: Path
    every: int = 100


def check_task(task: Task) -> None:
    """Refuses a network or loss that mixes units. Costs nothing: only made-up inputs are used."""
    validate_module(task.model)
    made_up = task.windows.made_up(_TRIAL_UNITS, np.random.default_rng(0))
    try_out(task.model, task.loss, made_up, _TRIAL_UNITS)


def train(
    task: Task,
    plan: DPSGDConfig,
    grant: Grant,
    *,
    label: str = "training",
    optimisation: Optimisation | None = None,
    checkpoints: Checkpoints | None = None,
    progress: Report | None = None,
) -> None:
    """Trains `task.model` in place by DP-SGD, as far as the grant allows.

    Privacy:
        The charge under `label` must be the plan's event. Iterations are counted in the ledger before they run.
        Resuming restarts from the last checkpoint; iterations that ran after it stay counted and are lost, so
        the model sees fewer of them and the guarantee holds as charged.

    No units at all: every iteration is noise. A grant used up: the checkpointed model is the result.
    """
    if grant.plan.event(label) != plan.event:
        raise InputError(f"Expected the event charged under '{label}', got another plan. Charge this plan.")
    task.model.train()  # before the check: what only training mode does has to show there
    check_task(task)
    _Run(task, plan, grant, label, optimisation or Optimisation()).execute(checkpoints, progress)


class _Run:
    """The state of one call of `train`."""

    def __init__(self, task: Task, plan: DPSGDConfig, grant: Grant, label: str, optimisation: Optimisation) -> None:
        self._task, self._plan, self._grant, self._label = task, plan, grant, label
        self._gradient = PrivateGradient(task.model, plan, grant.noise)
        self._flat = self._gradient.flat
        self._optimiser = self._flat.optimiser(optimisation.make)
        self._rates = [group["lr"] for group in self._optimiser.param_groups]
        self._warm_up = optimisation.warm_up
        decay = optimisation.average_decay
        self._average = None if decay is None else ExponentialMovingAverage(self._flat.values, decay)
        self._generator = torch.Generator().manual_seed(secrets.randbits(63))
        self._iteration = 0

    def execute(self, checkpoints: Checkpoints | None, progress: Report | None) -> None:
        """Runs block after block: count, iterate, save."""
        event, size = to_json(self._plan.event), self._flat.values.numel()
        identity = checkpoint.identity(self._grant.receipt, self._label, event, self._plan.clipping_norm, size)
        state = (self._flat, self._optimiser, self._average)
        done = self._grant.executed[self._label]
        if checkpoints is not None:
            self._iteration = checkpoint.load(checkpoints.directory, identity, done, *state)
        batches = self._plan.draw(self._task.windows.num_candidates, self._grant.noise, done=done)
        while (left := self._grant.remaining(self._label)) > 0:
            block = left if checkpoints is None else min(left, checkpoints.every)
            self._grant.begin_block(self._label, block)
            for place, chosen in enumerate(islice(batches, block), start=1):
                self._iterate(chosen)
                if progress is not None:
                    progress(self._plan.iterations - left + place, self._plan.iterations)
            if checkpoints is not None:
                checkpoint.save(checkpoints.directory, identity, self._iteration, *state)
        if self._average is not None:
            self._flat.values.copy_(self._average.values)

    def _iterate(self, chosen: np.ndarray) -> None:
        """Abadi et al. (2016), arXiv:1607.00133v2, Algorithm 1, with Poisson sampling of units."""
        task = self._task
        self._generator.manual_seed(secrets.randbits(63))  # of which torch takes 32 bits; new in every iteration
        with _secret_seed():
            self._gradient.write(task.loss, task.windows, chosen, self._generator)
        pace = min(1.0, (self._iteration + 1) / max(1, self._warm_up))
        for group, rate in zip(self._optimiser.param_groups, self._rates, strict=True):
            group["lr"] = rate * pace
        self._optimiser.step()
        if self._average is not None:
            self._average.update(self._flat.values)
        self._iteration += 1
        if task.after_iteration is not None:
            task.after_iteration(self._iteration)


@contextmanager
def _secret_seed() -> Iterator[None]:
    """Seeds torch's global generator in secret within the block: dropout reads it, by place in the batch.

    One more unit shifts the masks of all units after it. With known masks it would move the gradients of all of them.
    """
    with torch.random.fork_rng(devices=[]):
        seed_torch(secrets.randbits(63))
        yield


def foretold(plan: SpendingPlan, batch: float, network: Callable[[], nn.Module]) -> tuple[float, str]:
    """Returns the noise on a gradient summed over a batch relative to the largest possible sum, and words for it.

    Privacy: from public facts alone. The network is made without memory.
    """
    event = plan.event(TRAINING)
    assert isinstance(event, SubsampledGaussian | MixtureOfGaussians)
    with meta_device():
        number = num_parameters(network())
    ratio = noise_ratio(event.noise_multiplier, number, batch)
    drawn = "windows" if isinstance(event, MixtureOfGaussians) else "units"
    return ratio, (
        f"{number} parameters learn in {event.iterations} iterations of {batch:.0f} {drawn}; the noise on a summed "
        f"gradient is {ratio:.2g} times the largest possible sum"
        + (", so mostly noise is learned." if ratio > _MOSTLY_NOISE else ".")
    )


def fit_network(
    model: nn.Module,
    loss: Loss,
    examples: Mapping[str, np.ndarray],
    private: PrivateSeries,
    config: DPSGDConfig,
    grant: Grant,
    *,
    optimisation: Optimisation,
    progress: Callable[[str, float], None],
) -> None:
    """Trains a network in place on one row of examples for each private series.

    Privacy: a sampled unit shows one of its series. Which one is secret: with a known stream one unit more would show
    other series of all others, and one clipped gradient was priced.
    """
    unit = None if private.schema.unit.kind == "event" else private.panel.unit
    windows = UnitWindows(examples, unit, np.random.default_rng(), config.max_windows)
    train(
        Task(model=model, loss=loss, windows=windows),
        config,
        grant,
        label=TRAINING,
        optimisation=optimisation,
        progress=lambda done, planned: progress("private training", _BEFORE + (1 - _BEFORE) * done / planned),
    )
