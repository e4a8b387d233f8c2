"""Diffusion transformer over steps, conditioned by AdaLN-Zero (Peebles & Xie, arXiv:2212.09748v2, section 3.2)."""

from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.attention import SelfAttention
from understudy.nn.embeddings import TimeEmbedding
from understudy.nn.offset import LearnedOffset


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """Returns the layer-normalised x [unit, step, width] shifted and scaled per unit."""
    normal = functional.layer_norm(x, x.shape[-1:])
    return normal * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class DiTBlock(nn.Module):
    """Attention and a two-layer network, both shifted, scaled and gated by the condition; starts as identity."""

    def __init__(self, width: int, num_heads: int, expansion: int = 4) -> None:
        super().__init__()
        self.attention = SelfAttention(width, num_heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, expansion * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(expansion * width, width),
        )
        self.condition = nn.Linear(width, 6 * width)
        nn.init.zeros_(self.condition.weight)
        nn.init.zeros_(self.condition.bias)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift_a, scale_a, gate_a, shift_f, scale_f, gate_f = self.condition(functional.silu(condition)).chunk(6, 1)
        x = x + gate_a.unsqueeze(1) * self.attention(modulate(x, shift_a, scale_a))
        return x + gate_f.unsqueeze(1) * self.feed_forward(modulate(x, shift_f, scale_f))


class DiT(nn.Module):
    """Predicts the noise in x [unit, step, channel] at diffusion time [unit]."""

    def __init__(self, *, channels: int, steps: int, width: int, depth: int, num_heads: int = 8) -> None:
        super().__init__()
        self.embed = nn.Linear(channels, width)
        self.position = LearnedOffset(steps, width)
        self.time = TimeEmbedding(width)
        self.blocks = nn.ModuleList(DiTBlock(width, num_heads) for _ in range(depth))
        self.condition = nn.Linear(width, 2 * width)
        self.predict = nn.Linear(width, channels)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        hidden = self.position(self.embed(x))
        condition = self.time(time)
        for block in self.blocks:
            hidden = block(hidden, condition)
        shift, scale = self.condition(functional.silu(condition)).chunk(2, 1)
        output: Tensor = self.predict(modulate(hidden, shift, scale))
        return output
