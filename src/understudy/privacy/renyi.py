"""Rényi differential privacy of events, on one fixed list of orders."""

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar

from understudy.errors import UnsupportedEvent
from understudy.privacy.events import (
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    NonPrivate,
    PureDP,
    RepeatAndSelect,
    SubsampledGaussian,
)

ORDERS = np.array(
    [1 + step / 10 for step in range(1, 100)] + list(range(11, 64)) + [72, 80, 96, 112, 128, 160, 192, 256, 512, 1024]
)
_WHOLE_ORDERS = np.unique(np.concatenate([np.arange(2, 12), ORDERS[ORDERS > 10.95]])).astype(int)
Curve = np.ndarray[tuple[int], np.dtype[np.float64]]


def renyi_curve(events: Iterable[Event]) -> Curve:
    """Sum of the events' Rényi divergence bounds, one value for each of `ORDERS`.

    An `ApproximateDP` event has no finite curve; its delta must have been set aside by the caller.
    """
    total = np.zeros_like(ORDERS)
    for event in events:
        total = total + _curve(event)
    return total


def renyi_epsilon(curve: Curve, delta: float) -> float:
    """Best epsilon over all orders (Canonne, Kamath & Steinke, arXiv:2004.00010v4, Proposition 12)."""
    orders, bounds = _finite(curve)
    if not len(orders):
        return math.inf
    costs = bounds + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    return max(0.0, float(costs.min()))


def renyi_delta(curve: Curve, epsilon: float) -> float:
    """Best delta over all orders: the formula of `renyi_epsilon` solved for delta."""
    orders, bounds = _finite(curve)
    if not len(orders):
        return 1.0
    logs = (orders - 1) * (bounds - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return min(1.0, math.exp(min(0.0, float(logs.min()))))


def _finite(curve: Curve) -> tuple[Curve, Curve]:
    finite = np.isfinite(curve)
    return ORDERS[finite], curve[finite]


def concentrated_rho(events: Iterable[Event]) -> float | None:
    """rho of zero-concentrated DP, or None if some event has none.

    Poisson-subsampled events have none on purpose: their amplification does not survive the conversion.
    """
    total = 0.0
    for event in events:
        if isinstance(event, Gaussian | DiscreteGaussian):
            total += event.count / (2 * event.noise_multiplier**2)
        elif isinstance(event, PureDP):
            total += event.count * event.epsilon**2 / 2  # Bun & Steinke, arXiv:1605.02065, Proposition 3.3
        elif isinstance(event, Composed):
            inner = concentrated_rho(event.parts)
            if inner is None:
                return None
            total += inner
        else:
            return None
    return total


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zCDP with the order chosen on a continuum instead of a list."""
    if rho == 0:
        return 0.0

    def at(log_order_minus_one: float) -> float:
        order = 1 + math.exp(log_order_minus_one)
        return rho * order + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)

    best = minimize_scalar(at, bounds=(math.log(0.02), math.log(1e7)), method="bounded", options={"xatol": 1e-9})
    return max(0.0, float(best.fun))  # every order is a valid bound, so stopping early only costs utility


def concentrated_budget(epsilon: float, delta: float) -> float:
    """Largest rho whose epsilon at `delta` stays within `epsilon`, rounded down."""
    low, high = 0.0, 1.0
    while concentrated_epsilon(high, delta) < epsilon:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if concentrated_epsilon(middle, delta) <= epsilon else (low, middle)
    return low


def _curve(event: Event) -> Curve:
    if isinstance(event, Gaussian | DiscreteGaussian):
        return event.count * ORDERS / (2 * event.noise_multiplier**2)
    if isinstance(event, SubsampledGaussian):
        return event.iterations * _poisson(event.sampling_rate, event.noise_multiplier)
    if isinstance(event, MixtureOfGaussians):
        # All windows or none: moving every drawn window's weight to the furthest component can only make the
        # neighbours easier to tell apart (Choquette-Choo et al., arXiv:2310.15526). Loose but never wrong.
        any_window = (
            -math.expm1(event.max_windows * math.log1p(-event.sampling_rate)) if event.sampling_rate < 1 else 1.0
        )
        return event.iterations * _poisson(any_window, event.noise_multiplier / event.max_windows)
    if isinstance(event, PureDP):
        return event.count * _pure(event.epsilon)
    if isinstance(event, ApproximateDP) and event.delta == 0:
        return _pure(event.epsilon)
    if isinstance(event, Composed):
        return renyi_curve(event.parts)
    if isinstance(event, RepeatAndSelect):
        return _repeat_and_select(event)
    if isinstance(event, ApproximateDP | NonPrivate):
        return np.full_like(ORDERS, np.inf)
    raise UnsupportedEvent(f"No Rényi rule for an event of type {type(event).__name__}.")


@lru_cache(maxsize=256)
def _poisson(sampling_rate: float, noise_multiplier: float) -> Curve:
    """Whole orders from dp-accounting; between them a chord, because (order − 1)·divergence is convex.

    The series for fractional orders converges slowly or not at all for ordinary parameters.
    """
    from dp_accounting.dp_event import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(_WHOLE_ORDERS)
    accountant.compose(PoissonSampledDpEvent(sampling_rate, GaussianDpEvent(noise_multiplier)))
    whole = np.asarray(accountant._rdp, dtype=np.float64)
    chord = np.interp(ORDERS, [1.0, *_WHOLE_ORDERS], [0.0, *((_WHOLE_ORDERS - 1) * whole)])
    return np.asarray(chord / (ORDERS - 1), dtype=np.float64)


def _pure(epsilon: float) -> Curve:
    """Randomised response is the worst of all epsilon-DP mechanisms; this is its divergence, in logarithms."""
    log_yes, log_no = -np.log1p(np.exp(-epsilon)), -epsilon - np.log1p(np.exp(-epsilon))
    one = ORDERS * log_yes + (1 - ORDERS) * log_no
    two = ORDERS * log_no + (1 - ORDERS) * log_yes
    bound = np.logaddexp(one, two) / (ORDERS - 1)
    return np.asarray(np.minimum(np.maximum(bound, 0.0), epsilon), dtype=np.float64)


def _repeat_and_select(event: RepeatAndSelect) -> Curve:
    """Papernot & Steinke, arXiv:2110.03620v2: Theorem 6 (Poisson) and Theorem 2 with eta = 1 (geometric)."""
    base, mean = _curve(event.base), event.expected_runs
    if not np.isfinite(base).any():
        return np.full_like(ORDERS, np.inf)
    growth = base + math.log(mean) / (ORDERS - 1)
    if event.distribution == "poisson":
        slack = np.array([renyi_delta(base, math.log1p(1 / (order - 1))) for order in ORDERS])
        return np.asarray(growth + mean * slack, dtype=np.float64)
    gamma = 1 / mean
    extra = 2 * np.min((1 - 1 / ORDERS) * base + math.log(1 / gamma) / ORDERS)
    return np.asarray(growth + extra, dtype=np.float64)
