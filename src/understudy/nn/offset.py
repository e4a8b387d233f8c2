"""One parameter added to every series: a learned position, query or starting state."""

import torch
from torch import Tensor, nn


class LearnedOffset(nn.Module):
    """x + offset, where `shape` broadcasts against one series of x. A bare `nn.Parameter` works too, but slower."""

    def __init__(self, *shape: int, scale: float = 0.02) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.randn(*shape) * scale)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.offset
