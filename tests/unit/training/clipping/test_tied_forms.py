"""A parameter that several layers share is normed once, in whichever forms its gradients come.

Norms of summands do not add up: two forms normed apart would let a unit weigh up to √2 times the clip norm. Every pair
of forms is tried through layers that leave them, in both orders, and as gradients that a caller hands in.
"""

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.unit.training.reference import engine_sum, expected_sum, shaken
from understudy.nn.layers import StackedLinear
from understudy.training.clipping.engine import clip_factors
from understudy.training.clipping.per_unit_gradients import Collector, Outer, Pool, Products, Sums

UNITS, CLIP, WIDTH = 3, 0.3, 64
Use = Callable[[nn.Module, Tensor], Tensor]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class Bare(nn.Module):
    """Uses the shared matrix in a layer of no known kind."""

    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight).sin()


class Tied(nn.Module):
    """One matrix [64, 64] in an embedding, a linear layer and a layer of no known kind."""

    def __init__(self, uses: tuple[str, ...]) -> None:
        super().__init__()
        self.table, self.mix = nn.Embedding(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.mix.weight = self.table.weight
        self.bare = Bare(self.table.weight)
        self.uses = uses

    def forward(self, x: Tensor) -> Tensor:
        index = (x[:, :5, 0].abs() * 1000).long() % WIDTH
        parts = {
            "rows": lambda: self.table(index).sin().sum((1, 2)),
            "outer": lambda: self.mix(x[:, 0]).sin().sum(1),
            "products": lambda: self.mix(x[:, :3]).cos().sum((1, 2)),
            "kept": lambda: self.mix(x).sin().sum((1, 2)),
            "expanded": lambda: self.bare(x[:, 1:3]).sum((1, 2)),
        }
        return sum(parts[use]() for use in self.uses)  # type: ignore[return-value]


class TiedKernel(nn.Module):
    """One array [4, 4, 3] as the taps of two convolutions and as four linear layers side by side."""

    def __init__(self, uses: tuple[str, ...]) -> None:
        super().__init__()
        self.conv, self.back = nn.Conv1d(4, 4, 3, bias=False), nn.ConvTranspose1d(4, 4, 3, bias=False)
        self.stacked = StackedLinear(4, 3, 4)
        self.back.weight = self.stacked.weight = self.conv.weight
        self.uses = uses

    def forward(self, x: Tensor) -> Tensor:
        channels = x[:, :4, :9]
        parts = {
            "taps": lambda: self.conv(channels).sin().sum((1, 2)),
            "transposed taps": lambda: self.back(channels).sin().sum((1, 2)),
            "grouped outer": lambda: self.stacked(channels[:, :, :3]).sin().sum((1, 2)),
        }
        return sum(parts[use]() for use in self.uses)  # type: ignore[return-value]


MATRIX = ("rows", "outer", "products", "kept", "expanded")
KERNEL = ("taps", "transposed taps", "grouped outer")
CASES = [(Tied, pair) for pair in product(MATRIX, repeat=2)] + [
    (TiedKernel, pair) for pair in product(KERNEL, repeat=2)
]
CASES += [(Tied, MATRIX), (Tied, MATRIX[::-1]), (TiedKernel, KERNEL), (TiedKernel, KERNEL[::-1])]


@pytest.mark.parametrize(("make", "uses"), CASES, ids=[" and ".join(uses) for _, uses in CASES])
def test_a_shared_parameter_is_clipped_by_the_norm_of_its_whole_gradient(make: type, uses: tuple[str, ...]) -> None:
    model = shaken(make(uses))
    x = torch.randn(UNITS, 40, WIDTH, dtype=torch.float64)
    wanted = expected_sum(model, lambda rows: model(x[rows]), UNITS, CLIP)
    found = engine_sum(model, lambda: model(x), UNITS, CLIP)
    assert float((found - wanted).norm() / wanted.norm()) < 2e-3  # the margin of the clip is a thousandth
    for unit in range(UNITS):
        alone = engine_sum(model, lambda unit=unit: model(x[unit : unit + 1]), 1, CLIP)
        assert CLIP * (1 - 2e-3) < float(alone.norm()) <= CLIP


def handed_in(uses: tuple[str, ...], parameter: nn.Parameter) -> tuple[Callable[..., None], Tensor]:
    """Gradients as a caller leaves them, in the forms that `uses` name, and what they add up to for each unit."""
    rows, columns = parameter.shape
    left, right = torch.randn(UNITS, rows, 2).double(), torch.randn(UNITS, 2, columns).double()
    whole = torch.randn(UNITS, rows, columns).double()
    forms = {
        "kept": (lambda c: c.keep(parameter, whole), whole),
        "product": (lambda c: c.keep_product(parameter, left, right), left @ right),
        "outer": (
            lambda c: c.add(parameter, Outer(left[:, :, 0], right[:, 0])),
            left[:, :, :1] @ right[:, :1],
        ),
        "products": (lambda c: c.add(parameter, Products(left.mT, right)), left @ right),
    }

    def leave(collector: object) -> None:
        for use in uses:
            forms[use][0](collector)

    return leave, sum(forms[use][1] for use in uses)  # type: ignore[return-value]


HANDED = ("kept", "product", "outer", "products")


@pytest.mark.parametrize("uses", [*product(HANDED, repeat=2), HANDED, HANDED[::-1]], ids=" and ".join)
def test_gradients_handed_in_are_clipped_by_the_norm_of_their_sum(uses: tuple[str, ...]) -> None:
    model = nn.Linear(5, 4, bias=False).double()
    leave, sums = handed_in(uses, model.weight)
    collector = Collector({id(model.weight): model.weight}, UNITS, Pool(model.weight))
    leave(collector)
    collector.unify()
    found = Sums([model.weight])
    collector.add_weighted_sum(clip_factors(collector.norms(), CLIP), found, UNITS)
    wanted = sum(CLIP * each / each.norm() for each in sums).flatten()
    assert float((found.total - wanted).norm() / wanted.norm()) < 2e-3  # the margin of the clip is a thousandth
