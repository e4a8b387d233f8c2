"""The exact forms in which one parameter's per-unit gradient may be held."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.linalg import vector_norm

_BLOCK = 2048  # squares added up in float32: in any order they lose at most 2⁻¹³ of their sum
_CACHED = 1 << 16  # numbers of a float64 copy that stays in the cache
_FEW_ROWS = 8  # products of rows with each other, and sums of rows of all units, are float64, which costs more for each


@dataclass
class Outer:
    """One outer product per unit (and group): output ⊗ input. Its norm is the product of two short norms."""

    output: Tensor  # unit, (group,) out
    input: Tensor  # unit, (group,) in

    def squares(self, seen: dict[int, Tensor]) -> Tensor:
        if self.output.ndim == 2:
            return _total(self.output, seen) * _total(self.input, seen)
        return _square(self.output) * _square(self.input)

    def dense(self) -> Tensor:
        return self.output.unsqueeze(-1) * self.input.unsqueeze(-2)

    def add_to(self, target: Tensor, factors: Tensor) -> None:
        if self.output.ndim == 2:
            target.addmm_((self.output * factors.unsqueeze(1)).t(), self.input.double())
        else:
            scaled = self.output * factors.view(-1, 1, 1)
            target.baddbmm_(scaled.permute(1, 2, 0), self.input.double().transpose(0, 1))

    def without(self, broken: Tensor) -> "Outer":
        mask = broken.view(-1, *(1 for _ in self.output.shape[1:]))
        return Outer(self.output.masked_fill(mask, 0), self.input.masked_fill(mask, 0))

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
        """Says whether rows are so few that their products with each other are cheaper than their sum."""
        return _FEW_ROWS * rows * sum(size) <= math.prod(size)

    def squares(self, seen: dict[int, Tensor]) -> Tensor:
        """‖Σ a bᵀ‖² = Σ ⟨a, a′⟩⟨b, b′⟩, of a norm longer by what rounding may add while the sum is taken in float32.

        Rows that cancel leave a short sum with the rounding of long ones: at most n · 2⁻²⁴ Σ ‖a‖ ‖b‖ for n of them
        (Higham 2002, section 3.1), where a unit's rows are added up by themselves (`dense`). What float32 could not
        hold is not finite here either.
        """
        left, right = self.outputs.double(), self.inputs.double()
        grams = left @ left.mT, right @ right.mT
        lengths = [gram.diagonal(dim1=1, dim2=2) for gram in grams]
        rounding = (left.shape[1] + 2) * 2.0**-24 * (lengths[0] * lengths[1]).sqrt().sum(1)
        squares = ((grams[0] * grams[1]).sum((1, 2)).clamp_min(0).sqrt() + rounding).square()
        most = torch.stack([squares, *(own.sum(1) for own in lengths)]).max(0).values
        return squares.masked_fill(~(most <= torch.finfo(torch.float32).max), torch.inf).unsqueeze(1)

    def dense(self) -> Tensor:
        return self.outputs.mT @ self.inputs

    def add_to(self, target: Tensor, factors: Tensor) -> None:
        scaled = self.outputs * factors.view(-1, 1, 1)
        target.addmm_(scaled.flatten(0, 1).t(), self.inputs.double().flatten(0, 1))

    def without(self, broken: Tensor) -> "Products":
        mask = broken.view(-1, 1, 1)
        return Products(self.outputs.masked_fill(mask, 0), self.inputs.masked_fill(mask, 0))

    def as_products(self) -> "Products":
        return self

    def plus(self, other: "Products") -> "Products":
        """Returns the sum with another use of the same layer."""
        return Products(torch.cat((self.outputs, other.outputs), 1), torch.cat((self.inputs, other.inputs), 1))


@dataclass
class Rows:
    """The touched rows of an embedding table, already added up within each unit."""

    unit: Tensor  # entry
    row: Tensor  # entry
    value: Tensor  # entry, channel

    @classmethod
    def of(cls, index: Tensor, value: Tensor, num_rows: int) -> "Rows":
        """Adds up `value` [unit, entry, channel] by unit and `index` [unit, entry]."""
        unit = torch.arange(index.shape[0], device=index.device).unsqueeze(1)
        keys, place = torch.unique((unit * num_rows + index).reshape(-1), return_inverse=True)
        summed = value.new_zeros(len(keys), value.shape[-1]).index_add_(0, place, value.flatten(0, 1))
        return cls(keys // num_rows, keys % num_rows, summed)

    def squares(self, num_units: int) -> Tensor:
        squares = _square(self.value).double()
        return squares.new_zeros(num_units).index_add_(0, self.unit, squares).unsqueeze(1)

    def dense(self, num_units: int, shape: torch.Size) -> Tensor:
        table = self.value.new_zeros((num_units, *shape))
        return table.index_put_((self.unit, self.row), self.value, accumulate=True)

    def add_to(self, target: Tensor, factors: Tensor) -> None:
        target.index_add_(0, self.row, self.value * factors[self.unit].unsqueeze(1))

    def without(self, broken: Tensor) -> "Rows":
        return Rows(self.unit, self.row, self.value.masked_fill(broken[self.unit].unsqueeze(1), 0))


@dataclass
class Record:
    """What is known of one parameter. `kept` [unit, …] may be split in slabs along the last dimension."""

    kept: dict[int | None, Tensor] = field(default_factory=dict)
    outer: Outer | Products | None = None
    rows: Rows | None = None

    def is_empty(self) -> bool:
        return not self.kept and self.outer is None and self.rows is None

    def unify(self, parameter: Tensor, num_units: int) -> None:
        """Turns several forms into one kept gradient, since norms of summands do not add up."""
        forms = bool(self.kept) + (self.outer is not None) + (self.rows is not None)
        if forms > 1 or (None in self.kept and len(self.kept) > 1):
            dense = self.dense(parameter, num_units)
            self.kept, self.outer, self.rows = {None: dense.flatten(1)}, None, None

    def squares(self, num_units: int, seen: dict[int, Tensor]) -> list[Tensor]:
        """Returns squared norms [unit, part] that add up to the squared norm; `seen` remembers them by tensor."""
        parts = [_once(slab, seen) for slab in self.kept.values()]
        if self.outer is not None:
            parts.append(self.outer.squares(seen))
        if self.rows is not None:
            parts.append(self.rows.squares(num_units))
        return parts

    def drop(self, broken: Tensor) -> None:
        for part, slab in self.kept.items():
            self.kept[part] = slab.masked_fill(broken.unsqueeze(1), 0)
        self.outer = self.outer and self.outer.without(broken)
        self.rows = self.rows and self.rows.without(broken)

    def add_to(self, target: Tensor, factors: Tensor, group: int = 1) -> None:
        """Adds Σ factor·gradient to `target`, which is float64, with rounding that the clip margin pays for.

        Args:
            group: units that may be added up in float32 before they go to the float64 target. Summed in float32
                throughout, one unit more could move the rounding of all others by more than the clip norm.
        """
        for part, slab in self.kept.items():
            if part is None:
                _add_weighted(target.view(-1), slab, factors, group)
            else:
                piece = target[..., part]
                piece += _add_weighted(target.new_zeros(slab.shape[1]), slab, factors, group).view(piece.shape)
        if self.outer is not None:
            self.outer.add_to(target, factors)
        if self.rows is not None:
            self.rows.add_to(target, factors)

    def dense(self, parameter: Tensor, num_units: int) -> Tensor:
        """Returns the gradient of every unit, shaped [unit, *parameter]."""
        dense = torch.zeros((num_units, *parameter.shape), dtype=parameter.dtype, device=parameter.device)
        if self.outer is not None:
            dense += self.outer.dense().view_as(dense)
        if self.rows is not None:
            dense += self.rows.dense(num_units, parameter.shape)
        for part, slab in self.kept.items():
            piece = dense if part is None else dense[..., part]
            piece += slab.view(piece.shape)
        return dense


def _add_weighted(total: Tensor, slab: Tensor, factors: Tensor, group: int) -> Tensor:
    """Adds Σ factor · row of `slab` [unit, number] to `total`."""
    if slab.numel() <= _CACHED:
        return total.addmv_(slab.double().t(), factors)
    if group > 1:
        for own, rows in zip(factors.to(slab).split(group), slab.split(group), strict=True):
            total += torch.mv(rows.t(), own)
        return total
    width = max(1, _CACHED // len(slab))
    for place, piece in zip(total.split(width), slab.split(width, 1), strict=True):
        place.addmv_(piece.double().t(), factors)
    return total


def _square(vectors: Tensor) -> Tensor:
    vectors = vectors if vectors.shape[-1] <= _BLOCK else vectors.double()
    squares: Tensor = torch.linalg.vecdot(vectors, vectors)
    return squares


def _once(matrix: Tensor, seen: dict[int, Tensor]) -> Tensor:
    """Returns the block squares of `matrix`, computed once: a bias and its weight often share a tensor."""
    if id(matrix) not in seen:
        seen[id(matrix)] = block_squares(matrix)
    return seen[id(matrix)]


def _total(matrix: Tensor, seen: dict[int, Tensor]) -> Tensor:
    """Returns the squared norms [unit, 1]: a product of norms must not be taken block by block."""
    squares = _once(matrix, seen)
    return squares if squares.shape[1] == 1 else squares.sum(1, keepdim=True, dtype=torch.float64)


def block_squares(matrix: Tensor) -> Tensor:
    """Returns the squared norms [unit, block] of consecutive blocks of each row."""
    width = matrix.shape[1]
    if width <= _BLOCK:
        return _square(matrix).unsqueeze(1)
    whole = width - width % _BLOCK
    squares: Tensor = vector_norm(matrix[:, :whole].unflatten(1, (-1, _BLOCK)), dim=2).square_()
    if whole == width:
        return squares
    rest = matrix[:, whole:]
    return torch.cat([squares, _square(rest).unsqueeze(1)], 1)
