"""How gradients become parameters: as they are, clipped and noised for every unit, or as paper 004 noises them.

An update has two losses. The private one, one number per row, reads real rows; the public one reads synthetic rows and
parameters only, so its gradient may be added after the noise.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn

from understudy.nn.stacked import StackedLinear
from understudy.privacy.noise import NoiseSource
from understudy.training.flat import FlatParameters, NormalReserve
from understudy.training.plan import MechanismPlan, Performance
from understudy.training.step import PrivateGradient, units_that_fit

PrivateLoss = Callable[[slice], Tensor]  # of some of the drawn rows, one number each
PublicLoss = Callable[[], Tensor]
Groups = Sequence[tuple[nn.Module, float]]  # networks of one owner with their learning rates
Betas = tuple[float, float]


class Update(Protocol):
    """One update of one owner's networks; `flat` and `optimiser` are what a checkpoint of it holds."""

    together: bool  # whether real and synthetic rows may share one pass through the networks
    flat: FlatParameters
    optimiser: torch.optim.Optimizer

    def __call__(self, private: PrivateLoss, num_rows: int, public: PublicLoss) -> float:
        """Descends along mean private loss + public loss; returns the weight that one row's loss had in backward."""


MakeUpdate = Callable[[Groups, Betas], Update]


class PlainUpdate:
    """Gradients as they are; final, implements `Update`.

    Privacy: none.
    """

    together = True

    def __init__(self, groups: Groups, betas: Betas) -> None:
        self.flat = FlatParameters([parameter for module, _ in groups for parameter in module.parameters()])
        self.optimiser = _adam(groups, betas, self.flat)

    def __call__(self, private: PrivateLoss, num_rows: int, public: PublicLoss) -> float:
        """Averages over the rows there are."""
        weight = _plain_gradient(self.flat, private, num_rows, public)
        self.optimiser.step()
        return weight


class ClippedUpdate:
    """Every row's gradient clipped over all parameters of the owner, noise on each; final, implements `Update`.

    Privacy: one execution of the block's mechanism for every call, also for an empty draw. What leaves is noisy; the
    public gradient is added afterwards.
    """

    together = False

    def __init__(self, groups: Groups, betas: Betas, block: MechanismPlan, noise: NoiseSource) -> None:
        self._gradient = PrivateGradient(nn.ModuleList(module for module, _ in groups), block, noise, Performance())
        self.flat = self._gradient.flat
        self.optimiser = _adam(groups, betas, self.flat)
        self._rows_at_once = units_that_fit(self.flat.values)

    def __call__(self, private: PrivateLoss, num_rows: int, public: PublicLoss) -> float:
        """Divides by the public expected batch."""
        self.flat.gradient.zero_()
        for begin in range(0, num_rows, self._rows_at_once):
            rows = slice(begin, min(begin + self._rows_at_once, num_rows))
            self._gradient.add_clipped(partial(private, rows), rows.stop - rows.start)
        self._gradient.finish()
        public().backward()
        self.optimiser.step()
        return 1.0


class FirstLayerUpdate:
    """Noise on the first layer of every network and nowhere else, as paper 004 has it; final, implements `Update`.

    Privacy: none. Theorem 4.3 calls what follows the first layer post-processing, but later layers are trained on raw
    gradients of the same rows.
    """

    together = True

    def __init__(
        self, groups: Groups, betas: Betas, clip_norm: float, noise_multiplier: float, noise: NoiseSource
    ) -> None:
        self.flat = FlatParameters([parameter for module, _ in groups for parameter in module.parameters()])
        self.optimiser = _adam(groups, betas, self.flat)
        self._first = [first for module, _ in groups if (first := _first_layer(module)) is not None]
        self._clip_norm, self._noise_multiplier, self._reserve = clip_norm, noise_multiplier, NormalReserve(noise)

    def __call__(self, private: PrivateLoss, num_rows: int, public: PublicLoss) -> float:
        """Clips the gradient of the whole batch, real and synthetic rows together."""
        weight = _plain_gradient(self.flat, private, num_rows, public)
        for layer in self._first:
            # Each attribute of stacked ones is a network of its own.
            networks = layer.weight.shape[0] if isinstance(layer, StackedLinear) else 1
            self._noise([self.flat.views[id(parameter)].view(networks, -1) for parameter in layer.parameters()])
        self.optimiser.step()
        return weight

    def _noise(self, gradients: list[Tensor]) -> None:
        """Clips and noises gradients [network, parameter] in place."""
        norm = torch.cat(gradients, 1).norm(dim=1, keepdim=True)
        for gradient in gradients:
            gradient /= (norm / self._clip_norm).clamp(min=1)  # Eq. 16
            self._reserve.add_to(gradient.view(-1), self._noise_multiplier * 2 * self._clip_norm)  # Eq. 17


def _first_layer(module: nn.Module) -> StackedLinear | nn.Linear | None:
    """Returns the first layer of an attribute network or of an extractor, as paper 004 noises them."""
    layers = [layer for layer in module.modules() if isinstance(layer, StackedLinear | nn.Linear)]
    return layers[0] if layers else None


def _adam(groups: Groups, betas: Betas, flat: FlatParameters) -> torch.optim.Optimizer:
    """Returns one Adam over the flat vector, cut where the learning rate changes."""
    pieces, begin = [], 0
    for module, rate in groups:
        for parameter in module.parameters():
            parameter.grad = flat.views[id(parameter)]
        end = begin + sum(parameter.numel() for parameter in module.parameters())
        piece = nn.Parameter(flat.values[begin:end])
        piece.grad = flat.gradient[begin:end]
        pieces.append({"params": [piece], "lr": rate})
        begin = end
    return torch.optim.Adam(pieces, betas=betas, fused=True)


def _plain_gradient(flat: FlatParameters, private: PrivateLoss, num_rows: int, public: PublicLoss) -> float:
    flat.gradient.zero_()
    weight = 1 / max(1, num_rows)
    loss = public()
    if num_rows:
        loss = loss + weight * private(slice(0, num_rows)).sum()
    loss.backward()
    return weight
