"""From scores to a lower bound on epsilon: one function for all attacks. Never safety.

An attack gives every run a score. The first part of the runs chooses how to read the scores (a threshold, and
whether high or low means *present*); the rest, untouched so far, is counted. Choosing and counting on the same runs
would make noise look like a leak.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainccinv, ndtri
from scipy.stats import binomtest, mannwhitneyu

from understudy.errors import InputError
from understudy.privacy import accounting
from understudy.privacy.certificate import Certificate, parsed_events
from understudy.privacy.events import Event

Aim = Literal["epsilon", "mu"]


@dataclass(frozen=True, eq=False)
class Scores:
    """One number per run, in the order in which the runs were made; the runs are independent."""

    absent: NDArray[np.float64]
    present: NDArray[np.float64]

    def __post_init__(self) -> None:
        for arm in (self.absent, self.present):
            if arm.ndim != 1 or len(arm) < 2 or not np.isfinite(arm).all():
                raise InputError("Expected at least two finite scores for each arm, got fewer or others.")

    @property
    def runs(self) -> int:
        """Runs per arm; that of the smaller arm."""
        return min(len(self.absent), len(self.present))


@dataclass(frozen=True)
class ErrorRates:
    """Upper bounds on the error rates of one test; they hold for whatever made the scores."""

    false_positive: float  # of runs without the unit, the share that the test takes for runs with it
    false_negative: float  # of runs with the unit, the share that the test misses

    @property
    def mu(self) -> float:
        """The least mu of a Gaussian-DP claim that these rates do not contradict (Dong, Roth & Su 2022, Eq. 6)."""
        return max(0.0, float(ndtri(1 - self.false_positive) - ndtri(self.false_negative)))

    def delta(self, epsilon: float) -> float:
        """Returns the delta that is lost at `epsilon` at least; read in both directions."""
        one, other = self.false_positive, self.false_negative
        return max(0.0, 1 - other - math.exp(epsilon) * one, 1 - one - math.exp(epsilon) * other)

    def epsilon(self, delta: float) -> float:
        """Returns the epsilon that is lost at `delta` at least (Kairouz, Oh & Viswanath 2015, Theorem 2.1)."""
        one, other = self.false_positive, self.false_negative
        odds = [(1 - b - delta) / a for a, b in ((one, other), (other, one)) if 1 - b - delta > 0]
        return max([0.0, *(math.log(ratio) for ratio in odds)])

    def epsilons(self) -> NDArray[np.float64]:
        """Returns where to compare with a claim: as far as the rates say anything."""
        return np.linspace(0.0, self.epsilon(0.0), 60)


class Evidence(Protocol):
    """What a bound rests on: how much delta is lost at an epsilon at least, and where to compare that with a claim."""

    def delta(self, epsilon: float) -> float: ...
    def epsilon(self, delta: float) -> float: ...
    def epsilons(self) -> NDArray[np.float64]: ...


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """The strongest of a family of attacks, and what it proves.

    Internal: an audit of private data reads them without a charge.
    """

    attack: str  # name of the strongest
    family: int  # attacks tried; the confidence holds for all of them together
    runs: int  # per arm, that the bound rests on
    confidence: float  # chance that the bound is true, before the audit is run
    evidence: Evidence
    ceiling: float | None  # epsilon that a perfect attack would certify with this many runs; None: no such limit
    delta: float  # where `ceiling` and the sentence state epsilon

    @property
    def epsilon(self) -> float:
        """Epsilon is at least this, at `delta`."""
        return self.evidence.epsilon(self.delta)

    def contradicts(self, certificate: Certificate) -> bool:
        """Whether the certificate's events would have made what was found (nearly) impossible."""
        return self.refutes(parsed_events(certificate))

    def refutes(self, events: Iterable[Event]) -> bool:
        """Whether some epsilon exists at which more delta is lost than the events are said to cost.

        All epsilons at once: for Gaussians this is the comparison of trade-off curves, which says more than a
        single (epsilon, delta). The bound's confidence covers all of them.
        """
        claimed = tuple(events)
        return any(self.evidence.delta(at) > accounting.delta(claimed, at) for at in self.evidence.epsilons())

    def sentence(self) -> str:
        """The finding in words, with what could have been found at most."""
        most = "" if self.ceiling is None else f" With this many no attack can certify more than {self.ceiling:.2f}."
        return (
            f"'{self.attack}', strongest of {self.family}: epsilon is at least {self.epsilon:.2f} at "
            f"delta = {self.delta:g} ({100 * self.confidence:.10g} % confidence, {self.runs} runs per arm).{most} "
            "A lower bound: a small one does not mean privacy."
        )


def audit_scores(
    family: Mapping[str, Scores], *, delta: float, confidence: float = 0.95, aim: Aim = "epsilon"
) -> LowerBound:
    """Returns the strongest lower bound that a family of attacks proves, all of them together at `confidence`.

    Args:
        family: every attack that was tried, by name; leaving out those that failed would be cheating.
        aim: what the test is chosen for: the epsilon it proves at `delta`, or the mu of a Gaussian-DP claim.
    """
    if not family:
        raise InputError("Expected at least one attack, got none.")
    if not 0 <= delta < 1 or not 0 < confidence < 1:
        raise InputError("Expected delta in [0, 1) and confidence between 0 and 1, got others. Change them.")
    if min(scores.runs for scores in family.values()) < 4:
        raise InputError("Expected at least four runs per arm, two to choose a test and two to count, got fewer.")
    alpha = (1 - confidence) / len(family)
    found = {name: _counted(scores, delta, alpha, aim) for name, scores in family.items()}
    value = {name: rates.mu if aim == "mu" else rates.epsilon(delta) for name, (rates, _) in found.items()}
    best = max(value, key=lambda name: value[name])
    rates, runs = found[best]
    most = ceiling(runs, delta=delta, confidence=confidence, family=len(family))
    return LowerBound(
        attack=best, family=len(family), runs=runs, confidence=confidence, evidence=rates, ceiling=most, delta=delta
    )


