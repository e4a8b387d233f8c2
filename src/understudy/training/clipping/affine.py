"""Per-unit gradients of element-wise scales and offsets: LayerNorm, GroupNorm, RMSNorm, learned offsets."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.training.clipping.linear import Parameters, apply
from understudy.training.clipping.records import Collector


class _Affine(torch.autograd.Function):
    """x · scale + shift, where scale and shift broadcast from `shape` against one row of x."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        anchor: Tensor,
        x: Tensor,
        collector: Collector,
        scale: nn.Parameter | None,
        shift: nn.Parameter | None,
        shape: tuple[int, ...],
    ) -> Tensor:
        ctx.collector, ctx.scale, ctx.shift, ctx.shape = collector, scale, shift, shape
        ctx.save_for_backward(x if scale is not None else None)
        if scale is None:
            return x + shift.view(shape) if shift is not None else x.clone()
        if shift is None:
            return x * scale.view(shape)
        return torch.addcmul(shift.view(shape), x, scale.view(shape))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        collector = ctx.collector
        collector.first_order_only()
        (x,) = ctx.saved_tensors
        if collector.recording:
            if collector.wants(ctx.scale):
                collector.keep(ctx.scale, _sum_within_units(grad * x, collector, ctx.shape))
            if collector.wants(ctx.shift):
                collector.keep(ctx.shift, _sum_within_units(grad, collector, ctx.shape))
        grad_x = None
        if ctx.needs_input_grad[1]:
            grad_x = grad if ctx.scale is None else grad * ctx.scale.view(ctx.shape)
        return None, grad_x, None, None, None, None


def _sum_within_units(tensor: Tensor, collector: Collector, shape: tuple[int, ...]) -> Tensor:
    """Sums [unit · rows, …] over everything that `shape` does not have, except units."""
    by_unit = collector.by_unit(tensor)
    missing = by_unit.ndim - 1 - len(shape)
    over = [1 + axis for axis in range(missing)]
    over += [1 + missing + axis for axis, size in enumerate(shape) if size == 1]
    return by_unit.sum(over) if over else by_unit


def _affine(collector: Collector, x: Tensor, parameters: Parameters, shape: tuple[int, ...]) -> Tensor:
    scale, shift = parameters.get("weight"), parameters.get("bias")
    output: Tensor = apply(_Affine, collector.anchor, x, collector, scale, shift, shape)
    return output


def layer_norm(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.LayerNorm`."""
    normal = functional.layer_norm(x, module.normalized_shape, None, None, module.eps)
    return _affine(collector, normal, parameters, tuple(module.normalized_shape))


def rms_norm(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.RMSNorm`."""
    normal = functional.rms_norm(x, module.normalized_shape, None, module.eps)
    return _affine(collector, normal, parameters, tuple(module.normalized_shape))


def group_norm(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.GroupNorm`; channels are the second dimension."""
    normal = functional.group_norm(x, module.num_groups, None, None, module.eps)
    return _affine(collector, normal, parameters, (module.num_channels, *(1 for _ in x.shape[2:])))


def learned_offset(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `understudy.nn.LearnedOffset`: x plus one parameter that every row shares."""
    offset = parameters["offset"]
    leading = x.ndim - 1 - offset.ndim
    shape = (*(1 for _ in range(max(leading, 0))), *offset.shape)
    output: Tensor = apply(_Affine, collector.anchor, x, collector, None, offset, shape)
    return output
