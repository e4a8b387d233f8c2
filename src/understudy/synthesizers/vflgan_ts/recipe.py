"""Options of VFLGAN-TS. All are public; none changes what a guarantee means."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from understudy.synthesizers.options import require_above_zero

Mode = Literal["sound", "local", "plain", "paper"]
Scale = Literal["bought", "bounds"]
MODES, SCALES = get_args(Mode), get_args(Scale)

LATENT, HIDDEN = 32, 256  # section 5.1.3 of the paper, and the code released with it
DROPOUT = 0.3  # in discriminators and extractors, as in the released code; none where a guarantee is claimed
BETAS = (0.5, 0.9)  # of Adam


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Size and training of the networks.

    Attributes:
        iterations: Updates of the critics. In the mode `sound` each is charged, and generators get one for five; else
            one for one.
        batch: Synthetic rows per iteration, and the expected number of private ones.
        learning_rate: Of generators and attribute discriminators; extractors and the shared discriminator get half.
        features: Features by which a party shows a row to the aggregator; widths of all discriminators follow from it.
        clipping_norm: Clipping norm of one unit's gradient, over all parties and the aggregator (mode `sound`).
    """

    iterations: int = 600
    batch: int = 128
    learning_rate: float = 4e-3
    features: int = 64
    clipping_norm: float = 1.0

    def __post_init__(self) -> None:
        require_above_zero(self, "iterations", "batch", "features", "learning_rate", "clipping_norm")

    @property
    def coupling(self) -> float:
        """β of Eq. 11: weight of the shared discriminator in a generator's loss, as in the released code."""
        return 5.0

    @property
    def widths(self) -> tuple[int, ...]:
        """Hidden layers of an attribute discriminator: 128 and 64 at the paper's 256 features."""
        return max(1, self.features // 2), max(1, self.features // 4)

    @property
    def shared_widths(self) -> tuple[int, ...]:
        """Hidden layers of the shared discriminator: 256 and 64 at the paper's 256 features."""
        return self.features, max(1, self.features // 4)


DEFAULT: Mapping[str, Any] = {"mode": "sound", "scale": "bought", "recipe": Recipe()}
# DPVFLGAN-TS on Stock: 101 epochs of 57 batches. What it claims does not hold, and its certificate says so.
PAPER: Mapping[str, Any] = {
    "mode": "paper",
    "scale": "bounds",
    "recipe": Recipe(iterations=5757, batch=64, learning_rate=2e-4, features=256),
}
