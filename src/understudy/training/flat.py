"""All parameters and all gradients of a network as two flat vectors, and the noise that goes on the second.

Small networks spend their time in calls, not in arithmetic: one vector takes one call where twenty tensors take
twenty.
"""

import os
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from understudy.errors import InputError
from understudy.privacy.noise import NoiseSource

_PIECE = 1 << 16  # elements per optimiser tensor: large enough for few calls, small enough to stay in cache
_RESERVE = 12 << 10  # normals drawn at a time: many for one call, few enough that what makes them stays in cache

MakeOptimiser = Callable[[Iterable[Tensor]], torch.optim.Optimizer]

# Their update of a coordinate depends on that coordinate alone, so it does not matter how tensors are cut.
ELEMENTWISE = frozenset(
    {
        torch.optim.SGD,
        torch.optim.Adam,
        torch.optim.AdamW,
        torch.optim.NAdam,
        torch.optim.RAdam,
        torch.optim.Adamax,
        torch.optim.RMSprop,
        torch.optim.Adagrad,
        torch.optim.Adadelta,
    }
)


class FlatParameters:
    """Moves the trainable parameters of a network into one vector and gives them one gradient vector."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        if len({(parameter.dtype, parameter.device) for parameter in parameters}) != 1:
            raise InputError("Expected all parameters in one dtype on one device, got several. Convert the model.")
        first, sizes = parameters[0], [parameter.numel() for parameter in parameters]
        self.values = torch.empty(sum(sizes), dtype=first.dtype, device=first.device)
        self.gradient = torch.zeros_like(self.values)
        self._parameters = parameters
        for parameter, own in zip(parameters, self.values.split(sizes), strict=True):
            own.copy_(parameter.detach().reshape(-1))
            parameter.data = own.view(parameter.shape)
        self.views = self.like_parameters(self.gradient)

    def like_parameters(self, vector: Tensor) -> dict[int, Tensor]:
        """Returns the pieces of a flat vector by parameter id, each shaped like its parameter."""
        sizes = [parameter.numel() for parameter in self._parameters]
        pieces = zip(self._parameters, vector.split(sizes), strict=True)
        return {id(parameter): piece.view(parameter.shape) for parameter, piece in pieces}

    def optimiser(self, make: MakeOptimiser) -> torch.optim.Optimizer:
        """Returns `make`'s optimiser, on flat pieces if it is element-wise, else on the parameters themselves."""
        pieces = [nn.Parameter(self.values[place]) for place in self._places()]
        for piece, place in zip(pieces, self._places(), strict=True):
            piece.grad = self.gradient[place]
        optimiser = make(pieces)
        if type(optimiser) in ELEMENTWISE:
            return optimiser
        for parameter in self._parameters:
            parameter.grad = self.views[id(parameter)]
        return make(self._parameters)

    def _places(self) -> list[slice]:
        size = self.values.numel()
        return [slice(start, min(start + _PIECE, size)) for start in range(0, size, _PIECE)]


class NormalReserve:
    """Standard normals drawn ahead from a noise source, each handed out once.

    Privacy:
        Lives in memory only and forgets what it holds after a fork, so that no two processes add the same noise.
    """

    def __init__(self, source: NoiseSource) -> None:
        self._source = source
        self._drawn = torch.empty(0, dtype=torch.float64)
        self._process = os.getpid()

    def add_to(self, vector: Tensor, scale: float, step: float) -> None:
        """Rounds `vector` to whole multiples of `step` and adds N(0, scale²), rounded likewise, to every coordinate.

        Both are whole numbers while they are added, so no bit below the step tells what stood there before the noise.
        """
        if self._process != os.getpid():
            self._drawn, self._process = torch.empty(0, dtype=torch.float64), os.getpid()
        vector.mul_(1 / step).round_()
        start = 0
        while start < vector.numel():
            if not self._drawn.numel():
                self._drawn = torch.from_numpy(self._source.normal(1.0, _RESERVE))
            piece = vector[start : start + self._drawn.numel()]
            taken, self._drawn = self._drawn[: piece.numel()], self._drawn[piece.numel() :]
            piece += taken.mul_(scale / step).round_()
            start += piece.numel()
        vector.mul_(step)
