"""Estimates of the kernel Stein discrepancy that the paper compares with its own (PPEM, Eq. 14–17 and Fig. 2).

Liu, Lee and Jordan (2016), arXiv:1602.03253. The kernel and the normalised estimate are the method's. All functions
broadcast over leading axes, so that many sets are judged at once.
"""

import torch
from torch import Tensor

ONE_SIDED_CRITICAL_VALUE = 1.6448536269514722  # 95 % of a standard normal


def stein_matrix(points: Tensor, scores: Tensor, bandwidth: Tensor | float) -> Tensor:
    """Returns u of every pair [..., point, point], by matrix products: no array is larger than the result."""
    norms, dimension = (points**2).sum(-1), points.shape[-1]
    squared = (norms[..., :, None] + norms[..., None, :] - 2 * points @ points.mT).clamp_min(0)
    along = (scores * points).sum(-1)
    crossed = scores @ points.mT  # s(x)ᵀy
    products = scores @ scores.mT
    products = products + 2 / bandwidth * (along[..., :, None] - crossed + along[..., None, :] - crossed.mT)
    return torch.exp(-squared / bandwidth) * (products + 2 * dimension / bandwidth - 4 * squared / bandwidth**2)


def quadratic_discrepancy(matrix: Tensor) -> Tensor:
    """Returns the unbiased estimate [...] of the squared discrepancy from `stein_matrix`."""
    number = matrix.shape[-1]
    off_diagonal = matrix.sum((-2, -1)) - matrix.diagonal(dim1=-2, dim2=-1).sum(-1)
    return off_diagonal / (number * (number - 1))  # Eq. 14


def linear_discrepancy(pairs: Tensor) -> Tensor:
    """Returns the mean of u over pairs [...]: unbiased, at a cost linear in the number of points."""
    return pairs.mean(-1)  # Eq. 16


def studentised_discrepancy(pairs: Tensor) -> Tensor:
    """Returns the linear discrepancy over its standard error [...], about standard normal under p.

    One-sided: the discrepancy itself is never negative, so only large positive figures reject.
    """
    number, spread = pairs.shape[-1], pairs.std(-1)
    error = torch.where(spread > 0, spread, torch.ones_like(spread)) / number**0.5
    return torch.where(spread > 0, pairs.mean(-1) / error, torch.zeros_like(spread))
