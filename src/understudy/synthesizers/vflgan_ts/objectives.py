"""What networks minimise, per row, from logits: Eq. 9 to 11 of paper 004, and the Wasserstein form of VFLGAN."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from understudy.synthesizers.vflgan_ts.recipe import Recipe

_PENALTY = 10.0  # weight of the gradient penalty, Gulrajani et al., arXiv:1704.00028


@dataclass(frozen=True)
class Objective:
    """Losses of logits: on real rows, on synthetic rows, and of whoever made the synthetic rows."""

    real: Callable[[Tensor], Tensor]
    fake: Callable[[Tensor], Tensor]
    generated: Callable[[Tensor], Tensor]

    @classmethod
    def of(cls, recipe: Recipe) -> "Objective":
        """Returns the objective of a recipe."""
        if recipe.wasserstein:
            return cls(torch.neg, torch.clone, torch.neg)
        generated = _saturating if recipe.saturating else _says_real
        return cls(_says_real, softplus, generated)  # Eq. 9, 10: −log D and −log(1 − D)


def gradient_penalty(
    critic: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, generator: torch.Generator
) -> Tensor:
    """Returns the mean squared distance from 1 of the critic's slope between real and synthetic rows."""
    rows = min(len(real), len(fake))
    share = torch.rand((rows, *(1 for _ in real.shape[1:])), generator=generator)
    between = (share * real[:rows] + (1 - share) * fake[:rows]).detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return _PENALTY * (slope.flatten(1).norm(dim=1) - 1).square().mean()


def _says_real(logits: Tensor) -> Tensor:
    return softplus(-logits)


def _saturating(logits: Tensor) -> Tensor:
    return -softplus(logits)  # Eq. 11 as printed: log(1 − D)
