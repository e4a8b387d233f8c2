"""Shape of the network and how it is trained: public numbers, none of which changes a guarantee by itself."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from understudy.errors import InputError
from understudy.synthesizers.dit.denoising import Prediction
from understudy.synthesizers.dit.network import OPERATORS, TIGHTNESS, UNBOUNDED, Bounds, Operator, preset
from understudy.synthesizers.options import require_above_zero, require_one_of

_TOKENS = 16  # that the default patch cuts a series into at most
Tightness = Literal["loose", "medium", "tight", "too-tight", "none"]
Tuned = Literal["all", "conditioning"]
Bounded = Literal["both", "condition", "modulation"]


@dataclass(frozen=True, kw_only=True)
class Network:
    """Shape of the transformer, and how small its condition is kept.

    Attributes:
        width, depth, num_heads: Of the blocks; paper 003 has 256, 8 and 8.
        patch: Steps per token; None cuts a series into at most 16. The paper has 1.
        tightness: Share of the reference magnitudes that bounds are set at; "none" is the network without bounds.
        operator: What keeps shift, scale and gate inside their bounds.
        bounded: "both" the condition (Eq. 5) and what is made of it (Eq. 7), or one of the two alone, to compare.
        literal: Scale by γ as Eq. 2 prints it; otherwise by 1 + γ, as DiT does.
    """

    width: int = 64
    depth: int = 2
    num_heads: int = 4
    patch: int | None = None
    tightness: Tightness = "medium"
    operator: Operator = "tanh"
    bounded: Bounded = "both"
    literal: bool = False

    def __post_init__(self) -> None:
        for name in ("width", "depth", "num_heads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: at least 1 is expected, got {getattr(self, name)}.")
        if self.patch is not None and self.patch < 1:
            raise InputError(f"patch: at least 1 step is expected, got {self.patch}.")
        if self.width % (2 * self.num_heads):
            raise InputError(f"width: a multiple of twice num_heads = {self.num_heads} is expected, got {self.width}.")
        require_one_of(self, tightness=(*TIGHTNESS, "none"), operator=OPERATORS, bounded=get_args(Bounded))

    def patch_for(self, num_steps: int) -> int:
        """Returns the steps per token: the least that divides the series into at most 16, if there is a small one."""
        if self.patch is not None:
            return self.patch
        least = math.ceil(num_steps / _TOKENS)
        return next((patch for patch in range(least, 2 * least + 1) if num_steps % patch == 0), least)

    def bounds(self, reference: tuple[float, float, float, float]) -> Bounds:
        """Returns the bounds that reference magnitudes (C₀, Γ₀, B₀, A₀) and the preset give."""
        if self.tightness == "none":
            return UNBOUNDED
        condition, scale, shift, gate = reference
        whole = Bounds(condition=condition, scale=scale, shift=shift, gate=gate, operator=self.operator)
        if self.bounded == "modulation":
            whole = whole.inside_the_ball
        elif self.bounded == "condition":
            whole = Bounds(condition=condition)
        return preset(self.tightness, whole)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the network learns.

    Attributes:
        iterations: Private updates.
        batch: Units (for events: windows) expected in an iteration; at most all there are.
        draws: Times, noises and masks that each drawn window is shown with, averaged before the clip.
        learning_rate: Of Adam, after a warm-up over the first twentieth of the iterations.
        ema: Weight of the past in the running average of parameters that is released.
        clip: The most a unit may weigh.
        predicts: "velocity", or "noise" as published.
        bridged: Measure what is hidden from what is shown, as `memory` has it; not as published.
        tuned: "all" weights, or those of the "conditioning" path and the last layer; the rest stays as the pack has it.
    """

    iterations: int = 300
    batch: int = 512
    draws: int = 2
    learning_rate: float = 2e-3
    ema: float = 0.95
    clip: float = 0.5
    predicts: Prediction = "velocity"
    bridged: bool = True
    tuned: Tuned = "all"

    def __post_init__(self) -> None:
        require_above_zero(self, "iterations", "batch", "draws", "learning_rate", "clip")
        if not 0 <= self.ema < 1:
            raise InputError(f"ema: a number from 0 to below 1 is expected, got {self.ema}.")
        require_one_of(self, predicts=("velocity", "noise"), tuned=("all", "conditioning"))

    @property
    def warm_up(self) -> int:
        """Iterations over which the learning rate rises."""
        return max(1, self.iterations // 20)
