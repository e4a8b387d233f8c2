"""Networks of PETS, all trained on public series: encoders (TS2Vec, a small one) and a variational autoencoder.

TS2Vec: contrastive representations of time series (Yue et al., AAAI 2022, arXiv:2106.10466v4). `ConvVAE`: strided
convolutions over time (Kingma & Welling, arXiv:1312.6114v11). `PooledConv`: the same, pooled at every scale, at a
few percent of the cost of a TS2Vec. Each knows its `shape`: the arguments that make one like it.
"""

from itertools import pairwise
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

_GROUPS = 8  # of GroupNorm


class SameConv(nn.Conv1d):
    """Convolution of three taps that keeps the length; taps which can only see padding are not computed."""

    def __init__(self, width_in: int, width_out: int, dilation: int) -> None:
        super().__init__(width_in, width_out, 3, padding=dilation, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        if self.dilation[0] >= x.shape[-1]:  # both outer taps fall outside the series: the middle one is exact
            return functional.conv1d(x, self.weight[:, :, 1:2], self.bias)
        return super().forward(x)


class ConvBlock(nn.Module):
    """GELU → convolution, twice, plus a skip connection; x is [series, width, step]."""

    def __init__(self, width_in: int, width_out: int, dilation: int, *, last: bool) -> None:
        super().__init__()
        self.first = SameConv(width_in, width_out, dilation)
        self.second = SameConv(width_out, width_out, dilation)
        self.skip = nn.Conv1d(width_in, width_out, 1) if last or width_in != width_out else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.second(functional.gelu(self.first(functional.gelu(x)))) + self.skip(x)


class TS2Vec(nn.Module):
    """Represents every step of x [series, step, channel] as [series, step, output].

    While training, steps are hidden at random (p = 0.5) behind the input projection. A step with a missing channel
    (NaN) is always hidden.
    """

    def __init__(self, *, channels: int, depth: int = 10, hidden: int = 64, output: int = 320) -> None:
        super().__init__()
        self.channels = channels
        self.shape: dict[str, Any] = {"channels": channels, "depth": depth, "hidden": hidden, "output": output}
        self.project_in = nn.Linear(channels, hidden)
        widths = [hidden] * (depth + 1) + [output]
        self.blocks = nn.Sequential(
            *(ConvBlock(widths[k], widths[k + 1], 2**k, last=k == depth) for k in range(depth + 1))
        )
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        present = ~x.isnan().any(-1)
        hidden = self.project_in(torch.where(present.unsqueeze(-1), x, 0.0))
        if self.training:
            present = present & (torch.rand(present.shape, device=x.device) < 0.5)
        hidden = hidden * present.unsqueeze(-1)
        output: Tensor = self.dropout(self.blocks(hidden.transpose(1, 2))).transpose(1, 2)
        return output


class ConvVAE(nn.Module):
    """Maps series [series, step, channel] to one latent vector each, and back.

    Args:
        steps: Length of the series; lengths that halving does not divide are padded inside.
        widths: Channels after each halving of the time axis, multiples of 8.
    """

    def __init__(self, *, channels: int, steps: int, latent: int, widths: tuple[int, ...] = (32, 64, 128, 128)) -> None:
        super().__init__()
        self.channels, self.steps = channels, steps
        self.shape: dict[str, Any] = {"channels": channels, "steps": steps, "latent": latent, "widths": list(widths)}
        self.short = -(-steps // 2 ** len(widths))  # steps of the shortest layer, rounded up
        self.padding = self.short * 2 ** len(widths) - steps
        up = [*reversed(widths), widths[0]]
        self.encoder = nn.Sequential(
            *(_normed(nn.Conv1d(i, o, 5, stride=2, padding=2)) for i, o in pairwise([channels, *widths]))
        )
        self.to_latent = nn.Linear(widths[-1] * self.short, 2 * latent)
        self.from_latent = nn.Linear(latent, widths[-1] * self.short)
        self.decoder = nn.Sequential(
            *(_normed(nn.ConvTranspose1d(i, o, 4, stride=2, padding=1)) for i, o in pairwise(up)),
            nn.Conv1d(widths[0], channels, 5, padding=2),
        )

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance [series, latent] of q(z | x)."""
        hidden = functional.pad(rearrange(x, "n step channel -> n channel step"), (0, self.padding), mode="replicate")
        mean, log_variance = self.to_latent(self.encoder(hidden).flatten(1)).chunk(2, dim=1)
        return mean, log_variance.clamp(-10, 4)

    def decode(self, z: Tensor) -> Tensor:
        """Return the mean of p(x | z)."""
        hidden = rearrange(self.from_latent(z), "n (width step) -> n width step", step=self.short)
        output: Tensor = rearrange(self.decoder(hidden), "n channel step -> n step channel")[:, : self.steps]
        return output


def _normed(layer: nn.Conv1d | nn.ConvTranspose1d) -> nn.Module:
    return nn.Sequential(layer, nn.GELU(), nn.GroupNorm(_GROUPS, layer.out_channels))


class PooledConv(nn.Module):
    """Embeds x [series, step, channel] as [series, output].

    Each layer halves the time axis; the maximum and the mean of every layer but the first enter the embedding, so
    that short and long patterns both count.
    """

    def __init__(self, *, channels: int, output: int = 64, widths: tuple[int, ...] = (32, 64, 64, 128, 128)) -> None:
        super().__init__()
        self.channels = channels
        self.shape: dict[str, Any] = {"channels": channels, "output": output, "widths": list(widths)}
        self.layers = nn.ModuleList(nn.Conv1d(i, o, 5, stride=2, padding=2) for i, o in pairwise([channels, *widths]))
        self.head = nn.Linear(2 * sum(widths[1:]), output)

    def forward(self, x: Tensor) -> Tensor:
        hidden, pooled = x.transpose(1, 2), []
        for place, layer in enumerate(self.layers):
            hidden = functional.gelu(layer(hidden))
            if place:
                pooled += [hidden.amax(2), hidden.mean(2)]
        embedding: Tensor = self.head(torch.cat(pooled, dim=1))
        return embedding
