"""Diffusion transformer with DP-aware AdaLN-Zero that fills what is hidden, given what is shown.

Peebles & Xie (arXiv:2212.09748v2, section 3.2) condition a transformer through the shift, scale and gate of AdaLN-Zero.
DP-aware AdaLN-Zero (sections 4 and 5; equation numbers below are its own) bounds that path: the condition is projected
onto a ball (Eq. 5) and what is made of it is kept inside intervals (Eq. 7), so that no example's gradient along this
path can be large. Nothing about privacy rests on it: clipping and noise are what they are without it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional

from understudy.errors import InputError
from understudy.nn.attention import SelfAttention, TimeEmbedding, positions

Role = Literal["shift", "scale", "gate"]
SHIFT_SCALE: tuple[Role, ...] = ("shift", "scale")
SHIFT_SCALE_GATE: tuple[Role, ...] = (*SHIFT_SCALE, "gate")
_FAR = 1e30  # stands for an infinite limit among finite ones


def projected(condition: Tensor, radius: float) -> Tensor:
    """Returns the condition [unit, width], shortened to `radius` where it is longer (Eq. 5)."""
    if math.isinf(radius):
        return condition
    length = condition.norm(dim=1, keepdim=True)
    return condition * (radius / length.clamp_min(1e-12)).clamp_max(1.0)


def within(x: Tensor, bound: Tensor) -> Tensor:
    """Returns x inside ± bound, with slope one around 0 (Eq. 7)."""
    return bound * torch.tanh(x / bound)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """c_max, γ_max, β_max and α_max (Eq. 8), and the operator that keeps all but the first; no limits by default."""

    condition: float = math.inf
    scale: float = math.inf
    shift: float = math.inf
    gate: float = math.inf
    operator: Callable[[Tensor, Tensor], Tensor] = within

    def __post_init__(self) -> None:
        if not all(limit > 0 for limit in (self.condition, self.scale, self.shift, self.gate)):
            raise InputError("Bounds above 0 are expected, got one that is not. Use infinity for no bound.")


UNBOUNDED = Bounds()
TIGHTNESS: Mapping[str, float] = {"loose": 1.0, "medium": 0.9, "tight": 0.75, "too-tight": 0.5}  # Section 5, presets


class Modulation(nn.Module):
    """The condition [unit, width], inside its ball → one vector [unit, width] per role; zero at the start.

    The scale is 1 + γ starting at γ = 0, as in DiT, so that the bound limits the deviation; Eq. 2 prints γ.
    """

    def __init__(self, width: int, roles: tuple[Role, ...], *, bounds: Bounds = UNBOUNDED) -> None:
        super().__init__()
        self.roles, self.bounds = roles, bounds
        self.limits: Tensor
        self.linear = nn.Linear(width, len(roles) * width)
        limits = [min(getattr(bounds, role), _FAR) for role in roles]
        self._is_bounded = min(limits) < _FAR
        self.register_buffer("limits", torch.tensor(limits).repeat_interleave(width).unsqueeze(0), persistent=False)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, condition: Tensor) -> list[Tensor]:
        """Returns shifts, *factors* and gates in the order of `roles`."""
        raw = self.linear(functional.silu(condition))  # Eq. 6; |SiLU(a)| ≤ |a|, so it stays inside the ball
        kept = self.bounds.operator(raw, self.limits) if self._is_bounded else raw  # Eq. 7
        parts = kept.chunk(len(self.roles), 1)
        return [1.0 + own if role == "scale" else own for own, role in zip(parts, self.roles, strict=True)]


def modulate(x: Tensor, shift: Tensor, factor: Tensor) -> Tensor:
    """Returns the layer-normalised x [unit, step, width] scaled and shifted per unit."""
    normal = functional.layer_norm(x, x.shape[-1:], eps=1e-6)
    return normal * factor.unsqueeze(1) + shift.unsqueeze(1)


class DiTBlock(nn.Module):
    """Attention and a two-layer network, both shifted, scaled and gated by the condition; starts as identity."""

    def __init__(self, width: int, num_heads: int, expansion: int = 4, *, bounds: Bounds = UNBOUNDED) -> None:
        super().__init__()
        self.attention = SelfAttention(width, num_heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, expansion * width),
            nn.GELU(approximate="tanh"),
            nn.Linear(expansion * width, width),
        )
        self.condition = Modulation(width, 2 * SHIFT_SCALE_GATE, bounds=bounds)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift_a, factor_a, gate_a, shift_f, factor_f, gate_f = self.condition(condition)
        x = x + gate_a.unsqueeze(1) * self.attention(modulate(x, shift_a, factor_a))  # Eq. 2
        return x + gate_f.unsqueeze(1) * self.feed_forward(modulate(x, shift_f, factor_f))


NUM_STATISTICS = 7


def shown_statistics(values: Tensor, shown: Tensor) -> Tensor:
    """Returns [unit, 7 · channel] of the entries that are shown (1 or 0); zeros for a channel that shows nothing.

    Mean, deviation, least, greatest and last value, mean change between neighbouring shown steps, and the share shown.
    """
    number = shown.sum(1).clamp_min(1.0)
    any_shown = (shown.sum(1) > 0).to(values)
    mean = (values * shown).sum(1) / number
    deviation = (((values - mean.unsqueeze(1)) * shown).square().sum(1) / number).clamp_min(1e-12).sqrt() * any_shown
    least = torch.where(shown > 0, values, torch.inf).amin(1)
    greatest = torch.where(shown > 0, values, -torch.inf).amax(1)
    step = torch.arange(values.shape[1], device=values.device)[None, :, None] * (shown > 0)
    last = values.gather(1, step.amax(1, keepdim=True)).squeeze(1) * any_shown
    both = shown[:, 1:] * shown[:, :-1]
    change = (values.diff(dim=1) * both).sum(1) / both.sum(1).clamp_min(1.0)
    ends = (torch.where(any_shown > 0, end, torch.zeros_like(end)) for end in (least, greatest))
    return torch.cat([mean, deviation, *ends, last, change, shown.mean(1)], dim=1)


class MaskedDiT(nn.Module):
    """Predicts noise (or velocity) [unit, step, channel] of the hidden entries.

    Attributes:
        patch: Steps per token; a whole number of patches makes a series. The paper: 1.
        num_classes: Classes; the last row of the table stands for "no class said". Without any: 1 row, always that.
    """

    def __init__(
        self,
        *,
        channels: int,
        context: int = 0,
        num_classes: int = 0,
        width: int,
        depth: int,
        num_heads: int = 8,
        patch: int = 1,
        bounds: Bounds = UNBOUNDED,
    ) -> None:
        super().__init__()
        self.patch, self.num_classes = patch, num_classes
        self.embed = nn.Linear(patch * (3 * channels + context), width)
        self.time = TimeEmbedding(width)
        self.summary = nn.Sequential(nn.Linear(NUM_STATISTICS * channels, width), nn.SiLU(), nn.Linear(width, width))
        self.label = nn.Embedding(num_classes + 1, width)
        self.radius = bounds.condition
        self.blocks = nn.ModuleList(DiTBlock(width, num_heads, bounds=bounds) for _ in range(depth))
        self.condition = Modulation(width, SHIFT_SCALE, bounds=bounds)
        self.predict = nn.Linear(width, patch * channels)
        nn.init.normal_(self.label.weight, std=0.02)
        nn.init.zeros_(self.predict.weight)
        nn.init.zeros_(self.predict.bias)

    def forward(
        self,
        noisy: Tensor,
        time: Tensor,
        values: Tensor,
        shown: Tensor,
        label: Tensor | None = None,
        context: Tensor | None = None,
    ) -> Tensor:
        """Returns what is in `noisy` [unit, step, channel], which is 0 where nothing is to be filled.

        Args:
            values: What is known; read only where it is `shown` (1, else 0).
            label: Class [unit]; None or `num_classes` says none.
            context: Public context [unit, step, context].
        """
        if noisy.shape[1] % self.patch:
            raise InputError(f"Expected a multiple of {self.patch} steps, got {noisy.shape[1]}.")
        given = torch.where(shown > 0, values, torch.zeros_like(values))
        parts = [noisy, given, shown, *([] if context is None else [context])]
        tokens = rearrange(torch.cat(parts, dim=2), "unit (token step) c -> unit token (step c)", step=self.patch)
        hidden = self.embed(tokens)
        hidden = hidden + positions(hidden.shape[1], hidden.shape[2]).to(hidden)
        said = torch.full((len(noisy),), self.num_classes, device=noisy.device) if label is None else label
        condition = self.time(time) + self.summary(shown_statistics(given, shown)) + self.label(said)
        condition = projected(condition, self.radius)  # Eq. 5, once for all blocks
        for block in self.blocks:
            hidden = block(hidden, condition)
        output = self.predict(modulate(hidden, *self.condition(condition)))
        filled: Tensor = rearrange(output, "unit token (step c) -> unit (token step) c", step=self.patch)
        return filled
