"""A linear layer that also runs backwards, so that the slope of a network is one more forward pass through it."""

from torch import Tensor, nn
from torch.nn import functional


class ReversibleLinear(nn.Linear):
    """x ↦ xWᵀ + b; `back` takes what arrives at its outputs to its inputs, y ↦ yW.

    The slope of a network with respect to its input written this way needs no second derivative: an ordinary backward
    through both directions gives the gradient of any loss of the slope, such as a Lipschitz penalty.
    """

    def forward(self, x: Tensor, back: bool = False) -> Tensor:
        """Runs in either direction."""
        return x @ self.weight if back else functional.linear(x, self.weight, self.bias)
