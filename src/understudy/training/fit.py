"""A network that learns from the series of a table: what their noise leaves to learn, and its training."""

from collections.abc import Callable, Mapping

import numpy as np
from torch import nn

from understudy.privacy.events import MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.training.batches import UnitWindows
from understudy.training.loop import Optimisation, Task, train
from understudy.training.networks import meta_device, num_parameters
from understudy.training.plan import TRAINING, DPSGDConfig, noise_ratio
from understudy.training.private_gradient import Loss

_MOSTLY_NOISE = 3.0  # ratio above which a network learns mostly noise
_BEFORE = 0.3  # share of the progress that releases before the training take


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
