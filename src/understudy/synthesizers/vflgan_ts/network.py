"""Networks of VFLGAN-TS (section 4.2): one generator and one discriminator per attribute, computed stacked.

Randomness comes from a generator that is handed in, so that a run repeats itself wherever its parts are computed.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.layers import StackedLinear
from understudy.synthesizers.vflgan_ts.recipe import HIDDEN

SLOPE = 0.2  # of LeakyReLU below zero
_INITIAL_DEVIATION = 0.02
Kept = Float[Tensor, "row width"] | None  # what dropout leaves of all hidden layers; None leaves everything


class AttributeGenerators(nn.Module):
    """One LSTM cell and one linear per attribute, all fed by the same latent.

    The cell runs once, from rest, with nothing to forget: three gates remain, of all attributes in one product.
    """

    def __init__(self, num_attributes: int, num_latent: int, num_steps: int, num_hidden: int = HIDDEN) -> None:
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


class Perceptron(nn.Module):
    """How real rows look, as a logit. Stacked layers are networks of their own, which share a row's dropout."""

    def __init__(self, sizes: tuple[int, ...], linear: Callable[[int, int], nn.Module] = nn.Linear) -> None:
        super().__init__()
        self.layers = nn.ModuleList(linear(*pair) for pair in pairwise(sizes))
        self.head = linear(sizes[-1], 1)
        self._widths = sizes[1:]
        small_weights(self)

    def forward(self, rows: Float[Tensor, "row ... input"], kept: Kept = None) -> Float[Tensor, "row ..."]:
        parts = [None] * len(self._widths) if kept is None else kept.split(self._widths, dim=1)
        for layer, own in zip(self.layers, parts, strict=True):
            rows = functional.leaky_relu(layer(rows), SLOPE)
            if own is not None:
                rows = rows * (own if rows.ndim == 2 else own.unsqueeze(1))
        return self.head(rows).squeeze(-1)


class AttributeDiscriminators(Perceptron):
    """One perceptron per attribute of rows [row, attribute, step]: how real it looks by itself."""

    def __init__(self, num_attributes: int, num_steps: int, widths: tuple[int, ...]) -> None:
        super().__init__((num_steps, *widths), partial(StackedLinear, num_attributes))


class SharedDiscriminator(Perceptron):
    """Whether the features of all parties belong together."""

    def __init__(self, num_features: int, widths: tuple[int, ...]) -> None:
        super().__init__((num_features, *widths))


class FeatureExtractor(nn.Module):
    """All attributes of one party as the features that it sends; the map can be inverted, so features are private."""

    def __init__(self, num_inputs: int, num_features: int) -> None:
        super().__init__()
        self.layer = nn.Linear(num_inputs, num_features)
        small_weights(self)

    def forward(self, inputs: Float[Tensor, "row input"], kept: Kept = None) -> Float[Tensor, "row feature"]:
        features = functional.leaky_relu(self.layer(inputs), SLOPE)
        return features if kept is None else features * kept


def small_weights(module: nn.Module) -> None:
    """Sets weights to N(0, 0.02²) and biases to zero, as the code released with the paper does."""
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.normal_(parameter, std=_INITIAL_DEVIATION)


def with_dropout(
    shown: list[dict[str, Tensor]], widths: Mapping[str, int], share: float, generator: torch.Generator
) -> list[dict[str, Tensor]]:
    """Adds to groups of rows what dropout leaves of their hidden numbers, by names; nothing without dropout."""
    sizes = [len(next(iter(rows.values()))) for rows in shown]
    kept = kept_by_dropout((sum(sizes), sum(widths.values())), share, generator)
    if kept is not None:
        for rows, own in zip(shown, kept.split(sizes), strict=True):
            rows |= dict(zip(widths, own.split([*widths.values()], dim=1), strict=True))
    return shown


def kept_by_dropout(shape: tuple[int, ...], share: float, generator: torch.Generator) -> Tensor | None:
    """Returns factors that let each number pass with probability 1 − share, in steps of 1/256; None if all pass.

    One random byte decides about each number, which takes a hundredth of the time of a Bernoulli draw.
    """
    limit = round(256 * share)
    if limit == 0:
        return None
    count = math.prod(shape)
    bits = torch.empty(-(-count // 8), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    passes = bits.numpy().view(np.uint8)[:count] >= limit
    return torch.from_numpy(np.multiply(passes, 256 / (256 - limit), dtype=np.float32)).view(shape)
