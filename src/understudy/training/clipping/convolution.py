"""Per-unit gradients of Conv1d and ConvTranspose1d: one matrix product per kernel tap, no unfolded copy."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.errors import UnsafeModule
from understudy.training.clipping.observe import Parameters, observe
from understudy.training.clipping.records import Collector


def conv1d(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.Conv1d`; padding is applied first, so every padding mode is the same case."""
    _check_channels_second(x)
    padding = list(module._reversed_padding_repeated_twice)
    if any(padding):
        mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
        x = functional.pad(x, padding, mode=mode)
    weight, bias = _detached(parameters)
    output = functional.conv1d(x, weight, bias, module.stride, 0, module.dilation, module.groups)
    return observe(collector, output, _record_conv1d, x, module, parameters)


def _record_conv1d(collector: Collector, grad: Tensor, x: Tensor, module: Any, parameters: Parameters) -> None:
    _record_bias(collector, grad, parameters)
    _record_taps(collector, grad, x, module, parameters["weight"])


def conv_transpose1d(
    module: Any, parameters: Parameters, collector: Collector, x: Tensor, output_size: Any = None
) -> Tensor:
    """Runs `nn.ConvTranspose1d` with its declared output padding."""
    _check_channels_second(x)
    if output_size is not None:
        raise UnsafeModule("Expected ConvTranspose1d without output_size, got one. Declare output_padding instead.")
    weight, bias = _detached(parameters)
    output = functional.conv_transpose1d(
        x, weight, bias, module.stride, module.padding, module.output_padding, module.groups, module.dilation
    )
    return observe(collector, output, _record_conv_transpose1d, x, module, parameters)


def _record_conv_transpose1d(
    collector: Collector, grad: Tensor, x: Tensor, module: Any, parameters: Parameters
) -> None:
    _record_bias(collector, grad, parameters)
    weight = parameters["weight"]
    before = module.padding[0]
    reach = (x.shape[2] - 1) * module.stride[0] + (weight.shape[2] - 1) * module.dilation[0] + 1
    padded = functional.pad(grad, (before, max(0, reach - before - grad.shape[2])))
    _record_taps(collector, x, padded, module, weight)


def _record_taps(collector: Collector, short: Tensor, long: Tensor, module: Any, weight: nn.Parameter) -> None:
    """Records, for tap j, Σ over positions p of short[p] ⊗ long[p·stride + j·dilation].

    `short` has one position per placement of the kernel, `long` is what the kernel slides over.
    """
    if not collector.wants(weight):
        return
    units, groups, stride = collector.num_units, module.groups, module.stride[0]
    span = (short.shape[2] - 1) * stride + 1
    one_block = short.shape[0] == units and groups == 1
    for tap in range(weight.shape[2]):
        start = tap * module.dilation[0]
        seen = long[:, :, start : start + span : stride]
        if one_block:
            collector.keep_product(weight, short, seen.transpose(1, 2), part=tap)
        else:
            collector.keep(weight, _grouped_product(collector, short, seen, groups), part=tap)


def _grouped_product(collector: Collector, short: Tensor, seen: Tensor, groups: int) -> Tensor:
    """Returns Σ over a unit's rows and positions of short ⊗ seen within each channel group."""
    short = collector.by_unit(short).unflatten(2, (groups, -1))
    seen = collector.by_unit(seen).unflatten(2, (groups, -1))
    return torch.einsum("urgsp,urglp->ugsl", short, seen)


def _record_bias(collector: Collector, grad: Tensor, parameters: Parameters) -> None:
    bias = parameters.get("bias")
    if bias is not None and collector.wants(bias):
        collector.keep(bias, collector.by_unit(grad).sum((1, 3)))


def _detached(parameters: Parameters) -> tuple[Tensor, Tensor | None]:
    bias = parameters.get("bias")
    return parameters["weight"].detach(), None if bias is None else bias.detach()


def _check_channels_second(x: Tensor) -> None:
    if x.ndim != 3:
        raise UnsafeModule("Expected convolution input [unit, channel, step], got another number of dimensions.")
