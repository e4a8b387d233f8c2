"""The per-unit clipping engine: from one loss per unit to a sum in which no unit weighs more than the clip norm."""

import logging
import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from understudy.errors import InputError, UnsafeModule
from understudy.training.clipping.patch import Expand, Patch
from understudy.training.clipping.records import (
    NORM_MARGIN,
    Collector,
    NeedsExpandedParameters,
    NeedsWholeModule,
    Pool,
)

logger = logging.getLogger(__name__)

Losses = Callable[[], Tensor]
Leave = Callable[[Collector], None]


class PerUnitClipper:
    """Clips each unit's gradient over *all* trainable parameters of `model` to one norm, and adds them up.

    One forward and one backward per call. Layers of known type leave per-unit gradients as they go; others run
    on a copy of their parameters per unit (said once in the log).

    Privacy:
        Adding or removing one unit moves what `add_clipped_sum` adds by at most `clip_norm` in L2, whatever the
        network, the loss or the data, as long as one unit's loss does not depend on another unit
        (`validate_module` checks that). A unit whose gradient is not finite contributes zero.
    """

    def __init__(self, model: nn.Module, clip_norm: float) -> None:
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not self.parameters:
            raise InputError("Expected a model with trainable parameters, got none. Nothing would be trained.")
        if any(parameter.dtype in (torch.float16, torch.bfloat16) for parameter in self.parameters):
            raise InputError(
                "Expected parameters in float32 or float64, got some in half precision, whose rounding would carry a "
                "unit over the clip norm. Keep the parameters in float32."
            )
        self._by_id = {id(parameter): parameter for parameter in self.parameters}
        self._model = model
        self._clip_norm = clip_norm
        self._patch = Patch(model, Expand.UNKNOWN)
        self._pool = Pool()

    def add_clipped_sum(self, losses: Losses, num_units: int, targets: Mapping[int, Tensor], in_all: int) -> None:
        """Adds Σ over units of clip(∇ loss of that unit) to `targets`.

        Args:
            losses: runs the network, any number of times, and returns losses [unit · rows, …] of any per-unit
                shape. A unit's loss is the mean over everything that is its own.
            num_units: units in this chunk.
            targets: float64 accumulators shaped like the parameters, by parameter id.
            in_all: units in all chunks of the iteration; a number that is too small weakens the bound on rounding.
        """
        self._add_clipped(self.collect(losses, num_units), targets, in_all)

    def add_clipped_records(self, leave: Leave, num_units: int, targets: Mapping[int, Tensor]) -> None:
        """Does the same with gradients that the caller has worked out: `leave` leaves those of all units."""
        collector = Collector(self._by_id, num_units, self._pool)
        leave(collector)
        collector.unify()
        self._add_clipped(collector, targets, num_units)

    def _add_clipped(self, collector: Collector, targets: Mapping[int, Tensor], in_all: int) -> None:
        with torch.no_grad():
            squared = collector.squared_norms()
            if not math.isfinite(squared.sum().item()):
                broken = ~torch.isfinite(squared)
                collector.drop(broken)
                squared = squared.masked_fill(broken, 0)
            collector.add_sum(clip_factors(squared, self._clip_norm), targets, in_all)

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

    def _fall_back(self, expand: Expand, reason: str) -> None:
        """Takes a more general and slower way from now on, and says so once."""
        if self._patch.expand is Expand.WHOLE:
            raise UnsafeModule(
                "Expected every parameter to be used inside the forward of the model that is trained, got one used "
                "from outside. Move that computation into the model's forward and call the model."
            )
        logger.info("%s: per-unit gradients by vmap instead of hand-written layers", reason)
        self._patch = Patch(self._model, expand)


def clip_factors(squared_norms: Tensor, clip_norm: float) -> Tensor:
    """Returns a factor per unit such that factor · norm ≤ clip_norm · (1 − margin)."""
    return (squared_norms.rsqrt() * (clip_norm * (1 - NORM_MARGIN))).clamp_(max=1.0)


def _terms_per_unit(losses: Tensor, num_units: int) -> int:
    """Returns how many losses one unit has. Refuses a loss reduced over units: nobody could take it apart again."""
    if losses.ndim == 0 or losses.shape[0] == 0 or losses.shape[0] % num_units:
        raise InputError(
            "Expected losses with units in the first dimension, got a loss reduced over units or with another "
            "first dimension. Use reduction='none'."
        )
    return losses.numel() // num_units
