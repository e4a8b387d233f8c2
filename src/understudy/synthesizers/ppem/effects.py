"""How far a released x′ is from the real one: effect sizes, and the check on units that were kept out.

Both effects are norms of a difference of mean features, so n times the effect is the norm of a *sum* over units, which
adding or removing one unit moves by at most the norm of that unit's own vector. No private count is divided by.

Notation: f features of one x′, μ their public mean over what is released, w weights, τ the effect that is asked for.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from understudy.data.channels import num_codes
from understudy.privacy.private_series import PrivateSeries
from understudy.privacy.selections import needed_figure
from understudy.synthesizers.frame.encoding import WORKING_BOUND
from understudy.synthesizers.ppem.attributes import Attribute

Metric = Literal["mmd", "wasserstein"]
LARGEST: dict[Metric, float] = {"mmd": math.sqrt(2), "wasserstein": 1.0}
MISTAKE = 0.05  # chance that a check is passed by a marginal that is nearer than asked for
_FREQUENCIES = 256  # pairs of random Fourier features
_PLACES = np.linspace(-WORKING_BOUND, WORKING_BOUND, 129)[1:-1]  # at which distribution functions are compared


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect on one sensitive set.

    Attributes:
        metric: "mmd" with a Gaussian kernel, by random Fourier features; or "wasserstein", of the column that differs
            most, in shares of its declared range, or total variation for categories.
        numbers: Places in x′ of numeric columns.
        codes: First and last-plus-one place of each group of codes.
        frequencies: [place, frequency] of the kernel; public, drawn from a seed.
    """

    metric: Metric
    numbers: tuple[int, ...]
    codes: tuple[tuple[int, int], ...]
    frequencies: np.ndarray

    @property
    def places(self) -> list[int]:
        """Numbers of x′ that belong to the set."""
        return [*self.numbers, *(n for begin, end in self.codes for n in range(begin, end))]

    @property
    def unit_bound(self) -> float:
        """The most one unit's f − μ can weigh: two vectors of length one, or a distance in shares of a range."""
        return 2.0 if self.metric == "mmd" else 1.0

    def features(self, sensitive: np.ndarray) -> np.ndarray:
        """Returns f [row, feature] of x′."""
        if self.metric == "mmd":
            phase = sensitive[:, self.places].astype(np.float64) @ self.frequencies
            return np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / math.sqrt(_FREQUENCIES)
        below = [sensitive[:, [n]] <= _PLACES for n in self.numbers]
        return np.concatenate([*below, sensitive[:, self.places[len(self.numbers) :]]], axis=1).astype(np.float64)

    def norm(self, difference: np.ndarray) -> float:
        """Returns the effect of a difference of mean features, or n times it for one of sums."""
        if self.metric == "mmd":
            return float(np.linalg.norm(difference))
        cut = len(self.numbers) * len(_PLACES)
        parts = [float(np.abs(part).mean()) for part in difference[:cut].reshape(-1, len(_PLACES))]
        begin = cut
        for first, last in self.codes:
            parts.append(float(np.abs(difference[begin : begin + last - first]).sum()) / 2)
            begin += last - first
        return max(parts)

    def between(self, first: np.ndarray, second: np.ndarray) -> float:
        """Returns the effect between two x′ [row, number]."""
        return self.norm(self.features(first).mean(axis=0) - self.features(second).mean(axis=0))

    def by_chance(self, number: float, mistake: float) -> float:
        """Returns how far `number` rows stray from their own distribution, but for a chance of `mistake`."""
        if self.metric == "mmd":  # McDiarmid: mean distance 1/√n, each row moves it by at most 2/n
            return (1 + math.sqrt(2 * math.log(1 / mistake))) / math.sqrt(number)
        widest = max([last - first for first, last in self.codes], default=1)
        columns = len(self.numbers) + len(self.codes)
        return (math.sqrt(math.log(2 * columns / mistake) / 2) + math.sqrt(widest) / 2) / math.sqrt(number)

    def smooth(self, first: Tensor, second: Tensor) -> Tensor:
        """Returns the effect between two x′ as a generator can follow it; equally many rows."""
        if self.metric == "mmd":
            waves = torch.from_numpy(self.frequencies).float()
            phases = [rows[:, self.places] @ waves for rows in (first, second)]
            mean = [torch.cat([p.cos().mean(0), p.sin().mean(0)]) / math.sqrt(_FREQUENCIES) for p in phases]
            return (mean[0] - mean[1]).square().sum().sqrt()
        sides = [rows[:, list(self.numbers)].clamp(-WORKING_BOUND, WORKING_BOUND).sort(0).values
                 for rows in (first, second)]  # fmt: skip
        parts = [(sides[0] - sides[1]).abs().mean(0) / (2 * WORKING_BOUND)] if self.numbers else []
        for begin, end in self.codes:
            parts.append((first[:, begin:end].mean(0) - second[:, begin:end].mean(0)).abs().sum().view(1) / 2)
        return torch.cat(parts).max()


