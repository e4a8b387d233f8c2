"""Refuses networks in which one unit's loss depends on another unit, before any budget is spent.

Two nets: known offenders by name, with what to use instead; and a trial on made-up inputs, which catches the
rest, including layers this package has no rule for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from understudy.errors import InputError, UnsafeModule
from understudy.training.batches import Batch
from understudy.training.clipping.engine import PerUnitClipper
from understudy.training.private_gradient import Loss

_BATCH_NORM = "GroupNorm or LayerNorm, which normalise each series on its own"
REPLACEMENTS: dict[type[Any], str] = {
    nn.modules.batchnorm._BatchNorm: _BATCH_NORM,
    nn.EmbeddingBag: "Embedding followed by a mean over steps",
    nn.RNN: "GRU or LSTM with batch_first=True",
    nn.modules.lazy.LazyModuleMixin: "the layer with its sizes given, so that its parameters exist now",
    nn.AdaptiveLogSoftmaxWithLoss: "Linear and cross_entropy with reduction='none'",
}
TOLERANCE = 1e-2  # of the largest unit gradient; float32 rounding stays far below, a mixed-up unit far above


def validate_module(model: nn.Module) -> None:
    """Refuses layers that are known to mix units, by name, and says what to use instead."""
    for name, module in model.named_modules():
        problem = _problem(module)
        if problem is not None:
            where = f"'{name}'" if name else "the model"
            raise UnsafeModule(
                f"Expected layers that treat every unit on its own, got {type(module).__name__} at {where}. "
                f"Use {problem}.",
                layer=name,
            )


def _problem(module: Any) -> str | None:
    for kind, replacement in REPLACEMENTS.items():
        if isinstance(module, kind):
            return replacement
    if isinstance(module, nn.modules.instancenorm._InstanceNorm) and module.track_running_stats:
        return "track_running_stats=False: running statistics are private data without noise"
    if isinstance(module, nn.LSTM | nn.GRU | nn.MultiheadAttention) and not module.batch_first:
        return "batch_first=True: units must be the first dimension"
    if isinstance(module, nn.LSTM | nn.GRU) and module.proj_size:
        return "proj_size=0 and a Linear layer after it"
    if isinstance(module, nn.Embedding) and module.max_norm is not None:
        return "max_norm=None: it rewrites the rows that private series touch, without noise"
    return None


def try_out(model: nn.Module, loss: Loss, batch: Batch, num_units: int) -> None:
    """Runs the loss on a made-up batch and refuses it unless units are separate and the engine's gradients right.

    Args:
        batch: made-up rows of at least two units. Nothing of the result depends on private data.

    Raises:
        UnsafeModule: another unit's input changes a unit's loss, a buffer changes, or gradients disagree.
        InputError: the loss draws randomness from elsewhere than its generator.
    """
    with _without_dropout(model), torch.random.fork_rng(devices=[]), _shaken(model):
        buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        losses = _seeded(model, loss, batch)
        if not torch.equal(losses.nan_to_num(), _seeded(model, loss, batch).nan_to_num()):
            raise InputError(
                "Expected a loss that repeats itself for the same generator, got one that does not. Draw all its "
                "randomness from the generator it is handed."
            )
        _check_buffers(model, buffers)
        _check_separate(model, loss, batch, num_units, losses.detach())
        _check_gradients(model, loss, batch, num_units, losses)
        _check_alone(model, loss, batch, num_units)


def seed_torch(seed: int) -> None:
    """Seeds torch's global generators; `torch.manual_seed` also keeps a traceback for every kind of absent device."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def _seeded(model: nn.Module, loss: Loss, batch: Batch, seed: int = 1) -> Tensor:
    seed_torch(seed)
    device = next(model.parameters()).device
    return loss(model, batch, torch.Generator(device=device).manual_seed(seed + 1))


def _check_buffers(model: nn.Module, before: dict[str, Tensor]) -> None:
    for name, buffer in model.named_buffers():
        if not torch.equal(before[name], buffer):
            raise UnsafeModule(
                f"Expected buffers that stay as they are, got '{name}' changed by a forward pass. It would carry "
                "private data out without noise: make it a parameter, or update it from public data only."
            )


def _check_separate(model: nn.Module, loss: Loss, batch: Batch, num_units: int, losses: Tensor) -> None:
    changed = {name: tensor.clone() for name, tensor in batch.items()}
    for tensor in changed.values():
        if tensor.dtype == torch.bool:
            tensor[0] = ~tensor[0]
        elif tensor.is_floating_point():
            tensor[0] = 1 - tensor[0]
    with torch.no_grad():
        other = _seeded(model, loss, changed)
    if losses.ndim == 0 or len(losses) % num_units:
        raise InputError("Expected losses with units in the first dimension, got another. Use reduction='none'.")
    rows = len(losses) // num_units
    if not torch.allclose(losses[rows:], other[rows:], rtol=1e-4, atol=1e-6, equal_nan=True):
        raise UnsafeModule(
            "Expected every unit's loss to depend on that unit alone, got losses that change when another unit's "
            "series changes. Look for statistics taken over the first dimension."
        )


