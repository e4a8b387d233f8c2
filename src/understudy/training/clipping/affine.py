"""Per-unit gradients of element-wise scales and offsets: LayerNorm, GroupNorm, RMSNorm, learned offsets."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.training.clipping.observe import Parameters, observe
from understudy.training.clipping.records import Collector

Shape = tuple[int, ...]


def _affine(
    collector: Collector, x: Tensor, scale: nn.Parameter | None, shift: nn.Parameter | None, shape: Shape
) -> Tensor:
    """Returns x · scale + shift, both viewed as `shape` and broadcast against one row of x."""
    if scale is None:
        assert shift is not None
        return observe(collector, x + shift.detach().view(shape), _record, None, scale, shift, shape)
    if shift is None:
        output = x * scale.detach().view(shape)
    else:
        output = torch.addcmul(shift.detach().view(shape), x, scale.detach().view(shape))
    return observe(collector, output, _record, x, scale, shift, shape)


def _record(
    collector: Collector,
    grad: Tensor,
    x: Tensor | None,
    scale: nn.Parameter | None,
    shift: nn.Parameter | None,
    shape: Shape,
) -> None:
    if x is not None and scale is not None and collector.wants(scale):
        collector.keep(scale, _sum_within_units(collector, grad * x, shape))
    if shift is not None and collector.wants(shift):
        collector.keep(shift, _sum_within_units(collector, grad, shape))


def _sum_within_units(collector: Collector, tensor: Tensor, shape: Shape) -> Tensor:
    """Sums [unit · rows, …] over everything that `shape` does not have, except units."""
    by_unit = collector.by_unit(tensor)
    missing = by_unit.ndim - 1 - len(shape)
    over = [1 + axis for axis in range(missing)]
    over += [1 + missing + axis for axis, size in enumerate(shape) if size == 1]
    return by_unit.sum(over) if over else by_unit


def layer_norm(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.LayerNorm`."""
    normal = functional.layer_norm(x, module.normalized_shape, None, None, module.eps)
    shape = tuple(module.normalized_shape)
    return _affine(collector, normal, parameters.get("weight"), parameters.get("bias"), shape)


def rms_norm(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.RMSNorm`."""
    normal = functional.rms_norm(x, module.normalized_shape, None, module.eps)
    return _affine(collector, normal, parameters.get("weight"), None, tuple(module.normalized_shape))


def group_norm(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.GroupNorm`; channels are the second dimension."""
    normal = functional.group_norm(x, module.num_groups, None, None, module.eps)
    shape = (module.num_channels, *(1 for _ in x.shape[2:]))
    return _affine(collector, normal, parameters.get("weight"), parameters.get("bias"), shape)


def learned_offset(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `understudy.nn.LearnedOffset`: x plus one parameter that every row shares."""
    offset = parameters["offset"]
    shape = (*(1 for _ in range(x.ndim - 1 - offset.ndim)), *offset.shape)
    return _affine(collector, x, None, offset, shape)
