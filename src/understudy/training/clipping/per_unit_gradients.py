"""Per-unit gradients of one chunk of units, held until the clipping factor of every unit is known.

A unit is clipped by the norm of its *whole* gradient, so nothing can be summed before the last layer has run
its backward. Each layer therefore leaves what it knows in a `Collector`, in the cheapest form that is exact:
a kept per-unit gradient or a few outer products per unit.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm

from understudy.errors import UnsafeModule

_BLOCK = 2048  # squares added up in float32: in any order they lose at most 2⁻¹³ of their sum
_CACHED = 1 << 16  # numbers of a float64 copy that stays in the cache
_FEW_ROWS = 8  # products of rows with each other, and sums of rows of all units, are float64, which costs more for each


@dataclass
class Outer:
    """One outer product per unit (and group): output ⊗ input. Its norm is the product of two short norms."""

    output: Tensor  # unit, (group,) out
    input: Tensor  # unit, (group,) in

    def norms(self, seen: dict[int, Tensor]) -> Tensor:
        if self.output.ndim == 2:
            return _total(self.output, seen) * _total(self.input, seen)
        return _once(self.output, seen) * _once(self.input, seen)

    def dense(self) -> Tensor:
        return self.output.unsqueeze(-1) * self.input.unsqueeze(-2)

    def add_to(self, target: Tensor, factors: Tensor) -> None:
        right = self.input if self.input.dtype == target.dtype else self.input.double()
        if self.output.ndim == 2:
            target.addmm_((self.output * factors.unsqueeze(1)).t(), right)
        else:
            target.baddbmm_((self.output * factors.view(-1, 1, 1)).permute(1, 2, 0), right.transpose(0, 1))

    def without(self, broken: Tensor) -> "Outer":
        return Outer(_zeroed(self.output, broken), _zeroed(self.input, broken))

    def as_products(self) -> "Products | None":
        """Returns the same as one of several products; None for grouped ones."""
        return Products(self.output.unsqueeze(1), self.input.unsqueeze(1)) if self.output.ndim == 2 else None


@dataclass
class Products:
    """A few outer products per unit, one for each row or use of a layer, added up without ever being written out."""

    outputs: Tensor  # unit, row, out
    inputs: Tensor  # unit, row, in

    @staticmethod
    def pay(rows: int, size: tuple[int, int]) -> bool:
        """Returns whether rows are so few that their products with each other are cheaper than their sum."""
        return _FEW_ROWS * rows * sum(size) <= math.prod(size)

    def norms(self, seen: dict[int, Tensor]) -> Tensor:
        """‖Σ a bᵀ‖ = √(Σ ⟨a, a′⟩⟨b, b′⟩), longer by what rounding may add while the sum is taken in float32.

        Rows that cancel leave a short sum with the rounding of long ones: at most n · 2⁻²⁴ Σ ‖a‖ ‖b‖ for n of them
        (Higham 2002, section 3.1), where a unit's rows are added up by themselves (`dense`).
        """
        left, right = self.outputs.double(), self.inputs.double()
        grams = left @ left.mT, right @ right.mT
        lengths = [gram.diagonal(dim1=1, dim2=2).sqrt() for gram in grams]
        seen |= {id(self.outputs): lengths[0], id(self.inputs): lengths[1]}
        rounding = (left.shape[1] + 2) * 2.0**-24 * (lengths[0] * lengths[1]).sum(1)
        return ((grams[0] * grams[1]).sum((1, 2)).clamp_min(0).sqrt() + rounding).unsqueeze(1)

    def dense(self) -> Tensor:
        return self.outputs.mT @ self.inputs

    def add_to(self, target: Tensor, factors: Tensor) -> None:
        scaled = self.outputs * factors.view(-1, 1, 1)
        target.addmm_(scaled.flatten(0, 1).t(), self.inputs.to(target).flatten(0, 1))

    def without(self, broken: Tensor) -> "Products":
        return Products(_zeroed(self.outputs, broken), _zeroed(self.inputs, broken))

    def as_products(self) -> "Products":
        return self

    def plus(self, other: "Products") -> "Products":
        """Returns the sum with another use of the same layer."""
        return Products(torch.cat((self.outputs, other.outputs), 1), torch.cat((self.inputs, other.inputs), 1))


@dataclass
class Record:
    """What is known of one parameter: gradients [unit, number], outer products, or for a while both."""

    kept: Tensor | None = None
    outer: Outer | Products | None = None

    def unify(self) -> None:
        """Turns two forms into one kept gradient, since norms of summands do not add up."""
        if self.kept is not None and self.outer is not None:
            self.kept, self.outer = self.kept + self.outer.dense().flatten(1), None

    def norms(self, seen: dict[int, Tensor]) -> list[Tensor]:
        """Returns the norms [unit, part] of parts; `seen` remembers those of single vectors by tensor."""
        kept = [] if self.kept is None else [_once(self.kept, seen)]
        return kept if self.outer is None else [*kept, self.outer.norms(seen)]

    def drop(self, broken: Tensor) -> None:
        self.kept = None if self.kept is None else _zeroed(self.kept, broken)
        self.outer = self.outer and self.outer.without(broken)

    def add_to(self, target: Tensor, factors: Tensor, group: int = 1) -> None:
        """Adds Σ factor·gradient to `target` in its precision; `group` units may be added up in float32 before."""
        if self.kept is not None:
            _add_weighted(target.view(-1), self.kept, factors, group)
        if self.outer is not None:
            self.outer.add_to(target, factors)

    def dense(self, parameter: Tensor, num_units: int) -> Tensor:
        """Returns the gradient of every unit, shaped [unit, *parameter]."""
        dense = parameter.new_zeros((num_units, *parameter.shape), requires_grad=False)
        for part in (self.kept, None if self.outer is None else self.outer.dense()):
            dense = dense if part is None else dense + part.view_as(dense)
        return dense


def _zeroed(tensor: Tensor, broken: Tensor) -> Tensor:
    return tensor.masked_fill(broken.view(-1, *(1 for _ in tensor.shape[1:])), 0)


def _add_weighted(total: Tensor, rows: Tensor, factors: Tensor, group: int) -> None:
    """Adds Σ factor · row of `rows` [unit, number] to `total`."""
    if rows.dtype == total.dtype:
        total.addmv_(rows.t(), factors)
    elif group > 1 and rows.numel() > _CACHED:
        for own, part in zip(factors.to(rows).split(group), rows.split(group), strict=True):
            total += torch.mv(part.t(), own)
    else:
        width = max(1, _CACHED // len(rows))
        for place, piece in zip(total.split(width), rows.split(width, 1), strict=True):
            place.addmv_(piece.double().t(), factors)


def _once(matrix: Tensor, seen: dict[int, Tensor]) -> Tensor:
    """Returns the block norms of `matrix`, computed once: a bias and its weight often share a tensor."""
    if id(matrix) not in seen:
        seen[id(matrix)] = block_norms(matrix)
    return seen[id(matrix)]


def _total(matrix: Tensor, seen: dict[int, Tensor]) -> Tensor:
    """Returns the norms [unit, 1]: a product of norms must not be taken block by block."""
    norms = _once(matrix, seen)
    return norms if norms.shape[1] == 1 else vector_norm(norms, dim=1, keepdim=True, dtype=torch.float64)


def block_norms(matrix: Tensor) -> Tensor:
    """Returns the norms [unit, block] of consecutive blocks of each row, or [unit, group] of [unit, group, number]."""
    width = matrix.shape[-1]
    norms: Tensor
    if matrix.ndim == 3:
        norms = vector_norm(matrix, dim=2, dtype=torch.float64 if width > _BLOCK else None)
    elif width <= _BLOCK:
        norms = vector_norm(matrix, dim=1, keepdim=True)
    else:
        whole = width - width % _BLOCK
        norms = vector_norm(matrix[:, :whole].unflatten(1, (-1, _BLOCK)), dim=2)
        if whole < width:
            norms = torch.cat([norms, vector_norm(matrix[:, whole:], dim=1, keepdim=True)], 1)
    return norms


NORM_MARGIN = 2.0**-10  # clip to C(1 − margin): pays for rounding in norms, in sums and to the lattice of the noise
_LONGEST = 2.0**44  # beyond, the squares that float32 loses on one side of an outer product would count on the other
_FLOAT32_PAIRS = 1 << 12  # units of a float32 sum times units of the iteration: rounding of at most 2⁻¹² C


class NeedsExpandedParameters(Exception):
    """A derivative of a derivative was asked for; only ordinary autograd on per-unit copies can give it."""


class NeedsWholeModule(Exception):
    """A parameter was used outside the layer that owns it."""


class Pool:
    """What outlives a step: memory, whose pages cost more when touched for the first time, and an anchor."""

    def __init__(self, like: Tensor) -> None:
        self.anchor = torch.zeros((), device=like.device, dtype=like.dtype, requires_grad=True)
        self._buffers: dict[int, Tensor] = {}

    def take(self, key: int, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Returns uninitialised memory of `shape`; the same for the same key, so one taker at a time."""
        size = math.prod(shape)
        found = self._buffers.get(key)
        if found is None or found.numel() < size or found.dtype != like.dtype or found.device != like.device:
            found = self._buffers[key] = like.new_empty(size)
        return found[:size].view(shape)


