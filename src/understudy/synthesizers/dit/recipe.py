"""Presets of `dit`: shape and training of the network, public numbers that change no guarantee by themselves."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np

from understudy.errors import InputError
from understudy.nn.diffusion import Prediction
from understudy.synthesizers.dit.published import TIGHTNESS, UNBOUNDED, Bounds
from understudy.synthesizers.options import require_above_zero, require_one_of

_TOKENS = 16  # that the default patch cuts a series into at most
Tightness = Literal["loose", "medium", "tight", "too-tight", "none"]


@dataclass(frozen=True, kw_only=True)
class Network:
    """Shape of the transformer, and how small its condition is kept.

    Attributes:
        width, depth, num_heads: Of the blocks.
        patch: Steps per token; None cuts a series into at most 16.
        tightness: Share of the reference magnitudes that bounds are set at; "none" is the network without bounds.
    """

    width: int = 64
    depth: int = 2
    num_heads: int = 4
    patch: int | None = None
    tightness: Tightness = "medium"

    def __post_init__(self) -> None:
        require_above_zero(self, "width", "depth", "num_heads", "patch")
        if self.width % (2 * self.num_heads):
            raise InputError(f"width: a multiple of twice num_heads = {self.num_heads} is expected, got {self.width}.")
        require_one_of(self, tightness=(*TIGHTNESS, "none"))

    def patch_for(self, num_steps: int) -> int:
        """Returns the steps per token: the least that divides the series into at most 16, if there is a small one."""
        if self.patch is not None:
            return self.patch
        least = math.ceil(num_steps / _TOKENS)
        return next((patch for patch in range(least, 2 * least + 1) if num_steps % patch == 0), least)

    @property
    def reference(self) -> np.ndarray:
        """C₀ = √d, the length of d standard normal numbers, and 1 for scale, shift and gate."""
        return np.array([math.sqrt(self.width), 1.0, 1.0, 1.0])

    def bounds(self, reference: np.ndarray | None = None) -> Bounds:
        """Returns the bounds that reference magnitudes (C₀, Γ₀, B₀, A₀) and the tightness give."""
        if self.tightness == "none":
            return UNBOUNDED
        sizes = self.reference if reference is None else np.asarray(reference)
        condition, scale, shift, gate = (TIGHTNESS[self.tightness] * sizes).tolist()
        return Bounds(condition=condition, scale=scale, shift=shift, gate=gate)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the network is shaped and trained.

    Attributes:
        iterations: Private updates.
        batch: Units (for events: windows) expected in an iteration; at most all there are.
        draws: Times, noises and masks that each window of a batch is shown with, averaged before the clip.
        learning_rate: Of AdamW, after a linear warm-up.
        rate_by_noise: Divide the learning rate by the ratio of gradient noise to the largest possible sum, if above 1.
        weight_decay: Of AdamW.
        warm_up: Iterations over which the learning rate rises; None for a twentieth of all.
        ema: Decay of the running average of parameters that is released.
        clipping_norm: Bound on a unit's gradient.
        predicts: "velocity", "x0", or "noise" as published.
        interpolated: Measure hidden scores from what is shown, by released autocovariances; not as published.
    """

    shown: ClassVar = ("iterations", "batch", "learning_rate", "clipping_norm")  # what `--set` offers
    network: Network = field(default_factory=Network)
    iterations: int = 300
    batch: int = 512
    draws: int = 2
    learning_rate: float = 2e-3
    rate_by_noise: bool = True
    weight_decay: float = 0.0
    warm_up: int | None = None
    ema: float = 0.95
    clipping_norm: float = 0.5
    predicts: Prediction = "velocity"
    interpolated: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.network, dict):  # options of a release that was loaded
            object.__setattr__(self, "network", Network(**self.network))
        require_above_zero(self, "iterations", "batch", "draws", "learning_rate", "clipping_norm")
        if not 0 <= self.ema < 1 or not self.weight_decay >= 0:
            raise InputError(f"ema: 0 to below 1 is expected, got {self.ema}; weight_decay: 0 or more.")
        require_one_of(self, predicts=get_args(Prediction))

    @property
    def warm_up_iterations(self) -> int:
        """Iterations over which the learning rate rises."""
        return max(1, self.iterations // 20) if self.warm_up is None else min(self.warm_up, self.iterations)


DEFAULT = Recipe()
PAPER = Recipe(  # DP-aware AdaLN-Zero, section 5.1; its sigma is replaced by a guarantee
    network=Network(width=256, depth=8, num_heads=8, patch=1),
    iterations=20_000,
    batch=96,
    draws=1,
    learning_rate=7e-4,
    rate_by_noise=False,
    weight_decay=2e-5,
    warm_up=1000,
    ema=0.999,
    clipping_norm=1.0,
    predicts="noise",
    interpolated=False,
)
