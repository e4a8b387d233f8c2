"""Epsilon and delta of a list of events: the smallest of all bounds that hold.

Closed form when every event is an un-subsampled Gaussian; otherwise the smaller of privacy loss distributions
(`privacy.losses`) and Rényi DP. All of them assume that the events' parameters were fixed before any data was read;
composing runs whose parameters depend on earlier results is the ledger's job and follows other rules.

Notation: mu = 1/noise_multiplier of one Gaussian release; releases compose as mu² = Σ mu_i². Balle & Wang
(arXiv:1805.06530, Theorem 8): delta = Φ(mu/2 − epsilon/mu) − e^epsilon Φ(−mu/2 − epsilon/mu).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr

from understudy.errors import InputError, UnsupportedEvent
from understudy.privacy import losses
from understudy.privacy.budget import SMALLEST_DELTA
from understudy.privacy.events import (
    ApproximateDP,
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    NonPrivate,
    PureDP,
    SubsampledGaussian,
)

ORDERS = np.array(
    [1 + step / 10 for step in range(1, 100)] + list(range(11, 64)) + [72, 80, 96, 112, 128, 160, 192, 256, 512, 1024]
)
_WHOLE_ORDERS = np.unique(np.concatenate([np.arange(2, 12), ORDERS[ORDERS > 10.95]])).astype(int)
Curve = np.ndarray[tuple[int], np.dtype[np.float64]]
_HOPELESS = 60.0  # above this epsilon a finer number changes no decision
MAX_EVENTS = 1_000
MAX_KINDS = 16  # of events that differ by more than how often they are executed; Gaussians are one
MAX_DELTAS = 10
MAX_EXECUTIONS = 1_000_000
_ROOT_HALF_PI = math.sqrt(math.pi / 2)


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """Natural logarithm of delta.

    Written with Mills' ratio R, because e^epsilon·φ(x + mu) = φ(x) for x = epsilon/mu − mu/2 turns the
    difference of two tiny tails into φ(x)·(R(x) − R(x + mu)), which does not cancel.
    """
    x = epsilon / mu - mu / 2
    if x < -20:  # delta is 1 to double precision or nearly so, and R(x) would overflow
        second = min(-1e-9, epsilon + float(log_ndtr(-x - mu)))  # far below 0; two huge numbers may cancel badly
        return float(log_ndtr(-x)) + math.log1p(-math.exp(second))
    difference = _ROOT_HALF_PI * float(erfcx(x / math.sqrt(2)) - erfcx((x + mu) / math.sqrt(2)))
    if difference <= 0:
        return -math.inf
    return -x * x / 2 - 0.5 * math.log(2 * math.pi) + math.log(difference)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon at `delta`, rounded up by less than one part in 10¹⁰."""
    if mu == 0:
        return 0.0
    target = math.log(delta)
    if gaussian_log_delta(mu, 0.0) <= target:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(-2 * target) + mu  # Gaussian tail bound, then some
    return _turn(lambda epsilon: gaussian_log_delta(mu, epsilon) > target, high, 1e-11)[1]


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu that (epsilon, delta) pays for, rounded down: more noise."""
    target = math.log(delta)
    return _turn(lambda mu: gaussian_log_delta(mu, epsilon) <= target, 1.0, 1e-12)[0]


def _turn(holds: Callable[[float], bool], high: float, within: float) -> tuple[float, float]:
    """Return two numbers as near as `within` between which `holds` turns false; it is true at 0."""
    while holds(high):
        high *= 2
    low = 0.0
    while high - low > within * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def renyi_curve(events: Iterable[Event]) -> Curve:
    """Sum of the events' Rényi divergence bounds, one value for each of `ORDERS`.

    An `ApproximateDP` event has no finite curve; its delta must have been set aside by the caller.
    """
    return sum((event.executions * _curve(event) for event in events), np.zeros_like(ORDERS))


def renyi_epsilon(curve: Curve, delta: float) -> float:
    """Best epsilon over all orders (Canonne, Kamath & Steinke, arXiv:2004.00010v4, Proposition 12)."""
    finite = np.isfinite(curve)
    orders, bounds = ORDERS[finite], curve[finite]
    costs = bounds + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    return max(0.0, float(costs.min(initial=np.inf)))


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
        else:
            return None
    return total


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zCDP with the order chosen on a continuum instead of a list."""
    if rho == 0:
        return 0.0

    low, high, least = math.log(0.02), math.log(1e7), math.inf  # of order − 1
    for _ in range(5):  # every order is a valid bound, so that stopping early only costs utility
        tried = np.linspace(low, high, 257)
        orders = 1 + np.exp(tried)
        costs = rho * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
        best = int(costs.argmin())
        low, high, least = tried[max(0, best - 1)], tried[min(256, best + 1)], min(least, float(costs[best]))
    return max(0.0, least)


