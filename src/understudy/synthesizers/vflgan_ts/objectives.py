"""What networks minimise, per row, from logits: Eq. 9 to 11 of paper 004, and the Wasserstein form of VFLGAN."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from understudy.synthesizers.vflgan_ts.recipe import Recipe

_PENALTY = 10.0  # weight of the gradient penalty, Gulrajani et al., arXiv:1704.00028


@dataclass(frozen=True)
class Loss:
    """A loss of logits, and its slope."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]

    def __call__(self, logits: Tensor) -> Tensor:
        return self.value(logits)


@dataclass(frozen=True)
class Objective:
    """Losses of logits: on real rows, on synthetic rows, and of whoever made the synthetic rows."""

    real: Loss
    fake: Loss
    generated: Loss

    @classmethod
    def of(cls, recipe: Recipe) -> "Objective":
        """Returns the objective of a recipe."""
        if recipe.wasserstein:
            return cls(_LOW, _HIGH, _LOW)
        return cls(_SAYS_REAL, _SAYS_FAKE, _SATURATING if recipe.saturating else _SAYS_REAL)

    def slopes(self, logits: Tensor, number: int, weight: float) -> Tensor:
        """Returns the slope along logits [(attribute,) row, 1]: `number` real rows of a weight, then synthetic ones."""
        real, fake = logits[..., :number, :], logits[..., number:, :]
        return torch.cat([self.real.slope(real) * weight, self.fake.slope(fake) / fake.shape[-2]], -2)


def gradient_penalty(
    critic: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, generator: torch.Generator
) -> Tensor:
    """Returns the mean squared distance from 1 of the critic's slope between real and synthetic rows."""
    rows = min(len(real), len(fake))
    share = torch.rand((rows, *(1 for _ in real.shape[1:])), generator=generator)
    between = (share * real[:rows] + (1 - share) * fake[:rows]).detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return _PENALTY * (slope.flatten(1).norm(dim=1) - 1).square().mean()


_SAYS_REAL = Loss(lambda logits: softplus(-logits), lambda logits: torch.sigmoid(logits).sub_(1))  # Eq. 9, 10: −log D
_SAYS_FAKE = Loss(softplus, torch.sigmoid)  # Eq. 9, 10: −log(1 − D)
_SATURATING = Loss(lambda logits: -softplus(logits), lambda logits: -torch.sigmoid(logits))  # Eq. 11 as printed
_LOW, _HIGH = Loss(torch.neg, lambda logits: -torch.ones_like(logits)), Loss(torch.clone, torch.ones_like)
