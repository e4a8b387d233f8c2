"""LSTM and GRU as plain loops of differentiable operations: slow, but vmap and second derivatives can follow."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def forward_of(module: nn.Module) -> Callable[..., Any]:
    """Returns a forward for an LSTM or GRU that reads the module's parameters at the time of the call."""
    cell = _lstm_cell if isinstance(module, nn.LSTM) else _gru_cell
    num_states = 2 if isinstance(module, nn.LSTM) else 1

    def forward(x: Tensor, hx: Any = None) -> Any:
        output, last = _run(module, cell, x, _start(module, x, hx, num_states))
        return output, last if num_states == 2 else last[0]

    return forward


def _start(module: Any, x: Tensor, hx: Any, num_states: int) -> tuple[Tensor, ...]:
    if hx is not None:
        return tuple(hx) if num_states == 2 else (hx,)
    places = module.num_layers * (2 if module.bidirectional else 1)
    return tuple(x.new_zeros(places, x.shape[0], module.hidden_size) for _ in range(num_states))


def _run(module: Any, cell: Any, x: Tensor, start: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
    sides = ["", "_reverse"] if module.bidirectional else [""]
    hidden = x
    last: list[tuple[Tensor, ...]] = []
    for layer in range(module.num_layers):
        outputs = []
        for side in sides:
            weights = [
                getattr(module, f"{kind}_l{layer}{side}", None)
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
            states = tuple(state[len(last)] for state in start)
            steps = hidden.flip(1) if side else hidden
            seen = []
            for step in steps.unbind(1):
                states = cell(step, states, *weights)
                seen.append(states[0])
            output = torch.stack(seen, 1)
            outputs.append(output.flip(1) if side else output)
            last.append(states)
        hidden = torch.cat(outputs, 2)
        if module.dropout and module.training and layer + 1 < module.num_layers:
            hidden = functional.dropout(hidden, module.dropout)
    return hidden, tuple(torch.stack(states) for states in zip(*last, strict=True))


def _lstm_cell(x: Tensor, states: tuple[Tensor, ...], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    h, c = states
    i, f, g, o = (functional.linear(x, w_ih, b_ih) + functional.linear(h, w_hh, b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_cell(x: Tensor, states: tuple[Tensor, ...], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
    (h,) = states
    from_x = functional.linear(x, w_ih, b_ih).chunk(3, -1)
    from_h = functional.linear(h, w_hh, b_hh).chunk(3, -1)
    r, z = (from_x[0] + from_h[0]).sigmoid(), (from_x[1] + from_h[1]).sigmoid()
    n = (from_x[2] + r * from_h[2]).tanh()
    return ((1 - z) * n + z * h,)