def ceiling(runs: int, *, delta: float, confidence: float = 0.95, family: int = 1) -> float:
    """Returns the epsilon that a perfect attack certifies with this many counted runs per arm; no attack can exceed it.

    >>> round(ceiling(100, delta=1e-5), 2)
    3.28
    """
    least = float(_upper(np.array(0), runs, (1 - confidence) / family / 2))
    return ErrorRates(least, least).epsilon(delta)


def counted(runs: int) -> int:
    """Returns how many of the given runs are counted; the first half chooses a test."""
    return runs - max(2, round(runs / 2))


def _counted(scores: Scores, delta: float, alpha: float, aim: Aim) -> tuple[ErrorRates, int]:
    """Returns error rates of the chosen test on the runs that did not choose it, and the number of these runs."""
    first, rest = _split(scores)
    sign, threshold = _best_test(first, delta, alpha, aim)
    errors = np.count_nonzero(sign * rest.absent > threshold), np.count_nonzero(sign * rest.present <= threshold)
    arms = zip(errors, (rest.absent, rest.present), strict=True)
    return ErrorRates(*(float(_upper(np.array(wrong), len(arm), alpha / 2)) for wrong, arm in arms)), rest.runs


def _split(scores: Scores) -> tuple[Scores, Scores]:
    arms = (scores.absent, scores.present)
    first, rest = zip(*(np.split(arm, [len(arm) - counted(len(arm))]) for arm in arms), strict=True)
    return Scores(*first), Scores(*rest)


def _best_test(scores: Scores, delta: float, alpha: float, aim: Aim) -> tuple[float, float]:
    """Returns the sign and threshold whose bound would be highest if these runs were counted."""
    best = (-np.inf, 1.0, 0.0)
    for sign in (1.0, -1.0):
        absent, present = np.sort(sign * scores.absent), np.sort(sign * scores.present)
        thresholds = np.unique(np.concatenate([absent, present]))
        false_positives = len(absent) - np.searchsorted(absent, thresholds, side="right")
        false_negatives = np.searchsorted(present, thresholds, side="right")
        a = _upper(false_positives, len(absent), alpha / 2)
        b = _upper(false_negatives, len(present), alpha / 2)
        if aim == "mu":
            values = ndtri(1 - a) - ndtri(b)
        else:  # the larger of both readings, as `ErrorRates.epsilon`
            values = np.maximum(*(np.log(np.maximum(1 - q - delta, 1e-300) / p) for p, q in ((a, b), (b, a))))
        place = int(np.argmax(values))
        best = max(best, (float(values[place]), sign, float(thresholds[place])))
    return best[1], best[2]


def _upper(errors: NDArray[np.int64], runs: int, alpha: float) -> NDArray[np.float64]:
    """Clopper & Pearson (1934): with probability 1 − alpha the true rate is at most this."""
    bound = betainccinv(errors + 1.0, np.maximum(runs - errors, 1.0), alpha)
    return np.where(errors >= runs, 1.0, bound)


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"


def rate(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Returns a share with Wilson's interval (1927)."""
    found = binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    return Interval(successes / trials, float(found.low), float(found.high))


def area_under_curve(absent: NDArray[np.float64], present: NDArray[np.float64], confidence: float = 0.95) -> Interval:
    """Returns the chance that a present run scores higher than an absent one, with Newcombe's interval.

    Newcombe (2006), Statistics in Medicine 25, 559–573, method 5: sensible also when both arms are apart. The variance
    is that under exponential scores (Hanley & McNeil 1982), symmetric in both arms.
    """
    pairs = len(absent) * len(present)
    area = float(mannwhitneyu(present, absent, method="asymptotic").statistic) / pairs
    z, typical = float(ndtri(0.5 + confidence / 2)), (len(absent) + len(present)) / 2 - 1

    def beyond(truth: float) -> float:
        spread = 1 + typical * (1 - truth) / (2 - truth) + typical * truth / (1 + truth)
        return (area - truth) ** 2 - z**2 * truth * (1 - truth) * spread / pairs

    low = 0.0 if area == 0 else float(brentq(beyond, 0.0, area - 1e-9))
    high = 1.0 if area == 1 else float(brentq(beyond, area + 1e-9, 1.0))
    return Interval(area, low, high)


def excess_risk(attacked: Interval, control: Interval) -> Interval:
    """Returns (attacked − control) / (1 − control): what knowing the release added (Giomi et al. 2023, Eq. 3).

    The interval takes the worst of both sides, so its confidence is at least what two such intervals have together.
    """
    pairs = ((attacked.estimate, control.estimate), (attacked.low, control.high), (attacked.high, control.low))
    return Interval(*(0.0 if other >= 1 else max(-1.0, (one - other) / (1 - other)) for one, other in pairs))