class Sums:
    """A float64 sum of clipped gradients over all parameters, and one of few units in the parameters' own type."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.few = parameters[0].new_zeros(sum(parameter.numel() for parameter in parameters), requires_grad=False)
        self.total = torch.zeros_like(self.few, dtype=torch.float64)
        self.by_parameter, self.few_by_parameter = views(parameters, self.total), views(parameters, self.few)


def views(parameters: Sequence[nn.Parameter], vector: Tensor) -> dict[int, Tensor]:
    """Returns the pieces of a flat vector by parameter id, each shaped like its parameter."""
    pieces = vector.split([parameter.numel() for parameter in parameters])
    return {id(parameter): piece.view(parameter.shape) for parameter, piece in zip(parameters, pieces, strict=True)}


class Collector:
    """Gathers per-unit gradients of `parameters`; a parameter used several times has its gradients summed first.

    Privacy:
        What it holds is as private as the data. Only `add_weighted_sum`, by factors that clip every unit, may leave it.

    Args:
        parameters: the trainable parameters by id; gradients of others are not asked for.
        num_units: units in this chunk. Tensors in the network carry units first; a leading dimension that is a
            multiple of `num_units` holds several consecutive rows per unit.
    """

    def __init__(self, parameters: Mapping[int, nn.Parameter], num_units: int, pool: Pool) -> None:
        self._parameters = parameters
        self._records: dict[int, Record] = {}
        self._expanded: list[tuple[nn.Parameter, Tensor]] = []
        self._pool = pool
        self.num_units = num_units
        self.recording = False
        self.anchor = pool.anchor

    def wants(self, parameter: nn.Parameter) -> bool:
        """Returns whether the gradient of `parameter` is asked for."""
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

    def keep(self, parameter: nn.Parameter, per_unit: Tensor) -> None:
        """Adds a per-unit gradient [unit, …] of the parameter."""
        record, flat = self._record(parameter, per_unit), per_unit.reshape(self.num_units, -1)
        record.kept = flat if record.kept is None else record.kept + flat

    def keep_product(self, parameter: nn.Parameter, left: Tensor, right: Tensor) -> None:
        """Adds left @ right, both [unit, …, …], in pooled memory."""
        record, shape = self._record(parameter, left, right), (self.num_units, left.shape[1], right.shape[2])
        if record.kept is None:
            record.kept = torch.bmm(left, right, out=self._pool.take(id(parameter), shape, left)).flatten(1)
        else:
            record.kept = torch.baddbmm(record.kept.view(shape), left, right).flatten(1)

    def add(self, parameter: nn.Parameter, new: Outer | Products) -> None:
        """Adds the sum of one outer product, or of several, per unit."""
        record = self._record(parameter, *vars(new).values())
        if record.kept is None and record.outer is None:
            record.outer = new
            return
        before, more = None if record.outer is None else record.outer.as_products(), new.as_products()
        if record.kept is None and before is not None and more is not None:
            record.outer = before.plus(more)
        else:  # the norm of a sum of products of different kinds has no short form
            self.keep(parameter, new.dense())

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
        for record in self._records.values():
            record.unify()

    def norms(self, among: Collection[int] | None = None) -> Tensor:
        """Returns the norm of each unit's gradient, float64.

        A unit with a gradient, or a factor of one, that is not finite or above 2⁴⁴ is left out: its norm is infinite
        and its gradient zero from here on.

        Args:
            among: ids of the parameters to look at, for diagnostics; None for the whole gradient, as clipping needs.
        """
        seen: dict[int, Tensor] = {}
        chosen = [record for key, record in self._records.items() if among is None or key in among]
        parts = [part for record in chosen for part in record.norms(seen)]
        if not parts:
            return torch.zeros(self.num_units, dtype=torch.float64, device=self.anchor.device)
        measured = torch.cat([*parts, *seen.values()], 1)
        norms: Tensor = vector_norm(measured[:, : sum(part.shape[1] for part in parts)], dim=1, dtype=torch.float64)
        if not measured.max().item() <= _LONGEST:
            broken = ~(measured <= _LONGEST).all(1)
            norms = norms.masked_fill(broken, torch.inf)
            for record in self._records.values():  # a factor of zero would not do: 0 · NaN is NaN
                record.drop(broken)
        return norms

    def add_weighted_sum(self, factors: Tensor, sums: Sums, in_all: int) -> None:
        """Adds Σ factor·gradient to `sums`, with rounding that the clip margin pays for.

        Args:
            in_all: units that the iteration adds up in all chunks. The sum of g vectors of length C is off by at most
                g · 2⁻²⁴ · g · C in float32, so groups of g among n units by g · n · 2⁻²⁴ · C in all. Summed in float32
                throughout, one unit more could move the rounding of all others by more than the clip norm.
        """
        group = max(1, _FLOAT32_PAIRS // max(in_all, self.num_units))
        if group < self.num_units:
            for key, record in self._records.items():
                record.add_to(sums.by_parameter[key], factors, group)
            return
        sums.few.zero_()
        own = factors.to(sums.few.dtype)
        for key, record in self._records.items():
            if isinstance(record.outer, Products):  # long rows of one unit that cancel would swallow other units
                record.add_to(sums.by_parameter[key], factors)
            else:
                record.add_to(sums.few_by_parameter[key], own)
        sums.total.add_(sums.few.double())

    def dense(self) -> dict[int, Tensor]:
        """Returns every unit's whole gradient [unit, …] by parameter id: much memory, for checks."""
        return {
            key: self._records.get(key, Record()).dense(parameter, self.num_units)
            for key, parameter in self._parameters.items()
        }

    def _record(self, parameter: nn.Parameter, *parts: Tensor) -> Record:
        """Returns what is known of a parameter; refuses half precision, whose norms round by more than the margin."""
        for part in parts:
            if part.dtype != parameter.dtype:
                raise UnsafeModule(
                    "Expected gradients in the precision of their parameters, got others. Leave autocast and casts to "
                    "half precision out of the model and its loss."
                )
        if id(parameter) not in self._records:
            self._records[id(parameter)] = Record()
        return self._records[id(parameter)]
