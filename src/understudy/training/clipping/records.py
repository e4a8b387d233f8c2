"""Per-unit gradients of one chunk of units, held until the clip factor of every unit is known.

A unit is clipped by the norm of its *whole* gradient, so nothing can be summed before the last layer has run
its backward. Each layer therefore leaves what it knows in a `Collector`, in the cheapest form that is exact:
a kept per-unit gradient, a few outer products per unit, or a few rows of an embedding table.
"""

import math
from collections.abc import Collection, Mapping

import torch
from torch import Tensor, nn

from understudy.errors import UnsafeModule
from understudy.training.clipping.forms import Outer, Products, Record, Rows

NORM_MARGIN = 2.0**-10  # clip to C(1 − margin): pays for rounding in norms, in sums and to the lattice of the noise
_FLOAT32_PAIRS = 1 << 11  # units of a float32 sum times units of the iteration: rounding of at most 2⁻¹³ C


class NeedsExpandedParameters(Exception):
    """A derivative of a derivative was asked for; only ordinary autograd on per-unit copies can give it."""


class NeedsWholeModule(Exception):
    """A parameter was used outside the layer that owns it."""


class Pool:
    """Memory that outlives a step. A page touched for the first time costs the kernel more than filling it."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[int, int | None], Tensor] = {}

    def take(self, key: tuple[int, int | None], shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Returns uninitialised memory of `shape`; the same for the same key, so one taker at a time."""
        size = math.prod(shape)
        found = self._buffers.get(key)
        if found is None or found.numel() < size or found.dtype != like.dtype or found.device != like.device:
            found = self._buffers[key] = like.new_empty(size)
        return found[:size].view(shape)


