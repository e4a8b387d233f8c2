"""An audit by a single run: many canaries, each put in or left out by a coin (Steinke, Nasr & Jagielski 2023).

Whoever guesses the coins of a private run is right hardly more often than somebody who answers at random, though it
is one run: the canaries' coins are independent. How many guesses are made has to be said before they are counted.
Reference: arXiv:2305.08846v1, Theorem 5.2 and Appendix D.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from understudy.audit.result import AuditResult
from understudy.errors import InputError

_HALVINGS = 40
_LARGEST = 60.0  # epsilon; e^60 leaves nothing to guess


@dataclass(frozen=True)
class Guesses:
    """Of `canaries` coins, `guessed` were guessed and `correct` of these rightly.

    Attributes:
        alpha: How likely a true claim may be contradicted.
        at_delta: The delta at which epsilon is bounded; said beforehand.
    """

    canaries: int
    guessed: int
    correct: int
    alpha: float
    at_delta: float

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.guessed <= self.canaries:
            raise InputError("Expected correct ≤ guessed ≤ canaries, got other counts.")

    def p_value(self, epsilon: float, delta: float) -> float:
        """How likely so many right guesses are, at most, if the run is (epsilon, delta)-private (Theorem 5.2)."""
        accuracy = 1 / (1 + math.exp(-epsilon))
        by_luck = float(binom.sf(self.correct - 1, self.guessed, accuracy))
        fewer = np.arange(1, self.correct + 1)
        mass = np.cumsum(binom.pmf(self.correct - fewer, self.guessed, accuracy))
        broken = float(np.max(mass / fewer, initial=0.0))
        return min(1.0, by_luck + 2 * self.canaries * delta * broken)

    def epsilon(self, delta: float) -> float:
        """Epsilon is at least this at `delta`; 0 when nothing follows."""
        low, high = 0.0, _LARGEST
        if self.p_value(0.0, delta) > self.alpha:
            return 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.p_value(middle, delta) <= self.alpha else (low, middle)
        return low

    def delta(self, epsilon: float) -> float:
        """At least so much delta is lost at `epsilon`: the stated one, as long as epsilon is below its bound."""
        return self.at_delta if epsilon < self.bound else 0.0

    def epsilons(self) -> NDArray[np.float64]:
        """Where to compare with a claim: at one point, because only one was named beforehand."""
        return np.array([self.bound * (1 - 1e-9)])

    @cached_property
    def bound(self) -> float:
        """Epsilon is at least this at the stated delta."""
        return self.epsilon(self.at_delta)


def audit_one_run(
    scores: dict[str, NDArray[np.float64]],
    included: NDArray[np.bool_],
    *,
    guesses: int,
    delta: float,
    confidence: float = 0.95,
) -> AuditResult:
    """The strongest lower bound that a family of attacks on one run proves.

    Args:
        scores: By attack, one number per canary; high means *was in*.
        included: The coins.
        guesses: How many coins each attack guesses: the highest half of them *in*, the lowest half *out*.
    """
    if not scores or guesses < 2 or guesses % 2 or guesses > len(included):
        raise InputError("guesses: an even number from 2 to the number of canaries is expected, and an attack.")
    alpha = (1 - confidence) / len(scores)
    found = {name: _guess(own, included, guesses, alpha, delta) for name, own in scores.items()}
    best = max(found, key=lambda name: found[name].correct)
    perfect = Guesses(len(included), guesses, guesses, alpha, delta)
    return AuditResult(
        attack=best,
        family=len(scores),
        runs=1,
        confidence=confidence,
        evidence=found[best],
        ceiling=perfect.epsilon(delta),
        delta=delta,
    )


def _guess(
    scores: NDArray[np.float64], included: NDArray[np.bool_], guesses: int, alpha: float, delta: float
) -> Guesses:
    if scores.shape != included.shape or not np.isfinite(scores).all():
        raise InputError("Expected one finite score per canary, got others.")
    order = np.argsort(scores, kind="stable")
    half = guesses // 2
    correct = np.count_nonzero(included[order[-half:]]) + np.count_nonzero(~included[order[:half]])
    return Guesses(len(included), guesses, int(correct), alpha, delta)
