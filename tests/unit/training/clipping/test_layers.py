"""Every layer with a hand-written rule, alone, against one backward per unit."""

import pytest
import torch
from torch import nn

from tests.unit.training.reference import relative_error, shaken
from understudy.nn.layers import ReversibleLinear, StackedLinear
from understudy.training.clipping.engine import LAYER_RULES
from understudy.training.clipping.layers import plain_forward

UNITS = 5
TOLERANCE = 1e-6  # relative, in double precision


def series(*shape: int) -> torch.Tensor:
    return torch.randn(UNITS, *shape, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


LAYERS = {
    "linear on vectors": (nn.Linear(3, 4), (3,)),
    "linear on sequences": (nn.Linear(3, 4), (7, 3)),
    "linear on four dimensions": (nn.Linear(3, 4), (2, 7, 3)),
    "linear on five dimensions": (nn.Linear(3, 4), (2, 3, 2, 3)),
    "wide linear on a few rows": (nn.Linear(40, 50), (3, 40)),
    "linear without bias": (nn.Linear(3, 4, bias=False), (7, 3)),
    "reversible linear": (ReversibleLinear(3, 4), (3,)),
    "reversible linear on sequences": (ReversibleLinear(3, 4), (7, 3)),
    "convolution": (nn.Conv1d(4, 6, 3), (4, 11)),
    "convolution of kernel one": (nn.Conv1d(4, 6, 1), (4, 11)),
    "convolution, padded": (nn.Conv1d(4, 6, 3, padding=2), (4, 11)),
    "convolution, strided": (nn.Conv1d(4, 6, 3, stride=3, padding=1), (4, 11)),
    "convolution, dilated": (nn.Conv1d(4, 6, 3, dilation=2), (4, 11)),
    "convolution, grouped": (nn.Conv1d(4, 6, 3, groups=2), (4, 11)),
    "convolution, same length": (nn.Conv1d(4, 6, 4, padding="same", dilation=2), (4, 11)),
    "convolution, circular": (nn.Conv1d(4, 6, 3, padding=2, padding_mode="circular"), (4, 11)),
    "convolution, reflected": (nn.Conv1d(4, 6, 3, padding=2, padding_mode="reflect", bias=False), (4, 11)),
    "layer norm": (nn.LayerNorm(4), (7, 4)),
    "layer norm over two dimensions": (nn.LayerNorm((7, 4)), (7, 4)),
    "layer norm without bias": (nn.LayerNorm(4, bias=False), (7, 4)),
    "group norm": (nn.GroupNorm(2, 4), (4, 9)),
    "group norm on vectors": (nn.GroupNorm(2, 4), (4,)),
    "stacked linears": (StackedLinear(3, 4, 2), (3, 4)),
    "a stack of one": (StackedLinear(1, 4, 2), (1, 4)),
    "stacked linears on sequences": (StackedLinear(3, 4, 2), (6, 3, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_agrees_with_one_backward_per_unit(name: str) -> None:
    layer, shape = LAYERS[name]
    model, x = shaken(layer), series(*shape)
    weights = torch.randn_like(model(x[:1]))
    assert relative_error(model, lambda rows: (model(x[rows]) * weights).square(), UNITS) < TOLERANCE


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    "options",
    [{}, {"num_layers": 2}, {"bidirectional": True, "num_layers": 2}, {"bias": False}],
    ids=["plain", "two layers", "both directions", "no bias"],
)
def test_a_recurrent_layer_agrees_in_outputs_and_last_states(kind: type[nn.Module], options: dict) -> None:
    model, x = shaken(kind(4, 3, batch_first=True, **options)), series(6, 4)

    def losses(rows: slice) -> torch.Tensor:
        output, last = model(x[rows])
        states = last if isinstance(last, tuple) else (last,)
        return output.square().mean((1, 2)) + sum(state.square().sum((0, 2)) for state in states)

    assert relative_error(model, losses, UNITS) < TOLERANCE


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_recurrent_layer_takes_a_start_state(kind: type[nn.Module]) -> None:
    model, x = shaken(kind(4, 3, batch_first=True)), series(6, 4)
    start = torch.randn(1, UNITS, 3, dtype=torch.float64)

    def losses(rows: slice) -> torch.Tensor:
        state = start[:, rows]
        return model(x[rows], (state, 2 * state) if kind is nn.LSTM else state)[0].square()

    assert relative_error(model, losses, UNITS) < TOLERANCE


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("tied", [False, True])
def test_the_forward_that_vmap_can_follow_is_the_layers_own(kind: type[nn.Module], tied: bool) -> None:
    model, x = kind(3, 3, num_layers=2, batch_first=True, bidirectional=not tied).double(), series(6, 3)
    if tied:
        model.weight_hh_l1 = model.weight_hh_l0
    start = torch.randn(2 if tied else 4, UNITS, 3, dtype=torch.float64)
    for hx in (None, (start, 2 * start) if kind is nn.LSTM else start):
        expected, last = model(x, hx)
        output, states = plain_forward(model)(x, hx)
        assert torch.allclose(output, expected)
        pairs = zip(states, last, strict=True) if kind is nn.LSTM else [(states, last)]
        assert all(torch.allclose(found, wanted) for found, wanted in pairs)


@pytest.mark.parametrize("shape", [(), (7,)], ids=["vectors", "sequences"])
def test_a_reversible_layer_agrees_backwards_and_in_several_uses(shape: tuple[int, ...]) -> None:
    """Three uses of one weight by one unit, two of them forwards: their norm is that of the sum."""
    model, x, y = shaken(ReversibleLinear(3, 4)), series(*shape, 3), series(*shape, 4)

    def backwards(rows: slice) -> torch.Tensor:
        return model(y[rows], back=True).square()

    def several(rows: slice) -> torch.Tensor:
        return model(model(x[rows]).tanh(), back=True).square() + model(x[rows] + 1).sum(-1, keepdim=True).cos()

    assert relative_error(model, several, UNITS) < TOLERANCE
    model.bias.requires_grad_(False)
    assert relative_error(model, backwards, UNITS) < TOLERANCE


@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("shape", [(), (9,), (3, 4)])
def test_an_embedding_adds_up_repeated_rows_within_a_unit(padding: int | None, shape: tuple) -> None:
    model = shaken(nn.Embedding(6, 3, padding_idx=padding))
    index = torch.randint(0, 6, (UNITS, *shape))
    assert relative_error(model, lambda rows: model(index[rows]).sum(-1).exp(), UNITS) < TOLERANCE


@pytest.mark.parametrize("name", ["linear on vectors", "linear on sequences", "convolution", "convolution, grouped"])
def test_several_rows_of_a_unit_are_averaged_before_the_clip(name: str) -> None:
    layer, shape = LAYERS[name]
    model, x = shaken(layer), torch.randn(3 * UNITS, *shape, dtype=torch.float64)
    assert relative_error(model, lambda rows: model(x[rows]).square(), UNITS, rows=3) < TOLERANCE


def test_every_hand_written_rule_is_tested_here() -> None:
    tested = {type(layer) for layer, _ in LAYERS.values()} | {nn.LSTM, nn.GRU, nn.Embedding}
    assert tested >= set(LAYER_RULES)
