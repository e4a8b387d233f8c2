"""The GRU by hand is torch's: states, last state and every gradient; and it is the GRU that judges are made of."""

import pytest
import torch
from torch import Tensor, nn
from understudy_bench.metrics.gated_recurrent import GatedRecurrent
from understudy_bench.metrics.networks import Recurrent

_TOLERANCE = 1e-12  # in double precision both differ by the order of additions alone


def _found(model: nn.Module, series: Tensor) -> list[Tensor]:
    """Returns states, last state, and the gradients of a loss that looks at every step and at the last once more."""
    series = series.clone().requires_grad_()
    states, last = model(series)
    weights = torch.linspace(-1, 1, states.numel(), dtype=states.dtype).reshape(states.shape)
    loss = (states * weights).sum() + last.pow(3).sum()
    return [states, last, *torch.autograd.grad(loss, [series, *model.parameters()])]


@pytest.mark.parametrize(("inputs", "hidden", "steps", "series"), [(3, 8, 40, 5), (1, 2, 1, 1), (4, 32, 7, 3)])
def test_states_and_gradients_are_those_of_torch(inputs: int, hidden: int, steps: int, series: int) -> None:
    torch.manual_seed(0)
    ours = GatedRecurrent(inputs, hidden).double()
    theirs = nn.GRU(inputs, hidden, batch_first=True).double()
    theirs.load_state_dict(ours.state_dict())
    values = torch.randn(series, steps, inputs, dtype=torch.float64)
    for mine, expected in zip(_found(ours, values), _found(theirs, values), strict=True):
        assert mine.shape == expected.shape
        assert torch.allclose(mine, expected, rtol=_TOLERANCE, atol=_TOLERANCE)


def test_a_gate_that_is_wrong_by_ten_percent_is_noticed() -> None:
    """Negative control of the comparison above."""
    torch.manual_seed(0)
    ours, values = GatedRecurrent(2, 4).double(), torch.randn(3, 6, 2, dtype=torch.float64)
    whole = _found(ours, values)
    with torch.no_grad():
        ours.weight_hh_l0[:4] *= 1.1
    for place, mine in enumerate(_found(ours, values)):
        assert not torch.allclose(mine, whole[place], rtol=_TOLERANCE, atol=_TOLERANCE)


def test_it_starts_from_the_same_weights_as_torch() -> None:
    torch.manual_seed(3)
    ours = GatedRecurrent(2, 4)
    torch.manual_seed(3)
    theirs = nn.GRU(2, 4, batch_first=True)
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))


def test_judges_are_made_of_it() -> None:
    assert isinstance(Recurrent("gru", inputs=2, hidden=4, outputs=1).recurrent, GatedRecurrent)
