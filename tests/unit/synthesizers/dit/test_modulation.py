"""Bounded conditioning: what the DP-aware AdaLN-Zero paper promises of Eq. 5 to 8, for inputs chosen to break it."""

import math
from functools import partial

import pytest
import torch

from understudy.errors import InputError
from understudy.synthesizers.dit.published import TIGHTNESS, Bounds, DiTBlock, Modulation, projected
from understudy.synthesizers.dit.recipe import Network

ROLES = ("shift", "scale", "gate")
TIGHT = Bounds(condition=2.0, scale=0.5, shift=0.3, gate=0.2)


def hard(x: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    return x.clamp(-bound, bound)


def _trained(width: int = 8, **options: object) -> Modulation:
    modulation = Modulation(width, ROLES, **options)
    for parameter in modulation.parameters():
        torch.nn.init.normal_(parameter, std=3.0)
    return modulation


def test_projection_keeps_short_conditions_and_shortens_long_ones_along_their_direction() -> None:
    short, long = torch.randn(5, 8) * 0.1, torch.randn(5, 8) * 1e6
    assert torch.equal(projected(short, 2.0), short)
    assert projected(long, 2.0).norm(dim=1) == pytest.approx([2.0] * 5, rel=1e-5)
    assert torch.cosine_similarity(projected(long, 2.0), long).min() > 1 - 1e-5
    assert torch.equal(projected(torch.zeros(1, 8), 2.0), torch.zeros(1, 8))


@pytest.mark.parametrize("size", [0.0, 1.0, 1e6, 1e30])
def test_modulation_keeps_its_bounds_whatever_the_condition(size: float) -> None:
    modulation = _trained(bounds=TIGHT)
    shift, factor, gate = modulation(torch.randn(50, 8) * size)
    slack = 1 + 1e-6
    assert shift.abs().max() <= 0.3 * slack
    assert (factor - 1).abs().max() <= 0.5 * slack
    assert gate.abs().max() <= 0.2 * slack


def test_beyond_the_ball_only_the_direction_of_a_condition_matters() -> None:
    condition = torch.randn(4, 8) * 10
    for bounds, same in ((TIGHT, True), (Bounds(), False)):
        inside = (projected(condition * size, bounds.condition) for size in (1.0, 1e3))
        near, far = (torch.cat(_trained_with(3, bounds)(given)) for given in inside)
        assert torch.allclose(near, far, atol=1e-5) is same


def _trained_with(seed: int, bounds: Bounds) -> Modulation:
    torch.manual_seed(seed)
    return _trained(bounds=bounds)


def test_infinite_bounds_change_not_one_bit() -> None:
    condition = torch.randn(4, 8) * 10
    plain = _trained_with(3, Bounds())
    wide = _trained_with(3, Bounds(condition=1e30, scale=1e30, shift=1e30, gate=1e30, operator=hard))
    assert torch.equal(torch.cat(plain(condition)), torch.cat(wide(condition)))


def test_the_gradient_of_the_projection_is_bounded_by_the_ball() -> None:
    modulation, raw = _trained(bounds=TIGHT), []
    modulation.linear.register_forward_hook(lambda *call: raw.append(call[2]))
    outputs = torch.cat(modulation(projected(torch.randn(1, 8) * 1e4, TIGHT.condition)))
    along_weights, along_raw = torch.autograd.grad((outputs * 7).square().sum(), [modulation.linear.weight, raw[0]])
    assert along_weights.norm() <= along_raw.norm() * TIGHT.condition * (1 + 1e-5)
    assert along_weights.norm() > 0


@pytest.mark.parametrize("wrong", [{"gate": 0.0}, {"scale": -1.0}, {"condition": math.nan}], ids=str)
def test_bounds_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match="expected"):
        Bounds(**wrong)


def test_presets_shrink_the_reference_as_in_the_paper() -> None:
    found = Network(tightness="too-tight").bounds((16.0, 1.0, 2.0, 4.0))
    assert found == Bounds(condition=8.0, scale=0.5, shift=1.0, gate=2.0)
    assert list(TIGHTNESS.values()) == [1.0, 0.9, 0.75, 0.5]


def test_a_blocks_jacobian_obeys_the_bound_of_the_appendix() -> None:
    """‖∂y/∂x‖ ≤ (1 + α L_attention γ L_LN) (1 + α L_network γ L_LN): Eq. 26, for both halves of a block, measured."""
    torch.manual_seed(1)
    block = DiTBlock(6, 2, bounds=Bounds(condition=1.0, scale=0.5, shift=0.5, gate=0.05)).double()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    x = torch.randn(1, 4, 6, dtype=torch.float64)
    gates = []
    for size in (1.0, 1e6):  # the bound holds for a condition of any size
        given = partial(block, condition=torch.randn(1, 6, dtype=torch.float64) * size)
        jacobian = torch.autograd.functional.jacobian(given, x).reshape(24, 24)
        gates.append(torch.linalg.matrix_norm(jacobian - torch.eye(24, dtype=torch.float64), 2))
    halves = [_branch_norm(block.attention), _branch_norm(block.feed_forward)]
    normal = _branch_norm(lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-6))
    first, second = (0.05 * 1.5 * half * normal for half in halves)
    assert max(gates) <= first + second + first * second


def _branch_norm(branch: object) -> torch.Tensor:
    """The largest slope of a branch among many random points: a stand-in for its Lipschitz constant."""
    torch.manual_seed(2)
    points = (torch.randn(1, 4, 6, dtype=torch.float64) * spread for spread in (0.3, 1.0, 2.0) for _ in range(30))
    slopes = (torch.autograd.functional.jacobian(branch, point).reshape(24, 24) for point in points)
    return max(torch.linalg.matrix_norm(slope, 2) for slope in slopes)
