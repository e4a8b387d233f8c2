"""Options of the networks and of the loop. All are public; none changes what a guarantee means."""

from dataclasses import dataclass
from typing import Literal

from understudy.errors import InputError
from understudy.synthesizers.options import require_above_zero, require_one_of

LATENT, HIDDEN = 32, 256  # paper 004, section 5.1.3; code released with it

Model = Literal["vflgan-ts", "central-coscigan", "party-coscigan", "vflgan"]
Labels = Literal["conditional", "apart"]
LABELS = ("conditional", "apart")
MODELS = ("vflgan-ts", "central-coscigan", "party-coscigan", "vflgan")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How networks are made and trained; defaults are those of the code released with paper 004.

    Attributes:
        model: VFLGAN-TS, or what it is compared with: CosciGAN with all attributes in one place, one CosciGAN per
            party, or VFLGAN, with one generator per party and a Wasserstein objective. The three train without noise.
        iterations: Updates of the generators.
        batch: Synthetic rows per iteration, and private ones that are expected.
        coupling: β, what the shared discriminator counts in a generator's loss (Eq. 11).
        learning_rate: Of generators and attribute discriminators; extractors and the shared discriminator get half.
        dropout: Share of hidden numbers dropped in discriminators and extractors.
        widths: Hidden layers of an attribute discriminator.
        features: Numbers by which a party shows a row to the aggregator.
        clip_norm: The most one unit may weigh in a sum of gradients, over all parties and the aggregator (`sound`).
        labels: Whether one model is told the class ("conditional"), or every class has a model of its own ("apart").
        saturating: Whether generators minimise log(1 − D), as Eq. 11 prints, or −log D, as the released code does.
    """

    model: Model = "vflgan-ts"
    iterations: int = 3000
    batch: int = 64
    coupling: float = 5.0
    learning_rate: float = 2e-4
    dropout: float = 0.3
    widths: tuple[int, ...] = (128, 64)
    features: int = 256
    clip_norm: float = 1.0
    labels: Labels = "conditional"
    saturating: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "widths", tuple(self.widths))  # a list, in options of a release that was loaded
        require_one_of(self, model=MODELS, labels=LABELS)
        require_above_zero(self, "iterations", "batch", "features", "coupling", "learning_rate", "clip_norm")
        if not 0 <= self.dropout < 1 or not self.widths or min(self.widths) < 1:
            raise InputError("dropout: a share below 1 is expected; widths: one number of at least 1 for each layer.")

    @property
    def wasserstein(self) -> bool:
        """Whether discriminators estimate a distance instead of a probability."""
        return self.model == "vflgan"

    @property
    def critic_rounds(self) -> int:
        """Updates of the discriminators for one of the generators."""
        return 5 if self.wasserstein else 1

    @property
    def shared_widths(self) -> tuple[int, int]:
        """Hidden layers of the shared discriminator; a central one has its first layer in the extractor."""
        return (self.features, 64) if self.model in ("vflgan-ts", "vflgan") else (128, 64)

    @property
    def betas(self) -> tuple[float, float]:
        """Of Adam."""
        return (0.5, 0.999) if self.wasserstein else (0.5, 0.9)
