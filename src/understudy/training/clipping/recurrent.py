"""LSTM and GRU: per-unit gradients by hand-written backpropagation through time, and plain loops that vmap can follow.

torch's fused kernels do not expose gate gradients. The hand-written loops work on time-major tensors, do the sequential
part with few calls per step, and leave each weight gradient to one batched matrix product at the end. The plain ones
are differentiable operations only: slow, but second derivatives can follow them.

**Notation** (shapes [step, row, …]): i, f, o = input, forget and output gate; g = candidate; c = cell;
h = state; r, z, n = reset gate, update gate and candidate of the GRU.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.errors import UnsafeModule
from understudy.training.clipping.layers import Parameters, apply, record_linear
from understudy.training.clipping.per_unit_gradients import Collector

Weights = tuple[nn.Parameter, nn.Parameter, nn.Parameter | None, nn.Parameter | None]  # W_ih, W_hh, b_ih, b_hh
_KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class _LSTMLayer(torch.autograd.Function):
    """One direction of one layer: [step, row, input] → states [step, row, hidden] and the last cell."""

    @staticmethod
    def forward(
        ctx: Any, anchor: Tensor, x: Tensor, h0: Tensor, c0: Tensor, collector: Collector, weights: Weights
    ) -> tuple[Tensor, Tensor]:
        w_ih, w_hh, b_ih, b_hh = weights
        steps, rows, hidden = x.shape[0], x.shape[1], w_hh.shape[1]
        gates = functional.linear(x, w_ih, None if b_ih is None or b_hh is None else b_ih + b_hh)
        states, cells = x.new_empty(steps + 1, rows, hidden), x.new_empty(steps + 1, rows, hidden)
        squashed = x.new_empty(steps, rows, hidden)  # tanh of the cells
        states[0], cells[0] = h0, c0
        h, c, recurrent = states.unbind(0), cells.unbind(0), w_hh.t().contiguous()
        i, f, g, o = (part.unbind(0) for part in gates.split(hidden, 2))
        both = gates[:, :, : 2 * hidden].unbind(0)
        for step, (gate, tanh_c) in enumerate(zip(gates.unbind(0), squashed.unbind(0), strict=True)):
            gate.addmm_(h[step], recurrent)
            both[step].sigmoid_()
            g[step].tanh_()
            o[step].sigmoid_()
            torch.mul(f[step], c[step], out=c[step + 1]).addcmul_(i[step], g[step])
            torch.tanh(c[step + 1], out=tanh_c)
            torch.mul(o[step], tanh_c, out=h[step + 1])
        ctx.save_for_backward(x, gates, states, cells, squashed)
        ctx.collector, ctx.weights = collector, weights
        return states[1:], cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, grad_states: Tensor, grad_cell: Tensor) -> Any:
        ctx.collector.first_order_only()
        x, gates, states, cells, squashed = ctx.saved_tensors
        w_ih, w_hh = ctx.weights[:2]
        hidden = w_hh.shape[1]
        grads, through = _lstm_slopes(gates, cells[:-1], squashed)
        of_cell = grads[:, :, : 3 * hidden].unflatten(2, (3, hidden)).unbind(0)
        of_state, forget = grads[:, :, 3 * hidden :].unbind(0), gates.chunk(4, 2)[1].unbind(0)
        slope_c, grad_out, by_step = through.unbind(0), grad_states.unbind(0), grads.unbind(0)
        grad_h, grad_c = torch.zeros_like(grad_cell), grad_cell.clone()
        grad_c_of_gates = grad_c.unsqueeze(1)
        for step in reversed(range(len(by_step))):
            grad_h.add_(grad_out[step])
            grad_c.addcmul_(grad_h, slope_c[step])
            of_cell[step].mul_(grad_c_of_gates)
            of_state[step].mul_(grad_h)
            torch.mm(by_step[step], w_hh, out=grad_h)
            grad_c.mul_(forget[step])
        if ctx.collector.recording:
            _record(ctx.collector, (grads, grads), (x, states[:-1]), ctx.weights)
        return None, grads @ w_ih if ctx.needs_input_grad[1] else None, grad_h, grad_c, None, None


def _lstm_slopes(gates: Tensor, cells_before: Tensor, squashed: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ∂/∂pre-activation [step, row, 4·hidden] (of c for i, f, g; of h for o) and ∂h/∂c."""
    i, f, g, o = gates.chunk(4, 2)
    slopes = torch.empty_like(gates)
    slope_i, slope_f, slope_g, slope_o = slopes.chunk(4, 2)
    aten = torch.ops.aten
    aten.sigmoid_backward.grad_input(g, i, grad_input=slope_i)
    aten.sigmoid_backward.grad_input(cells_before, f, grad_input=slope_f)
    aten.tanh_backward.grad_input(i, g, grad_input=slope_g)
    aten.sigmoid_backward.grad_input(squashed, o, grad_input=slope_o)
    return slopes, aten.tanh_backward(o, squashed)


