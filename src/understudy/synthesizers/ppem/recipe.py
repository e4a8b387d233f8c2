"""Networks, losses and loop of `ppem`: public numbers, none of which changes a guarantee by itself."""

from dataclasses import dataclass
from typing import Literal

from understudy.errors import InputError
from understudy.synthesizers.options import require_above_zero, require_one_of

LATENT = 128  # paper 002, appendix C
Statistic = Literal["ksd", "studentised", "fssd"]
STATISTICS = ("ksd", "studentised", "fssd")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How energies and generators are shaped and trained. `PAPER` has the published numbers, which take far longer.

    Attributes:
        network: "perceptron" for flat rows, "temporal" for convolutions along the steps.
        width: Of hidden layers; noise on fewer parameters leaves more of them.
        iterations: Updates of the energies.
        batch: Units expected in an iteration.
        rounds: Updates of the energies for one of the generators.
        margin: Energy up to which generated rows are pushed (m).
        lipschitz: Weight of the penalty on slopes (λ_L).
        penalty: Weight of the obfuscation penalty (λ_α); 0 is the control without it.
        statistic: What the penalty tests with.
        energy_rate, generator_rate: Learning rates.
        ema: Weight of the past in the running average of generators that is released; 0 releases the last ones.
        clip_norm: The most one unit may weigh in a sum of gradients, over both energies.
    """

    network: Literal["perceptron", "temporal"] = "perceptron"
    width: int = 64
    iterations: int = 1500
    batch: int = 128
    rounds: int = 2
    margin: float = 10.0
    lipschitz: float = 1.0
    penalty: float = 10.0
    statistic: Statistic = "ksd"
    energy_rate: float = 3e-3
    generator_rate: float = 1e-3
    ema: float = 0.99
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        require_one_of(self, network=("perceptron", "temporal"), statistic=STATISTICS)
        require_above_zero(
            self, "iterations", "batch", "rounds", "margin", "energy_rate", "generator_rate", "clip_norm"
        )
        if self.width < 2 or not self.lipschitz >= 0 or not self.penalty >= 0 or not 0 <= self.ema < 1:
            raise InputError("width: at least 2 is expected; lipschitz and penalty: 0 or more; ema: from 0 to below 1.")


PAPER = Recipe(width=256, rounds=5, energy_rate=1e-3, generator_rate=5e-4, ema=0.0)  # appendix C
