"""Trying several settings on private data and keeping the best, at a price that does not grow with the tries.

Papernot & Steinke (arXiv:2110.03620): run a base mechanism a *random* number of times and release only the
best
result. What makes it true: the number of repetitions is secret, candidates are drawn from a list fixed
beforehand, the score is part of the base mechanism's own budget, and no loser is ever seen.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from understudy.errors import InputError
from understudy.privacy.events import Composed, RepeatAndSelect
from understudy.privacy.grant import Grant
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan

Candidate = TypeVar("Candidate")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """A private choice among candidates that all spend the same base plan (which includes their score).

    **Privacy**: charged as `RepeatAndSelect`. How long it takes hints at the number of repetitions; keep
    timings to yourself.
    """

    label: str
    base: SpendingPlan
    expected_runs: float
    distribution: Literal["poisson", "geometric"] = "poisson"

    def event(self) -> RepeatAndSelect:
        """What it costs, however many candidates there are."""
        return RepeatAndSelect(Composed(self.base.events), self.expected_runs, self.distribution)

    def run(
        self,
        grant: Grant,
        candidates: Sequence[Candidate],
        execute: Callable[[Candidate, Grant], tuple[Result, float]],
    ) -> Result | None:
        """The result with the highest score, or None if chance said "no run at all" (Poisson only).

        Args:
            candidates: fixed before any data was read.
            execute: runs one candidate under the grant it is given and returns (result, noisy score). It must
                not print, log or keep anything; a score that is not a number loses.
        """
        if not candidates:
            raise InputError("Selection needs at least one candidate.")
        repetition = grant.begin_selection(self.label, self.base)
        best: Result | None = None
        best_score = -math.inf
        for _ in range(self._number_of_runs(grant.noise)):
            chosen = candidates[int(grant.noise.uniform(1)[0] * len(candidates))]
            result, score = execute(chosen, repetition())
            if best is None or score > best_score:
                best, best_score = result, (score if math.isfinite(score) else -math.inf)
        return best

    def _number_of_runs(self, noise: NoiseSource) -> int:
        """Drawn by inversion from a secret coin; the caller never learns it."""
        chance = float(noise.uniform(1)[0])
        if self.distribution == "geometric":
            stay = 1 - 1 / self.expected_runs
            return 1 + math.floor(math.log1p(-chance) / math.log(stay))
        number, term = 0, math.exp(-self.expected_runs)
        total = term
        while chance >= total and number < 10_000:
            number += 1
            term *= self.expected_runs / number
            total += term
        return number
