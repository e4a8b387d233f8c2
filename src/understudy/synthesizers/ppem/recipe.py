"""Numbers of the networks, the losses and the training loop of PPEM; none of them changes a guarantee by itself."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from understudy.errors import InputError
from understudy.synthesizers.options import require_above_zero, require_one_of

LATENT = 128  # PPEM, appendix C
Norm = Literal["layer", "batch"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How energies and generators are shaped and trained.

    Attributes:
        width: Width of the hidden layers.
        iterations: Updates of the energies.
        batch: Rows in an iteration.
        rounds: Updates of the energies per update of the generators.
        penalty: Weight of the obfuscation penalty, λ_α; 0 trains without it.
        energy_rate, generator_rate: Learning rates.
        norm: Normalisation in generators: "layer", row by row, or "batch" as published, whose statistics of real x′ are
            released with the weights where the rows are real.
        ema: Decay of the running average of the generators that is released; 0 releases the last ones.
    """

    shown: ClassVar = ("iterations", "batch")  # what `--set` offers
    width: int = 64
    iterations: int = 1500
    batch: int = 128
    rounds: int = 2
    penalty: float = 10.0
    energy_rate: float = 3e-3
    generator_rate: float = 1e-3
    norm: Norm = "layer"
    ema: float = 0.99

    def __post_init__(self) -> None:
        require_one_of(self, norm=get_args(Norm))
        require_above_zero(self, "iterations", "batch", "rounds", "energy_rate", "generator_rate")
        if min(self.width, self.batch) < 2 or not self.penalty >= 0 or not 0 <= self.ema < 1:
            raise InputError("width, batch: at least 2 are expected; penalty: 0 or more; ema: from 0 to below 1.")


DEFAULT = Recipe()
# Appendix C. The paper trains for 100 epochs; this is that many updates for a table of 64,000 rows.
PAPER = Recipe(width=256, rounds=5, iterations=50_000, energy_rate=1e-3, generator_rate=5e-4, norm="batch", ema=0.0)
