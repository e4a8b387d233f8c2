"""Operators that keep shift, scale and gate inside their bounds, as the DP-aware AdaLN-Zero paper compares them."""

import pytest
import torch
from understudy_bench.adaln.ablation import OPERATORS, PartlyBounded

from understudy.errors import InputError

LIMIT = torch.tensor(1.5, dtype=torch.float64)
GRID = torch.linspace(-10, 10, 20_001, dtype=torch.float64)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_stays_inside_is_odd_and_never_turns_back(operator: str) -> None:
    kept = OPERATORS[operator](GRID, LIMIT)
    assert kept.abs().max() <= 1.5 + 1e-12
    assert torch.allclose(kept, -kept.flip(0))
    steps = kept.diff()
    assert steps.min() >= -1e-12
    assert steps.max() <= (GRID[1] - GRID[0]) * (1 + 1e-9)  # 1-Lipschitz


def _slopes(operator: str) -> torch.Tensor:
    x = GRID.clone().requires_grad_()
    return torch.autograd.grad(OPERATORS[operator](x, LIMIT).sum(), x)[0]


def test_slopes_are_those_of_the_paper() -> None:
    assert torch.allclose(_slopes("tanh"), 1 / torch.cosh(GRID / 1.5) ** 2)
    assert torch.equal(_slopes("hard"), (GRID.abs() <= 1.5).double())
    assert torch.equal(_slopes("straight-through"), torch.ones_like(GRID))
    assert _slopes("soft")[GRID.abs() < 1.35].eq(1).all()
    assert _slopes("soft")[GRID.abs() > 1.65].eq(0).all()


@pytest.mark.parametrize("operator", ["tanh", "soft"])
def test_smooth_operators_have_slopes_without_jumps(operator: str) -> None:
    assert _slopes(operator).diff().abs().max() < 0.01
    assert _slopes("hard").diff().abs().max() == 1  # the control: a kink shows


def test_a_network_bounds_by_the_operator_it_names() -> None:
    assert PartlyBounded(operator="soft").bounds().operator is OPERATORS["soft"]
    with pytest.raises(InputError, match="operator"):
        PartlyBounded(operator="relu")
