"""Per-unit gradients of one chunk of units, held until the clip factor of every unit is known.

A unit is clipped by the norm of its *whole* gradient, so nothing can be summed before the last layer has run
its backward. Each layer therefore leaves what it knows in a `Collector`, in the cheapest form that is exact:
a kept per-unit gradient, one outer product per unit, or a few rows of an embedding table.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from understudy.errors import UnsafeModule

NORM_MARGIN = 1e-5  # clip to C(1 − margin): pays for float32 rounding in the norm and in the scaled sum
_BLOCK = 4096  # floats per partial norm; bounds the rounding of a float32 sum of squares far below the margin


class NeedsExpandedParameters(Exception):
    """A derivative of a derivative was asked for; only ordinary autograd on per-unit copies can give it."""


class NeedsWholeModule(Exception):
    """A parameter was used outside the layer that owns it."""


@dataclass
class _Outer:
    """Gradient of one parameter as one outer product per unit and group: output ⊗ input."""

    output: Tensor  # unit, group, out
    input: Tensor  # unit, group, in

    def squared_norms(self) -> Tensor:
        out_norms = torch.linalg.vector_norm(self.output, dim=2).double()
        in_norms = torch.linalg.vector_norm(self.input, dim=2).double()
        return (out_norms * in_norms).square_().sum(1)

    def dense(self) -> Tensor:
        return self.output.unsqueeze(3) * self.input.unsqueeze(2)

    def add_to(self, target: Tensor, factors: Tensor) -> None:
        scaled = self.output * factors.view(-1, 1, 1)
        if self.output.shape[1] == 1:
            matrix = target.view(self.output.shape[2], self.input.shape[2])
            matrix.addmm_(scaled.squeeze(1).t(), self.input.squeeze(1))
        else:
            target.baddbmm_(scaled.permute(1, 2, 0), self.input.transpose(0, 1))

    def without(self, broken: Tensor) -> "_Outer":
        mask = broken.view(-1, 1, 1)
        return _Outer(self.output.masked_fill(mask, 0), self.input.masked_fill(mask, 0))


@dataclass
class _Rows:
    """Gradient of an embedding table as its touched rows, already added up within each unit."""

    unit: Tensor  # entry
    row: Tensor  # entry
    value: Tensor  # entry, channel

    def squared_norms(self, num_units: int) -> Tensor:
        per_entry = torch.linalg.vector_norm(self.value, dim=1).double().square_()
        return per_entry.new_zeros(num_units).index_add_(0, self.unit, per_entry)

    def dense(self, num_units: int, shape: torch.Size) -> Tensor:
        table = self.value.new_zeros((num_units, *shape))
        return table.index_put_((self.unit, self.row), self.value, accumulate=True)

    def add_to(self, target: Tensor, factors: Tensor) -> None:
        target.index_add_(0, self.row, self.value * factors[self.unit].unsqueeze(1))

    def without(self, broken: Tensor) -> "_Rows":
        return _Rows(self.unit, self.row, self.value.masked_fill(broken[self.unit].unsqueeze(1), 0))


@dataclass
class _Record:
    """What is known of one parameter. `kept` [unit, …] may be split in slabs along the last dimension."""

    kept: dict[int | None, Tensor] = field(default_factory=dict)
    outer: _Outer | None = None
    rows: _Rows | None = None


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
        parameters: the trainable parameters; gradients of others are not asked for.
        num_units: units in this chunk. Tensors in the network carry units first; a leading dimension that is a
            multiple of `num_units` holds several consecutive rows per unit.
        pool: memory for kept gradients, used again by the next collector.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], num_units: int, pool: "Pool") -> None:
        self._pool = pool
        self._parameters = {id(parameter): parameter for parameter in parameters}
        self._records: dict[int, _Record] = {}
        self._expanded: list[tuple[nn.Parameter, Tensor]] = []
        self.num_units = num_units
        self.recording = False
        first = next(iter(self._parameters.values()))
        # Makes autograd visit layers whose inputs need no gradient.
        self.anchor = torch.zeros((), device=first.device, dtype=first.dtype, requires_grad=True)

    def wants(self, parameter: nn.Parameter | None) -> bool:
        return parameter is not None and id(parameter) in self._parameters

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
        flat = per_unit.reshape(self.num_units, -1)
        kept[part] = kept[part] + flat if part in kept else flat

    def keep_product(self, parameter: nn.Parameter, left: Tensor, right: Tensor, part: int | None = None) -> None:
        """Adds left @ right, both [unit, …, …], without allocating: fresh memory costs more than the product."""
        kept = self._record(parameter).kept
        shape = (self.num_units, left.shape[1], right.shape[2])
        if part in kept:
            kept[part] = torch.baddbmm(kept[part].view(shape), left, right).flatten(1)
            return
        buffer = self._pool.take((id(parameter), part), shape, left)
        kept[part] = torch.bmm(left, right, out=buffer).flatten(1)

    def outer(self, parameter: nn.Parameter, output: Tensor, input: Tensor) -> None:
        """Adds output ⊗ input for [unit, group, out] and [unit, group, in]."""
        record = self._record(parameter)
        new = _Outer(output, input)
        if record.outer is None and not record.kept:
            record.outer = new
        else:  # a second use: the norm of a sum of outer products is not a product of norms
            self.keep(parameter, new.dense())

    def rows(self, parameter: nn.Parameter, index: Tensor, value: Tensor) -> None:
        """Adds `value` [unit, entry, channel] to rows `index` [unit, entry] of a table."""
        record = self._record(parameter)
        num_rows = parameter.shape[0]
        unit = torch.arange(self.num_units, device=index.device).unsqueeze(1)
        keys, place = torch.unique((unit * num_rows + index).reshape(-1), return_inverse=True)
        summed = value.new_zeros(len(keys), value.shape[-1]).index_add_(0, place, value.flatten(0, 1))
        new = _Rows(keys // num_rows, keys % num_rows, summed)
        if record.rows is None and record.outer is None and not record.kept:
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

    def backward(self, total: Tensor) -> None:
        """Runs the backward of a sum of unit losses, collecting; then brings every parameter to one exact form."""
        self.recording = True  # not before: a loss may itself take gradients
        total.backward()  # type: ignore[no-untyped-call]
        self.recording = False
        for parameter, copy in self._expanded:
            if copy.grad is not None:
                self.keep(parameter, copy.grad)
        self._expanded.clear()
        for key, record in self._records.items():
            _merge(record, self._parameters[key], self.num_units)

    def dense(self) -> dict[int, Tensor]:
        """Returns every unit's whole gradient [unit, …] by parameter id: much memory, for checks."""
        gradients = {}
        for key, parameter in self._parameters.items():
            record = self._records.get(key, _Record())
            gradients[key] = _dense(record, parameter, self.num_units)
        return gradients

    def squared_norms(self) -> Tensor:
        """Returns the squared norm of each unit's whole gradient, float64; not finite where the gradient is not."""
        total = torch.zeros(self.num_units, dtype=torch.float64, device=self.anchor.device)
        for record in self._records.values():
            for slab in record.kept.values():
                total += squared_norms(slab)
            if record.outer is not None:
                total += record.outer.squared_norms()
            if record.rows is not None:
                total += record.rows.squared_norms(self.num_units)
        return total

    def drop(self, broken: Tensor) -> None:
        """Sets the gradients of `broken` units to zero (a factor of zero would not: 0 · NaN is NaN)."""
        for record in self._records.values():
            for part, slab in record.kept.items():
                record.kept[part] = slab.masked_fill(broken.unsqueeze(1), 0)
            record.outer = record.outer and record.outer.without(broken)
            record.rows = record.rows and record.rows.without(broken)

    def add_sum(self, factors: Tensor, targets: Mapping[int, Tensor]) -> None:
        """Adds Σ factor·gradient to `targets` (by parameter id, each shaped like its parameter)."""
        for key, record in self._records.items():
            target = targets[key]
            weights = factors.to(target.dtype)
            for part, slab in record.kept.items():
                if part is None:
                    target.view(-1).addmv_(slab.t(), weights)
                else:
                    piece = target[..., part]
                    piece += torch.mv(slab.t(), weights).view(piece.shape)
            if record.outer is not None:
                record.outer.add_to(target, weights)
            if record.rows is not None:
                record.rows.add_to(target, weights)

    def _record(self, parameter: nn.Parameter) -> _Record:
        return self._records.setdefault(id(parameter), _Record())


