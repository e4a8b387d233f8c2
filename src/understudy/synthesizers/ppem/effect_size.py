"""How far a released x′ is from the real one: an effect size, the check of it on held-out units, and two probes.

The effect size of a column is the 1-Wasserstein distance in shares of the declared range, or the total variation
distance for categories; that of a set is the largest of its columns'. Both are norms of a difference of mean features,
so n times the effect size is the norm of a *sum* over units, which adding or removing one unit moves by at most that
unit's own norm. No private count is divided by.

Notation: f features of one x′, μ their public mean over what is released, w weights, τ the effect size asked for.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial.distance import cdist
from scipy.stats import zscore
from torch import Tensor
from torch.nn import functional

from understudy.data import Channel
from understudy.data.channels import num_codes
from understudy.privacy.private_series import PrivateSeries
from understudy.privacy.selections import needed_figure
from understudy.statistics.encoding import WORKING_BOUND
from understudy.synthesizers.ppem.attributes import Attribute

ERROR = 0.05  # probability that a marginal nearer than asked for passes a check
_SHARPNESS = 10.0  # inverse temperature of the softmax that represents a category while a generator learns
_PLACES = np.linspace(-WORKING_BOUND, WORKING_BOUND, 129)[1:-1]  # at which distribution functions are compared
_QUANTILES = np.linspace(0.02, 0.98, 97)
_SAME_SHAPE = 0.06  # mean distance of standardised quantiles up to which two shapes count as one
_MOVED = 0.1  # standard deviations from which a shape counts as moved
_SAME_SHARES = 0.05  # total variation distance up to which shares count as the same
_PROBED = 512
_UNSUPPORTED = 0.99  # quantile of distances among reference points beyond which a point has no support


@dataclass(frozen=True)
class EffectSize:
    """The effect size on one sensitive set."""

    numbers: tuple[int, ...]  # places in x′ of numeric columns
    codes: tuple[tuple[int, int], ...]  # first and last-plus-one place of each group of codes

    def features(self, sensitive: np.ndarray) -> np.ndarray:
        """Return f [row, feature] of x′: distribution functions of numbers, then codes."""
        below = [sensitive[:, [n]] <= _PLACES for n in self.numbers]
        hot = [sensitive[:, begin:end] for begin, end in self.codes]
        return np.concatenate([*below, *hot], axis=1).astype(np.float64)

    def norm(self, difference: np.ndarray) -> float:
        """Return the effect size of a difference of mean features, or n times it for one of sums."""
        cut = len(self.numbers) * len(_PLACES)
        parts = [float(np.abs(part).mean()) for part in difference[:cut].reshape(-1, len(_PLACES))]
        begin = cut
        for first, last in self.codes:
            parts.append(float(np.abs(difference[begin : begin + last - first]).sum()) / 2)
            begin += last - first
        return max(parts)

    def between(self, first: np.ndarray, second: np.ndarray) -> float:
        """Return the effect size between two x′ [row, number]."""
        return self.norm(self.features(first).mean(axis=0) - self.features(second).mean(axis=0))

    def by_chance(self, number: float, error: float) -> float:
        """Return how far `number` rows stray from their own distribution, with probability 1 − `error`."""
        widest = max([last - first for first, last in self.codes], default=1)
        columns = len(self.numbers) + len(self.codes)
        return (math.sqrt(math.log(2 * columns / error) / 2) + math.sqrt(widest) / 2) / math.sqrt(number)

    def differentiable(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the effect size between generated x′ and as many others, with a gradient for the generator."""
        sides = [
            rows[:, list(self.numbers)].clamp(-WORKING_BOUND, WORKING_BOUND).sort(0).values for rows in (first, second)
        ]
        parts = [(sides[0] - sides[1]).abs().mean(0) / (2 * WORKING_BOUND)] if self.numbers else []
        for begin, end in self.codes:
            shares = _decided(first[:, begin:end]).mean(0) - second[:, begin:end].mean(0)
            parts.append(shares.abs().sum().view(1) / 2)
        return torch.cat(parts).max()


def _decided(generated: Tensor) -> Tensor:
    """Return one-hot codes [row, code] as they will be released, with a gradient as if they were shares."""
    soft = functional.softmax(_SHARPNESS * generated, 1)
    return functional.one_hot(soft.argmax(1), soft.shape[1]).float() + soft - soft.detach()


