"""Per-unit gradients of Linear (any leading dimensions) and of stacked linears."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.training.clipping.forms import Products
from understudy.training.clipping.observe import Parameters, observe
from understudy.training.clipping.records import Collector


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
            collector.outer(weight, grad, x)
        elif Products.pay(x.shape[1], (grad.shape[2], x.shape[2])):
            collector.products(weight, grad, x)
        else:
            collector.keep_product(weight, grad.transpose(1, 2), x)
    if bias is not None and collector.wants(bias):
        collector.keep(bias, grad if single else grad.sum(1))


def reversible_linear(
    module: nn.Module, parameters: Parameters, collector: Collector, x: Tensor, back: bool = False
) -> Tensor:
    """Runs `understudy.nn.ReversibleLinear` in either direction."""
    if not back:
        return linear(module, parameters, collector, x)
    return observe(collector, x @ parameters["weight"].detach(), _record_back, x, parameters["weight"])


def _record_back(collector: Collector, grad: Tensor, x: Tensor, weight: nn.Parameter) -> None:
    """Records x ⊗ grad: what came in stands at the outputs of the layer."""
    if collector.wants(weight):
        units = collector.num_units
        rows, arrived = (tensor.reshape(units, -1, tensor.shape[-1]) for tensor in (x, grad))
        if rows.shape[1] == 1:
            collector.outer(weight, rows.squeeze(1), arrived.squeeze(1))
        else:
            collector.keep_product(weight, rows.transpose(1, 2), arrived)


def stacked_linear(module: nn.Module, parameters: Parameters, collector: Collector, x: Tensor) -> Tensor:
    """Runs `understudy.nn.StackedLinear`: one linear per position of the last-but-one dimension."""
    weight, bias = parameters["weight"], parameters.get("bias")
    output = torch.einsum("...ki,koi->...ko", x, weight.detach())
    if bias is not None:
        output = output + bias.detach()
    return observe(collector, output, _record_stacked, x, weight, bias)


def _record_stacked(
    collector: Collector, grad: Tensor, x: Tensor, weight: nn.Parameter, bias: nn.Parameter | None
) -> None:
    units = collector.num_units
    x = collector.by_unit(x).reshape(units, -1, *x.shape[-2:])
    grad = grad.reshape(units, -1, *grad.shape[-2:])
    if collector.wants(weight):
        if x.shape[1] == 1:
            collector.outer(weight, grad.squeeze(1), x.squeeze(1))
        else:
            collector.keep(weight, torch.einsum("urko,urki->ukoi", grad, x))
    if bias is not None and collector.wants(bias):
        collector.keep(bias, grad.sum(1))
