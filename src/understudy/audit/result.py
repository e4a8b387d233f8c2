"""What an audit found: a lower bound with confidence, or nothing. Never safety."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from understudy.privacy import accounting
from understudy.privacy.accounting import gaussian_epsilon, gaussian_log_delta
from understudy.privacy.certificate import Certificate, parsed_events
from understudy.privacy.events import Event


@dataclass(frozen=True)
class ErrorRates:
    """How seldom one test errs, as upper bounds; holds for whatever made the scores.

    Attributes:
        false_positive: of runs without the unit, the share that the test takes for runs with it.
        false_negative: of runs with the unit, the share that the test misses.
    """

    false_positive: float
    false_negative: float

    @property
    def mu(self) -> float:
        """The least mu of a Gaussian-DP claim that these rates do not contradict (Dong, Roth & Su 2022, Eq. 6)."""
        return max(0.0, float(ndtri(1 - self.false_positive) - ndtri(self.false_negative)))

    def delta(self, epsilon: float) -> float:
        """At least so much delta is lost at `epsilon`; read in both directions."""
        one, other = self.false_positive, self.false_negative
        return max(0.0, 1 - other - math.exp(epsilon) * one, 1 - one - math.exp(epsilon) * other)

    def epsilon(self, delta: float) -> float:
        """At least so much epsilon is lost at `delta` (Kairouz, Oh & Viswanath 2015, Theorem 2.1)."""
        odds = [(1 - b - delta) / a for a, b in self._both_ways() if 1 - b - delta > 0]
        return max([0.0, *(math.log(ratio) for ratio in odds)])

    def epsilons(self) -> NDArray[np.float64]:
        """Where to compare with a claim: as far as the rates say anything."""
        return np.linspace(0.0, self.epsilon(0.0), 60)

    def _both_ways(self) -> tuple[tuple[float, float], ...]:
        return (self.false_positive, self.false_negative), (self.false_negative, self.false_positive)


@dataclass(frozen=True)
class GaussianShift:
    """Releases with and without the unit are normals whose means differ by at least `mu` standard deviations."""

    mu: float

    def delta(self, epsilon: float) -> float:
        """At least so much delta is lost at `epsilon`."""
        return 0.0 if self.mu == 0 else math.exp(gaussian_log_delta(self.mu, epsilon))

    def epsilon(self, delta: float) -> float:
        """At least so much epsilon is lost at `delta`."""
        return gaussian_epsilon(self.mu, delta)

    def epsilons(self) -> NDArray[np.float64]:
        """Where to compare with a claim: where a Gaussian of this mu loses most of its delta."""
        return np.linspace(0.0, self.mu**2 / 2 + 4 * self.mu, 60)


class Evidence(Protocol):
    """What was found, as bounds that hold with the audit's confidence."""

    def delta(self, epsilon: float) -> float:
        """At least so much delta is lost at `epsilon`."""

    def epsilon(self, delta: float) -> float:
        """At least so much epsilon is lost at `delta`."""

    def epsilons(self) -> NDArray[np.float64]:
        """Where to compare with a claim."""


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The strongest of a family of attacks, and what it proves.

    Internal: an audit of private data reads them without a charge.

    Attributes:
        attack: name of the strongest.
        family: attacks tried; the confidence holds for all of them together.
        runs: per arm, that the bound rests on; 1: a single run with many canaries.
        confidence: chance that the bound is true, before the audit is run.
        evidence: what was found.
        ceiling: the epsilon that a perfect attack would have certified with this many runs; None: no such limit.
        delta: where `ceiling` and the sentence state epsilon.
    """

    attack: str
    family: int
    runs: int
    confidence: float
    evidence: Evidence
    ceiling: float | None
    delta: float

    @property
    def epsilon(self) -> float:
        """Epsilon is at least this, at `delta`."""
        return self.evidence.epsilon(self.delta)

    def contradicts(self, certificate: Certificate) -> bool:
        """Whether the certificate's events would have made what was found (nearly) impossible."""
        return self.refutes(parsed_events(certificate))

    def refutes(self, events: Iterable[Event]) -> bool:
        """Whether some epsilon exists at which more delta is lost than the events are said to cost.

        All epsilons at once: for Gaussians this is the comparison of trade-off curves, which tells more than a
        single (epsilon, delta). The bound's confidence covers all of them.
        """
        claimed = tuple(events)
        return any(self.evidence.delta(at) > accounting.delta(claimed, at) for at in self.evidence.epsilons())

    def sentence(self) -> str:
        """The finding in words, with what could have been found at most beside it."""
        runs = "one run" if self.runs == 1 else f"{self.runs} runs per arm"
        most = "" if self.ceiling is None else f" With so much no attack can certify more than {self.ceiling:.2f}."
        return (
            f"'{self.attack}', strongest of {self.family}: epsilon is at least {self.epsilon:.2f} at "
            f"delta = {self.delta:g} ({100 * self.confidence:.10g} % confidence, {runs}).{most} "
            "A lower bound: a small one does not mean privacy."
        )