def effect_sizes_of(sets: tuple[tuple[Attribute, ...], ...]) -> tuple[EffectSize, ...]:
    """Return the effect size of every sensitive set."""
    found, begin = [], 0
    for group in sets:
        widths = [num_codes(column) for attribute in group for column in attribute.columns]
        *starts, end = np.cumsum([begin, *(width or 1 for width in widths)]).tolist()
        places = list(zip(starts, widths, strict=True))
        codes = tuple((first, first + width) for first, width in places if width)
        found.append(EffectSize(tuple(first for first, width in places if width is None), codes))
        begin = end
    return tuple(found)


def figure(
    sizes: tuple[EffectSize, ...], asked: float, released: np.ndarray, real: np.ndarray, private: PrivateSeries
) -> tuple[float, float]:
    """Return n · (effect size − asked) of the set that differs least, on held-out units, and one unit's reach.

    Above 0 is far enough.

    Privacy: `released` is public. Adding or removing a unit moves the norm of Σ w (f − μ) by at most 1 and n · asked by
    `asked`; the least of several such figures moves no further. Both times `influence`.
    """
    figures = []
    for size in sizes:
        apart = size.features(real) - size.features(released).mean(axis=0)
        allowed = asked + size.by_chance(len(released), ERROR / 4)
        chance = size.by_chance(1.0, ERROR / 4) * math.sqrt(private.population)
        figures.append(size.norm(private.weights @ apart) - allowed * float(private.weights.sum()) - chance)
    bound = max(bound_of(size, asked, len(released)) for size in sizes)
    return min(figures), bound * private.influence


def bound_of(size: EffectSize, asked: float, num_released: int) -> float:
    """Return the most that one unit of weight 1 can move `figure`."""
    return 1.0 + asked + size.by_chance(num_released, ERROR / 4)  # a unit's f − μ weighs at most 1, a whole range


def needed(size: EffectSize, asked: float, units: float, epsilon: float, attempts: int, num_released: int) -> float:
    """Return the effect size from which a check on `units` units passes more often than not; public."""
    noise = needed_figure(epsilon, attempts, ERROR / 2) * bound_of(size, asked, num_released)
    chance = size.by_chance(1.0, ERROR / 4) * math.sqrt(units)
    return asked + size.by_chance(num_released, ERROR / 4) + (noise + chance) / max(units, 1.0)


def transformed_copies(columns: tuple[Channel, ...], released: np.ndarray, real: np.ndarray) -> tuple[str, ...]:
    """Return names of columns whose released distribution is the real one behind a simple invertible map.

    Numbers: moved, stretched or mirrored. Categories: renamed. Such a copy passes every test of difference.
    """
    found = []
    for place, column in enumerate(columns):
        codes = num_codes(column)
        sides = released[:, place], real[:, place]
        if _affine_copy(*sides) if codes is None else _renamed(*sides, codes):
            found.append(column.name)
    return tuple(found)


def _affine_copy(released: np.ndarray, real: np.ndarray) -> bool:
    first, second = (np.quantile(values, _QUANTILES) for values in (released, real))
    if not min(first.std(), second.std()) > 1e-9:
        return False
    moved = max(abs(first.mean() - second.mean()) / second.std(), abs(np.log(first.std() / second.std()))) > _MOVED
    ours, theirs = zscore(first), zscore(second)
    straight, mirrored = (float(np.abs(ours - other).mean()) for other in (theirs, -theirs[::-1]))
    return (moved and straight < _SAME_SHAPE) or (mirrored < _SAME_SHAPE < straight)


def _renamed(released: np.ndarray, real: np.ndarray, codes: int) -> bool:
    shares = [np.bincount(values.astype(int), minlength=codes) / len(values) for values in (released, real)]
    apart = np.abs(shares[0] - shares[1]).sum() / 2
    sorted_apart = np.abs(np.sort(shares[0]) - np.sort(shares[1])).sum() / 2
    return bool(apart > 2 * _SAME_SHARES and sorted_apart < _SAME_SHARES)


def share_without_support(released: np.ndarray, real: np.ndarray) -> float:
    """Return the share of released x′ [row, number] that lie farther from reference points than these do."""
    if len(real) < 2:
        return 1.0
    probed = min(_PROBED, len(real) // 2)
    pool, own = real[probed:], real[:probed]
    usual, found = (cdist(points, pool).min(axis=1) for points in (own, released[:_PROBED]))
    return float((found > max(np.quantile(usual, _UNSUPPORTED), 1e-9)).mean())
