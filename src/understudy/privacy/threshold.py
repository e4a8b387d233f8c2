"""Is a private figure above a threshold? Asked again and again at one price, until the answer is yes.

AboveThreshold, Dwork and Roth (2014), *The Algorithmic Foundations of Differential Privacy*, Algorithm 1. Figures are
rounded down onto a grid in which one unit moves them by whole steps, so that noise can be exact integers.
"""

import math
from typing import final

from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.noise import NoiseSource

_STEPS = 1024  # of the grid, the most that one unit can move a figure, one of them for rounding


@final
class AboveThreshold:
    """Answers at most `max_questions` questions, the last one with yes. Made by `Grant.above_threshold`.

    **Privacy**: epsilon-DP for all answers together. The threshold has noise of scale 2Δ/epsilon, every figure noise of
    its own of scale 4Δ/epsilon; Δ is the figure's bound, the same for all of them.
    """

    def __init__(self, epsilon: float, noise: NoiseSource, max_questions: int, mistake: float) -> None:
        if max_questions < 1 or not 0 < mistake < 1:
            raise InputError("AboveThreshold needs at least one question and a chance of a mistake between 0 and 1.")
        self._epsilon, self._noise, self._left = epsilon, noise, max_questions
        self._threshold = int(noise.discrete_laplace(2 * _STEPS / epsilon, 1)[0])
        self._margin = math.ceil(6 * _STEPS / epsilon * math.log(2 * max_questions / mistake))
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


def needed(epsilon: float, max_questions: int, mistake: float) -> float:
    """Returns by how many units' worth a figure must exceed zero to be answered with yes more often than not."""
    return 6 / epsilon * math.log(2 * max_questions / mistake)
