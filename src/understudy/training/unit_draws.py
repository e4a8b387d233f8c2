"""Random numbers that belong to units: a unit draws the same ones with any other units in the batch.

A loss that draws its randomness from one generator draws other numbers for everybody when a unit is left out, so the
same loss with and without a unit could not be compared. Under `UnitDraws` it can.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


def scaled_draws(run: Callable[[int], object], sizes: tuple[int, int]) -> list[bool]:
    """Return, for each random draw of `run`, whether its first dimension grows with the number of units.

    Args:
        run: runs the same computation on the given number of units.
        sizes: two numbers of units to compare.
    """
    leading = []
    for size in sizes:
        draws = UnitDraws((), ())
        with draws:
            run(size)
        leading.append(draws.leading)
    return [first * sizes[1] == second * sizes[0] > 0 for first, second in zip(*leading, strict=False)]


class UnitDraws(TorchDispatchMode):
    """Draws random numbers unit by unit, from seeds that follow from the unit and the place of the draw.

    Args:
        units: the numbers of the units in the batch, in order.
        by_unit: for each draw, whether its first dimension is that of the batch; others are drawn once for all.
    """

    def __init__(self, units: Iterable[int], by_unit: Sequence[bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._units, self._by_unit = tuple(units), by_unit
        self.leading: list[int] = []  # size of the first dimension of each draw so far

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs `func`; if it draws random numbers, from the seeds of its place."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        place = len(self.leading)
        kwargs |= {"generator": None} if "generator" in kwargs else {}
        rows = _leading(func, args)
        if rows and place < len(self._by_unit) and self._by_unit[place]:
            result = self._each(func, args, kwargs, place, rows // len(self._units))
        else:
            torch.manual_seed(place)
            result = func(*args, **kwargs)
        first = result[0] if isinstance(result, tuple) else result
        self.leading.append(first.shape[0] if first.ndim else 0)
        return result

    def _each(self, func: Any, args: Any, kwargs: Any, place: int, rows: int) -> Any:
        """Runs `func` on the `rows` rows of one unit after another."""
        parts = []
        for position, unit in enumerate(self._units):
            torch.manual_seed(1 + place + 1000 * unit)
            own = slice(position * rows, (position + 1) * rows)
            parts.append(func(*_cut(func, args, own, rows * len(self._units)), **kwargs))
        if func._schema.is_mutable:
            return args[0]
        return pytree.tree_map(lambda *pieces: torch.cat(pieces), *parts)


def _leading(func: Any, args: Any) -> int:
    """Return the first dimension of what is drawn, of its declared size or of its first tensor; 0 for a permutation."""
    for declared, given in zip(func._schema.arguments, args, strict=False):
        shape = tuple(given.shape) if isinstance(given, Tensor) else tuple(given) if declared.name == "size" else ()
        if shape:
            return int(shape[0])
    return 0


def _cut(func: Any, args: Any, own: slice, whole: int) -> list[Any]:
    """Return the arguments with tensors and sizes of `whole` rows cut to `own` rows."""
    cut = []
    for declared, given in zip(func._schema.arguments, args, strict=False):
        if declared.name == "size":
            given = [own.stop - own.start, *given[1:]]
        elif isinstance(given, Tensor) and given.ndim and len(given) == whole:
            given = given[own]
        cut.append(given)
    return cut
