"""Per-unit gradients of Embedding: only the rows a unit touched, added up within the unit before its norm."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from understudy.training.clipping.linear import Parameters, apply
from understudy.training.clipping.records import Collector


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, anchor: Tensor, index: Tensor, collector: Collector, parameters: Parameters, padding: int | None
    ) -> Tensor:
        ctx.save_for_backward(index)
        ctx.collector, ctx.weight, ctx.padding = collector, parameters["weight"], padding
        return functional.embedding(index, parameters["weight"])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # type: ignore[override]
        collector = ctx.collector
        collector.first_order_only()
        if collector.recording and collector.wants(ctx.weight):
            (index,) = ctx.saved_tensors
            index = collector.by_unit(index).reshape(collector.num_units, -1)
            value = collector.by_unit(grad).reshape(*index.shape, grad.shape[-1])
            if ctx.padding is not None:
                value = value.masked_fill((index == ctx.padding).unsqueeze(2), 0)
            collector.rows(ctx.weight, index, value)
        return None, None, None, None, None


def embedding(module: Any, parameters: Parameters, collector: Collector, index: Tensor) -> Tensor:
    """Runs `nn.Embedding`."""
    output: Tensor = apply(_Embedding, collector.anchor, index, collector, parameters, module.padding_idx)
    return output
