"""What the engine must agree with: one ordinary backward per unit, clipped by hand."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from understudy.training.clipping.engine import PerUnitClipper
from understudy.training.clipping.per_unit_gradients import NORM_MARGIN, Sums

LossesOfRows = Callable[[slice], Tensor]


def unit_gradients(model: nn.Module, losses: LossesOfRows, num_units: int, rows: int = 1) -> list[Tensor]:
    """Flat gradient of each unit, from a forward and backward that sees that unit alone."""
    gradients = []
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for unit in range(num_units):
        loss = losses(slice(unit * rows, (unit + 1) * rows)).mean()
        grads = torch.autograd.grad(loss, parameters, allow_unused=True)
        filled = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads, strict=True)]
        gradients.append(torch.cat([grad.reshape(-1) for grad in filled]))
    return gradients


def expected_sum(model: nn.Module, losses: LossesOfRows, num_units: int, clip: float, rows: int = 1) -> Tensor:
    gradients = torch.stack(unit_gradients(model, losses, num_units, rows))
    factors = (clip * (1 - NORM_MARGIN) / gradients.norm(dim=1, keepdim=True)).clamp(max=1.0)
    return (factors * gradients).sum(0)


def engine_sum(model: nn.Module, losses: Callable[[], Tensor], num_units: int, clip: float) -> Tensor:
    clipper = PerUnitClipper(model, clip)
    sums = Sums(clipper.parameters)
    clipper.add_clipped_sum(losses, num_units, sums, num_units)
    return sums.total


def relative_error(model: nn.Module, losses: LossesOfRows, num_units: int, clip: float = 0.3, rows: int = 1) -> float:
    """Distance of the engine from the loop, relative to the loop."""
    wanted = expected_sum(model, losses, num_units, clip, rows)
    found = engine_sum(model, lambda: losses(slice(None)), num_units, clip)
    return float((found - wanted).norm() / (wanted.norm() + 1e-12 * clip))  # a dead network has no gradient


def shaken(module: nn.Module) -> nn.Module:
    """The module in double precision with random parameters, so that no gradient is zero by its starting point."""
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return module
