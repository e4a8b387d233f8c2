"""The networks whose training cost is measured."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from understudy.nn.residual_conv import ResidualConvDenoiser
from understudy.synthesizers.dit.network import Bounds, PlainDiT, preset


@dataclass(frozen=True)
class Workload:
    """A network, its inputs [unit, …] and targets, and a loss per unit of any shape."""

    model: nn.Module
    inputs: tuple[Tensor, ...]
    target: Tensor
    criterion: Callable[[Tensor, Tensor], Tensor]

    @property
    def num_units(self) -> int:
        """Units in the batch."""
        return len(self.target)

    def losses(self, model: nn.Module, rows: slice = slice(None)) -> Tensor:
        """Returns the losses of some units."""
        return self.criterion(model(*(tensor[rows] for tensor in self.inputs)), self.target[rows])


class SequenceDiscriminator(nn.Module):
    """One LSTM layer and a logit from its last state."""

    def __init__(self, channels: int, hidden: int, recurrent: type[nn.Module] = nn.LSTM) -> None:
        super().__init__()
        self.recurrent = recurrent(channels, hidden, batch_first=True)
        self.logit = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Returns one logit per series [unit, 1]."""
        logit: Tensor = self.logit(self.recurrent(x)[0][:, -1])
        return logit


def squared_error(output: Tensor, target: Tensor) -> Tensor:
    """Element-wise squared error."""
    return (output - target).square()


def logistic(output: Tensor, target: Tensor) -> Tensor:
    """Element-wise logistic loss."""
    return nn.functional.binary_cross_entropy_with_logits(output, target, reduction="none")


def _denoising(model: nn.Module, steps: int) -> Workload:
    x = torch.randn(32, steps, 7)
    return Workload(model, (x, 1000 * torch.rand(32)), torch.randn_like(x), squared_error)


def _dit(width: int, depth: int, steps: int) -> Workload:
    torch.manual_seed(0)
    bounds = preset("medium", Bounds(condition=width**0.5, scale=1.0, shift=1.0, gate=1.0))  # as `dit` has them
    return _denoising(PlainDiT(channels=7, steps=steps, width=width, depth=depth, bounds=bounds), steps)


def _conv() -> Workload:
    torch.manual_seed(0)
    return _denoising(ResidualConvDenoiser(channels=7, width=256, depth=4), 360)


def _mlp() -> Workload:
    torch.manual_seed(0)
    activation = nn.LeakyReLU(0.2)
    model = nn.Sequential(nn.Linear(24, 128), activation, nn.Linear(128, 64), activation, nn.Linear(64, 1))
    return Workload(model, (torch.rand(64, 24),), torch.ones(64, 1), logistic)


def _lstm() -> Workload:
    torch.manual_seed(0)
    return Workload(SequenceDiscriminator(7, 128), (torch.rand(32, 96, 7),), torch.ones(32, 1), logistic)


MODELS: dict[str, Callable[[], Workload]] = {
    "dit-8x256": lambda: _dit(256, 8, 168),
    "dit-4x128": lambda: _dit(128, 4, 96),
    "conv-4x256": _conv,
    "mlp": _mlp,
    "lstm": _lstm,
}
