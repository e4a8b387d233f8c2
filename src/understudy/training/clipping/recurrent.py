"""LSTM and GRU as plain loops: torch's fused kernels show no gradients of gates, and vmap can't follow them.

**Notation**: i, f, o = input, forget and output gate; g = candidate; c = cell; h = state; r, z, n = reset gate, update
gate and candidate of the GRU.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.errors import UnsafeModule
from understudy.training.clipping import layers
from understudy.training.clipping.per_unit_gradients import Collector

_KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
Pull = Callable[[Tensor, int], Tensor]  # (state, step) → what the state adds to the gates of the step
Linears = Callable[..., tuple[Tensor, Pull]]  # ([row, step, input], weights) → gates from the input, and the pull


def recurrent(
    module: Any, parameters: layers.Parameters, collector: Collector, x: Tensor, hx: Any = None
) -> tuple[Tensor, Any]:
    """Run `nn.LSTM` or `nn.GRU` (batch first, no projection), leaving per-unit gradients in the collector."""

    def linears(seen: Tensor, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Tensor, Pull]:
        from_x = layers.linear(module, {"weight": w_ih, "bias": b_ih}, collector, seen)
        states: list[Tensor] = []
        # Nothing, added to every pull: its gradient is that of the pulls of all steps at once.
        tap = layers.observe(collector, torch.zeros_like(from_x), _record_pulls, None, states, w_hh, b_hh)
        bias = None if b_hh is None else b_hh.detach()

        def pull(h: Tensor, step: int) -> Tensor:
            states.append(h.detach())
            return functional.linear(h, w_hh.detach(), bias) + tap[:, step]

        return from_x, pull

    return _run(module, parameters.get, linears, x, hx)


def _record_pulls(collector: Collector, grad: Tensor, _: None, states: list[Tensor], weight: Any, bias: Any) -> None:
    layers.record_linear(collector, grad, torch.stack(states, 1), weight, bias)


def plain_forward(module: nn.Module) -> Callable[..., Any]:
    """Return a forward that reads the module's parameters at the time of the call; second derivatives can follow it."""

    def linears(seen: Tensor, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Tensor, Pull]:
        return functional.linear(seen, w_ih, b_ih), lambda h, step: functional.linear(h, w_hh, b_hh)

    return lambda x, hx=None: _run(module, lambda name: getattr(module, name, None), linears, x, hx)


def _run(module: Any, find: Callable[[str], Any], linears: Linears, x: Tensor, hx: Any) -> tuple[Tensor, Any]:
    """Run all layers and directions on [row, step, input]; return what `module` does: output and last states."""
    if not isinstance(x, Tensor) or x.ndim != 3:
        raise UnsafeModule("Expected recurrent input [unit, step, channel], got a packed or unbatched sequence.")
    is_lstm, directions = isinstance(module, nn.LSTM), 2 if module.bidirectional else 1
    if hx is None:
        zeros = x.new_zeros(module.num_layers * directions, x.shape[0], module.hidden_size)
        hx = (zeros, zeros) if is_lstm else zeros
    start, cell = (tuple(hx), _lstm_cell) if is_lstm else ((hx,), _gru_cell)
    hidden, last = x, []
    for layer in range(module.num_layers):
        outputs = []
        for side in range(directions):
            weights = (find(f"{kind}_l{layer}{'_reverse' if side else ''}") for kind in _KINDS)
            from_x, pull = linears(hidden.flip(1) if side else hidden, *weights)
            states, found = tuple(state[layer * directions + side] for state in start), []
            for step, gates in enumerate(from_x.unbind(1)):
                states = cell(gates, pull(states[0], step), states)
                found.append(states[0])
            outputs.append(torch.stack(found[::-1] if side else found, 1))
            last.append(states)
        hidden = torch.cat(outputs, 2) if directions == 2 else outputs[0]
        if module.dropout and module.training and layer + 1 < module.num_layers:
            hidden = functional.dropout(hidden, module.dropout)
    ends = tuple(torch.stack(states) for states in zip(*last, strict=True))
    return hidden, ends if is_lstm else ends[0]


def _lstm_cell(gates: Tensor, pull: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    i, f, g, o = (gates + pull).chunk(4, -1)
    c = f.sigmoid() * states[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_cell(gates: Tensor, pull: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    from_x, from_h = gates.chunk(3, -1), pull.chunk(3, -1)
    r, z = (from_x[0] + from_h[0]).sigmoid(), (from_x[1] + from_h[1]).sigmoid()
    n = (from_x[2] + r * from_h[2]).tanh()
    return ((1 - z) * n + z * states[0],)
