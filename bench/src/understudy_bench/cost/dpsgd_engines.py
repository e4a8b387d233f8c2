"""One training step by each engine: not private, ours, and Opacus in two modes."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from understudy.errors import UnderstudyError
from understudy.privacy.noise import NoiseSource
from understudy.training import DPSGDConfig, PrivateGradient, adam
from understudy.training.private_gradient import units_that_fit
from understudy_bench.cost.dpsgd_models import SequenceDiscriminator, Workload

PLAIN, AGAIN = "non-private", "non-private again"
PRIVATE = ("ours", "opacus-hooks", "opacus-ghost")
_RATE, _CLIP, _NOISE = 1e-3, 1.0, 1.0

Step = Callable[[], None]


class Unavailable(UnderstudyError):
    """An engine can't run here; the message says why."""


def plain(work: Workload) -> Step:
    """An ordinary torch step: mean loss, backward, Adam."""
    optimiser = adam(_RATE)(work.model.parameters())

    def step() -> None:
        optimiser.zero_grad()
        work.losses(work.model).mean().backward()
        optimiser.step()

    return step


def ours(work: Workload) -> Step:
    """The private step of the training loop, in the chunks it would choose."""
    config = DPSGDConfig(
        sampling_rate=0.1,
        iterations=1,
        expected_batch=work.num_units,
        clipping_norm=_CLIP,
        noise_multiplier=_NOISE,
    )
    gradient = PrivateGradient(work.model, config, NoiseSource.secure())
    optimiser = gradient.flat.optimiser(adam(_RATE))
    num_chunks = math.ceil(work.num_units / units_that_fit(gradient.flat.values))
    chunks = [slice(part[0], part[-1] + 1) for part in np.array_split(np.arange(work.num_units), num_chunks)]

    def step() -> None:
        for rows in chunks:
            gradient.add_clipped(partial(work.losses, work.model, rows), rows.stop - rows.start, work.num_units)
        gradient.finish()
        optimiser.step()

    return step


def _opacus() -> Any:
    try:
        import opacus
    except ImportError as problem:
        raise Unavailable("Opacus is not installed; it is in the [dev] extra.") from problem
    return opacus


def _for_opacus(work: Workload) -> nn.Module:
    """Opacus refuses nn.LSTM and has one of its own."""
    if not isinstance(work.model, SequenceDiscriminator):
        return work.model
    from opacus.layers import DPLSTM

    lstm = work.model.recurrent
    assert isinstance(lstm, nn.LSTM)
    return SequenceDiscriminator(lstm.input_size, lstm.hidden_size, DPLSTM)


def opacus_hooks(work: Workload) -> Step:
    """Opacus with hooks that keep per-sample gradients."""
    opacus = _opacus()
    model = opacus.GradSampleModule(_for_opacus(work), loss_reduction="mean")
    optimiser = opacus.optimizers.DPOptimizer(
        adam(_RATE)(model.parameters()),
        noise_multiplier=_NOISE,
        max_grad_norm=_CLIP,
        expected_batch_size=work.num_units,
        loss_reduction="mean",
    )

    def step() -> None:
        optimiser.zero_grad()
        work.losses(model).mean().backward()
        optimiser.step()

    return step


class _LossPerUnit:
    """Reduces to one loss per unit: with (unit, 1) losses Opacus's ghost mode silently clips nothing."""

    def __init__(self, work: Workload) -> None:
        self.reduction, self._criterion = "mean", work.criterion

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        losses = self._criterion(output, target).flatten(1).mean(1)
        return losses if self.reduction == "none" else losses.mean()


def opacus_ghost(work: Workload) -> Step:
    """Opacus's fast gradient clipping: norms first, then a second backward."""
    _opacus()
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    model = GradSampleModuleFastGradientClipping(_for_opacus(work), max_grad_norm=_CLIP, use_ghost_clipping=True)
    optimiser = DPOptimizerFastGradientClipping(
        adam(_RATE)(model.parameters()),
        noise_multiplier=_NOISE,
        max_grad_norm=_CLIP,
        expected_batch_size=work.num_units,
        loss_reduction="mean",
    )
    criterion = DPLossFastGradientClipping(model, optimiser, _LossPerUnit(work))

    def step() -> None:
        optimiser.zero_grad()
        criterion(model(*work.inputs), work.target).backward()
        optimiser.step()

    return step


ENGINES: dict[str, Callable[[Workload], Step]] = {
    PLAIN: plain,
    AGAIN: plain,
    "ours": ours,
    "opacus-hooks": opacus_hooks,
    "opacus-ghost": opacus_ghost,
}
