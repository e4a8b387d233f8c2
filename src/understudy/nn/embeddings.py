"""Numbers as vectors: diffusion time."""

import math

import torch
from torch import Tensor, nn


class TimeEmbedding(nn.Module):
    """Diffusion time [unit] → [unit, width]: sines of geometric frequencies through a small network."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.network = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, time: Tensor) -> Tensor:
        half = self.width // 2
        exponents = torch.arange(half, device=time.device, dtype=torch.float32) / half
        angles = time.float().unsqueeze(1) * torch.exp(-math.log(10_000.0) * exponents)
        waves = torch.cat([angles.sin(), angles.cos()], dim=1)
        weight = next(self.network.parameters())
        embedding: Tensor = self.network(waves.to(weight.dtype))
        return embedding
