"""What energies and generators of paper 002 minimise. One number per row, unless a function says otherwise."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from understudy.synthesizers.ppem import stein

Pairs = Callable[[Tensor, Tensor], Tensor]  # (points, scores) to u of consecutive points


class Sloped(Protocol):
    """An energy that knows its slope."""

    def __call__(self, x: Tensor, condition: Tensor | None = None) -> Tensor: ...

    def slope(self, x: Tensor, condition: Tensor | None = None) -> Tensor: ...


def raised(energy: Tensor, margin: float) -> Tensor:
    """Returns [m − E]⁺: generated rows are pushed up to the margin and no further."""
    return (margin - energy).clamp_min(0)  # Eq. 6 and 7, second term


def between(real: Tensor, generated: Tensor, generator: torch.Generator) -> Tensor:
    """Returns points u · real + (1 − u) · generated, each row with a u of its own."""
    share = torch.rand(len(real), 1, generator=generator, device=real.device)
    return share * real + (1 - share) * generated


def lipschitz_penalty(energy: Sloped, at: Tensor, condition: Tensor | None = None) -> Tensor:
    """Returns (‖∇E‖ − 1)² at every row; for a conditional energy the slope is along x and not along its condition."""
    slope = energy.slope(at, condition)
    return ((slope.square().sum(1) + 1e-12).sqrt() - 1).square()  # Eq. 2


def kernel_pairs(points: Tensor, scores: Tensor) -> Tensor:
    """Returns u of the kernel Stein discrepancy, with the median bandwidth of the points."""
    return stein.stein_pairs(points, scores, stein.median_bandwidth(points))


def finite_pairs(points: Tensor, scores: Tensor, num_locations: int = 5) -> Tensor:
    """Returns u of the finite set Stein discrepancy at the first few points, which take no part otherwise."""
    locations, rest = points[:num_locations], slice(num_locations, None)
    return stein.finite_set_pairs(points[rest], scores[rest], stein.median_bandwidth(points), locations)


def obfuscation_penalty(
    energy: Sloped, points: Tensor, pairs: Pairs = kernel_pairs, *, one_sided: bool = False
) -> Tensor:
    """Returns [critical value − statistic]⁺ of the test that the energy's density made the points: one number.

    Zero exactly where the test rejects. The paper's statistic counts both signs; `one_sided` takes the studentised one.

    Privacy: couples all points, so it may never see private rows inside a private gradient; draw points from a sketch.
    """
    u = pairs(points, -energy.slope(points))
    if one_sided:
        return (stein.ONE_SIDED_CRITICAL_VALUE - stein.studentised_discrepancy(u)).clamp_min(0)
    return (stein.CRITICAL_VALUE - stein.normalised_discrepancy(u)).clamp_min(0)  # Eq. 18
