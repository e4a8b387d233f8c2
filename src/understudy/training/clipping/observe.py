"""Tells a layer's gradient to whoever records it, while autograd itself computes only what flows further back."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from understudy.errors import UnsafeModule
from understudy.training.clipping.records import Collector

Parameters = dict[str, nn.Parameter]
Record = Callable[..., None]


class _Anchored(torch.autograd.Function):
    """Identity that makes autograd visit a layer none of whose inputs needs a gradient (the first one)."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, output: Tensor) -> Tensor:
        ctx.mark_dirty(output)  # handed through without a copy and without becoming a view
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None


def apply(function: Any, *arguments: Any) -> Any:
    """Calls an autograd function (its `apply` carries no types)."""
    return function.apply(*arguments)


def observe(collector: Collector, output: Tensor, record: Record, x: Tensor | None, *facts: Any) -> Tensor:
    """Returns `output`; in the final backward calls `record(collector, gradient of output, x, *facts)` once.

    `x` is let go as soon as it has been used, so activations are freed layer by layer as in an ordinary backward.
    """
    if output._is_view():  # whatever changed it in place would take it out of the graph, and the hook with it
        output = output.clone()
    if not output.requires_grad:
        output = apply(_Anchored, collector.anchor, output)
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