def squared_norms(matrix: Tensor) -> Tensor:
    """Returns the squared row norms in float64: float32 within blocks, float64 across them."""
    if matrix.dtype in (torch.float16, torch.bfloat16):
        matrix = matrix.float()
    width = matrix.shape[1]
    whole = width - width % _BLOCK
    if whole == 0:
        return torch.linalg.vector_norm(matrix, dim=1).double().square_()
    blocks = matrix[:, :whole].unflatten(1, (-1, _BLOCK))
    total = torch.linalg.vector_norm(blocks, dim=2).double().square_().sum(1)
    if whole < width:
        total += torch.linalg.vector_norm(matrix[:, whole:], dim=1).double().square_()
    return total


def clip_factors(squared: Tensor, clip_norm: float) -> tuple[Tensor, Tensor]:
    """Returns (factor per unit, which units are broken): factor · ‖gradient‖ ≤ clip_norm(1 − margin)."""
    broken = ~torch.isfinite(squared)
    bound = clip_norm * (1 - NORM_MARGIN)
    factors = (bound / squared.sqrt()).clamp_(max=1.0)
    return factors.masked_fill_(broken, 0.0), broken


def _merge(record: _Record, parameter: nn.Parameter, num_units: int) -> None:
    """Turns a record with several forms into one kept gradient, since norms of parts do not add up."""
    forms = bool(record.kept) + (record.outer is not None) + (record.rows is not None)
    if forms <= 1 and (None not in record.kept or len(record.kept) == 1):
        return
    dense = _dense(record, parameter, num_units)
    record.kept, record.outer, record.rows = {None: dense.flatten(1)}, None, None


def _dense(record: _Record, parameter: nn.Parameter, num_units: int) -> Tensor:
    dense = torch.zeros((num_units, *parameter.shape), dtype=parameter.dtype, device=parameter.device)
    if record.outer is not None:
        dense += record.outer.dense().view_as(dense)
    if record.rows is not None:
        dense += record.rows.dense(num_units, parameter.shape)
    for part, slab in record.kept.items():
        piece = dense if part is None else dense[..., part]
        piece += slab.view(piece.shape)
    return dense
