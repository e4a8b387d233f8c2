"""Presets of `pub2priv`: public numbers, none of which changes a guarantee by itself."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, get_args

from understudy.errors import InputError
from understudy.nn.diffusion import Prediction
from understudy.synthesizers.options import require_above_zero, require_one_of

Model = Literal["auto", "regression", "correlation", "diffusion"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The model that is fitted, and the numbers of the diffusion; those of Table 3 unless said otherwise.

    Attributes:
        model: "regression" of shapes on context, or their "correlation" alone, on a `spectral` release; "auto" is the
            first, or the second where public facts say that noise would drown a regression; "diffusion" is the
            published model, trained by DP-SGD.
        iterations: Private updates; about 100 epochs of the paper's portfolios.
        batch: Units expected in an iteration; at most the population, and all units where the population is bought.
        clipping_norm: Bound on a unit's gradient; the paper takes the best of five by validation on private data.
        learning_rate: Of Adam.
        ema: Decay of the running average of parameters that is released; 0 releases the last iterate.
        width, layers, heads: Of the residual layers of θ_DM.
        predicts: What θ_DM says of a noisy series: its "noise" as published, "x0" or "velocity".
        clipped: Keep x₀ inside the working bounds at every step of sampling; not as published.
        diffusion_steps: Steps of the noise schedule; the total noise is that of the paper's 400.
        sampling_steps: Steps of DDIM; at least `diffusion_steps` means DDPM.
    """

    shown: ClassVar = ("model", "iterations", "batch", "sampling_steps")  # what `--set` offers
    model: Model = "auto"
    iterations: int = 1000
    batch: int = 128
    clipping_norm: float = 1.0
    learning_rate: float = 1e-4
    ema: float = 0.0
    width: int = 256
    layers: int = 4
    heads: int = 8
    predicts: Prediction = "velocity"
    clipped: bool = True
    diffusion_steps: int = 400
    sampling_steps: int = 400

    def __post_init__(self) -> None:
        require_one_of(self, model=get_args(Model), predicts=get_args(Prediction))
        words = ("model", "predicts", "clipped", "ema")
        require_above_zero(self, *(field.name for field in fields(self) if field.name not in words))
        if not 0 <= self.ema < 1:
            raise InputError(f"ema: a number from 0 to below 1 is expected, got {self.ema}.")
        if self.width % self.heads:
            raise InputError(f"width: a multiple of heads = {self.heads} is expected, got {self.width}.")


@dataclass(frozen=True, kw_only=True)
class KnowledgeRecipe:
    """Shape of θ_T and how long it is trained on public signals; the pack of the package by default.

    Attributes:
        network: Arguments of `KnowledgeTransformer`; windows of more than its `most_steps` are seen coarsely.
    """

    network: Mapping[str, int]
    iterations: int = 800
    batch: int = 24

    def of_size(self, **sizes: int | None) -> "KnowledgeRecipe":
        """Returns the recipe with some sizes replaced; None leaves one as it is."""
        told = {name: size for name, size in sizes.items() if size is not None}
        iterations = told.pop("iterations", self.iterations)
        network = {**self.network, **told}
        if min(iterations, *network.values()) < 1 or network["width"] % (2 * network["num_heads"]):
            raise InputError("width: a multiple of twice the number of heads is expected; other sizes: 1 or more.")
        return replace(self, network=network, iterations=iterations)


DEFAULT = Recipe()
PAPER = Recipe(model="diffusion", predicts="noise", clipped=False)
_GENERAL = {"width": 64, "num_heads": 4, "depth": 2, "feed_forward": 128, "most_steps": 160}
# Table 3 has 8 layers, here 4 on each axis; series of 360 days are seen whole.
_TABLE_3 = {"width": 128, "num_heads": 8, "depth": 4, "feed_forward": 256, "most_steps": 366}
KNOWLEDGE_RECIPES = {
    "default": KnowledgeRecipe(network=_GENERAL),
    "paper": KnowledgeRecipe(network=_TABLE_3),
    "quick": KnowledgeRecipe(network={**_GENERAL, "width": 16, "num_heads": 2, "depth": 1}, iterations=20),
}
