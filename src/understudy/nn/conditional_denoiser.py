"""Conditional denoiser θ_DM of Pub2Priv (paper 000, section 5.3 and Appendix D), in the manner of CSDI.

Residual layers in which entries look along time and along channels (Tashiro et al., arXiv:2107.03502v2, Appendix E);
every layer receives the condition z of each step and the diffusion time.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.embeddings import TimeEmbedding
from understudy.nn.knowledge import TwoAxisLayer, plane_positions


class ConditionalBlock(nn.Module):
    """Returns the next residual stream and a skip contribution, both [unit, step, channel, width]."""

    def __init__(self, width: int, side: int, num_heads: int, feed_forward: int) -> None:
        super().__init__()
        self.time = nn.Linear(width, width)
        self.mix = TwoAxisLayer(width, num_heads, feed_forward)
        self.widen = nn.Linear(width, 2 * width)
        self.condition = nn.Linear(side, 2 * width)
        self.project_out = nn.Linear(width, 2 * width)

    def forward(self, x: Tensor, side: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        """Args: `side` [unit, step, channel, side] and the embedded `time` [unit, width]."""
        hidden = self.mix(x + self.time(time)[:, None, None])
        gate, value = (self.widen(hidden) + self.condition(side)).chunk(2, 3)
        residual, skip = self.project_out(torch.sigmoid(gate) * torch.tanh(value)).chunk(2, 3)
        return (x + residual) / math.sqrt(2), skip


class ConditionalDenoiser(nn.Module):
    """Predicts the noise in x [unit, step, channel] at diffusion time [unit], given z [unit, step, condition].

    Starts by predicting zero, so that the first losses are one. Table 3 of the paper: four layers, width 256.
    """

    def __init__(
        self, *, condition: int, width: int = 256, depth: int = 4, num_heads: int = 8, feed_forward: int = 64
    ) -> None:
        super().__init__()
        self.codes = 64  # width of the code of step and channel
        self.embed = nn.Linear(1, width)
        self.time = TimeEmbedding(width)
        side = condition + self.codes
        self.blocks = nn.ModuleList(ConditionalBlock(width, side, num_heads, feed_forward) for _ in range(depth))
        self.skip = nn.Linear(width, width)
        self.predict = nn.Linear(width, 1)
        nn.init.zeros_(self.predict.weight)
        nn.init.zeros_(self.predict.bias)

    def forward(self, x: Tensor, time: Tensor, z: Tensor) -> Tensor:
        """Returns the noise [unit, step, channel]."""
        hidden = functional.relu(self.embed(x.unsqueeze(3)))
        side, embedded = self._side(z, x.shape[2]), functional.silu(self.time(time))
        skips = torch.zeros_like(hidden)
        for block in self.blocks:
            hidden, skip = block(hidden, side, embedded)
            skips = skips + skip
        hidden = functional.relu(self.skip(skips / math.sqrt(len(self.blocks))))
        output: Tensor = self.predict(hidden).squeeze(3)
        return output

    def _side(self, z: Tensor, num_channels: int) -> Tensor:
        """Returns z beside the codes of step and channel, for every entry."""
        shape = (*z.shape[:2], num_channels, -1)
        codes = plane_positions(z.shape[1], num_channels, self.codes).to(z)
        return torch.cat([z.unsqueeze(2).expand(shape), codes.expand(shape)], dim=3)
