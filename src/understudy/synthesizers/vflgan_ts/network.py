"""Networks of VFLGAN-TS (section 4.2): one generator and one discriminator per attribute, computed stacked.

Axis order is `row, attribute, step`. Randomness comes from a generator that is handed in, so that a run repeats
itself wherever its parts are computed.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.layers import StackedLinear

SLOPE = 0.2  # of LeakyReLU below zero
_INITIAL_DEVIATION = 0.02
Masks = Sequence[Tensor | None]  # what dropout leaves of each hidden layer, [row, width]; None leaves everything


class AttributeGenerators(nn.Module):
    """One LSTM cell and one linear per attribute, all fed by the same latent.

    The cell runs once, from rest: without a past there is nothing to forget and nothing to feed back, so of the four
    gates three remain. One product computes all gates of all attributes: what comes in, what goes out, then the cell.
    """

    def __init__(self, num_attributes: int, num_latent: int, num_steps: int, num_hidden: int) -> None:
        super().__init__()
        self._shape = (num_attributes, num_hidden)
        self.gates = nn.Linear(num_latent, 3 * num_attributes * num_hidden)
        self.output = StackedLinear(num_attributes, num_hidden, num_steps)
        for parameter in self.gates.parameters():
            nn.init.uniform_(parameter, -(num_hidden**-0.5), num_hidden**-0.5)

    def forward(self, latent: Float[Tensor, "row latent"]) -> Float[Tensor, "row attribute step"]:
        enter, leave, cell = self.gates(latent).unflatten(1, (3, *self._shape)).unbind(1)
        hidden = leave.sigmoid() * (enter.sigmoid() * cell.tanh()).tanh()
        return self.output(hidden)


class AttributeDiscriminators(nn.Module):
    """One perceptron per attribute: how real it looks by itself, as a logit.

    Attributes share a row's masks: they are networks of their own, which never meet.
    """

    def __init__(self, num_attributes: int, num_steps: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        sizes = (num_steps, *widths)
        layers = [StackedLinear(num_attributes, *pair) for pair in pairwise(sizes)]
        self.layers = nn.ModuleList(layers)
        self.head = StackedLinear(num_attributes, sizes[-1], 1)
        small_weights(self)

    def forward(self, series: Float[Tensor, "row attribute step"], masks: Masks) -> Float[Tensor, "row attribute"]:
        for layer, kept in zip(self.layers, masks, strict=True):
            series = functional.leaky_relu(layer(series), SLOPE)
            series = series if kept is None else series * kept.unsqueeze(1)
        return self.head(series).squeeze(-1)


class FeatureExtractor(nn.Module):
    """All attributes of one party as the features that it sends: an affine map and LeakyReLU.

    With as many features as inputs the map can be inverted: features are private, whatever they are called.
    """

    def __init__(self, num_inputs: int, num_features: int) -> None:
        super().__init__()
        self.layer = nn.Linear(num_inputs, num_features)
        small_weights(self)

    def forward(
        self, inputs: Float[Tensor, "row input"], kept: Float[Tensor, "row feature"] | None
    ) -> Float[Tensor, "row feature"]:
        features = functional.leaky_relu(self.layer(inputs), SLOPE)
        return features if kept is None else features * kept


class SharedDiscriminator(nn.Module):
    """Whether the features of all parties belong together, as a logit."""

    def __init__(self, num_features: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        sizes = (num_features, *widths)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(sizes))
        self.head = nn.Linear(sizes[-1], 1)
        small_weights(self)

    def forward(self, features: Float[Tensor, "row feature"], masks: Masks) -> Float[Tensor, " row"]:
        for layer, kept in zip(self.layers, masks, strict=True):
            features = functional.leaky_relu(layer(features), SLOPE, inplace=True)
            features = features if kept is None else features * kept
        return self.head(features).squeeze(-1)


def small_weights(module: nn.Module) -> None:
    """Sets weights to N(0, 0.02²) and biases to zero, as the code released with the paper does."""
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.normal_(parameter, std=_INITIAL_DEVIATION)


def masks(num_rows: int, widths: tuple[int, ...], share: float, generator: torch.Generator) -> Masks:
    """Returns what dropout leaves of some layers, [row, width] each, drawn at once."""
    kept = kept_by_dropout((num_rows, sum(widths)), share, generator)
    return [None] * len(widths) if kept is None else kept.split(widths, dim=1)


def with_masks(
    shown: list[dict[str, Tensor]], widths: tuple[int, ...], share: float, generator: torch.Generator
) -> list[dict[str, Tensor]]:
    """Adds to groups of rows what dropout leaves of their layers, as "kept 0", "kept 1", …; nothing without dropout."""
    sizes = [len(next(iter(rows.values()))) for rows in shown]
    for place, kept in enumerate(masks(sum(sizes), widths, share, generator)):
        if kept is not None:
            for rows, own in zip(shown, kept.split(sizes), strict=True):
                rows[f"kept {place}"] = own
    return shown


def masks_of(rows: Mapping[str, Tensor], layers: range) -> Masks:
    """Returns what dropout leaves of some layers, as `with_masks` added it; None for each without dropout."""
    return [rows.get(f"kept {layer}") for layer in layers]


def kept_by_dropout(shape: tuple[int, ...], share: float, generator: torch.Generator) -> Tensor | None:
    """Returns factors that let each number pass with probability 1 − share, in steps of 1/256; None if all pass.

    One random byte decides about each number, compared by numpy, which has a fast loop for bytes: a hundredth of the
    time that a Bernoulli draw per number takes.
    """
    limit = round(256 * share)
    if limit == 0:
        return None
    count = math.prod(shape)
    bits = torch.empty(-(-count // 8), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    passes = bits.numpy().view(np.uint8)[:count] >= limit
    return torch.from_numpy(np.multiply(passes, 256 / (256 - limit), dtype=np.float32)).view(shape)