def concentrated_budget(epsilon: float, delta: float) -> float:
    """Largest rho whose epsilon at `delta` stays within `epsilon`, rounded down."""
    return _turn(lambda rho: concentrated_epsilon(rho, delta) <= epsilon, 1.0, 1e-12)[0]


def _curve(event: Event) -> Curve:
    """Rényi divergence bounds of one execution."""
    if isinstance(event, Gaussian | DiscreteGaussian):
        return ORDERS / (2 * event.noise_multiplier**2)
    if isinstance(event, SubsampledGaussian):
        return _poisson(event.sampling_rate, event.noise_multiplier)
    if isinstance(event, MixtureOfGaussians):
        # All windows or none: moving every drawn window's weight to the furthest component can only make the
        # neighbours easier to tell apart (Choquette-Choo et al., arXiv:2310.15526). Loose but never wrong.
        rate = event.sampling_rate
        any_window = -math.expm1(event.max_windows * math.log1p(-rate)) if rate < 1 else 1.0
        return _poisson(any_window, event.noise_multiplier / event.max_windows)
    if isinstance(event, PureDP) or (isinstance(event, ApproximateDP) and event.delta == 0):
        return _pure(event.epsilon)
    if isinstance(event, ApproximateDP | NonPrivate):
        return np.full_like(ORDERS, np.inf)
    raise UnsupportedEvent(f"No Rényi rule for an event of type {type(event).__name__}.")


@lru_cache(maxsize=256)
def _poisson(sampling_rate: float, noise_multiplier: float) -> Curve:
    """Whole orders from dp-accounting; between them a chord, because (order − 1)·divergence is convex.

    The series for fractional orders converges slowly or not at all for ordinary parameters.
    """
    from dp_accounting.dp_event import GaussianDpEvent, PoissonSampledDpEvent  # a second, which few commands need
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


def renyi_at(events: Iterable[Event], order: float) -> float:
    """Rényi divergence at one of `ORDERS`, what a fixed-order ledger charges."""
    return float(renyi_curve(events)[np.isclose(ORDERS, order)].item())


def epsilon(events: Iterable[Event], delta: float, interval: float = losses.INTERVAL) -> float:
    """Epsilon at `delta` for one unit added or removed; an upper bound, infinite if nothing is promised.

    Args:
        interval: Grid of privacy loss distributions; a coarser one is quicker and its bound is looser.

    Example:
        >>> round(epsilon([Gaussian(noise_multiplier=40.352, count=61)], delta=1e-5), 3)
        0.7
    """
    if not 0 < delta < 1:
        raise InputError(f"delta must lie between 0 and 1, got {delta:g}.")
    return _epsilon(_gathered(events), delta, interval)


