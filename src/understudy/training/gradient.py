"""The noisy gradient of one iteration: clipped sum over the drawn units, Gaussian noise, public divisor."""

import itertools

import torch
from torch import Tensor, nn

from understudy.privacy.noise import NoiseSource
from understudy.training.clipping import PerUnitClipper

_NOISE_BLOCK = 1 << 16  # draws at a time: stays in cache and keeps memory constant


class FlatGradient:
    """One contiguous buffer that holds the gradients of all parameters; `.grad` of each is a view of it."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        first = parameters[0]
        size = sum(parameter.numel() for parameter in parameters)
        self.buffer = torch.zeros(size, dtype=first.dtype, device=first.device)
        ends = list(itertools.accumulate(parameter.numel() for parameter in parameters))
        self.views = {
            id(parameter): self.buffer[end - parameter.numel() : end].view(parameter.shape)
            for parameter, end in zip(parameters, ends, strict=True)
        }
        self._parameters = parameters

    def publish(self) -> None:
        """Lets optimisers see the buffer as the parameters' gradients."""
        for parameter in self._parameters:
            parameter.grad = self.views[id(parameter)]

    def add_noise(self, scale: float, noise: NoiseSource) -> None:
        """Adds N(0, scale²) to every coordinate, drawn in double precision and rounded once."""
        for block in self.buffer.split(_NOISE_BLOCK):
            block += torch.from_numpy(noise.normal(scale, block.numel())).to(block)
