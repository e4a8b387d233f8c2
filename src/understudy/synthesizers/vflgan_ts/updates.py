"""How gradients become parameters: as they are, or clipped for every unit and noised.

What synthetic rows and parameters say is public, so their gradient may be added after the noise. Where that matters
they pass through networks by themselves: not even a rounding error of theirs may depend on real rows.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import nn

from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.backpropagation import Slopes
from understudy.synthesizers.vflgan_ts.recipe import BETAS
from understudy.training.clipping.per_unit_gradients import Collector
from understudy.training.plan import DPSGDConfig
from understudy.training.private_gradient import FlatParameters, PrivateGradient

All = Sequence[Slopes]  # of all networks of one owner
Groups = Sequence[tuple[nn.Module, float]]  # networks of one owner with their learning rates


class Update(Protocol):
    """One update of one owner's networks; `flat` and `optimiser` are what a checkpoint of it holds."""

    apart: bool  # whether real rows and synthetic ones have to pass by themselves
    flat: FlatParameters
    optimiser: torch.optim.Adam

    def weight(self, number: int) -> float:
        """Returns the weight of the loss of one of `number` real rows in the slopes."""

    def __call__(self, private: All, public: All) -> None:
        """Descends along the slopes of real rows and of synthetic rows.

        Where all rows pass together they are all in `public`, and nothing is in `private`.
        """


MakeUpdate = Callable[[Groups], Update]


class PlainUpdate:
    """Gradients as they are; implements `Update`.

    Privacy: none.
    """

    apart = False

    def __init__(self, groups: Groups) -> None:
        self.flat = FlatParameters([parameter for module, _ in groups for parameter in module.parameters()])
        self.optimiser = _adam(groups, self.flat)

    def weight(self, number: int) -> float:
        """Averages over the rows there are."""
        return 1 / max(1, number)

    def __call__(self, private: All, public: All) -> None:
        self.put((*private, *public))
        self.step()

    def put(self, all_slopes: All) -> None:
        """Puts the gradient of all rows where the last one was; every network's slopes are there once."""
        for slopes in all_slopes:
            slopes.add(fresh=True)

    def step(self) -> None:
        """Descends along the gradient that is there."""
        advance(self.optimiser)


class ClippedUpdate:
    """Every row's gradient clipped over all parameters of the owner, noise on each; final, implements `Update`.

    Privacy: one execution of the block's mechanism for every call, also for an empty batch. What leaves is noisy; the
    public gradient is added afterwards.
    """

    apart = True

    def __init__(self, groups: Groups, block: DPSGDConfig, noise: NoiseSource) -> None:
        self._gradient = PrivateGradient(nn.ModuleList(module for module, _ in groups), block, noise)
        self.flat = self._gradient.flat
        self.optimiser = _adam(groups, self.flat)

    def weight(self, number: int) -> float:
        """Every row counts as itself; the sum is divided by the public expected batch."""
        return 1.0

    def __call__(self, private: All, public: All) -> None:
        num_rows = private[0].num_rows
        if num_rows:
            self._gradient.add_clipped_records(partial(_collect, private), num_rows)
        self._gradient.finish()
        for slopes in public:
            slopes.add()
        advance(self.optimiser)


def _collect(private: All, collector: Collector) -> None:
    """Hands over every row's own gradient of every parameter."""
    for slopes in private:
        for weight, bias, slope, numbers in slopes.by_row():
            collector.outer(weight, slope, numbers)
            collector.keep(bias, slope)


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


def advance(optimiser: torch.optim.Adam) -> None:
    """Does what `step` does, without what it does around it, which on small networks takes longer than the update."""
    for group in optimiser.param_groups:
        (values,) = group["params"]
        state = optimiser.state[values]
        if not state:
            optimiser.step()
            return
        state["step"] += 1
        torch._fused_adam_(
            [values],
            [values.grad],
            [state["exp_avg"]],
            [state["exp_avg_sq"]],
            [],
            [state["step"]],
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=0.0,
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )
