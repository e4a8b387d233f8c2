"""The networks whose training cost is measured."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.attention import TimeEmbedding, positions
from understudy.synthesizers.dit.published import (
    SHIFT_SCALE,
    UNBOUNDED,
    Bounds,
    DiTBlock,
    Modulation,
    modulate,
    projected,
)
from understudy.synthesizers.dit.recipe import Network


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


class PlainDiT(nn.Module):
    """Blocks of `dit` without masks, classes or patches: predicts the noise in x [unit, step, channel]."""

    def __init__(
        self,
        *,
        channels: int,
        width: int,
        depth: int,
        num_heads: int = 8,
        bounds: Bounds = UNBOUNDED,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(channels, width)
        self.time = TimeEmbedding(width)
        self.radius = bounds.condition
        self.blocks = nn.ModuleList(DiTBlock(width, num_heads, bounds=bounds) for _ in range(depth))
        self.condition = Modulation(width, SHIFT_SCALE, bounds=bounds)
        self.predict = nn.Linear(width, channels)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        hidden = self.embed(x)
        hidden = hidden + positions(hidden.shape[1], hidden.shape[2]).to(hidden)
        condition = projected(self.time(time), self.radius)  # Eq. 5
        for block in self.blocks:
            hidden = block(hidden, condition)
        output: Tensor = self.predict(modulate(hidden, *self.condition(condition)))
        return output


class ResidualConvBlock(nn.Module):
    """Returns the next residual stream and a skip contribution, both [unit, width, step]."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.condition = nn.Linear(width, width)
        self.dilated = nn.Conv1d(width, 2 * width, 3, padding=dilation, dilation=dilation)
        self.project_out = nn.Conv1d(width, 2 * width, 1)

    def forward(self, x: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.dilated(x + self.condition(condition).unsqueeze(2))
        gate, value = hidden.chunk(2, 1)
        residual, skip = self.project_out(torch.sigmoid(gate) * torch.tanh(value)).chunk(2, 1)
        return (x + residual) / math.sqrt(2), skip


class ResidualConvDenoiser(nn.Module):
    """Gated dilated convolutions with skip connections (DiffWave, Kong et al., arXiv:2009.09761v3)."""

    def __init__(self, *, channels: int, width: int, depth: int, dilation_cycle: int = 4) -> None:
        super().__init__()
        self.embed = nn.Conv1d(channels, width, 1)
        self.time = TimeEmbedding(width)
        self.blocks = nn.ModuleList(ResidualConvBlock(width, 2 ** (k % dilation_cycle)) for k in range(depth))
        self.skip = nn.Conv1d(width, width, 1)
        self.predict = nn.Conv1d(width, channels, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        hidden = functional.relu(self.embed(x.transpose(1, 2)))
        condition = self.time(time)
        skips = torch.zeros_like(hidden)
        for block in self.blocks:
            hidden, skip = block(hidden, condition)
            skips = skips + skip
        hidden = functional.relu(self.skip(skips / math.sqrt(len(self.blocks))))
        output: Tensor = self.predict(hidden).transpose(1, 2)
        return output


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
    bounds = Network(width=width).bounds()
    return _denoising(PlainDiT(channels=7, width=width, depth=depth, bounds=bounds), steps)


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
