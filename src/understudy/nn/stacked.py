"""Many small linear layers evaluated at once."""

import math

import torch
from torch import Tensor, nn


class StackedLinear(nn.Module):
    """`num_stacked` independent linears: [..., stacked, in] → [..., stacked, out].

    Cheaper than a list of `nn.Linear` when each is small, for example one network per step or per channel.
    """

    def __init__(self, num_stacked: int, in_features: int, out_features: int, *, bias: bool = True) -> None:
        super().__init__()
        bound = 1 / math.sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(num_stacked, out_features, in_features).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(num_stacked, out_features).uniform_(-bound, bound)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 3 and self.bias is not None:  # one call instead of the several that einsum makes
            return torch.baddbmm(self.bias.unsqueeze(1), x.transpose(0, 1), self.weight.mT).transpose(0, 1)
        output = torch.einsum("...ki,koi->...ko", x, self.weight)
        return output if self.bias is None else output + self.bias
