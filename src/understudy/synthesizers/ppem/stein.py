"""Kernel Stein discrepancy: how far points are from a density known by its score s = ∇ log p = −∇E alone.

Liu, Lee and Jordan (2016), arXiv:1602.03253; PPEM, Eq. 14–17. The kernel is k(x, y) = exp(−‖x − y‖²/h); the paper
prints it without the square, with which the formulas below would not follow. All functions are differentiable, take
any score, and broadcast over leading axes, so that many sets are judged at once.
"""

import torch
from torch import Tensor

CRITICAL_VALUE = 3.8414588206941236  # 95 % of χ² with one degree of freedom
ONE_SIDED_CRITICAL_VALUE = 1.6448536269514722  # 95 % of a standard normal


def median_bandwidth(points: Tensor) -> Tensor:
    """Returns h [...]: the median squared distance between points [..., point, dimension], outside any gradient.

    The mean takes its place where the median is 0, as between rows that are mostly equal.
    """
    points = points.detach()
    first, second = torch.triu_indices(points.shape[-2], points.shape[-2], offset=1)
    squared = ((points[..., first, :] - points[..., second, :]) ** 2).sum(-1)
    median, mean = squared.median(-1).values, squared.mean(-1)
    bandwidth = torch.where(median > 0, median, mean)
    return torch.where(bandwidth > 0, bandwidth, torch.ones_like(bandwidth))


def stein_kernel(x: Tensor, y: Tensor, score_x: Tensor, score_y: Tensor, bandwidth: Tensor | float) -> Tensor:
    """Returns u(x, y) [...] of points [..., dimension] with their scores; its mean is 0 where p made the points."""
    r = x - y
    squared, dimension = (r**2).sum(-1), x.shape[-1]
    kernel = torch.exp(-squared / bandwidth)
    products = (score_x * score_y).sum(-1) + 2 / bandwidth * ((score_x - score_y) * r).sum(-1)
    return kernel * (products + 2 * dimension / bandwidth - 4 * squared / bandwidth**2)  # Eq. 15


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


def stein_pairs(points: Tensor, scores: Tensor, bandwidth: Tensor | float) -> Tensor:
    """Returns u [..., pair] of consecutive points: the first with the second, the third with the fourth.

    Shuffle points that have an order.
    """
    even = points.shape[-2] // 2 * 2
    width = bandwidth[..., None] if isinstance(bandwidth, Tensor) else bandwidth
    return stein_kernel(
        points[..., 0:even:2, :], points[..., 1:even:2, :], scores[..., 0:even:2, :], scores[..., 1:even:2, :], width
    )


def linear_discrepancy(pairs: Tensor) -> Tensor:
    """Returns the mean of u over pairs [...]: unbiased, at a cost linear in the number of points."""
    return pairs.mean(-1)  # Eq. 16


def normalised_discrepancy(pairs: Tensor) -> Tensor:
    """Returns the squared linear discrepancy over its variance [...], about χ² with one degree of freedom under p.

    It lies between 0 and m − 1 for m pairs, does not change when u is scaled, and counts both signs: a negative linear
    discrepancy rejects as well. 0 where u vanishes at every pair.
    """
    number, squares = pairs.shape[-1], (pairs**2).sum(-1)
    total = pairs.sum(-1) ** 2
    ratio = torch.where(squares > 0, total / torch.where(squares > 0, squares, torch.ones_like(squares)), squares)
    return (number - 1) / number * ratio  # Eq. 17


def studentised_discrepancy(pairs: Tensor) -> Tensor:
    """Returns the linear discrepancy over its standard error [...], about standard normal under p.

    One-sided: the discrepancy itself is never negative, so only large positive figures reject.
    """
    number, spread = pairs.shape[-1], pairs.std(-1)
    error = torch.where(spread > 0, spread, torch.ones_like(spread)) / number**0.5
    return torch.where(spread > 0, pairs.mean(-1) / error, torch.zeros_like(spread))