def delta(events: Iterable[Event], epsilon: float) -> float:
    """Delta at `epsilon` for one unit added or removed: the least found at which the events cost no more."""
    parts, lowest = _gathered(events), math.log(SMALLEST_DELTA)

    def costs_more(log_delta: float) -> bool:
        return _epsilon(parts, math.exp(log_delta), losses.INTERVAL) > epsilon

    if not costs_more(lowest):
        return 0.0 if not parts else SMALLEST_DELTA
    low, high = lowest, -1e-12
    if costs_more(high):
        return 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if costs_more(middle) else (low, middle)
    return math.exp(high)


def replace_one_epsilon(events: Iterable[Event], delta: float) -> float:
    """Epsilon at `delta` when one unit's data is replaced by other data, the stricter relation.

    Un-subsampled noise: the sum moves twice as far, so the noise multiplier halves (exact). Everything
    else: remove, then add, i.e. 2·epsilon(δ′) with δ = δ′·(1 + e^epsilon(δ′)).
    """
    parts = _gathered(events)
    if not parts or _has_no_guarantee(parts):
        return math.inf if parts else 0.0
    doubled = [_doubled(event) for event in parts]
    known = [event for event in doubled if event is not None]
    exact = epsilon(known, delta) if len(known) == len(parts) else math.inf
    return min(exact, _two_step_epsilon(parts, delta))


def _gathered(events: Iterable[Event]) -> tuple[Event, ...]:
    """The same events with all Gaussians as one, mu² = Σ count / noise_multiplier², and equal ones counted together."""
    found: dict[Event, int] = {}
    mu_squared = 0.0
    for event in events:
        if isinstance(event, Gaussian):
            mu_squared += event.count / event.noise_multiplier**2
            continue
        one, number = (event, 1) if event.counted is None else (replace(event, **{event.counted: 1}), event.executions)
        found[one] = found.get(one, 0) + number
    parts: list[Event] = [Gaussian(1 / math.sqrt(mu_squared))] if mu_squared else []
    for one, number in found.items():
        parts += [one] * number if one.counted is None else [replace(one, **{one.counted: number})]
    return tuple(parts)


@lru_cache(maxsize=1024)
def _epsilon(parts: tuple[Event, ...], delta: float, interval: float = losses.INTERVAL) -> float:
    if not parts:
        return 0.0
    if _has_no_guarantee(parts):
        return math.inf
    if len(parts) == 1 and isinstance(parts[0], Gaussian):
        return gaussian_epsilon(1 / parts[0].noise_multiplier, delta)
    best = _renyi_route(parts, delta)
    return best if _is_hopeless(parts, best, delta) else min(best, _loss_route(parts, delta, interval))


def _is_hopeless(parts: tuple[Event, ...], renyi: float, delta: float) -> bool:
    """Whether a privacy loss distribution is sure to end above `_HOPELESS`, and not worth its memory.

    The Rényi bound of capped windows is loose, so they are judged by the mean shift instead: one Gaussian
    that moves by what a unit contributes on average tells neighbours apart no better than the mixture.
    """
    windowed = [event for event in parts if isinstance(event, MixtureOfGaussians)]
    if not windowed:
        return renyi > _HOPELESS
    others = tuple(event for event in parts if not isinstance(event, MixtureOfGaussians))
    if _renyi_route(others, delta) > _HOPELESS:
        return True
    shifts = [event.max_windows * event.sampling_rate / event.noise_multiplier for event in windowed]
    mean_mu = math.sqrt(sum(event.iterations * shift**2 for event, shift in zip(windowed, shifts, strict=True)))
    return gaussian_epsilon(mean_mu, delta) > _HOPELESS


def _renyi_route(parts: tuple[Event, ...], delta: float) -> float:
    """Rényi DP, at any order if all is concentrated; deltas of approximate events are set aside, the rest is pure."""
    aside = sum(event.delta for event in parts if isinstance(event, ApproximateDP))
    curve = renyi_curve(PureDP(part.epsilon) if isinstance(part, ApproximateDP) else part for part in parts)
    best = renyi_epsilon(curve, delta - aside) if aside < delta else math.inf
    rho = concentrated_rho(parts)
    return best if rho is None else min(best, concentrated_epsilon(rho, delta))


