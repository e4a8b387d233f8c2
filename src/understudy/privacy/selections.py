"""What is chosen from private data and not summed: a quantile, categories that exist, answers about a threshold."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.noise import NoiseSource

_STEPS = 1024  # of AboveThreshold's grid, the most that one unit can move a figure, one of them for rounding


def quantile_scores(values_one_per_unit: ArrayLike, candidates: NDArray[np.float64], q: float) -> NDArray[np.float64]:
    """Minus the distance of q·n from each candidate's ranks, so that the best candidate scores highest.

    A candidate c covers the ranks from #{x < c} to #{x ≤ c}. Both #{x < c} − q·n and q·n − #{x ≤ c} move by
    −q, 1 − q or their negatives when a unit is added, so no score moves by more than max(q, 1 − q).
    """
    if not 0 < q < 1:
        raise InputError(f"A quantile must lie between 0 and 1, got {q}.")
    if len(candidates) < 2 or not np.isfinite(candidates).all():
        raise InputError("A quantile needs a public grid of at least two finite candidates.")
    values = np.asarray(values_one_per_unit, dtype=np.float64)
    if values.ndim != 1:
        raise InputError("A quantile needs exactly one value per unit, as a flat array.")
    values = np.sort(values[~np.isnan(values)])
    wanted = q * len(values)
    too_high = np.searchsorted(values, candidates, side="left") - wanted
    too_low = wanted - np.searchsorted(values, candidates, side="right")
    return np.asarray(-np.maximum(np.maximum(too_high, too_low), 0.0), dtype=np.float64)


def domain_threshold(epsilon: float, delta: float) -> int:
    """Least T with P[1 + noise > T] ≤ delta for discrete Laplace noise of scale 1/epsilon.

    P[noise ≥ T] = e^(−epsilon·T) / (1 + e^(−epsilon)) for whole T ≥ 1; rounded up: fewer categories.
    """
    if delta <= 0:
        raise ValueError("delta must be positive")
    return max(1, math.ceil(-(math.log(delta) + math.log1p(math.exp(-epsilon))) / epsilon))


def first_keys_by_noisy_count(
    votes_one_per_unit: Sequence[str], scale: float, threshold: int, noise: NoiseSource
) -> tuple[str, ...]:
    """Sorted keys whose noisy count exceeds the threshold; sorted, because order of arrival is private."""
    counts = Counter(votes_one_per_unit)
    keys = sorted(counts)
    drawn = noise.discrete_laplace(scale, len(keys))
    return tuple(key for key, extra in zip(keys, drawn, strict=True) if counts[key] + int(extra) > threshold)


@final
class AboveThreshold:
    """Answers whether private figures are above zero, up to the first yes; made by `Grant.above_threshold`.

    AboveThreshold, Dwork and Roth (2014), *The Algorithmic Foundations of Differential Privacy*, Algorithm 1. Figures
    are rounded down onto a grid in which one unit moves them by whole steps, so that noise can be exact integers.

    **Privacy**: epsilon-DP for all answers together. The threshold has noise of scale 2Δ/epsilon, every figure noise of
    its own of scale 4Δ/epsilon; Δ is the figure's bound, the same for all of them.
    """

    def __init__(self, epsilon: float, noise: NoiseSource, max_questions: int, mistake: float) -> None:
        if max_questions < 1 or not 0 < mistake < 1:
            raise InputError("AboveThreshold needs at least one question and a chance of a mistake between 0 and 1.")
        self._epsilon, self._noise, self._left = epsilon, noise, max_questions
        self._threshold = int(noise.discrete_laplace(2 * _STEPS / epsilon, 1)[0])
        self._margin = math.ceil(_STEPS * needed_figure(epsilon, max_questions, mistake))
        self._bound: float | None = None

    def __call__(self, figure: float, bound: float) -> bool:
        """Says whether a figure, which one unit moves by at most `bound`, is above zero; none is asked after a yes.

        A figure that is not above zero gets a yes with a chance of at most `mistake` over all questions: noise has to
        exceed 6Δ/epsilon · log(2 · questions / mistake), of which the threshold's own noise has a third.
        """
        if self._left < 1:
            raise BudgetExceeded(
                "The last question that was paid for has been answered. Charge a new plan.",
                requested=None,
                remaining=0.0,
                label="check",
            )
        if self._bound not in (None, bound) or not 0 < bound < math.inf:
            raise InputError("AboveThreshold takes figures with one positive bound, the same for all.")
        self._left, self._bound = self._left - 1, bound
        whole = math.floor(figure / bound * (_STEPS - 1)) if math.isfinite(figure) else 0
        noisy = whole + int(self._noise.discrete_laplace(4 * _STEPS / self._epsilon, 1)[0])
        above = noisy >= self._threshold + self._margin
        self._left = 0 if above else self._left
        return above


def needed_figure(epsilon: float, max_questions: int, mistake: float) -> float:
    """Returns by how many units' worth a figure must exceed zero to be answered with yes more often than not."""
    return 6 / epsilon * math.log(2 * max_questions / mistake)