class Collector:
    """Gathers per-unit gradients of `parameters`; a parameter used several times has its gradients summed first.

    Args:
        parameters: the trainable parameters by id; gradients of others are not asked for.
        num_units: units in this chunk. Tensors in the network carry units first; a leading dimension that is a
            multiple of `num_units` holds several consecutive rows per unit.
        pool: memory for kept gradients, used again by the next collector.
    """

    def __init__(self, parameters: Mapping[int, nn.Parameter], num_units: int, pool: Pool) -> None:
        self._parameters = parameters
        self._records: dict[int, Record] = {}
        self._expanded: list[tuple[nn.Parameter, Tensor]] = []
        self._pool = pool
        self.num_units = num_units
        self.recording = False
        first = next(iter(self._parameters.values()))
        self.anchor = torch.zeros((), device=first.device, dtype=first.dtype, requires_grad=True)

    def wants(self, parameter: nn.Parameter) -> bool:
        """Says whether the gradient of `parameter` is asked for."""
        return id(parameter) in self._parameters

    def by_unit(self, tensor: Tensor) -> Tensor:
        """Returns `tensor` [unit · rows, …] as [unit, rows, …]."""
        leading = tensor.shape[0] if tensor.ndim else 0
        if leading == 0 or leading % self.num_units:
            raise UnsafeModule(
                "Expected every layer's input to carry units in its first dimension (or a whole number of rows "
                "per unit), got another first dimension. Keep units first inside the network."
            )
        return tensor.reshape(self.num_units, leading // self.num_units, *tensor.shape[1:])

    def first_order_only(self) -> None:
        """Called in every hand-written backward: these are not differentiable a second time."""
        if torch.is_grad_enabled():
            raise NeedsExpandedParameters

    def keep(self, parameter: nn.Parameter, per_unit: Tensor, part: int | None = None) -> None:
        """Adds a per-unit gradient [unit, …] of the parameter, or of its slab `part` in the last dimension."""
        kept = self._record(parameter).kept
        flat = per_unit if per_unit.ndim == 2 else per_unit.reshape(self.num_units, -1)
        kept[part] = kept[part] + flat if part in kept else flat

    def keep_product(self, parameter: nn.Parameter, left: Tensor, right: Tensor, part: int | None = None) -> None:
        """Adds left @ right, both [unit, …, …], in pooled memory."""
        kept = self._record(parameter).kept
        shape = (self.num_units, left.shape[1], right.shape[2])
        if part in kept:
            kept[part] = torch.baddbmm(kept[part].view(shape), left, right).flatten(1)
        else:
            buffer = self._pool.take((id(parameter), part), shape, left)
            kept[part] = torch.bmm(left, right, out=buffer).flatten(1)

    def outer(self, parameter: nn.Parameter, output: Tensor, input: Tensor) -> None:
        """Adds output ⊗ input for [unit, (group,) out] and [unit, (group,) in]."""
        self._add_products(parameter, Outer(output, input))

    def products(self, parameter: nn.Parameter, outputs: Tensor, inputs: Tensor) -> None:
        """Adds Σ over rows of output ⊗ input for [unit, row, out] and [unit, row, in]."""
        self._add_products(parameter, Products(outputs, inputs))

    def _add_products(self, parameter: nn.Parameter, new: Outer | Products) -> None:
        record = self._record(parameter)
        if record.is_empty():
            record.outer = new
            return
        alone = None if record.kept or record.rows else record.outer
        before, more = None if alone is None else alone.as_products(), new.as_products()
        if before is not None and more is not None:
            record.outer = before.plus(more)
        else:  # the norm of a sum of products of different kinds has no short form
            self.keep(parameter, new.dense())

    def rows(self, parameter: nn.Parameter, index: Tensor, value: Tensor) -> None:
        """Adds `value` [unit, entry, channel] to rows `index` [unit, entry] of a table."""
        record, new = self._record(parameter), Rows.of(index, value, parameter.shape[0])
        if record.is_empty():
            record.rows = new
        else:
            self.keep(parameter, new.dense(self.num_units, parameter.shape))

    def expand(self, parameter: nn.Parameter) -> Tensor:
        """Returns a copy of `parameter` per unit (no memory) whose autograd gradient will be collected."""
        copy = parameter.detach().expand(self.num_units, *parameter.shape)
        if self.wants(parameter):
            copy = copy.requires_grad_()
            self._expanded.append((parameter, copy))
        return copy

    def backward(self, losses: Tensor, weight: float) -> None:
        """Runs the backward of weight · Σ losses, collecting; then brings every parameter to one exact form."""
        self.recording = True  # not before: a loss may itself take gradients
        losses.backward(torch.full_like(losses, weight))
        self.recording = False
        for parameter, copy in self._expanded:
            if copy.grad is not None:
                self.keep(parameter, copy.grad)
        self._expanded.clear()
        self.unify()

    def unify(self) -> None:
        """Brings every parameter to one exact form; nothing may be left afterwards."""
        for key, record in self._records.items():
            record.unify(self._parameters[key], self.num_units)

    def squared_norms(self, among: Collection[int] | None = None) -> Tensor:
        """Returns the squared norm of each unit's gradient, float64; not finite where the gradient is not.

        Args:
            among: ids of the parameters to look at, for diagnostics; None for the whole gradient, as clipping needs.
        """
        seen: dict[int, Tensor] = {}
        chosen = [record for key, record in self._records.items() if among is None or key in among]
        parts = [part for record in chosen for part in record.squares(self.num_units, seen)]
        if not parts:
            return torch.zeros(self.num_units, dtype=torch.float64, device=self.anchor.device)
        return torch.cat(parts, 1).sum(1, dtype=torch.float64)

    def drop(self, broken: Tensor) -> None:
        """Sets the gradients of `broken` units to zero (a factor of zero would not: 0 · NaN is NaN)."""
        for record in self._records.values():
            record.drop(broken)

    def add_sum(self, factors: Tensor, targets: Mapping[int, Tensor], in_all: int) -> None:
        """Adds Σ factor·gradient to `targets` (float64, by parameter id, each shaped like its parameter).

        Args:
            in_all: units that the iteration adds up in all chunks. The sum of g vectors of length C is off by at most
                g · 2⁻²⁴ · g · C in float32, so groups of g among n units by g · n · 2⁻²⁴ · C in all.
        """
        group = max(1, _FLOAT32_PAIRS // max(in_all, self.num_units))
        for key, record in self._records.items():
            record.add_to(targets[key], factors, group)

    def dense(self) -> dict[int, Tensor]:
        """Returns every unit's whole gradient [unit, …] by parameter id: much memory, for checks."""
        return {
            key: self._records.get(key, Record()).dense(parameter, self.num_units)
            for key, parameter in self._parameters.items()
        }

    def _record(self, parameter: nn.Parameter) -> Record:
        return self._records.setdefault(id(parameter), Record())
