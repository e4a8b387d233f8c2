"""Shift, scale and gate of AdaLN-Zero, from a condition that can be kept small (paper 003, section 4).

A condition with an outlier makes a large gradient, and a large gradient is clipped as a whole. Here the condition is
projected onto a ball (Eq. 5) and what is made of it is kept inside intervals (Eq. 7), so that no example's gradient
along this path can be large. Nothing about privacy rests on it: clipping and noise are what they are without it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.errors import InputError

Operator = Literal["tanh", "hard", "soft", "straight-through"]
Role = Literal["shift", "scale", "gate"]
SHIFT_SCALE: tuple[Role, ...] = ("shift", "scale")
SHIFT_SCALE_GATE: tuple[Role, ...] = (*SHIFT_SCALE, "gate")
BAND = 0.1  # of a bound: how far before and after it the soft operator bends


def projected(condition: Tensor, radius: float) -> Tensor:
    """Returns the condition [unit, width], shortened to `radius` where it is longer (Eq. 5)."""
    if math.isinf(radius):
        return condition
    length = condition.norm(dim=1, keepdim=True)
    return condition * (radius / length.clamp_min(1e-12)).clamp_max(1.0)


def _tanh(x: Tensor, bound: Tensor) -> Tensor:
    return bound * torch.tanh(x / bound)


def _hard(x: Tensor, bound: Tensor) -> Tensor:
    return x.clamp(-bound, bound)


def _soft(x: Tensor, bound: Tensor) -> Tensor:
    """Identity up to bound·(1 − BAND), a parabola that meets `bound` with slope zero at bound·(1 + BAND)."""
    band = BAND * bound
    t = ((x.abs() - (bound - band)) / (2 * band)).clamp(0.0, 1.0)
    bent = bound - band + 2 * band * (t - t * t / 2)
    return torch.where(x.abs() <= bound - band, x, x.sign() * bent)


def _straight_through(x: Tensor, bound: Tensor) -> Tensor:
    """Clamped on the way forward, as if it were not on the way back."""
    return x.clamp(-bound, bound).detach() + (x - x.detach())  # adds nothing, to the last bit


OPERATORS: Mapping[Operator, Callable[[Tensor, Tensor], Tensor]] = {
    "tanh": _tanh,
    "hard": _hard,
    "soft": _soft,
    "straight-through": _straight_through,
}


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """c_max, γ_max, β_max and α_max (Eq. 8), and the operator that keeps them; without limits by default."""

    condition: float = math.inf
    scale: float = math.inf
    shift: float = math.inf
    gate: float = math.inf
    operator: Operator = "tanh"

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise InputError(f"operator: one of {', '.join(OPERATORS)} is expected, got '{self.operator}'.")
        if not all(limit > 0 for limit in (self.condition, self.scale, self.shift, self.gate)):
            raise InputError("Bounds above 0 are expected, got one that is not. Use infinity for no bound.")

    @property
    def inside_the_ball(self) -> "Bounds":
        """The same for conditions that were projected already: a network does that once for all its blocks."""
        return replace(self, condition=math.inf)

    def bounded(self, raw: Tensor, roles: tuple[Role, ...], limits: Tensor) -> Tensor:
        """Returns raw parameters [unit, role · width], coordinate by coordinate inside their intervals (Eq. 7).

        Neighbouring roles are bounded in one go: on vectors this short it is the calls that cost.
        """
        finite = [math.isfinite(getattr(self, role)) for role in roles]
        width, together = raw.shape[1] // len(roles), [len(list(same)) for _, same in groupby(finite)]
        sizes = [width * number for number in together]
        parts = [
            OPERATORS[self.operator](part, limit) if finite[place] else part
            for part, limit, place in zip(raw.split(sizes, 1), limits.split(sizes, 1), _starts(together), strict=True)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _starts(lengths: list[int]) -> list[int]:
    return list(accumulate(lengths, initial=0))[:-1]


UNBOUNDED = Bounds()
TIGHTNESS: Mapping[str, float] = {"loose": 1.0, "medium": 0.9, "tight": 0.75, "too-tight": 0.5}  # Section 5, presets


def preset(tightness: str, reference: Bounds) -> Bounds:
    """Returns the reference magnitudes (C₀, Γ₀, B₀, A₀) times the preset's factor."""
    if tightness not in TIGHTNESS:
        raise InputError(f"tightness: one of {', '.join(TIGHTNESS)} is expected, got '{tightness}'.")
    factor = TIGHTNESS[tightness]
    return Bounds(
        condition=factor * reference.condition,
        scale=factor * reference.scale,
        shift=factor * reference.shift,
        gate=factor * reference.gate,
        operator=reference.operator,
    )


class Modulation(nn.Module):
    """The condition [unit, width] → one vector [unit, width] per role; zero at the start.

    Args:
        literal: Scale by γ as Eq. 2 prints it, starting at γ = 1, which needs a bound above 1. Otherwise, as in DiT,
            by 1 + γ starting at γ = 0, so that the bound limits the deviation.
    """

    def __init__(
        self, width: int, roles: tuple[Role, ...], *, bounds: Bounds = UNBOUNDED, literal: bool = False
    ) -> None:
        super().__init__()
        if literal and bounds.scale <= 1:
            raise InputError(f"literal: a bound on the scale above 1 is expected, got {bounds.scale:g}.")
        self.roles, self.bounds, self.literal = roles, bounds, literal
        self.limits: Tensor
        self.linear = nn.Linear(width, len(roles) * width)
        limits = torch.tensor([getattr(bounds, role) for role in roles]).repeat_interleave(width).unsqueeze(0)
        self.register_buffer("limits", limits, persistent=False)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        if literal:
            start = _raw_of_one(bounds)
            for place, role in enumerate(roles):
                if role == "scale":
                    nn.init.constant_(self.linear.bias[place * width : (place + 1) * width], start)

    def forward(self, condition: Tensor) -> list[Tensor]:
        """Returns shifts, *factors* and gates in the order of `roles`."""
        small = projected(condition, self.bounds.condition)  # Eq. 5; |SiLU(a)| ≤ |a|, so it stays inside the ball
        raw = self.linear(functional.silu(small))  # Eq. 6
        bounded = self.bounds.bounded(raw, self.roles, self.limits).chunk(len(self.roles), 1)  # Eq. 7
        one = 0.0 if self.literal else 1.0
        return [one + own if role == "scale" else own for own, role in zip(bounded, self.roles, strict=True)]


def _raw_of_one(bounds: Bounds) -> float:
    """Returns the raw number that a bounded scale of one comes from, found by halving: operators do not decrease."""
    low, high = 0.0, 1.0 if math.isinf(bounds.scale) else 20 * bounds.scale
    for _ in range(60):
        middle = (low + high) / 2
        limit = torch.tensor([[bounds.scale]], dtype=torch.float64)
        reached = float(bounds.bounded(torch.full_like(limit, middle), ("scale",), limit))
        low, high = (middle, high) if reached < 1 else (low, middle)
    return high
