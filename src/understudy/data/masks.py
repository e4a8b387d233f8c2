"""Which steps are hidden from a model that has to fill them: true where hidden, the same in every channel.

The four ways of DP-aware AdaLN-Zero, which writes m = 1 where a step is *observed*. Pure functions of public numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool

Mask = Bool[np.ndarray, "series step"]
LONGEST_HORIZON = 4  # sevenths of the steps that a forecaster is trained on at most
Uniform = Callable[[int], np.ndarray]  # so many columns of numbers in [0, 1), a row for each series


def training_masks(num_steps: int, uniform: Uniform) -> Mask:
    """Hides steps of each series in one of the four ways, all equally likely, within the paper's ranges.

    A share of 0.1 to 0.5 at random; the last 1/7 to 4/7 (24 to 96 of 168 steps); every second of 4 to 8 blocks; all.
    """
    ranks = uniform(num_steps).argsort(axis=1)
    share = 0.1 + 0.4 * uniform(1)
    horizon = whole(uniform(1), max(1, num_steps // 7), max(1, LONGEST_HORIZON * num_steps // 7))
    blocks = whole(uniform(1), min(4, num_steps), min(8, num_steps))
    hidden = (
        ranks < np.maximum(1, share * num_steps),
        _last(num_steps, horizon),
        _every_second(num_steps, blocks),
        True,
    )
    ways = np.stack([np.broadcast_to(way, ranks.shape) for way in hidden])
    return np.asarray(ways[whole(uniform(1)[:, 0], 0, len(ways) - 1), np.arange(len(ranks))])


def whole(uniform: np.ndarray, least: int, most: int) -> np.ndarray:
    """Returns whole numbers from `least` to `most`, all equally likely, of numbers in [0, 1)."""
    return np.asarray(np.minimum(least + uniform * (most + 1 - least), most), dtype=np.int64)


def _last(num_steps: int, horizon: Any) -> np.ndarray:
    return np.asarray(np.arange(num_steps) >= num_steps - horizon)


def _every_second(num_steps: int, num_blocks: Any) -> np.ndarray:
    """Cuts the steps into blocks of ⌈steps/blocks⌉ and hides every second one, the first being observed."""
    return np.asarray(np.arange(num_steps) // -(-num_steps // num_blocks) % 2 == 1)


def _in_parts(num_series: int, settings: Sequence[float]) -> np.ndarray:
    """Returns a setting for each series: equal parts of them have the same."""
    parts = np.array_split(np.arange(num_series), len(settings))
    return np.repeat(settings, [len(part) for part in parts])[:, None]


# What fillings are judged on: random shares and strides in equal parts, the last day of hourly steps, everything.
MASKS: Mapping[str, Callable[[int, int, np.random.Generator], Mask]] = {
    "random": lambda series, steps, rng: np.asarray(
        rng.permuted(np.broadcast_to(np.arange(steps), (series, steps)), axis=1)
        < np.maximum(1, _in_parts(series, (0.125, 0.25, 0.375, 0.5)) * steps // 1)
    ),
    "block": lambda series, steps, rng: np.tile(_last(steps, min(24, max(1, steps // 2))), (series, 1)),
    "stride": lambda series, steps, rng: _every_second(steps, _in_parts(series, (4, 8)).clip(max=steps).clip(min=2)),
    "full": lambda series, steps, rng: np.ones((series, steps), dtype=bool),
}
