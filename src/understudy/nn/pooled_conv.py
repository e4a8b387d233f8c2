"""A small encoder: strided convolutions, pooled at every scale. It costs a few percent of a TS2Vec."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class PooledConv(nn.Module):
    """Embeds x [series, step, channel] as [series, output].

    Each layer halves the time axis; the maximum and the mean of every layer but the first enter the embedding, so
    that short and long patterns both count.
    """

    def __init__(self, *, channels: int, output: int = 64, widths: tuple[int, ...] = (32, 64, 64, 128, 128)) -> None:
        super().__init__()
        self.channels, self.output, self.widths = channels, output, tuple(widths)
        all_widths = [channels, *widths]
        self.layers = nn.ModuleList(
            nn.Conv1d(narrow, wide, 5, stride=2, padding=2) for narrow, wide in pairwise(all_widths)
        )
        self.head = nn.Linear(2 * sum(widths[1:]), output)

    @property
    def shape(self) -> dict[str, int | list[int]]:
        """Arguments that make an encoder of this shape."""
        return {"channels": self.channels, "output": self.output, "widths": list(self.widths)}

    def forward(self, x: Tensor) -> Tensor:
        hidden, pooled = x.transpose(1, 2), []
        for place, layer in enumerate(self.layers):
            hidden = functional.gelu(layer(hidden))
            if place:
                pooled += [hidden.amax(2), hidden.mean(2)]
        embedding: Tensor = self.head(torch.cat(pooled, dim=1))
        return embedding
