"""Which steps are hidden from a model that has to fill them: true where hidden, the same in every channel.

The four ways of DP-aware AdaLN-Zero, which writes m = 1 where a step is *observed*. Pure functions of public numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool

Mask = Bool[np.ndarray, "series step"]
LONGEST_HORIZON = 4  # sevenths of the steps that a forecaster is trained on at most


@runtime_checkable
class Coins(Protocol):
    """What masks ask of a generator of random numbers: numpy's, or one whose rows belong to units."""

    def random(self, size: Any) -> Any: ...
    def uniform(self, low: float, high: float, size: Any) -> Any: ...
    def integers(self, low: int, high: int, size: Any) -> Any: ...
    def permuted(self, x: Any, *, axis: int) -> Any: ...


def random_mask(num_series: int, num_steps: int, share: float, rng: np.random.Generator) -> Mask:
    """Hides ⌊share · steps⌋ steps of each series, drawn at random for each; at least one."""
    if not 0 < share <= 1:
        raise ValueError(f"Expected a share above 0 and at most 1, got {share}.")
    ranks = rng.permuted(np.broadcast_to(np.arange(num_steps), (num_series, num_steps)), axis=1)
    return np.asarray(ranks < max(1, int(share * num_steps)))


def block_mask(num_series: int, num_steps: int, horizon_steps: int) -> Mask:
    """Hides the last steps: forecasting."""
    if not 1 <= horizon_steps <= num_steps:
        raise ValueError(f"Expected a horizon of 1 to {num_steps} steps, got {horizon_steps}.")
    return np.tile(np.arange(num_steps) >= num_steps - horizon_steps, (num_series, 1))


def stride_mask(num_series: int, num_steps: int, num_blocks: int) -> Mask:
    """Cuts the steps into blocks of ⌈steps/blocks⌉ and hides every second one, the first being observed."""
    if not 2 <= num_blocks <= num_steps:
        raise ValueError(f"Expected 2 to {num_steps} blocks, got {num_blocks}.")
    return np.tile(np.arange(num_steps) // -(-num_steps // num_blocks) % 2 == 1, (num_series, 1))


def full_mask(num_series: int, num_steps: int) -> Mask:
    """Hides everything: unconditional generation."""
    return np.ones((num_series, num_steps), dtype=bool)


def training_masks(num_series: int, num_steps: int, rng: Coins) -> Mask:
    """Hides steps of each series in one of the four ways, all equally likely, within the paper's ranges.

    A share of 0.1 to 0.5 at random; the last 1/7 to 4/7 (24 to 96 of 168 steps); every second of 4 to 8 blocks; all.
    """
    steps, one_each = np.arange(num_steps), (num_series, 1)
    ranks = rng.permuted(np.broadcast_to(steps, (num_series, num_steps)), axis=1)
    share = rng.uniform(0.1, 0.5, one_each)
    horizon = rng.integers(max(1, num_steps // 7), max(1, LONGEST_HORIZON * num_steps // 7) + 1, one_each)
    blocks = rng.integers(min(4, num_steps), min(8, num_steps) + 1, one_each)
    ways = np.stack(
        [
            ranks < np.maximum(1, share * num_steps),
            np.broadcast_to(steps >= num_steps - horizon, ranks.shape),
            steps // -(-num_steps // blocks) % 2 == 1,
            full_mask(num_series, num_steps),
        ]
    )
    return np.asarray(ways[rng.integers(0, len(ways), num_series), np.arange(num_series)])


def _in_parts(num_series: int, settings: Sequence[Any], mask: Callable[[int, Any], Mask]) -> Mask:
    """Masks equal parts of the series, each with a setting of its own."""
    parts = np.array_split(np.arange(num_series), len(settings))
    return np.concatenate([mask(len(rows), setting) for rows, setting in zip(parts, settings, strict=True)])


_SHARES, _BLOCKS, _HORIZON_STEPS = (0.125, 0.25, 0.375, 0.5), (4, 8), 24
# What fillings are judged on: random shares and strides in equal parts, the last day of hourly steps, everything.
MASKS: Mapping[str, Callable[[int, int, np.random.Generator], Mask]] = {
    "random": lambda series, steps, rng: _in_parts(series, _SHARES, lambda n, share: random_mask(n, steps, share, rng)),
    "block": lambda series, steps, rng: block_mask(series, steps, min(_HORIZON_STEPS, max(1, steps // 2))),
    "stride": lambda series, steps, rng: _in_parts(
        series, _BLOCKS, lambda n, blocks: stride_mask(n, steps, max(2, min(blocks, steps)))
    ),
    "full": lambda series, steps, rng: full_mask(series, steps),
}
