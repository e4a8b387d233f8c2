"""The per-unit clipping engine: from one loss per unit to a sum of gradients clipped to one norm.

Layers report their per-unit gradients for the length of one forward and backward: by a hand-written rule, or, the
general and slower way, vmapped over units on per-unit copies of their parameters, where ordinary autograd gives each
copy its own gradient, including second derivatives.
"""

import enum
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import parametrize
from torch.utils import _pytree as pytree

from understudy.errors import InputError, UnsafeModule
from understudy.nn.layers import ReversibleLinear, StackedLinear
from understudy.training.clipping import layers
from understudy.training.clipping.per_unit_gradients import (
    NORM_MARGIN,
    Collector,
    NeedsExpandedParameters,
    NeedsWholeModule,
    Pool,
    Sums,
)

logger = logging.getLogger(__name__)

Losses = Callable[[], Tensor]  # runs the network and returns losses [unit · rows, …]


class PerUnitClipper:
    """Clips each unit's gradient over *all* trainable parameters of `model` to one norm, and adds them up.

    One forward and one backward per call. Layers of known type leave per-unit gradients as they go; others run
    on a copy of their parameters per unit (logged once).

    Privacy:
        Adding or removing one unit moves what `add_clipped_sum` adds by at most `clipping_norm` in L2, whatever the
        network, the loss or the data, as long as one unit's loss does not depend on another unit
        (`training.validation` checks that). A unit whose gradient is not finite contributes zero.
    """

    def __init__(self, model: nn.Module, clipping_norm: float) -> None:
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not self.parameters:
            raise InputError("Expected a model with trainable parameters, got none. Nothing would be trained.")
        if any(parameter.dtype in (torch.float16, torch.bfloat16) for parameter in self.parameters):
            raise InputError(
                "Expected parameters in float32 or float64, got some in half precision, whose rounding would carry a "
                "unit over the clip norm. Keep the parameters in float32."
            )
        if torch.get_float32_matmul_precision() != "highest":
            raise InputError(
                "Expected products of float32 in full precision, got a lower one, whose rounding would carry a unit "
                "over the clip norm. Call torch.set_float32_matmul_precision('highest')."
            )
        self._by_id = {id(parameter): parameter for parameter in self.parameters}
        self._model = model
        self._clipping_norm = clipping_norm
        self._patch = Patch(model, Expand.UNKNOWN)
        self._pool = Pool(self.parameters[0])

    def add_clipped_sum(self, losses: Losses, num_units: int, sums: Sums, in_all: int) -> None:
        """Adds Σ over units of clip(∇ loss of that unit) to `sums`.

        Args:
            losses: runs the network, any number of times, and returns losses [unit · rows, …] of any per-unit
                shape. A unit's loss is the mean over everything that is its own.
            in_all: units in all chunks of the iteration; a number that is too small weakens the bound on rounding.
        """
        collector = self.collect(losses, num_units)
        with torch.no_grad():
            collector.add_weighted_sum(clip_factors(collector.norms(), self._clipping_norm), sums, in_all)

    def collect(self, losses: Losses, num_units: int) -> Collector:
        """Runs forward and backward and returns the gradients of every unit, not yet clipped.

        Privacy:
            The result is as private as the data; nothing of it may be shown or kept.
        """
        while True:
            collector = Collector(self._by_id, num_units, self._pool)
            try:
                with self._patch.active(collector):
                    unit_losses = losses()
                    collector.backward(unit_losses, 1 / _terms_per_unit(unit_losses, num_units))
                return collector
            except NeedsExpandedParameters:
                self._fall_back(Expand.LAYERS, "second derivatives")
            except NeedsWholeModule:
                self._fall_back(Expand.WHOLE, "a parameter used outside the layer that owns it")

    def _fall_back(self, expand: "Expand", reason: str) -> None:
        """Switches to a more general and slower way for good, and logs it once."""
        if self._patch.expand is Expand.WHOLE:
            raise UnsafeModule(
                "Expected every parameter to be used inside the forward of the model that is trained, got one used "
                "from outside. Move that computation into the model's forward and call the model."
            )
        logger.info("%s: per-unit gradients by vmap instead of hand-written layers", reason)
        self._patch = Patch(self._model, expand)


def clip_factors(norms: Tensor, clipping_norm: float) -> Tensor:
    """Returns the clipping factor of each unit: factor · norm ≤ clipping_norm · (1 − margin), and at most 1."""
    return norms.reciprocal().mul_(clipping_norm * (1 - NORM_MARGIN)).clamp_(max=1.0)


def _terms_per_unit(losses: Tensor, num_units: int) -> int:
    """Returns how many losses one unit has; a loss reduced over units can't be split again and is refused."""
    if losses.ndim == 0 or losses.shape[0] == 0 or losses.shape[0] % num_units:
        raise InputError(
            "Expected losses with units in the first dimension, got a loss reduced over units or with another "
            "first dimension. Use reduction='none'."
        )
    return losses.numel() // num_units


