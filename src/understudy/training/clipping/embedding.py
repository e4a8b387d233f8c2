"""Per-unit gradients of Embedding: only the rows a unit touched, added up within the unit before its norm."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from understudy.training.clipping.observe import Parameters, observe
from understudy.training.clipping.records import Collector


def embedding(module: Any, parameters: Parameters, collector: Collector, index: Tensor) -> Tensor:
    """Runs `nn.Embedding`."""
    weight = parameters["weight"]
    output = functional.embedding(index, weight.detach())
    return observe(collector, output, _record, index, weight, module.padding_idx)


def _record(collector: Collector, grad: Tensor, index: Tensor, weight: nn.Parameter, padding: int | None) -> None:
    if not collector.wants(weight):
        return
    index = collector.by_unit(index).reshape(collector.num_units, -1)
    value = grad.reshape(*index.shape, grad.shape[-1])
    if padding is not None:
        value = value.masked_fill((index == padding).unsqueeze(2), 0)
    collector.rows(weight, index, value)
