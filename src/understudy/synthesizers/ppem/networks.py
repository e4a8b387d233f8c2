"""Networks of PPEM: energies, low where data is, and generators of rows.

An energy is a density without its partition function: p ∝ exp(−E), and ∇ log p = −∇E does not know the factor. No layer
mixes rows, so that each row's gradient is its own. Generators have LayerNorm where the paper has batch normalisation:
statistics of a batch of real attributes would be released with the weights.
"""

from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from understudy.nn.layers import ReversibleLinear

SLOPE = 0.2  # of LeakyReLU below zero
_LAYERS = 3  # appendix C


class Energy(nn.Module):
    """A perceptron E(x | condition) ≥ 0; x and the condition enter by branches of their own.

    Its slope along x is computed by running the layers backwards. LeakyReLU has no curvature, so the gates are
    constants and only the softplus at the end bends.
    """

    def __init__(self, num_inputs: int, num_conditions: int, width: int) -> None:
        super().__init__()
        self._branch = width // 2 if num_conditions else width
        self.own = ReversibleLinear(num_inputs, self._branch)
        self.given = nn.Linear(num_conditions, width - self._branch) if num_conditions else None
        self.layers = nn.ModuleList(ReversibleLinear(width, width) for _ in range(_LAYERS - 1))
        self.head = ReversibleLinear(width, 1)

    def forward(
        self, x: Float[Tensor, "row input"], condition: Float[Tensor, "row condition"] | None = None
    ) -> Float[Tensor, " row"]:
        return functional.softplus(self._climb(x, condition)[0]).squeeze(1)

    def slope(
        self, x: Float[Tensor, "row input"], condition: Float[Tensor, "row condition"] | None = None
    ) -> Float[Tensor, "row input"]:
        """Returns ∇E along x."""
        raw, gates = self._climb(x, condition)
        back = self.head(torch.sigmoid(raw), back=True)
        for layer, gate in zip(reversed(self.layers), reversed(gates), strict=False):
            back = layer(back * gate, back=True)
        return self.own((back * gates[0])[:, : self._branch], back=True)

    def _climb(self, x: Tensor, condition: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """Returns what enters the softplus, and the slope of every LeakyReLU on the way."""
        hidden, gates = self.own(x), []
        if self.given is not None:
            hidden = torch.cat([hidden, self.given(condition)], 1)
        for layer in (*self.layers, self.head):
            gates.append(torch.where(hidden.detach() > 0, 1.0, SLOPE))
            hidden = layer(hidden * gates[-1])
        return hidden, gates


class TemporalEnergy(nn.Module):
    """An energy of series: strided convolutions, pooled at every scale, beside single values and the condition.

    Rows arrive flat: [step · channel, single values]. Its slope is an ordinary second derivative.
    """

    def __init__(
        self, shape: tuple[int, int], num_single: int, num_conditions: int, width: int, num_layers: int = 3
    ) -> None:
        super().__init__()
        self._shape = shape
        widths = (shape[1], *(width // 2 for _ in range(num_layers)))
        self.layers = nn.ModuleList(nn.Conv1d(*pair, 5, stride=2, padding=2) for pair in pairwise(widths))
        self.mixed = nn.Linear(sum(widths[1:]) + num_single + num_conditions, width)
        self.head = nn.Linear(width, 1)

    def forward(
        self, x: Float[Tensor, "row input"], condition: Float[Tensor, "row condition"] | None = None
    ) -> Float[Tensor, " row"]:
        steps, channels = self._shape
        hidden, pooled = x[:, : steps * channels].unflatten(1, (steps, channels)).transpose(1, 2), []
        for layer in self.layers:
            hidden = functional.leaky_relu(layer(hidden), SLOPE)
            pooled.append(hidden.mean(2))
        single = [x[:, steps * channels :], *([] if condition is None else [condition])]
        mixed = functional.leaky_relu(self.mixed(torch.cat([*pooled, *single], 1)), SLOPE)
        return functional.softplus(self.head(mixed)).squeeze(1)

    def slope(
        self, x: Float[Tensor, "row input"], condition: Float[Tensor, "row condition"] | None = None
    ) -> Float[Tensor, "row input"]:
        """Returns ∇E along x."""
        with torch.enable_grad():
            at = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self(at, condition).sum(), at, create_graph=True)
        return slope


_RESIDUAL_LAYERS = 2  # layers after the first
_KERNEL = 5


class RowGenerator(nn.Module):
    """A residual perceptron; latent and condition enter by branches of their own."""

    def __init__(self, num_latent: int, num_conditions: int, num_outputs: int, width: int) -> None:
        super().__init__()
        branch = width // 2 if num_conditions else width
        self.own = nn.Linear(num_latent, branch)
        self.given = nn.Linear(num_conditions, width - branch) if num_conditions else None
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(_RESIDUAL_LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(_RESIDUAL_LAYERS))
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
