"""How gradients become parameters: as they are, clipped and noised for every unit, or as paper 004 noises them.

What synthetic rows and parameters say is public, so their gradient may be added after the noise. Where that matters
they pass through networks by themselves: not even a rounding error of theirs may depend on real rows.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn

from understudy.nn.layers import StackedLinear
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.vflgan_ts.backpropagation import Slopes
from understudy.training.clipping.per_unit_gradients import Collector
from understudy.training.plan import MechanismPlan, Performance
from understudy.training.private_gradient import FlatParameters, NormalReserve, PrivateGradient, gradient_step

All = Sequence[Slopes]  # of all networks of one owner
AddGradient = Callable[[], None]  # adds to `flat.gradient`
Groups = Sequence[tuple[nn.Module, float]]  # networks of one owner with their learning rates
Betas = tuple[float, float]


class Update(Protocol):
    """One update of one owner's networks; `flat` and `optimiser` are what a checkpoint of it holds."""

    apart: bool  # whether real rows and synthetic ones have to pass by themselves
    flat: FlatParameters
    optimiser: torch.optim.Adam

    def weight(self, number: int) -> float:
        """Returns what the loss of one of `number` real rows has to count in the slopes."""

    def __call__(self, private: All, public: All, also: AddGradient | None = None) -> None:
        """Descends along the slopes of real rows, of synthetic rows, and what is `also` added.

        Whoever lets all rows pass together has them all in `public`, and nothing in `private`.
        """


MakeUpdate = Callable[[Groups, Betas], Update]


class PlainUpdate:
    """Gradients as they are; final, implements `Update`.

    Privacy: none.
    """

    apart = False

    def __init__(self, groups: Groups, betas: Betas) -> None:
        self.flat = FlatParameters([parameter for module, _ in groups for parameter in module.parameters()])
        self.optimiser = _adam(groups, betas, self.flat)

    def weight(self, number: int) -> float:
        """Averages over the rows there are."""
        return 1 / max(1, number)

    def __call__(self, private: All, public: All, also: AddGradient | None = None) -> None:
        _put((*private, *public), also)
        advance(self.optimiser)


class ClippedUpdate:
    """Every row's gradient clipped over all parameters of the owner, noise on each; final, implements `Update`.

    Privacy: one execution of the block's mechanism for every call, also for an empty draw. What leaves is noisy; the
    public gradient is added afterwards.
    """

    apart = True

    def __init__(self, groups: Groups, betas: Betas, block: MechanismPlan, noise: NoiseSource) -> None:
        self._gradient = PrivateGradient(nn.ModuleList(module for module, _ in groups), block, noise, Performance())
        self.flat = self._gradient.flat
        self.optimiser = _adam(groups, betas, self.flat)

    def weight(self, number: int) -> float:
        """Every row counts as itself; the sum is divided by the public expected batch."""
        return 1.0

    def __call__(self, private: All, public: All, also: AddGradient | None = None) -> None:
        assert also is None, "nothing may be added that reads real rows"
        num_rows = private[0].num_rows
        if num_rows:
            self._gradient.add_clipped_records(partial(_leave, private), num_rows)
        self._gradient.finish()
        for slopes in public:
            slopes.add()
        advance(self.optimiser)


class FirstLayerUpdate:
    """Noise on the first layer of every network and nowhere else, as paper 004 has it; final, implements `Update`.

    Privacy: none. Theorem 4.3 calls what follows the first layer post-processing, but later layers are trained on raw
    gradients of the same rows.
    """

    apart = False

    def __init__(
        self, groups: Groups, betas: Betas, clip_norm: float, noise_multiplier: float, noise: NoiseSource
    ) -> None:
        self.flat = FlatParameters([parameter for module, _ in groups for parameter in module.parameters()])
        self.optimiser = _adam(groups, betas, self.flat)
        self._first = [first for module, _ in groups if (first := _first_layer(module)) is not None]
        self._clip_norm, self._noise_multiplier, self._reserve = clip_norm, noise_multiplier, NormalReserve(noise)

    def weight(self, number: int) -> float:
        """Averages over the rows there are."""
        return 1 / max(1, number)

    def __call__(self, private: All, public: All, also: AddGradient | None = None) -> None:
        """Clips the gradient of the whole batch, real and synthetic rows together."""
        _put((*private, *public), also)
        for layer in self._first:
            # Each attribute of stacked ones is a network of its own.
            networks = layer.weight.shape[0] if isinstance(layer, StackedLinear) else 1
            self._noise([self.flat.views[id(parameter)].view(networks, -1) for parameter in layer.parameters()])
        advance(self.optimiser)

    def _noise(self, gradients: list[Tensor]) -> None:
        """Clips and noises gradients [network, parameter] in place."""
        norm = torch.cat(gradients, 1).norm(dim=1, keepdim=True)
        for gradient in gradients:
            gradient /= (norm / self._clip_norm).clamp(min=1)  # Eq. 16
            step = gradient_step(self._clip_norm, gradient.numel())
            self._reserve.add_to(gradient.view(-1), self._noise_multiplier * 2 * self._clip_norm, step)  # Eq. 17


def _put(all_slopes: All, also: AddGradient | None) -> None:
    """Puts the gradient of all rows where the last one was; every network's slopes are there once."""
    for slopes in all_slopes:
        slopes.add(fresh=True)
    if also is not None:
        also()


def _leave(private: All, collector: Collector) -> None:
    """Leaves every row's own gradient of every parameter."""
    for slopes in private:
        for weight, bias, slope, numbers in slopes.by_row():
            collector.outer(weight, slope, numbers)
            collector.keep(bias, slope)


def _first_layer(module: nn.Module) -> StackedLinear | nn.Linear | None:
    """Returns the first layer of an attribute network or of an extractor, as paper 004 noises them."""
    layers = [layer for layer in module.modules() if isinstance(layer, StackedLinear | nn.Linear)]
    return layers[0] if layers else None


def _adam(groups: Groups, betas: Betas, flat: FlatParameters) -> torch.optim.Adam:
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
