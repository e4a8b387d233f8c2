"""Local changes of rule-based series: spikes, steps, ramps and shakes (after ChatTS, arXiv:2412.03104)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

MAX_CHANGES = 3
MIN_STEPS = 16  # shorter series have no local changes
Shape = Callable[[int, np.random.Generator], tuple[np.ndarray, float]]


@dataclass(frozen=True)
class Change:
    """One kind of local change.

    Attributes:
        shape: Gives the course of a change of height 1 and the level it leaves behind.
        sign: Up or down.
        amplitude_spread: Standard deviation of its height, which is 0.8 + |N(0, spread²)|.
    """

    shape: Shape
    sign: float
    amplitude_spread: float = 2.0


def add_changes(series: np.ndarray, weights: tuple[tuple[str, float], ...], rng: np.random.Generator) -> None:
    """Adds up to three local changes to each of series [series, step], in place, well apart from each other."""
    num_steps = series.shape[1]
    if num_steps < MIN_STEPS:
        return
    names = [name for name, _ in weights]
    chances = np.array([weight for _, weight in weights]) / sum(weight for _, weight in weights)
    counts = rng.integers(0, MAX_CHANGES + 1, len(series))
    for row, count in zip(series, counts, strict=True):
        free_from = 0
        for name in rng.choice(names, count, p=chances):
            change = CHANGES[name]
            course, level = change.shape(num_steps, rng)
            latest = num_steps - len(course)
            if free_from >= latest:
                break
            begin = int(rng.integers(free_from, latest))
            height = change.sign * (0.8 + abs(rng.normal(0, change.amplitude_spread)))
            row[begin : begin + len(course)] += height * course
            row[begin + len(course) :] += height * level
            free_from = begin + len(course) + max(num_steps // 8, len(course), 20)


def _ramp(rise: int, fall: int, plateau: int = 0) -> np.ndarray:
    """0 → 1 in `rise` steps, 1 for `plateau` further steps, back to 0 in `fall` steps."""
    up = np.arange(1, rise + 1) / rise
    down = 1 - np.arange(1, fall + 1) / fall
    return np.concatenate([up, np.ones(plateau), down])


def _steepness(rng: np.random.Generator) -> int:
    return 1 if rng.random() < 0.96 else int(rng.integers(2, 4))


def _stretch(num_steps: int, rng: np.random.Generator) -> int:
    """Length of a change that takes its time."""
    return int(rng.integers(max(num_steps // 16, 4), max(num_steps // 6, 5) + 1))


def spike(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """One point, seldom two or three, out of line."""
    return _ramp(_steepness(rng), _steepness(rng)), 0.0


def spikes(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Two to five spikes in a row, of different height."""
    single = [rng.uniform(0.5, 1) * spike(num_steps, rng)[0] for _ in range(rng.integers(2, 6))]
    gap = np.zeros(int(rng.integers(1, max(num_steps // 64, 2) + 1)))
    return np.concatenate([part for one in single for part in (one, gap)])[: num_steps // 2], 0.0


def wide_spike(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A spike that takes several steps to rise and to fall."""
    widest = max(num_steps // 32, 4)
    return _ramp(int(rng.integers(3, widest + 1)), int(rng.integers(3, widest + 1)), int(rng.integers(0, widest))), 0.0


def step(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A new level, reached in one to ten steps; half of them go back by up to a third."""
    rise = int(rng.integers(1, min(10, num_steps // 4) + 1))
    back = rng.uniform(0, 1 / 3) if rng.random() < 0.5 else 0.0
    recovery = 1 - back * np.arange(1, rise + 1) / rise
    return np.concatenate([np.arange(1, rise + 1) / rise, recovery]), 1 - back


def shake(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A stretch of trembling."""
    longest = min(max(int(0.15 * num_steps), 16), num_steps // 2)
    return rng.uniform(-1, 1, int(rng.integers(min(8, longest), longest + 1))), 0.0


def hump(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A rounded rise and fall."""
    return np.sin(np.pi * np.linspace(0, 1, _stretch(num_steps, rng))), 0.0


def fast_then_slow(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """There in a few steps, back in many."""
    return _ramp(int(rng.integers(1, 4)), _stretch(num_steps, rng)), 0.0


def slow_then_fast(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """There in many steps, back in a few."""
    return _ramp(_stretch(num_steps, rng), int(rng.integers(1, 4))), 0.0


def spike_then_same(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A spike that leaves a lasting shift in its own direction."""
    level = rng.uniform(0.2, 0.6)
    return np.append(_ramp(1, 1)[:1], level), float(level)


def spike_then_opposite(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A spike that leaves a lasting shift in the other direction."""
    level = -rng.uniform(0.2, 0.6)
    return np.append(_ramp(1, 1)[:1], level), float(level)


CHANGES: Mapping[str, Change] = {
    "spike up": Change(spike, 1, 6.0),
    "spike down": Change(spike, -1, 6.0),
    "step up": Change(step, 1),
    "step down": Change(step, -1),
    "spikes up": Change(spikes, 1, 6.0),
    "spikes down": Change(spikes, -1, 6.0),
    "shake": Change(shake, 1),
    "hump up": Change(hump, 1),
    "hump down": Change(hump, -1),
    "fast rise, slow fall": Change(fast_then_slow, 1),
    "slow rise, fast fall": Change(slow_then_fast, 1),
    "fast fall, slow rise": Change(fast_then_slow, -1),
    "slow fall, fast rise": Change(slow_then_fast, -1),
    "spike up, then higher": Change(spike_then_same, 1),
    "spike up, then lower": Change(spike_then_opposite, 1),
    "spike down, then lower": Change(spike_then_same, -1),
    "spike down, then higher": Change(spike_then_opposite, -1),
    "wide spike up": Change(wide_spike, 1, 6.0),
    "wide spike down": Change(wide_spike, -1, 6.0),
}
