"""Networks of PPEM: energies, low where data is, and generators of rows.

An energy is a density without its partition function: p ∝ exp(−E), and ∇ log p = −∇E does not know the factor. No layer
mixes rows, so that each row's gradient is its own. Generators have LayerNorm where the paper has batch normalisation:
statistics of a batch of real attributes would be released with the weights.
"""

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
        """Return ∇E along x."""
        raw, gates = self._climb(x, condition)
        back = self.head(torch.sigmoid(raw), back=True)
        for layer, gate in zip(reversed(self.layers), reversed(gates), strict=False):
            back = layer(back * gate, back=True)
        return self.own((back * gates[0])[:, : self._branch], back=True)

    def _climb(self, x: Tensor, condition: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """Return what enters the softplus, and the slope of every LeakyReLU on the way."""
        hidden, gates = self.own(x), []
        if self.given is not None:
            hidden = torch.cat([hidden, self.given(condition)], 1)
        for layer in (*self.layers, self.head):
            gates.append(torch.where(hidden.detach() > 0, 1.0, SLOPE))
            hidden = layer(hidden * gates[-1])
        return hidden, gates


_RESIDUAL_LAYERS = 2  # layers after the first


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
        hidden = self.own(latent)
        if self.given is not None:
            hidden = torch.cat([hidden, self.given(condition)], 1)
        hidden = functional.leaky_relu(hidden, SLOPE)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = hidden + functional.leaky_relu(norm(layer(hidden)), SLOPE)
        return self.head(hidden)
