"""Denoiser of gated dilated convolutions with skip connections (DiffWave, Kong et al., arXiv:2009.09761v3)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.attention import TimeEmbedding


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
    """Predicts the noise in x [unit, step, channel] at diffusion time [unit]."""

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
