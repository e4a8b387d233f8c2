"""Energies know their slope, per-unit gradients of penalties on it are right, and generators normalise row by row."""

import math

import pytest
import torch
from torch import Tensor, nn

from understudy.nn.layers import ReversibleLinear
from understudy.synthesizers.ppem.published import (
    CRITICAL_VALUE,
    Energy,
    RowGenerator,
    between,
    lipschitz_penalty,
    median_bandwidth,
    normalised_discrepancy,
    obfuscation_penalty,
    raised,
    stein_pairs,
)
from understudy.training.clipping.engine import Expand, PerUnitClipper

UNITS = 6


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Flat(nn.Module):
    """E(x) = wᵀx + b, whose slope is w everywhere."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        return x @ self.weight + 3.0

    def slope(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.weight.expand(len(x), -1)


def test_the_slope_is_what_automatic_differentiation_says() -> None:
    torch.manual_seed(0)
    energy, condition = Energy(6, 3, 8), normal(UNITS, 3, seed=2)
    x = normal(UNITS, 6, seed=1).requires_grad_()
    values = energy(x, condition)
    assert bool((values > 0).all())
    (expected,) = torch.autograd.grad(values.sum(), x)
    torch.testing.assert_close(energy.slope(x, condition), expected)


def test_the_score_knows_no_partition_function() -> None:
    """Scaling exp(−E) by any constant adds one to the energy; what the discrepancy sees does not change."""
    torch.manual_seed(0)
    energy, x = Energy(2, 0, 8), normal(40, 2)
    (shifted,) = torch.autograd.grad((energy(y := x.clone().requires_grad_()) + 7.0).sum(), y)
    torch.testing.assert_close(shifted, energy.slope(x))


def test_per_unit_gradients_of_a_lipschitz_penalty_are_those_of_one_backward_per_unit() -> None:
    torch.manual_seed(0)
    energy = Energy(6, 3, 8)
    x, at, condition = normal(UNITS, 6, seed=1), normal(UNITS, 6, seed=2), normal(UNITS, 3, seed=3)

    def losses(rows: slice = slice(None)) -> Tensor:
        penalty = lipschitz_penalty(energy, at[rows], condition[rows])
        return energy(x[rows], condition[rows]) + penalty

    clipper = PerUnitClipper(energy, clipping_norm=1.0)
    found = clipper.collect(losses, UNITS)
    dense, norms = found.dense(), found.norms()
    for unit in range(UNITS):
        grads = torch.autograd.grad(losses(slice(unit, unit + 1)).sum(), clipper.parameters)
        for parameter, grad in zip(clipper.parameters, grads, strict=True):
            torch.testing.assert_close(dense[id(parameter)][unit], grad, rtol=1e-4, atol=1e-6)
        norm = math.hypot(*(float(grad.double().norm()) for grad in grads))
        assert norm * (1 - 1e-5) <= float(norms[unit]) <= norm * 1.005 + 1e-5
    assert clipper._patch.expand is Expand.UNKNOWN  # no copies of parameters are needed


def test_uses_of_a_layer_that_cancel_are_not_clipped_less_than_they_weigh() -> None:
    """Two uses a million times longer than their sum: rounding may not let the sum pass the clip."""
    layer = ReversibleLinear(3, 2, bias=False)
    x, tiny = 1e3 * normal(UNITS, 3, seed=1), 1e-3 * normal(UNITS, 3, seed=2)

    def losses() -> Tensor:
        return 1e3 * (layer(x + tiny) - layer(x)).sum(1)

    clipper = PerUnitClipper(layer, clipping_norm=1.0)
    collected = clipper.collect(losses, UNITS)
    true = collected.dense()[id(layer.weight)].double().flatten(1).norm(dim=1)
    assert bool((collected.norms() >= true * (1 - 1e-3)).all())


def test_margin_losses_are_those_of_the_paper() -> None:
    torch.testing.assert_close(raised(torch.tensor([0.0, 4.0, 10.0, 12.0]), 10.0), torch.tensor([10.0, 6.0, 0.0, 0.0]))
    unit = torch.tensor([0.6, 0.8])
    assert float(lipschitz_penalty(Flat(unit), normal(5, 2)).max()) < 1e-9  # ‖w‖ = 1
    torch.testing.assert_close(lipschitz_penalty(Flat(3 * unit), normal(5, 2)), torch.full((5,), 4.0))
    real, generated = torch.zeros(200, 2), torch.ones(200, 2)
    shares = between(real, generated, torch.Generator().manual_seed(0))
    assert bool((shares >= 0).all() and (shares <= 1).all())
    torch.testing.assert_close(shares[:, 0], shares[:, 1])  # one u for a whole row
    assert 0.35 < float(shares.mean()) < 0.65


class Bowl(nn.Module):
    """E(x) = scale · ‖x‖²/2: a normal."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.scale * x.square().sum(1) / 2

    def slope(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.scale * x


def test_the_obfuscation_penalty_is_zero_exactly_where_the_test_rejects() -> None:
    """Points far from the energy's centre are rejected; of sets sampled from its density at most a few are.

    Of 60 true sets more than 15 would be rejected with a chance below 1e-6 at a level of 0.05.
    """
    rejected, bowl = 0, Bowl()
    for seed in range(60):
        points = normal(128, 2, seed=seed)
        statistic = float(normalised_discrepancy(stein_pairs(points, -points, median_bandwidth(points))))
        penalty = float(obfuscation_penalty(bowl, points).detach())  # type: ignore[arg-type]
        assert penalty == pytest.approx(max(0.0, CRITICAL_VALUE - statistic), abs=1e-4)
        rejected += penalty == 0.0
    assert rejected <= 15
    assert float(obfuscation_penalty(bowl, normal(400, 2) + 2.0).detach()) == 0.0  # type: ignore[arg-type]


def test_the_penalty_teaches_the_energy_where_the_test_does_not_reject() -> None:
    bowl = Bowl()
    penalty = obfuscation_penalty(bowl, normal(128, 2, seed=3))
    assert float(penalty.detach()) > 0
    penalty.backward()
    assert bowl.scale.grad is not None
    assert float(bowl.scale.grad.abs()) > 0


def test_a_generated_row_depends_on_its_own_latent_and_condition_alone() -> None:
    generator = RowGenerator(5, 3, 6, 8)
    latent, condition = normal(4, 5), normal(4, 3, seed=1)
    before = generator(latent, condition)
    latent[0], condition[0] = 9.0, -9.0
    after = generator(latent, condition)
    torch.testing.assert_close(after[1:], before[1:], rtol=0, atol=1e-6)
    assert not torch.allclose(after[0], before[0])
    assert not [module for module in generator.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
