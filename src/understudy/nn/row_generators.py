"""Generators of paper 002: latents, and for the conditional one the sensitive attributes, become rows.

Residual layers with LayerNorm where the paper has batch normalisation: statistics of a batch of real attributes would
be released with the weights.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.energies import SLOPE

_LAYERS = 2  # residual layers after the first
_KERNEL = 5


class RowGenerator(nn.Module):
    """A residual perceptron; latent and condition enter by branches of their own."""

    def __init__(self, num_latent: int, num_conditions: int, num_outputs: int, width: int) -> None:
        super().__init__()
        branch = width // 2 if num_conditions else width
        self.own = nn.Linear(num_latent, branch)
        self.given = nn.Linear(num_conditions, width - branch) if num_conditions else None
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(_LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(_LAYERS))
        self.head = nn.Linear(width, num_outputs)

    def forward(
        self, latent: Float[Tensor, "row latent"], condition: Float[Tensor, "row condition"] | None = None
    ) -> Float[Tensor, "row output"]:
        return self.head(self.hidden(latent, condition))

    def hidden(self, latent: Tensor, condition: Tensor | None) -> Tensor:
        """Returns what the last layer reads."""
        hidden = self.own(latent)
        if self.given is not None:
            hidden = torch.cat([hidden, self.given(condition)], 1)
        hidden = functional.leaky_relu(hidden, SLOPE)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = hidden + functional.leaky_relu(norm(layer(hidden)), SLOPE)
        return hidden


class TemporalGenerator(nn.Module):
    """A perceptron that draws a short series, stretched and refined by convolutions; single values come beside it.

    Rows leave flat: [step · channel, single values].
    """

    def __init__(
        self, num_latent: int, num_conditions: int, shape: tuple[int, int], num_single: int, width: int
    ) -> None:
        super().__init__()
        self._shape, self._coarse, self._width = shape, max(1, -(-shape[0] // 4)), width // 2
        self.row = RowGenerator(num_latent, num_conditions, self._coarse * self._width + num_single, width)
        self.layers = nn.ModuleList(nn.Conv1d(self._width, self._width, _KERNEL, padding="same") for _ in range(2))
        self.head = nn.Conv1d(self._width, shape[1], _KERNEL, padding="same")

    def forward(
        self, latent: Float[Tensor, "row latent"], condition: Float[Tensor, "row condition"] | None = None
    ) -> Float[Tensor, "row output"]:
        drawn = self.row(latent, condition)
        cut = self._coarse * self._width
        hidden = drawn[:, :cut].unflatten(1, (self._width, self._coarse))
        hidden = functional.interpolate(hidden, size=self._shape[0], mode="linear", align_corners=False)
        for layer in self.layers:
            hidden = hidden + functional.leaky_relu(layer(hidden), SLOPE)
        return torch.cat([self.head(hidden).transpose(1, 2).flatten(1), drawn[:, cut:]], 1)
