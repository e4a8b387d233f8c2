"""The general way to per-unit gradients: run a module once per unit (vmapped) on per-unit copies of its parameters.

Ordinary autograd then gives each copy its own gradient, including second derivatives. Slower than the
hand-written layers and right for any module that treats each unit on its own.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from understudy.errors import UnsafeModule
from understudy.training.clipping.records import Collector


def run_expanded(
    module: nn.Module, parameters: dict[str, nn.Parameter], collector: Collector, args: Any, kwargs: Any
) -> Any:
    """Runs `module` with one parameter copy per unit.

    Every tensor argument must carry units first: a constant tensor that happened to have as many rows as there
    are units could not be told apart. Constants belong in buffers.
    """
    leaves, spec = pytree.tree_flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    if not places:
        raise UnsafeModule(
            f"Expected {type(module).__name__} to be called with tensors that carry units first, got no tensor. "
            "Use its parameters inside the forward of a module that receives the series."
        )
    rows = [collector.by_unit(leaves[place]) for place in places]
    shape_of_output: list[Any] = []

    def one_unit(weights: dict[str, Tensor], *tensors: Tensor) -> list[Tensor]:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        own_args, own_kwargs = pytree.tree_unflatten(filled, spec)
        output = torch.func.functional_call(module, weights, own_args, own_kwargs)
        parts, output_spec = pytree.tree_flatten(output)
        shape_of_output[:] = [parts, output_spec]
        return [part for part in parts if isinstance(part, Tensor)]

    copies = {name: collector.expand(parameter) for name, parameter in parameters.items()}
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernels have neither a batching rule nor a second derivative
        tensors = iter(torch.func.vmap(one_unit, randomness="different")(copies, *rows))
    parts, output_spec = shape_of_output
    merged = [_merge_rows(next(tensors), module) if isinstance(part, Tensor) else part for part in parts]
    return pytree.tree_unflatten(merged, output_spec)


def _merge_rows(tensor: Tensor, module: nn.Module) -> Tensor:
    if tensor.ndim < 2:
        raise UnsafeModule(
            f"Expected {type(module).__name__} to return one row per series, got a value reduced over the batch. "
            "Reduce inside each unit only."
        )
    return tensor.flatten(0, 1)
