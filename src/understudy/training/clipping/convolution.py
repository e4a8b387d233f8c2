"""Per-unit gradients of Conv1d and ConvTranspose1d: one matrix product per kernel tap, no unfolded copy."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.errors import UnsafeModule
from understudy.training.clipping.linear import Parameters, apply
from understudy.training.clipping.records import Collector


class _Convolution(torch.autograd.Function):
    """`short` is the side with one position per kernel placement, `long` the side the kernel slides over."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, anchor: Tensor, x: Tensor, collector: Collector, module: Any, parameters: Parameters
    ) -> Tensor:
        ctx.save_for_backward(x)
        ctx.collector, ctx.module, ctx.parameters = collector, module, parameters
        weight, bias = parameters["weight"], parameters.get("bias")
        output: Tensor = torch.convolution(x, weight, bias, *_geometry(module))
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        ctx.collector.first_order_only()
        (x,) = ctx.saved_tensors
        if ctx.collector.recording:
            _record(ctx.collector, x, grad, ctx.module, ctx.parameters)
        grad_x = None
        if ctx.needs_input_grad[1]:
            grad_x = torch.ops.aten.convolution_backward(
                grad, x, ctx.parameters["weight"], None, *_geometry(ctx.module), (True, False, False)
            )[0]
        return None, grad_x, None, None, None


def _geometry(module: Any) -> tuple[Any, ...]:
    transposed = isinstance(module, nn.ConvTranspose1d)
    output_padding = module.output_padding if transposed else (0,)
    padding = module.padding if transposed else (0,)  # a plain convolution is padded before
    return module.stride, padding, module.dilation, transposed, output_padding, module.groups


def _record(collector: Collector, x: Tensor, grad: Tensor, module: Any, parameters: Parameters) -> None:
    weight, bias = parameters["weight"], parameters.get("bias")
    if collector.wants(weight):
        transposed = isinstance(module, nn.ConvTranspose1d)
        short, long = (x, grad) if transposed else (grad, x)
        padding = module.padding[0] if transposed else 0
        _record_taps(collector, short, long, padding, module, weight)
    if bias is not None and collector.wants(bias):
        collector.keep(bias, collector.by_unit(grad).sum((1, 3)))


def _record_taps(
    collector: Collector, short: Tensor, long: Tensor, padding: int, module: Any, weight: nn.Parameter
) -> None:
    """Records, for tap j, Σ over positions p of short[p] ⊗ long[p·stride + j·dilation]."""
    units, positions, groups = collector.num_units, short.shape[2], module.groups
    reach = (positions - 1) * module.stride[0] + (weight.shape[2] - 1) * module.dilation[0] + 1
    long = functional.pad(long, (padding, max(0, reach - padding - long.shape[2])))
    one_block = short.shape[0] == units and groups == 1
    for tap in range(weight.shape[2]):
        start = tap * module.dilation[0]
        seen = long[:, :, start : start + (positions - 1) * module.stride[0] + 1 : module.stride[0]]
        if one_block:
            collector.keep_product(weight, short, seen.transpose(1, 2), part=tap)
        else:
            collector.keep(weight, _grouped_product(short, seen, units, groups), part=tap)


def _grouped_product(short: Tensor, seen: Tensor, units: int, groups: int) -> Tensor:
    """Returns Σ over a unit's rows and positions of short ⊗ seen within each channel group."""
    short = short.reshape(units, -1, groups, short.shape[1] // groups, short.shape[2])
    seen = seen.reshape(units, -1, groups, seen.shape[1] // groups, seen.shape[2])
    return torch.einsum("urgsp,urglp->ugsl", short, seen)


def conv1d(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.Conv1d`; padding is applied first, so every padding mode is the same case."""
    _check_channels_second(x)
    padding = list(module._reversed_padding_repeated_twice)
    if any(padding):
        mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
        x = functional.pad(x, padding, mode=mode)
    output: Tensor = apply(_Convolution, collector.anchor, x, collector, module, parameters)
    return output


def conv_transpose1d(module: Any, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `nn.ConvTranspose1d` with its declared output padding."""
    _check_channels_second(x)
    output: Tensor = apply(_Convolution, collector.anchor, x, collector, module, parameters)
    return output


def _check_channels_second(x: Tensor) -> None:
    if x.ndim != 3:
        raise UnsafeModule("Expected convolution input [unit, channel, step], got another number of dimensions.")
