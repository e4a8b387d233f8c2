"""Rates and areas with intervals: what so many runs can say, and what they can't."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import binomtest, rankdata


@dataclass(frozen=True)
class Interval:
    """An estimate and what it may be instead, at the stated confidence."""

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

    Newcombe (2006), Statistics in Medicine 25, 559–573, method 5: sensible also when both arms are apart.
    """
    ranks = rankdata(np.concatenate([absent, present]))[len(absent) :]
    area = float((ranks.sum() - len(present) * (len(present) + 1) / 2) / (len(absent) * len(present)))
    z = float(ndtri(0.5 + confidence / 2))

    def beyond(truth: float) -> float:
        return (area - truth) ** 2 - z**2 * _variance(truth, len(absent), len(present))

    low = 0.0 if area == 0 else float(brentq(beyond, 0.0, area - 1e-9))
    high = 1.0 if area == 1 else float(brentq(beyond, area + 1e-9, 1.0))
    return Interval(area, low, high)


def _variance(area: float, absent: int, present: int) -> float:
    """Variance of the estimated area under exponential scores (Hanley & McNeil 1982), symmetric in both arms."""
    typical = (absent + present) / 2 - 1
    spread = 1 + typical * (1 - area) / (2 - area) + typical * area / (1 + area)
    return area * (1 - area) * spread / (absent * present)


def excess_risk(attacked: Interval, control: Interval) -> Interval:
    """Returns (attacked − control) / (1 − control): what knowing the release added (Giomi et al. 2023, Eq. 3).

    The interval takes the worst of both sides, so its confidence is at least what two such intervals have together.
    """

    def risk(one: float, other: float) -> float:
        return 0.0 if other >= 1 else (one - other) / (1 - other)

    pairs = ((attacked.estimate, control.estimate), (attacked.low, control.high), (attacked.high, control.low))
    return Interval(*(max(-1.0, risk(*pair)) if math.isfinite(risk(*pair)) else 0.0 for pair in pairs))
