"""How losses of single rows become parameters: by their gradient as it is, or clipped for every unit and noised.

The gradient of synthetic rows is public and added after the noise. There they pass through networks by themselves: not
even a rounding error of theirs may depend on real rows.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.recipe import BETAS
from understudy.training.plan import DPSGDConfig
from understudy.training.private_gradient import FlatParameters, PrivateGradient

Shown = Mapping[str, Tensor]  # what networks are shown of some rows, [row, …] each
Losses = Callable[[Shown], Tensor]  # the loss of each row
Groups = Sequence[tuple[nn.Module, float]]  # networks of one owner with their learning rates


class PlainUpdate:
    """Descends along the mean losses of real rows and of synthetic rows, by their gradient as it is.

    `flat` and `optimiser` are what a checkpoint holds. Privacy: none.
    """

    def __init__(self, groups: Groups) -> None:
        self._parameters = [parameter for module, _ in groups for parameter in module.parameters()]
        self.flat = FlatParameters(self._parameters)
        self.optimiser = _adam(groups, self.flat)

    def __call__(self, losses: Losses, real: Shown, fake: Shown) -> None:
        number = _num_rows(real)
        found = losses({name: torch.cat([real[name], fake[name]]) for name in real})
        self.descend(found[:number].sum() / max(1, number) + found[number:].mean())

    def descend(self, loss: Tensor) -> None:
        """Takes one step of Adam along the gradient of a loss."""
        for parameter, slope in zip(self._parameters, torch.autograd.grad(loss, self._parameters), strict=True):
            self.flat.views[id(parameter)].copy_(slope)
        self.change_gradient()
        self.optimiser.step()

    def change_gradient(self) -> None:
        """Leaves the gradient as it is."""


class ClippedUpdate:
    """The same with every row's gradient clipped over all parameters of the owner, and noise on each.

    Privacy: one execution of the block's mechanism for every call, also for an empty batch. What leaves is noisy; the
    public gradient is added afterwards.
    """

    def __init__(self, groups: Groups, block: DPSGDConfig, noise: NoiseSource) -> None:
        self._gradient = PrivateGradient(nn.ModuleList(module for module, _ in groups), block, noise)
        self.flat = self._gradient.flat
        self.optimiser = _adam(groups, self.flat)

    def __call__(self, losses: Losses, real: Shown, fake: Shown) -> None:
        if num_rows := _num_rows(real):
            self._gradient.add_clipped(lambda: losses(real), num_rows, num_rows)
        self._gradient.finish()
        self._gradient.add_public(losses(fake).mean())
        self.optimiser.step()


def _num_rows(shown: Shown) -> int:
    return len(next(iter(shown.values())))


def _adam(groups: Groups, flat: FlatParameters) -> torch.optim.Adam:
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
    return torch.optim.Adam(pieces, betas=BETAS, fused=True)


Update = PlainUpdate | ClippedUpdate  # one update of one owner's networks
MakeUpdate = Callable[[Groups], Update]