def _loss_route(parts: tuple[Event, ...], delta: float, interval: float) -> float:
    """Privacy loss distribution; what has none becomes one (epsilon, delta/2) event by the other route.

    The theorem behind the second half is concurrent composition of (epsilon, delta)-DP mechanisms
    (Vadhan & Zhang, arXiv:2207.08335), because the two groups may interleave.
    """
    known = tuple(event for event in parts if losses.are_known(event))
    unknown = tuple(event for event in parts if not losses.are_known(event))
    if not known:
        return math.inf
    if not unknown:
        return losses.epsilon(known, delta, interval)
    price = _renyi_route(unknown, delta / 2)
    if price >= _HOPELESS:
        return math.inf
    return losses.epsilon(known, delta, interval, ApproximateDP(max(price, 1e-12), delta / 2))


def _two_step_epsilon(parts: tuple[Event, ...], delta: float) -> float:
    """Solves δ = δ′(1 + e^epsilon(δ′)) for the largest δ′, in logarithms, erring towards a smaller δ′.

    Walks down first: far in the tail the bounds are loose, so "fits" is not monotone there.
    """
    high = math.log(delta / 2)
    low = high
    while not _fits(parts, low, delta):
        high, low = low, low - 1.0
        if low < math.log(delta) - 300:
            return math.inf
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (middle, high) if _fits(parts, middle, delta) else (low, middle)
    return 2 * _epsilon(parts, math.exp(low))


def _fits(parts: tuple[Event, ...], log_inner: float, delta: float) -> bool:
    inner = _epsilon(parts, math.exp(log_inner))
    return inner < 600 and log_inner + math.log1p(math.exp(inner)) <= math.log(delta)


def _doubled(event: Event) -> Event | None:
    """The event as seen by a neighbour at distance two, where that has a closed form."""
    if isinstance(event, Gaussian | DiscreteGaussian):
        return type(event)(event.noise_multiplier / 2, event.count)
    if isinstance(event, PureDP):
        return PureDP(2 * event.epsilon, event.count)
    if isinstance(event, ApproximateDP):
        worse = event.delta * (1 + math.exp(min(event.epsilon, 700.0)))
        return ApproximateDP(2 * event.epsilon, worse) if worse < 1 else None
    return None


def _has_no_guarantee(parts: tuple[Event, ...]) -> bool:
    return any(isinstance(event, NonPrivate) for event in parts)


def check_form(bodies: Sequence[Any]) -> None:
    """Refuse events, as JSON, that are too many to be read."""
    if len(bodies) > MAX_EVENTS:
        raise _too_much(f"at most {MAX_EVENTS} events")


def check_workload(events: Sequence[Event]) -> None:
    """Refuse events whose account would take more than about a second or 200 MB.

    A certificate comes from anybody: three kilobytes may ask for hours. What is refused here is refused when a run is
    charged as well, so that no certificate is ever issued that `verify` would not check.
    """
    check_form(events)
    parts = _gathered(events)
    if len(parts) > MAX_KINDS:
        raise _too_much(f"at most {MAX_KINDS} kinds of events besides Gaussians")
    closed_form = all(isinstance(event, Gaussian) for event in parts)
    for event in parts:
        kind = type(event).__name__
        if not isinstance(event, Gaussian) and event.executions > MAX_EXECUTIONS:
            raise _too_much(f"at most {MAX_EXECUTIONS:,} executions of {kind}")
        if losses.are_known(event) and not (closed_form or losses.fits(event)):
            raise _too_much(f"more noise for the reach of one unit in {kind}, or fewer windows")


def _too_much(expected: str) -> InputError:
    return InputError(
        f"These events ask for more computing than an account may take: {expected} are expected. If this is a "
        "certificate, do not rely on it; if it is your own run, choose fewer windows, larger noise or fewer releases."
    )
