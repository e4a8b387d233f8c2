"""Makes a network's layers report per-unit gradients for the length of one forward and backward."""

import enum
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from understudy.nn.layers import LearnedOffset, ReversibleLinear, StackedLinear
from understudy.training.clipping import affine, convolution, embedding, linear, recurrent, recurrent_plain
from understudy.training.clipping.expanded import run_expanded
from understudy.training.clipping.records import Collector, NeedsWholeModule

logger = logging.getLogger(__name__)

# Exact types only: a subclass may compute something else in its forward.
HAND_WRITTEN: dict[type[nn.Module], Callable[..., Any]] = {
    nn.Linear: linear.linear,
    ReversibleLinear: linear.reversible_linear,
    StackedLinear: linear.stacked_linear,
    nn.Conv1d: convolution.conv1d,
    nn.ConvTranspose1d: convolution.conv_transpose1d,
    nn.Embedding: embedding.embedding,
    nn.LayerNorm: affine.layer_norm,
    nn.RMSNorm: affine.rms_norm,
    nn.GroupNorm: affine.group_norm,
    LearnedOffset: affine.learned_offset,
    nn.LSTM: recurrent.lstm,
    nn.GRU: recurrent.gru,
}


class Expand(enum.Enum):
    """Which modules run on per-unit copies of their parameters instead of by a hand-written rule."""

    UNKNOWN = enum.auto()  # only modules without a rule
    LAYERS = enum.auto()  # every layer: ordinary autograd, so second derivatives are right
    WHOLE = enum.auto()  # the network as one: parameters may be used anywhere inside its forward


_PROPERTIES: tuple[Any, ...] = (Tensor.shape, Tensor.dtype, Tensor.device, Tensor.ndim, Tensor.is_cuda)
_READABLE = {
    *(descriptor.__get__ for descriptor in _PROPERTIES),
    *(Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point),
}
_TRAINABLE: Any = Tensor.requires_grad


class _Guard(Tensor):
    """Stands where a parameter was: tells its shape, refuses to be computed with.

    A parameter used behind the back of its layer would have a gradient that goes missing.
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
        rule = HAND_WRITTEN.get(type(module)) if expand is Expand.UNKNOWN and _is_plain(module) else None
        yield _Site(module, rule)
        return
    for child in module.children():
        yield from _sites(child, expand)


def _is_plain(module: Any) -> bool:
    """Says whether the hand-written rule for the module's type covers its options."""
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
        part.__dict__["forward"] = recurrent_plain.forward_of(part)
    try:
        yield
    finally:
        for part in loops:
            part.__dict__.pop("forward", None)
        module.__dict__["forward"] = patched
