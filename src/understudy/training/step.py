"""One private iteration: draw, clip, add up, add noise, divide."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from understudy.privacy.noise import NoiseSource
from understudy.training.clipping import Leave, PerUnitClipper
from understudy.training.flat import FlatParameters, NormalReserve
from understudy.training.plan import MechanismPlan, Performance
from understudy.training.windows import Batch, UnitWindows

Loss = Callable[[nn.Module, Batch, torch.Generator], Tensor]
PublicLoss = Callable[[nn.Module, torch.Generator], Tensor]

_KEPT_BYTES = 128 << 20  # per-unit gradients held at once, unless the caller says how many
_FEWEST_UNITS = 8  # below, matrix products get too thin


def gradient_step(length: float, size: int) -> float:
    """Returns the largest power of two such that √size steps are at most 2⁻¹¹ · length.

    Rounding a sum to the nearest multiple moves each of `size` coordinates of a difference by at most one step.
    """
    return 2.0 ** math.floor(math.log2(length * 2.0**-11 / math.sqrt(max(1, size))))


class PrivateGradient:
    """Writes the noisy gradient of one iteration into `flat.gradient`.

    Privacy:
        Each call is one execution of the plan's mechanism; whoever calls has had it counted before. What it
        writes may be seen; the batch, its size and the losses may not.
    """

    def __init__(self, model: nn.Module, plan: MechanismPlan, noise: NoiseSource, performance: Performance) -> None:
        self._model, self._plan, self._performance = model, plan, performance
        self._clipper = PerUnitClipper(model, plan.clip_norm)
        self._reserve = NormalReserve(noise)
        self.flat = FlatParameters(self._clipper.parameters)
        self._sums = torch.zeros_like(self.flat.values, dtype=torch.float64)
        self._sums_by_parameter = self.flat.like_parameters(self._sums)
        self._step = gradient_step(min(plan.clip_norm, plan.noise_scale), self._sums.numel())
        self._max_units = performance.max_units_in_memory or units_that_fit(self.flat.values)

    def write(self, loss: Loss, windows: UnitWindows, drawn: NDArray[np.int64], generator: torch.Generator) -> None:
        """Sums clipped gradients chunk by chunk in constant memory; an empty draw is noised like any other."""
        self._sums.zero_()
        chunks = np.array_split(drawn, max(1, math.ceil(len(drawn) / self._max_units)))
        for chunk in chunks:
            if len(chunk):
                batch = windows.batch(chunk, self._performance.device)
                self.add_clipped(partial(loss, self._model, batch, generator), len(chunk), len(drawn))
        self.finish()

    def add_clipped(self, losses: Callable[[], Tensor], num_units: int, in_all: int) -> None:
        """Adds the clipped gradients of one chunk of a batch of `in_all` units."""
        self._clipper.add_clipped_sum(losses, num_units, self._sums_by_parameter, in_all)

    def add_clipped_records(self, leave: Leave, num_units: int) -> None:
        """Adds the clipped gradients of units whose gradients the caller has worked out."""
        self._clipper.add_clipped_records(leave, num_units, self._sums_by_parameter)

    def finish(self) -> None:
        """Adds the noise, divides by the public expected batch, never by the realised one, and begins a new sum."""
        self._reserve.add_to(self._sums, self._plan.noise_scale, self._step)
        torch.div(self._sums, self._plan.expected_batch, out=self.flat.gradient)
        self._sums.zero_()

    def add_public(self, loss: PublicLoss, generator: torch.Generator) -> None:
        """Adds the plain gradient of a loss that reads no private data (synthetic series, penalties on weights)."""
        parameters = self._clipper.parameters
        grads = torch.autograd.grad(loss(self._model, generator), parameters, allow_unused=True)
        for parameter, grad in zip(parameters, grads, strict=True):
            if grad is not None:
                self.flat.views[id(parameter)].add_(grad)


def units_that_fit(values: Tensor) -> int:
    """Returns how many units' gradients to hold at once, from the size of the network alone."""
    return max(_FEWEST_UNITS, _KEPT_BYTES // (values.numel() * values.element_size()))
