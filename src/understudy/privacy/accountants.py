"""Epsilon and delta of a list of events: the smallest of all bounds that hold.

Closed form when every event is an un-subsampled Gaussian; otherwise the smaller of a privacy loss
distribution and Rényi DP. All of them assume that the events' parameters were fixed before any data was
read; composing runs whose parameters depend on earlier results is the ledger's job and follows other rules.
"""

import math
from collections.abc import Iterable
from functools import lru_cache

from understudy.errors import InputError
from understudy.privacy.events import (
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    NonPrivate,
    PureDP,
)
from understudy.privacy.gaussian import gaussian_epsilon, gaussian_log_delta, gaussian_mu
from understudy.privacy.loss import INTERVAL, has_loss_distribution, loss_delta, loss_epsilon
from understudy.privacy.renyi import (
    ORDERS,
    concentrated_epsilon,
    concentrated_rho,
    renyi_curve,
    renyi_delta,
    renyi_epsilon,
)

__all__ = ["delta", "epsilon", "gaussian_epsilon", "gaussian_mu", "renyi_at", "replace_one_epsilon"]

_HOPELESS = 60.0  # above this epsilon a finer number changes no decision and would need a huge grid


def epsilon(events: Iterable[Event], delta: float, interval: float = INTERVAL) -> float:
    """Epsilon at `delta` for one unit added or removed; an upper bound, infinite if nothing is promised.

    Args:
        interval: Grid of privacy loss distributions; a coarser one is quicker and its bound is looser.

    Example:
        >>> round(epsilon([Gaussian(noise_multiplier=40.352, count=61)], delta=1e-5), 3)
        0.7
    """
    if not 0 < delta < 1:
        raise InputError(f"delta must lie between 0 and 1, got {delta:g}.")
    return _epsilon(_flatten(events), delta, interval)


def delta(events: Iterable[Event], epsilon: float) -> float:
    """Delta at `epsilon` for one unit added or removed; an upper bound."""
    parts = _flatten(events)
    if not parts:
        return 0.0
    if _has_no_guarantee(parts):
        return 1.0
    if all(isinstance(event, Gaussian) for event in parts):
        return math.exp(gaussian_log_delta(_mu(parts), epsilon))
    best = _renyi_route_delta(parts, epsilon)
    if all(has_loss_distribution(event) for event in parts):
        best = min(best, loss_delta(parts, epsilon))
    return min(1.0, best)


def replace_one_epsilon(events: Iterable[Event], delta: float) -> float:
    """Epsilon at `delta` when one unit's data is replaced by other data, the stricter relation.

    Un-subsampled noise: the sum moves twice as far, so the noise multiplier halves (exact). Everything
    else: remove, then add, i.e. 2·epsilon(δ′) with δ = δ′·(1 + e^epsilon(δ′)).
    """
    parts = _flatten(events)
    if not parts:
        return 0.0
    if _has_no_guarantee(parts):
        return math.inf
    doubled = [_doubled(event) for event in parts]
    exact = math.inf
    if all(event is not None for event in doubled):
        exact = epsilon([event for event in doubled if event is not None], delta)
    return min(exact, _two_step_epsilon(parts, delta))


def renyi_at(events: Iterable[Event], order: float) -> float:
    """Rényi divergence at one of `ORDERS`, what a fixed-order ledger charges."""
    matches = [index for index, known in enumerate(ORDERS) if math.isclose(known, order)]
    if not matches:
        raise InputError(f"Rényi order {order:g} is not among the orders this accountant computes.")
    return float(renyi_curve(_flatten(events))[matches[0]])


@lru_cache(maxsize=1024)
def _epsilon(parts: tuple[Event, ...], delta: float, interval: float = INTERVAL) -> float:
    if not parts:
        return 0.0
    if _has_no_guarantee(parts):
        return math.inf
    if all(isinstance(event, Gaussian) for event in parts):
        return gaussian_epsilon(_mu(parts), delta)
    best = _renyi_route(parts, delta)
    rho = concentrated_rho(parts)
    if rho is not None:
        best = min(best, concentrated_epsilon(rho, delta))
    return best if _is_hopeless(parts, best, delta) else min(best, _loss_route(parts, delta, interval))


