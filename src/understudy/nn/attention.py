"""Self-attention over steps, and numbers as vectors: positions and diffusion time."""

import math

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional


class SelfAttention(nn.Module):
    """Multi-head self-attention [unit, step, width] → same, built of two linears."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)

    def forward(self, x: Tensor, present: Tensor | None = None) -> Tensor:
        """Args: `present` [unit, step] is False for steps that neither attend nor are attended to; they return 0."""
        split = "unit step (three head d) -> three unit head step d"
        queries, keys, values = rearrange(self.project_in(x), split, three=3, head=self.num_heads)
        seen = None
        if present is not None:  # a unit without any step looks at all of them, so that its softmax exists
            seen = torch.where(present.any(1, keepdim=True), present, True)[:, None, None]
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=seen)
        output: Tensor = self.project_out(rearrange(mixed, "unit head step d -> unit step (head d)"))
        return output if present is None else output * present.unsqueeze(2)


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


def positions(length: int, width: int) -> Tensor:
    """Returns sines and cosines [length, width] of geometric frequencies (Vaswani et al., arXiv:1706.03762, 3.5)."""
    exponents = torch.arange(0, width, 2) / width
    angles = torch.arange(length).unsqueeze(1) * torch.exp(-math.log(10_000.0) * exponents)
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :width]