def _record(
    collector: Collector, grads: tuple[Tensor, Tensor], inputs: tuple[Tensor, Tensor], weights: Weights
) -> None:
    """Records the weights on the input and on the state from gradients and inputs [step, row, …]."""
    for grad, x, weight, bias in zip(grads, inputs, weights[:2], weights[2:], strict=True):
        assert weight is not None
        record_linear(collector, grad.transpose(0, 1), x.detach().transpose(0, 1), weight, bias)


class _GRULayer(torch.autograd.Function):
    """One direction of one layer: [step, row, input] → states [step, row, hidden]."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, x: Tensor, h0: Tensor, collector: Collector, weights: Weights) -> Tensor:
        w_ih, w_hh, b_ih, b_hh = weights
        steps, rows, hidden = x.shape[0], x.shape[1], w_hh.shape[1]
        gates = functional.linear(x, w_ih, b_ih)
        states, pulled = x.new_empty(steps + 1, rows, hidden), x.new_empty(steps, rows, 3 * hidden)
        states[0] = h0
        h, recurrent = states.unbind(0), w_hh.t().contiguous()
        for step, (gate, pull) in enumerate(zip(gates.unbind(0), pulled.unbind(0), strict=True)):
            torch.mm(h[step], recurrent, out=pull)
            if b_hh is not None:
                pull += b_hh
            r, z, n = gate.split(hidden, 1)
            r.add_(pull[:, :hidden]).sigmoid_()
            z.add_(pull[:, hidden : 2 * hidden]).sigmoid_()
            n.addcmul_(r, pull[:, 2 * hidden :]).tanh_()
            torch.lerp(n, h[step], z, out=h[step + 1])  # (1 − z)·n + z·h
        ctx.save_for_backward(x, gates, states, pulled[:, :, 2 * hidden :].clone())
        ctx.collector, ctx.weights = collector, weights
        return states[1:]

    @staticmethod
    def backward(ctx: Any, grad_states: Tensor) -> Any:
        ctx.collector.first_order_only()
        x, gates, states, pulled = ctx.saved_tensors
        w_ih, w_hh = ctx.weights[:2]
        hidden, update = w_hh.shape[1], gates.chunk(3, 2)[1].unbind(0)
        inner, candidate = _gru_slopes(gates, states[:-1], pulled)
        by_step = list(zip(inner.unbind(0), candidate.unbind(0), grad_states.unbind(0), update, strict=True))
        grad_h = torch.zeros_like(states[0])
        for grad, grad_n, grad_out, z in reversed(by_step):
            grad_h = grad_h + grad_out
            grad.view(-1, 3, hidden).mul_(grad_h.unsqueeze(1))
            grad_n *= grad_h
            grad_h = (grad_h * z).addmm_(grad, w_hh)
        outer = torch.cat([inner[:, :, : 2 * hidden], candidate], 2)
        if ctx.collector.recording:
            _record(ctx.collector, (outer, inner), (x, states[:-1]), ctx.weights)
        return None, outer @ w_ih if ctx.needs_input_grad[1] else None, grad_h, None, None


def _gru_slopes(gates: Tensor, before: Tensor, pulled: Tensor) -> tuple[Tensor, Tensor]:
    """Returns ∂h/∂(recurrent pre-activations) [step, row, 3·hidden] and ∂h/∂(pre-activation of n)."""
    r, z, n = gates.chunk(3, 2)
    slopes = torch.empty_like(gates)
    slope_r, slope_z, slope_n = slopes.chunk(3, 2)
    candidate = (1 - z) * (1 - n * n)
    torch.mul(candidate, r, out=slope_n)
    torch.mul(slope_n, 1 - r, out=slope_r).mul_(pulled)
    torch.sub(before, n, out=slope_z).mul_(z).mul_(1 - z)
    return slopes, candidate


def _stack(
    module: Any, find: Callable[[str], Any], x: Tensor, hx: Any, direction: Callable[..., tuple[Tensor, ...]]
) -> tuple[Tensor, Any]:
    """Runs all layers and directions on [row, step, input]; returns what `module` does: output and last states.

    Args:
        find: name of a parameter → the parameter, or None.
        direction: ([step, row, input], first states, weights) → all h [step, row, hidden], then the last other states.
    """
    if not isinstance(x, Tensor) or x.ndim != 3:
        raise UnsafeModule("Expected recurrent input [unit, step, channel], got a packed or unbatched sequence.")
    num_states, directions = 2 if isinstance(module, nn.LSTM) else 1, 2 if module.bidirectional else 1
    if hx is None:
        start = (x.new_zeros(module.num_layers * directions, x.shape[0], module.hidden_size),) * num_states
    else:
        start = tuple(hx) if num_states == 2 else (hx,)
    hidden, last = x.transpose(0, 1), []
    for layer in range(module.num_layers):
        outputs = []
        for side in range(directions):
            seen = hidden.flip(0) if side else hidden
            begin = tuple(state[layer * directions + side] for state in start)
            names = (f"{kind}_l{layer}{'_reverse' if side else ''}" for kind in _KINDS)
            states, *rest = direction(seen, begin, tuple(find(name) for name in names))
            outputs.append(states.flip(0) if side else states)
            last.append([states[-1], *rest])
        hidden = torch.cat(outputs, 2) if side else outputs[0]
        if module.dropout and module.training and layer + 1 < module.num_layers:
            hidden = functional.dropout(hidden, module.dropout)
    ends = tuple(torch.stack(states) for states in zip(*last, strict=True))
    return hidden.transpose(0, 1), ends if num_states == 2 else ends[0]


def lstm(module: Any, parameters: Parameters, collector: Collector, x: Tensor, hx: Any = None) -> Any:
    """Runs `nn.LSTM` (batch first, no projection)."""

    def direction(seen: Tensor, start: tuple[Tensor, ...], weights: Weights) -> Any:
        return apply(_LSTMLayer, collector.anchor, seen, *start, collector, weights)

    return _stack(module, parameters.get, x, hx, direction)


def gru(module: Any, parameters: Parameters, collector: Collector, x: Tensor, hx: Any = None) -> Any:
    """Runs `nn.GRU` (batch first)."""

    def direction(seen: Tensor, start: tuple[Tensor, ...], weights: Weights) -> Any:
        return (apply(_GRULayer, collector.anchor, seen, *start, collector, weights),)

    return _stack(module, parameters.get, x, hx, direction)


def plain_forward(module: nn.Module) -> Callable[..., Any]:
    """Returns a forward for an LSTM or GRU that reads the module's parameters at the time of the call.

    A loop of differentiable operations: slow, but vmap and second derivatives can follow.
    """
    cell = _lstm_cell if isinstance(module, nn.LSTM) else _gru_cell

    def direction(seen: Tensor, states: tuple[Tensor, ...], weights: Weights) -> Any:
        outputs = []
        for step in seen.unbind(0):
            states = cell(step, states, *weights)
            outputs.append(states[0])
        return torch.stack(outputs), *states[1:]

    return lambda x, hx=None: _stack(module, lambda name: getattr(module, name, None), x, hx, direction)


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