def _is_hopeless(parts: tuple[Event, ...], renyi: float, delta: float) -> bool:
    """Whether a privacy loss distribution is sure to end above `_HOPELESS`, and not worth its memory.

    The Rényi bound of capped windows is loose, so they are judged by the mean shift instead: one Gaussian
    that moves by what a unit contributes on average tells neighbours apart no better than the mixture.
    """
    windowed = [event for event in parts if isinstance(event, MixtureOfGaussians)]
    if not windowed:
        return renyi > _HOPELESS
    shifts = [event.max_windows * event.sampling_rate / event.noise_multiplier for event in windowed]
    mean_mu = math.sqrt(sum(event.iterations * shift**2 for event, shift in zip(windowed, shifts, strict=True)))
    return gaussian_epsilon(mean_mu, delta) > _HOPELESS


def _renyi_route(parts: tuple[Event, ...], delta: float) -> float:
    """Rényi DP; the deltas of approximate events are set aside first, what is left of them is pure."""
    aside, pure = _without_deltas(parts)
    return renyi_epsilon(renyi_curve(pure), delta - aside) if aside < delta else math.inf


def _renyi_route_delta(parts: tuple[Event, ...], epsilon: float) -> float:
    aside, pure = _without_deltas(parts)
    return aside + renyi_delta(renyi_curve(pure), epsilon)


def _loss_route(parts: tuple[Event, ...], delta: float, interval: float) -> float:
    """Privacy loss distribution; what has none becomes one (epsilon, delta/2) event by the other route.

    The theorem behind the second half is concurrent composition of (epsilon, delta)-DP mechanisms
    (Vadhan & Zhang, arXiv:2207.08335), because the two groups may interleave.
    """
    known = tuple(event for event in parts if has_loss_distribution(event))
    unknown = tuple(event for event in parts if not has_loss_distribution(event))
    if not known:
        return math.inf
    if not unknown:
        return loss_epsilon(known, delta, interval)
    rho = concentrated_rho(unknown)
    price = _renyi_route(unknown, delta / 2)
    if rho is not None:
        price = min(price, concentrated_epsilon(rho, delta / 2))
    if price >= _HOPELESS:
        return math.inf
    return loss_epsilon((*known, ApproximateDP(max(price, 1e-12), delta / 2)), delta, interval)


def _without_deltas(parts: tuple[Event, ...]) -> tuple[float, tuple[Event, ...]]:
    aside = sum(event.delta for event in parts if isinstance(event, ApproximateDP))
    pure = tuple(PureDP(event.epsilon) if isinstance(event, ApproximateDP) else event for event in parts)
    return aside, pure


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
    if isinstance(event, Gaussian):
        return Gaussian(event.noise_multiplier / 2, event.count)
    if isinstance(event, DiscreteGaussian):
        return DiscreteGaussian(event.noise_multiplier / 2, event.count)
    if isinstance(event, PureDP):
        return PureDP(2 * event.epsilon, event.count)
    if isinstance(event, ApproximateDP):
        worse = event.delta * (1 + math.exp(min(event.epsilon, 700.0)))
        return ApproximateDP(2 * event.epsilon, worse) if worse < 1 else None
    return None


def _flatten(events: Iterable[Event]) -> tuple[Event, ...]:
    flat: list[Event] = []
    for event in events:
        flat.extend(_flatten(event.parts) if isinstance(event, Composed) else (event,))
    return tuple(flat)


def _has_no_guarantee(parts: tuple[Event, ...]) -> bool:
    return any(isinstance(event, NonPrivate) for event in parts)


def _mu(parts: tuple[Event, ...]) -> float:
    gaussians = (event for event in parts if isinstance(event, Gaussian))
    return math.hypot(*(math.sqrt(event.count) / event.noise_multiplier for event in gaussians))