def effects_of(
    metric: Metric, sets: tuple[tuple[Attribute, ...], ...], points: np.ndarray, seed: int
) -> tuple[Effect, ...]:
    """Returns the effect of every set; the kernel's bandwidth is the median squared distance of public points of x′."""
    found, begin = [], 0
    for place, group in enumerate(sets):
        numbers, codes = [], []
        for column in (column for attribute in group for column in attribute.columns):
            width = num_codes(column)
            if width is None:
                numbers.append(begin)
            else:
                codes.append((begin, begin + width))
            begin += width or 1
        bare = Effect(metric, tuple(numbers), tuple(codes), np.zeros((0, _FREQUENCIES)))
        own = points[:512, bare.places].astype(np.float64)
        squared = ((own[:, None] - own[None]) ** 2).sum(-1)
        bandwidth = float(np.median(squared[squared > 0])) if (squared > 0).any() else 1.0
        rng = np.random.default_rng([seed, place])
        waves = rng.standard_normal((len(bare.places), _FREQUENCIES)) * math.sqrt(2 / bandwidth)
        found.append(Effect(metric, bare.numbers, bare.codes, waves))
    return tuple(found)


def figure(effects: tuple[Effect, ...], asked: float, released: np.ndarray, real: np.ndarray, private: PrivateSeries
           ) -> tuple[float, float]:  # fmt: skip
    """Returns n · (effect − asked) of the set that differs least, on units that were kept out, and one unit's reach.

    Above 0 is far enough.

    Privacy: `released` is public. Adding or removing a unit moves the norm of Σ w (f − μ) by at most `unit_bound` and
    n · asked by `asked`; the least of several such figures moves no further. Both times `influence`.
    """
    figures = []
    for effect in effects:
        apart = effect.features(real) - effect.features(released).mean(axis=0)
        allowed = asked + effect.by_chance(len(released), MISTAKE / 4)
        chance = effect.by_chance(1.0, MISTAKE / 4) * math.sqrt(private.population)
        figures.append(effect.norm(private.weights @ apart) - allowed * float(private.weights.sum()) - chance)
    bound = max(bound_of(effect, asked, len(released)) for effect in effects)
    return min(figures), bound * private.influence


def bound_of(effect: Effect, asked: float, num_released: int) -> float:
    """Returns the most one unit's worth can move `figure`."""
    return effect.unit_bound + asked + effect.by_chance(num_released, MISTAKE / 4)


def needed(effect: Effect, asked: float, units: float, epsilon: float, attempts: int, num_released: int) -> float:
    """Returns the effect from which a check on so many units passes more often than not; public."""
    noise = needed_figure(epsilon, attempts, MISTAKE / 2) * bound_of(effect, asked, num_released)
    chance = effect.by_chance(1.0, MISTAKE / 4) * math.sqrt(units)
    return asked + effect.by_chance(num_released, MISTAKE / 4) + (noise + chance) / max(units, 1.0)
