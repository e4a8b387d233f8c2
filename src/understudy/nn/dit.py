"""Diffusion transformer over steps, conditioned by AdaLN-Zero (Peebles & Xie, arXiv:2212.09748v2, section 3.2)."""

from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.attention import SelfAttention
from understudy.nn.embeddings import TimeEmbedding
from understudy.nn.modulation import SHIFT_SCALE, SHIFT_SCALE_GATE, UNBOUNDED, Bounds, Modulation, projected
from understudy.nn.offset import LearnedOffset


def modulate(x: Tensor, shift: Tensor, factor: Tensor) -> Tensor:
    """Returns the layer-normalised x [unit, step, width] scaled and shifted per unit."""
    normal = functional.layer_norm(x, x.shape[-1:], eps=1e-6)
    return normal * factor.unsqueeze(1) + shift.unsqueeze(1)


class DiTBlock(nn.Module):
    """Attention and a two-layer network, both shifted, scaled and gated by the condition; starts as identity."""

    def __init__(
        self, width: int, num_heads: int, expansion: int = 4, *, bounds: Bounds = UNBOUNDED, literal: bool = False
    ) -> None:
        super().__init__()
        self.attention = SelfAttention(width, num_heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, expansion * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(expansion * width, width),
        )
        self.condition = Modulation(width, 2 * SHIFT_SCALE_GATE, bounds=bounds, literal=literal)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift_a, factor_a, gate_a, shift_f, factor_f, gate_f = self.condition(condition)
        x = x + gate_a.unsqueeze(1) * self.attention(modulate(x, shift_a, factor_a))  # Eq. 2
        return x + gate_f.unsqueeze(1) * self.feed_forward(modulate(x, shift_f, factor_f))


class DiT(nn.Module):
    """Predicts the noise in x [unit, step, channel] at diffusion time [unit]."""

    def __init__(
        self,
        *,
        channels: int,
        steps: int,
        width: int,
        depth: int,
        num_heads: int = 8,
        bounds: Bounds = UNBOUNDED,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(channels, width)
        self.position = LearnedOffset(steps, width)
        self.time = TimeEmbedding(width)
        self.radius, inside = bounds.condition, bounds.inside_the_ball
        self.blocks = nn.ModuleList(DiTBlock(width, num_heads, bounds=inside) for _ in range(depth))
        self.condition = Modulation(width, SHIFT_SCALE, bounds=inside)
        self.predict = nn.Linear(width, channels)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        hidden = self.position(self.embed(x))
        condition = projected(self.time(time), self.radius)  # Eq. 5
        for block in self.blocks:
            hidden = block(hidden, condition)
        output: Tensor = self.predict(modulate(hidden, *self.condition(condition)))
        return output
