"""A network that learns from the series of a table: its batches, what their noise leaves to learn, and its training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from torch import nn

from understudy.data import Schema
from understudy.privacy.events import MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.training.batches import UnitWindows
from understudy.training.loop import Optimisation, Task, train
from understudy.training.networks import meta_device, num_parameters
from understudy.training.plan import TRAINING, DPSGDConfig, UnitBatches, WindowBatches, noise_ratio
from understudy.training.private_gradient import Loss

_MOSTLY_NOISE = 3.0  # ratio above which a network learns mostly noise
_BEFORE = 0.3  # share of the progress that releases before the training take


def batches_of(schema: Schema, influence: int) -> UnitBatches | WindowBatches:
    """Returns batches of one window of each unit; for events of windows, of which one event moves `influence`."""
    return WindowBatches(influence) if schema.unit.kind == "event" else UnitBatches()


@dataclass(frozen=True)
class GradientNoise:
    """What public facts say about the gradients of a run: their event, parameters that learn, and series in a batch."""

    event: SubsampledGaussian | MixtureOfGaussians
    num_parameters: int
    batch: float

    @classmethod
    def of(cls, plan: SpendingPlan, batch: float, network: Callable[[], nn.Module]) -> "GradientNoise":
        """Returns the facts of a plan for a network, which is made without memory."""
        event = plan.event(TRAINING)
        assert isinstance(event, SubsampledGaussian | MixtureOfGaussians)
        with meta_device():
            return cls(event, num_parameters(network()), batch)

    @property
    def ratio(self) -> float:
        """The noise on a summed gradient over the largest possible sum."""
        return noise_ratio(self.event.noise_multiplier, self.num_parameters, self.batch)

    def sentence(self) -> str:
        """Returns how the noise on a gradient compares with what a batch can say."""
        drawn = "windows" if isinstance(self.event, MixtureOfGaussians) else "units"
        return (
            f"{self.num_parameters} parameters learn in {self.event.iterations} iterations of {self.batch:.0f} "
            f"{drawn}; the noise on a summed gradient is {self.ratio:.2g} times the largest possible sum"
            + (", so mostly noise is learned." if self.ratio > _MOSTLY_NOISE else ".")
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
    windows = UnitWindows(examples, unit, config.batches, np.random.default_rng())
    train(
        Task(model=model, loss=loss, windows=windows),
        config,
        grant,
        label=TRAINING,
        optimisation=optimisation,
        progress=lambda done, planned: progress("private training", _BEFORE + (1 - _BEFORE) * done / planned),
    )