# Exact types only: a subclass may compute something else in its forward.
LAYER_RULES: dict[type[nn.Module], Callable[..., Any]] = {
    nn.Linear: layers.linear,
    ReversibleLinear: layers.reversible_linear,
    StackedLinear: layers.stacked_linear,
    nn.Embedding: layers.embedding,
    nn.LSTM: layers.recurrent,
    nn.GRU: layers.recurrent,
}


class Expand(enum.Enum):
    """Which modules run on per-unit copies of their parameters instead of by a hand-written rule."""

    UNKNOWN = enum.auto()  # only modules without a rule
    LAYERS = enum.auto()  # every layer: ordinary autograd, so second derivatives are right
    WHOLE = enum.auto()  # the network as one: parameters may be used anywhere inside its forward


_PROPERTIES: tuple[Any, ...] = (Tensor.shape, Tensor.dtype, Tensor.device, Tensor.ndim, Tensor.is_cuda)
_READABLE = {*(own.__get__ for own in _PROPERTIES), Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point}
_TRAINABLE: Any = Tensor.requires_grad


class _Guard(Tensor):
    """Placeholder of a parameter: has its shape, refuses to be computed with.

    The gradient of a parameter used outside its layer would go missing.
    """

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _READABLE:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        if func == _TRAINABLE.__get__:
            return True
        raise NeedsWholeModule


class _Site:
    """A module that owns trainable parameters, and how its forward is run while patched."""

    def __init__(self, module: nn.Module, rule: Callable[..., Any] | None) -> None:
        self.module = module
        self.rule = rule
        named = module.named_parameters(remove_duplicate=False)
        self._parameters = dict(named)
        self.collector: Collector | None = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        assert self.collector is not None
        if self.rule is not None:
            return self.rule(self.module, self._parameters, self.collector, *args, **kwargs)
        with _own_forwards(self.module):
            return run_expanded(self.module, self._parameters, self.collector, args, kwargs)


class Patch:
    """Where and how one network is patched; made once, activated for every chunk of units."""

    def __init__(self, model: nn.Module, expand: Expand) -> None:
        self.expand = expand
        self._sites = [_Site(model, None)] if expand is Expand.WHOLE else list(_sites(model, expand))
        self._guards = [
            (owner._parameters, name, parameter, parameter.detach().as_subclass(_Guard))
            for owner in model.modules()
            for name, parameter in owner._parameters.items()
            if parameter is not None and parameter.requires_grad
        ]
        unknown = sorted({type(site.module).__name__ for site in self._sites if site.rule is None})
        if unknown and expand is Expand.UNKNOWN:
            logger.info("no hand-written per-unit gradient for %s: using vmap", ", ".join(unknown))

    @contextmanager
    def active(self, collector: Collector) -> Iterator[None]:
        """Makes layers report to `collector` within the block, and refuses direct use of their parameters."""
        for site in self._sites:
            site.collector = collector
            site.module.__dict__["forward"] = site.forward
        for owned, name, _, guard in self._guards:
            owned[name] = guard  # type: ignore[assignment]
        try:
            yield
        finally:
            for owned, name, parameter, _ in self._guards:
                owned[name] = parameter
            for site in self._sites:
                site.module.__dict__.pop("forward", None)
                site.collector = None


def _sites(module: nn.Module, expand: Expand) -> Iterator[_Site]:
    """Yields the outermost modules that own trainable parameters; what is below one of them runs inside it."""
    own = [parameter for parameter in module._parameters.values() if parameter is not None]
    if any(parameter.requires_grad for parameter in own) or parametrize.is_parametrized(module):
        rule = LAYER_RULES.get(type(module)) if expand is Expand.UNKNOWN and _is_plain(module) else None
        yield _Site(module, rule)
        return
    for child in module.children():
        yield from _sites(child, expand)


def _is_plain(module: Any) -> bool:
    """Returns whether the hand-written rule for the module's type covers its options."""
    if parametrize.is_parametrized(module) or next(iter(module.children()), None) is not None:
        return False
    if isinstance(module, nn.Embedding):
        return module.max_norm is None and not module.scale_grad_by_freq
    return True


@contextmanager
def _own_forwards(module: nn.Module) -> Iterator[None]:
    """Gives `module` back its own forward, and its recurrent parts one that vmap can follow."""
    patched = module.__dict__.pop("forward")
    loops = [part for part in module.modules() if isinstance(part, nn.LSTM | nn.GRU)]
    for part in loops:
        part.__dict__["forward"] = layers.plain_forward(part)
    try:
        yield
    finally:
        for part in loops:
            part.__dict__.pop("forward", None)
        module.__dict__["forward"] = patched


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
