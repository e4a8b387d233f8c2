"""Hand-written per-unit gradients of the layers of shipped methods, and of recurrent ones, which vmap can't follow.

Each rule runs its layer on detached parameters and leaves the per-unit gradients in a `Collector` during the backward,
while autograd itself computes only what flows further back.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.errors import UnsafeModule
from understudy.training.clipping.per_unit_gradients import Collector, Outer, Products

Parameters = dict[str, nn.Parameter]
OnGradient = Callable[..., None]  # (collector, gradient of the output, input, facts of the layer)


class _Anchored(torch.autograd.Function):
    """Identity that makes autograd visit a layer none of whose inputs needs a gradient (the first one)."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, output: Tensor) -> Tensor:
        ctx.mark_dirty(output)  # handed through without a copy and without becoming a view
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None


def observe(collector: Collector, output: Tensor, record: OnGradient, x: Tensor | None, *facts: Any) -> Tensor:
    """Returns `output`; in the final backward calls `record(collector, gradient of output, x, *facts)` once.

    `x` is let go as soon as it has been used, so activations are freed layer by layer as in an ordinary backward.
    """
    if output._is_view():  # whatever changed it in place would take it out of the graph, and the hook with it
        output = output.clone()
    if not output.requires_grad:
        output = _Anchored.apply(collector.anchor, output)  # type: ignore[no-untyped-call]
    held, version = [x], None if x is None else x._version

    def hook(grad: Tensor) -> None:
        collector.first_order_only()
        if collector.recording:
            layer_input = held.pop()
            if layer_input is not None and layer_input._version != version:
                raise UnsafeModule(
                    "Expected a layer's input to stay as it was until the backward, got one changed in place. "
                    "Use the out-of-place form of that operation."
                )
            # Detached: a record that held the graph would keep itself alive, since the graph holds this hook.
            record(collector, grad, None if layer_input is None else layer_input.detach(), *facts)

    output.register_hook(hook)
    return output


def linear(module: nn.Module, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.Linear`."""
    weight, bias = parameters["weight"], parameters.get("bias")
    rows = x if x.ndim == 2 else x.reshape(-1, x.shape[-1])
    output = functional.linear(rows, weight.detach(), None if bias is None else bias.detach())
    output = observe(collector, output, record_linear, x, weight, bias)
    return output if x.ndim == 2 else output.view(*x.shape[:-1], -1)


def record_linear(
    collector: Collector, grad: Tensor, x: Tensor, weight: nn.Parameter, bias: nn.Parameter | None
) -> None:
    """Records grad ⊗ x: as two vectors where a unit has one row, else summed over the unit's rows."""
    units = collector.num_units
    if x.ndim > 2 or x.shape[0] != units:
        x = collector.by_unit(x).reshape(units, -1, x.shape[-1])
        grad = grad.reshape(units, -1, grad.shape[-1])
        if x.shape[1] == 1:
            x, grad = x.squeeze(1), grad.squeeze(1)
    single = x.ndim == 2
    if collector.wants(weight):
        if single:
            collector.add(weight, Outer(grad, x))
        elif Products.pay(x.shape[1], (grad.shape[2], x.shape[2])):
            collector.add(weight, Products(grad, x))
        else:
            collector.keep_product(weight, grad.transpose(1, 2), x)
    if bias is not None and collector.wants(bias):
        collector.keep(bias, grad if single else grad.sum(1))


def reversible_linear(
    module: nn.Module, parameters: Parameters, collector: Collector, x: Tensor, back: bool = False
) -> Tensor:
    """Runs `ReversibleLinear` in either direction."""
    if not back:
        return linear(module, parameters, collector, x)
    return observe(collector, x @ parameters["weight"].detach(), _record_back, x, parameters["weight"])


def _record_back(collector: Collector, grad: Tensor, x: Tensor, weight: nn.Parameter) -> None:
    record_linear(collector, x, grad, weight, None)  # what comes in at the outputs takes the place of a gradient there


def stacked_linear(module: nn.Module, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `StackedLinear`: one linear per position of the last-but-one dimension."""
    weight, bias = parameters["weight"], parameters["bias"]
    output = torch.einsum("...ki,koi->...ko", x, weight.detach()) + bias.detach()
    return observe(collector, output, _record_stacked, x, weight, bias)


def _record_stacked(collector: Collector, grad: Tensor, x: Tensor, weight: nn.Parameter, bias: nn.Parameter) -> None:
    units = collector.num_units
    x = collector.by_unit(x).reshape(units, -1, *x.shape[-2:])
    grad = grad.reshape(units, -1, *grad.shape[-2:])
    if collector.wants(weight):
        if x.shape[1] == 1:
            collector.add(weight, Outer(grad.squeeze(1), x.squeeze(1)))
        else:
            collector.keep(weight, torch.einsum("urko,urki->ukoi", grad, x))
    if collector.wants(bias):
        collector.keep(bias, grad.sum(1))


def embedding(module: Any, parameters: Parameters, collector: Collector, index: Tensor) -> Tensor:
    """Runs `nn.Embedding`."""
    weight = parameters["weight"]
    output = functional.embedding(index, weight.detach())
    return observe(collector, output, _record_embedding, index, weight, module.padding_idx)


def _record_embedding(
    collector: Collector, grad: Tensor, index: Tensor, weight: nn.Parameter, padding: int | None
) -> None:
    """Records a linear layer that runs backwards from one-hot rows."""
    chosen = functional.one_hot(index, weight.shape[0]).to(grad)
    if padding is not None:
        chosen[..., padding] = 0
    record_linear(collector, chosen, grad, weight, None)


# --- LSTM and GRU as plain loops: torch's fused kernels show no gradients of gates, and vmap can't follow them ---
#
# Notation: i, f, o = input, forget and output gate; g = candidate; c = cell; h = state; r, z, n = reset gate, update
# gate and candidate of the GRU.

_KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
Pull = Callable[[Tensor, int], Tensor]  # (state, step) → what the state adds to the gates of the step
Linears = Callable[..., tuple[Tensor, Pull]]  # ([row, step, input], weights) → gates from the input, and the pull


def recurrent(
    module: Any, parameters: Parameters, collector: Collector, x: Tensor, hx: Any = None
) -> tuple[Tensor, Any]:
    """Run `nn.LSTM` or `nn.GRU` (batch first, no projection), leaving per-unit gradients in the collector."""

    def linears(seen: Tensor, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Tensor, Pull]:
        from_x = linear(module, {"weight": w_ih, "bias": b_ih}, collector, seen)
        states: list[Tensor] = []
        # What every pull begins with: its gradient is that of the pulls of all steps at once.
        begin = torch.zeros_like(from_x) if b_hh is None else b_hh.detach().expand_as(from_x).clone()
        taps = observe(collector, begin, _record_pulls, None, states, w_hh, b_hh).unbind(1)

        def pull(h: Tensor, step: int) -> Tensor:
            states.append(h.detach())
            return torch.addmm(taps[step], h, w_hh.detach().t())

        return from_x, pull

    return _run(module, parameters.get, linears, x, hx)


def _record_pulls(collector: Collector, grad: Tensor, _: None, states: list[Tensor], weight: Any, bias: Any) -> None:
    record_linear(collector, grad, torch.stack(states, 1), weight, bias)


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
