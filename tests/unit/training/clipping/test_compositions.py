"""Random networks made of every kind of layer, against one backward per unit."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.unit.training.reference import engine_sum, relative_error
from understudy.nn.attention import SelfAttention
from understudy.nn.layers import StackedLinear

STEPS, WIDTH = 6, 4


class Swap(nn.Module):
    """Runs a layer that wants channels before steps."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.transpose(1, 2)).transpose(1, 2)


class First(nn.Module):
    """Keeps the outputs of a recurrent layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


class Gated(nn.Module):
    """A bare parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.randn(STEPS, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.gate)


class ByStep(nn.Module):
    """A linear of its own for every step."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = StackedLinear(STEPS, WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class Pooled(nn.Module):
    """A linear on the unit's mean, added to every step: a layer with one row per unit."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layer(x.mean(1)).unsqueeze(1)


BLOCKS = {
    "linear": lambda: nn.Linear(WIDTH, WIDTH),
    "conv": lambda: Swap(nn.Conv1d(WIDTH, WIDTH, 3, padding=1)),
    "grouped": lambda: Swap(nn.Conv1d(WIDTH, WIDTH, 3, padding=2, dilation=2, groups=2)),
    "transposed": lambda: Swap(nn.ConvTranspose1d(WIDTH, WIDTH, 3, padding=1)),
    "layer norm": lambda: nn.LayerNorm(WIDTH),
    "rms norm": lambda: nn.RMSNorm(WIDTH),
    "group norm": lambda: Swap(nn.GroupNorm(2, WIDTH)),
    "lstm": lambda: First(nn.LSTM(WIDTH, WIDTH, batch_first=True)),
    "gru": lambda: First(nn.GRU(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)),
    "attention": lambda: SelfAttention(WIDTH, 2),
    "bare": Gated,
    "stacked": ByStep,
    "pooled": Pooled,
    "tanh": nn.Tanh,
    "relu in place": lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(inplace=True)),
}
WEIGHTS = torch.linspace(-1, 2, STEPS * WIDTH, dtype=torch.float64).view(STEPS, WIDTH)  # no symmetry, no tie
SHAPES = {
    "all": lambda output: (output * WEIGHTS).exp(),
    "one": lambda output: (output * WEIGHTS).sin().mean((1, 2)),
    "column": lambda output: (output * WEIGHTS).sum(2).exp().sum(1, keepdim=True),
}


class Network(nn.Module):
    def __init__(self, names: list[str], reused: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(5, WIDTH)
        self.blocks = nn.ModuleList(BLOCKS[name]() for name in names)
        self.reused = reused

    def forward(self, index: Tensor) -> Tensor:
        hidden = self.table(index)
        for block in [*self.blocks, *(self.blocks[:1] if self.reused else [])]:
            hidden = block(hidden)
        return hidden


@given(
    names=st.lists(st.sampled_from(sorted(BLOCKS)), min_size=1, max_size=5),
    reused=st.booleans(),
    shape=st.sampled_from(sorted(SHAPES)),
    units=st.integers(1, 4),
    rows=st.integers(1, 2),
    log_clip=st.floats(-3, 1),
    seed=st.integers(0, 2**31),
)
def test_random_networks_agree_with_one_backward_per_unit(
    names: list[str], reused: bool, shape: str, units: int, rows: int, log_clip: float, seed: int
) -> None:
    torch.manual_seed(seed)
    model = Network(names, reused).double()
    index = torch.randint(0, 5, (units * rows, STEPS))

    def losses(part: slice) -> Tensor:
        return SHAPES[shape](model(index[part]))

    clip = 10**log_clip
    assert relative_error(model, losses, units, clip, rows) < 1e-6
    assert float(engine_sum(model, lambda: losses(slice(None)), units, clip).norm()) <= units * clip


def test_every_block_works_alone() -> None:
    torch.manual_seed(1)
    index = torch.randint(0, 5, (3, STEPS))
    for name in BLOCKS:
        model = Network([name], reused=True).double()
        assert relative_error(model, lambda rows, model=model: model(index[rows]).square(), 3) < 1e-6, name
