"""Linear layers the clipping engine knows in addition to PyTorch's: one that runs backwards, and many at once."""

import math

import torch
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


class StackedLinear(nn.Module):
    """`num_stacked` independent linears: [..., stacked, in] → [..., stacked, out].

    Cheaper than a list of `nn.Linear` when each is small, for example one network per step or per channel.
    """

    def __init__(self, num_stacked: int, in_features: int, out_features: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(num_stacked, out_features, in_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(num_stacked, out_features).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 3:  # one call instead of the several that einsum makes
            return torch.baddbmm(self.bias.unsqueeze(1), x.transpose(0, 1), self.weight.mT).transpose(0, 1)
        return torch.einsum("...ki,koi->...ko", x, self.weight) + self.bias