def _check_alone(model: nn.Module, loss: Loss, batch: Batch, num_units: int) -> None:
    """Leaves out the first unit, then the last; the gradients of the others must stay as they are.

    Every unit draws its own random numbers meanwhile, so that losses that draw at random can be compared as well.
    """
    clipper = PerUnitClipper(model, clipping_norm=1.0)
    by_unit = per_unit_draws(lambda size: _seeded(model, loss, _of_units(batch, range(size))), (num_units, 2))

    def gradients(units: Sequence[int]) -> Tensor:
        own = _of_units(batch, units)

        def losses() -> Tensor:  # run again where the engine falls back to a slower way: each time from the first draw
            with PerUnitRandomness(units, by_unit):
                return _seeded(model, loss, own)

        return _found(clipper, losses, len(units))

    everybody = gradients(range(num_units))
    size = float(vector_norm(everybody, dim=1).max())
    for others in (range(1, num_units), range(num_units - 1)):
        moved = vector_norm(gradients(others) - everybody[list(others)], dim=1)
        if float(moved.max()) > TOLERANCE * size:
            raise UnsafeModule(
                "Expected every unit's gradient to be independent of other units in the batch, got gradients that "
                "change when a unit is left out. Look for a division by the batch's size or by a count taken over "
                "the batch, and for random numbers that units share."
            )


def _found(clipper: PerUnitClipper, losses: Callable[[], Tensor], num_units: int) -> Tensor:
    """Returns the engine's gradients [unit, number]."""
    dense = clipper.collect(losses, num_units).dense()
    return torch.cat([gradient.flatten(1) for gradient in dense.values()], 1).nan_to_num()


def _of_units(batch: Batch, units: Iterable[int]) -> Batch:
    """Returns the rows of some units."""
    return {name: tensor[list(units)] for name, tensor in batch.items()}


def _check_gradients(model: nn.Module, loss: Loss, batch: Batch, num_units: int, losses: Tensor) -> None:
    """Compares the engine with one ordinary backward per unit of the same forward."""
    clipper, truths = PerUnitClipper(model, clipping_norm=1.0), []
    found = _found(clipper, lambda: _seeded(model, loss, batch), num_units)
    of_unit = losses.reshape(num_units, -1).mean(1)
    for unit in range(num_units):
        grads = torch.autograd.grad(of_unit[unit], clipper.parameters, retain_graph=True, materialize_grads=True)
        truths.append(torch.cat([grad.flatten() for grad in grads]))
    expected = torch.stack(truths).nan_to_num()
    if float(vector_norm(found - expected, dim=1).max()) > TOLERANCE * float(vector_norm(expected, dim=1).max()):
        raise UnsafeModule(
            "Expected per-unit gradients that agree with one backward per unit, got others. A layer probably sees "
            "its rows in another order than unit by unit: keep units first when reshaping."
        )


@contextmanager
def _shaken(model: nn.Module) -> Iterator[None]:
    """Perturbs all parameters within the block: a layer that starts at zero would hide mixed units behind it."""
    parameters = list(model.parameters())
    before = [parameter.detach().clone() for parameter in parameters]
    with torch.no_grad():
        for parameter in parameters:
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)


@contextmanager
def _without_dropout(model: nn.Module) -> Iterator[None]:
    """Switches dropout off within the block: a vmapped layer masks in another order, so gradients would not compare."""
    kinds = (nn.modules.dropout._DropoutNd, nn.RNNBase, nn.MultiheadAttention)
    active = [module for module in model.modules() if isinstance(module, kinds) and module.training]
    for module in active:
        module.training = False
    try:
        yield
    finally:
        for module in active:
            module.training = True


def per_unit_draws(run: Callable[[int], object], sizes: tuple[int, int]) -> list[bool]:
    """Return, for each random draw of `run`, whether its first dimension grows with the number of units.

    Args:
        run: runs the same computation on the given number of units.
        sizes: two numbers of units to compare.
    """
    leading = []
    for size in sizes:
        draws = PerUnitRandomness((), ())
        with draws:
            run(size)
        leading.append(draws.leading)
    return [first * sizes[1] == second * sizes[0] > 0 for first, second in zip(*leading, strict=False)]


class PerUnitRandomness(TorchDispatchMode):
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
            seed_torch(place)
            result = func(*args, **kwargs)
        first = result[0] if isinstance(result, tuple) else result
        self.leading.append(first.shape[0] if first.ndim else 0)
        return result

    def _each(self, func: Any, args: Any, kwargs: Any, place: int, rows: int) -> Any:
        """Runs `func` on the `rows` rows of one unit after another."""
        parts = []
        for position, unit in enumerate(self._units):
            seed_torch(1 + place + 1000 * unit)
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
