"""The mu-test of canaries: what the difference of two arms of nearly normal releases proves.

Along the canary's axis the releases of a Gaussian mechanism are N(a, s²) without the unit and N(b, s²) with it, and the
claim is |b − a| ≤ mu · s. The difference of means over the pooled deviation follows Student's non-central t
distribution, exactly; so do the interval for mu, the false-alarm rate and the power.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from understudy.auditing.scores import Interval, LowerBound, Scores
from understudy.errors import InputError
from understudy.privacy import accounting

_LARGEST_MU = 1000.0  # stands for "no noise at all"
_RUNS = range(2, 10_000_000)


@dataclass(frozen=True)
class GaussianShift:
    """Releases with and without the unit are normals whose means differ by at least `mu` standard deviations."""

    mu: float

    def delta(self, epsilon: float) -> float:
        """Returns the delta that is lost at `epsilon` at least."""
        return 0.0 if self.mu == 0 else math.exp(accounting.gaussian_log_delta(self.mu, epsilon))

    def epsilon(self, delta: float) -> float:
        """Returns the epsilon that is lost at `delta` at least."""
        return accounting.gaussian_epsilon(self.mu, delta)

    def epsilons(self) -> NDArray[np.float64]:
        """Returns where to compare with a claim: where a Gaussian of this mu loses most of its delta."""
        return np.linspace(0.0, self.mu**2 / 2 + 4 * self.mu, 60)


def mu_interval(scores: Scores, confidence: float = 0.95) -> Interval:
    """Returns how far apart the arms are, in standard deviations, whichever of them is higher."""
    absent, present = scores.absent, scores.present
    freedom = len(absent) + len(present) - 2
    squares = ((absent - absent.mean()) ** 2).sum() + ((present - present.mean()) ** 2).sum()
    distance = abs(float(present.mean() - absent.mean()))
    deviation = max(math.sqrt(squares / freedom), distance / _LARGEST_MU)
    observed = distance / deviation if distance else 0.0
    scale, tail = math.sqrt(len(absent) * len(present) / (len(absent) + len(present))), (1 - confidence) / 2
    low, high = (
        _where(lambda mu: student_tail(observed * scale, freedom, mu * scale), level) for level in (tail, 1 - tail)
    )
    return Interval(observed, low, high)


def mu_test(family: Mapping[str, Scores], *, delta: float, confidence: float = 0.95) -> LowerBound:
    """Returns the largest lower bound on mu of several scenes, all of them together at `confidence`."""
    if not family:
        raise InputError("Expected at least one scene, got none.")
    each = 1 - (1 - confidence) / len(family)
    lower = {name: mu_interval(scores, each).low for name, scores in family.items()}
    best = max(lower, key=lambda name: lower[name])
    return LowerBound(
        attack=best,
        family=len(family),
        runs=family[best].runs,
        confidence=confidence,
        evidence=GaussianShift(lower[best]),
        ceiling=None,
        delta=delta,
    )


def power_of(mu: float, excess: float, runs: int, alpha: float) -> float:
    """Returns the chance that `runs` per arm contradict a claim of `mu` when the truth is mu · (1 + excess).

    Args:
        alpha: how often a true claim is contradicted; half of it belongs to each sign.
    """
    scale, freedom = math.sqrt(runs / 2), 2 * runs - 2
    threshold = _where(lambda found: -student_tail(found * scale, freedom, mu * scale), -alpha / 2)
    return student_tail(threshold * scale, freedom, mu * (1 + excess) * scale)


def required_runs(mu: float, excess: float, *, alpha: float = 0.05, power: float = 0.9) -> int:
    """Returns the fewest runs per arm that find an excess of mu with the power asked for.

    Half of the noise is an excess of 1; ten percent less of it is an excess of 1/0.9 − 1.

    Example:
        >>> required_runs(1.0, 1.0)
        28
    """
    if not mu > 0 or not excess >= 0 or not 0 < alpha < 1:
        raise InputError("Expected a positive mu, an excess of 0 or more and alpha between 0 and 1.")
    place = bisect_left(_RUNS, power, key=lambda runs: power_of(mu, excess, runs, alpha))
    if place == len(_RUNS):
        raise InputError(f"Expected an excess that {_RUNS.stop} runs per arm can show, got {excess:g} of {mu:g}.")
    return _RUNS[place]


def student_tail(t: float, freedom: int, shift: float) -> float:
    """P(T > t) for Student's t with a non-centrality: E Φ(shift − t·U), where freedom · U² is chi-squared.

    By the trapezoid rule over forty deviations of U to each side, to five digits from five runs per arm on; scipy's
    own `nct` gives up where the shift is large.
    """
    width = 40 / math.sqrt(2 * freedom)
    ratio = np.linspace(max(1e-6, 1 - width), 1 + width, 1601)
    log_density = (freedom - 1) * np.log(ratio) - freedom * ratio**2 / 2
    weights = np.exp(log_density - log_density.max())
    return float(weights @ ndtr(shift - t * ratio) / weights.sum())


def _where(rising: Callable[[float], float], level: float) -> float:
    """The place above 0 where a rising function crosses a level; 0 if it starts above."""
    if rising(0.0) >= level:
        return 0.0
    high = 1.0
    while rising(high) < level:
        high *= 2
    return float(brentq(lambda at: rising(at) - level, 0.0, high, xtol=1e-9, rtol=1e-9))
