"""One private iteration: clip every unit's gradient, add them up, add noise, divide.

All parameters and all gradients of a network are two flat vectors: small networks spend their time in calls, not in
arithmetic, and one vector takes one call where twenty tensors take twenty.
"""

import math
import os
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from understudy.errors import InputError
from understudy.privacy.noise import NoiseSource
from understudy.training.batches import Batch, UnitWindows
from understudy.training.clipping.engine import PerUnitClipper
from understudy.training.clipping.per_unit_gradients import Sums, views
from understudy.training.plan import DPSGDConfig

_PIECE = 1 << 16  # elements per optimiser tensor: large enough for few calls, small enough to stay in cache
_RESERVE = 96 << 10  # normals taken at a time: a call costs small networks more than their few thousand normals

MakeOptimiser = Callable[[Iterable[Tensor]], torch.optim.Optimizer]


class FlatParameters:
    """Moves the trainable parameters of a network into one vector and gives them one gradient vector."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        if len({(parameter.dtype, parameter.device) for parameter in parameters}) != 1:
            raise InputError("Expected all parameters in one dtype on one device, got several. Convert the model.")
        first, sizes = parameters[0], [parameter.numel() for parameter in parameters]
        self.values = torch.empty(sum(sizes), dtype=first.dtype, device=first.device)
        self.gradient = torch.zeros_like(self.values)
        for parameter, own in zip(parameters, self.values.split(sizes), strict=True):
            own.copy_(parameter.detach().reshape(-1))
            parameter.data = own.view(parameter.shape)
        self.views = views(parameters, self.gradient)

    def optimiser(self, make: MakeOptimiser) -> torch.optim.Optimizer:
        """Return `make`'s optimiser on flat pieces; its update of a coordinate must depend on that coordinate alone."""
        pieces = [nn.Parameter(values) for values in self.values.split(_PIECE)]
        for piece, gradient in zip(pieces, self.gradient.split(_PIECE), strict=True):
            piece.grad = gradient
        return make(pieces)


class NormalReserve:
    """Normals N(0, scale²) in whole multiples of a step, taken from a noise source ahead of use, each added once.

    Privacy:
        Lives in memory only and forgets what it holds after a fork, so that no two processes add the same noise.
    """

    def __init__(self, source: NoiseSource, scale: float, step: float) -> None:
        self._source, self._scale, self._step = source, scale, step
        self._drawn = torch.empty(0, dtype=torch.float64)
        self._process = os.getpid()

    def add_to(self, vector: Tensor) -> None:
        """Rounds `vector` to whole multiples of the step and adds noise, rounded likewise, to every coordinate.

        Both are whole numbers while they are added, so no bit below the step reveals the value before the noise.
        """
        if self._process != os.getpid():
            self._drawn, self._process = torch.empty(0, dtype=torch.float64), os.getpid()
        vector.mul_(1 / self._step).round_()
        for piece in vector.chunk(math.ceil(vector.numel() / _RESERVE)):
            size = piece.numel()
            if self._drawn.numel() < size:
                normals = self._source.normal(self._scale / self._step, _RESERVE // size * size)
                self._drawn = torch.from_numpy(normals).round_()
            piece += self._drawn[:size]
            self._drawn = self._drawn[size:]
        vector.mul_(self._step)


Loss = Callable[[nn.Module, Batch, torch.Generator], Tensor]

_KEPT_BYTES = 128 << 20  # per-unit gradients held at once, unless the caller says how many
_FEWEST_UNITS = 8  # below, matrix products get too thin


def gradient_step(length: float, size: int) -> float:
    """Returns the largest power of two such that √size steps are at most 2⁻¹² · length.

    Rounding a sum to the nearest multiple moves each of `size` coordinates of a difference by at most one step.
    """
    return 2.0 ** math.floor(math.log2(length * 2.0**-12 / math.sqrt(max(1, size))))


class PrivateGradient:
    """Writes the noisy gradient of one iteration into `flat.gradient`.

    Privacy:
        Each `write`, or `finish` after clipped sums, is one execution of the plan's mechanism, which the caller has
        recorded in the ledger before. What it writes may be released; the batch, its size and the losses may not.

    Args:
        max_units: Units whose gradients are held at once; None lets the number of parameters decide.
    """

    def __init__(self, model: nn.Module, plan: DPSGDConfig, noise: NoiseSource, max_units: int | None = None) -> None:
        self._model, self._plan = model, plan
        self._clipper = PerUnitClipper(model, plan.clipping_norm)
        self.flat = FlatParameters(self._clipper.parameters)
        self._sums = Sums(self._clipper.parameters)
        step = gradient_step(min(plan.clipping_norm, plan.noise_scale), self.flat.values.numel())
        self._reserve = NormalReserve(noise, plan.noise_scale, step)
        self._max_units = max_units or units_that_fit(self.flat.values)

    def write(self, loss: Loss, windows: UnitWindows, chosen: NDArray[np.int64], generator: torch.Generator) -> None:
        """Sums clipped gradients chunk by chunk in constant memory; an empty batch is noised like any other."""
        self._sums.total.zero_()
        chunks = np.array_split(chosen, max(1, math.ceil(len(chosen) / self._max_units)))
        for chunk in chunks:
            if len(chunk):
                losses = partial(loss, self._model, windows.batch(chunk), generator)
                self.add_clipped(losses, len(chunk), len(chosen))
        self.finish()

    def add_clipped(self, losses: Callable[[], Tensor], num_units: int, in_all: int) -> None:
        """Adds the clipped gradients of one chunk of a batch of `in_all` units."""
        self._clipper.add_clipped_sum(losses, num_units, self._sums, in_all)

    def finish(self) -> None:
        """Adds the noise, divides by the public expected batch, never by the realised one, and begins a new sum."""
        self._reserve.add_to(self._sums.total)
        self.flat.gradient.copy_(self._sums.total).div_(self._plan.expected_batch)
        self._sums.total.zero_()

    def add_public(self, loss: Tensor) -> None:
        """Adds the plain gradient of a loss that reads no private data (synthetic series, penalties on weights)."""
        parameters = self._clipper.parameters
        for parameter, grad in zip(
            parameters, torch.autograd.grad(loss, parameters, materialize_grads=True), strict=True
        ):
            self.flat.views[id(parameter)].add_(grad)


def units_that_fit(values: Tensor) -> int:
    """Returns how many units' gradients to hold at once, from the size of the network alone."""
    return max(_FEWEST_UNITS, _KEPT_BYTES // (values.numel() * values.element_size()))
