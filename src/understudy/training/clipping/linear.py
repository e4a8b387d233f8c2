"""Per-unit gradients of Linear (any leading dimensions) and of stacked linears."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.training.clipping.records import Collector

Parameters = dict[str, nn.Parameter]


def apply(function: Any, *arguments: Any) -> Any:
    """Calls an autograd function (its `apply` carries no types)."""
    return function.apply(*arguments)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, anchor: Tensor, x: Tensor, collector: Collector, weight: nn.Parameter, bias: nn.Parameter | None
    ) -> Tensor:
        ctx.save_for_backward(x)
        ctx.collector, ctx.weight, ctx.bias = collector, weight, bias
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        ctx.collector.first_order_only()
        if ctx.collector.recording:
            (x,) = ctx.saved_tensors
            record_linear(ctx.collector, x, grad, ctx.weight, ctx.bias)
        grad_x = grad @ ctx.weight if ctx.needs_input_grad[1] else None
        return None, grad_x, None, None, None


def record_linear(
    collector: Collector, x: Tensor, grad: Tensor, weight: nn.Parameter, bias: nn.Parameter | None
) -> None:
    """Records grad ⊗ x: factored where a unit has one row, else one matrix per unit (same work as a batch's sum)."""
    units = collector.num_units
    x = collector.by_unit(x).reshape(units, -1, x.shape[-1])
    grad = collector.by_unit(grad).reshape(units, -1, grad.shape[-1])
    single = x.shape[1] == 1
    if collector.wants(weight):
        if single:
            collector.outer(weight, grad, x)
        else:
            collector.keep_product(weight, grad.transpose(1, 2), x)
    if bias is not None and collector.wants(bias):
        collector.keep(bias, grad.squeeze(1) if single else grad.sum(1))


def linear(module: nn.Module, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.Linear`."""
    output: Tensor = apply(
        _Linear, collector.anchor, x, collector, parameters["weight"], parameters.get("bias")
    )
    return output


class _StackedLinear(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, anchor: Tensor, x: Tensor, collector: Collector, weight: nn.Parameter, bias: nn.Parameter | None
    ) -> Tensor:
        ctx.save_for_backward(x)
        ctx.collector, ctx.weight, ctx.bias = collector, weight, bias
        output = torch.einsum("...ki,koi->...ko", x, weight)
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        ctx.collector.first_order_only()
        if ctx.collector.recording:
            (x,) = ctx.saved_tensors
            _record_stacked(ctx.collector, x, grad, ctx.weight, ctx.bias)
        grad_x = torch.einsum("...ko,koi->...ki", grad, ctx.weight) if ctx.needs_input_grad[1] else None
        return None, grad_x, None, None, None


def _record_stacked(
    collector: Collector, x: Tensor, grad: Tensor, weight: nn.Parameter, bias: nn.Parameter | None
) -> None:
    units = collector.num_units
    x = collector.by_unit(x).reshape(units, -1, *x.shape[-2:])
    grad = collector.by_unit(grad).reshape(units, -1, *grad.shape[-2:])
    if collector.wants(weight):
        if x.shape[1] == 1:
            collector.outer(weight, grad.squeeze(1), x.squeeze(1))
        else:
            collector.keep(weight, torch.einsum("urko,urki->ukoi", grad, x))
    if bias is not None and collector.wants(bias):
        collector.keep(bias, grad.sum(1))


def stacked_linear(module: nn.Module, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `understudy.nn.StackedLinear`: one linear per position of the last-but-one dimension."""
    output: Tensor = apply(
        _StackedLinear, collector.anchor, x, collector, parameters["weight"], parameters.get("bias")
    )
    return output
