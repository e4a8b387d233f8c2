"""Epsilon and delta of a list of events: the smallest of all bounds that hold.

Closed form when every event is an un-subsampled Gaussian; otherwise the smaller of a privacy loss distribution and
Rényi DP. All of them assume that the events' parameters were fixed before any data was read; composing runs whose
parameters depend on earlier results is the ledger's job and follows other rules.

dp-accounting is imported where it is used: it takes a second, and plans of Gaussians need none of it.

Notation: mu = 1/noise_multiplier of one Gaussian release; releases compose as mu² = Σ mu_i². Balle & Wang
(arXiv:1805.06530, Theorem 8): delta = Φ(mu/2 − epsilon/mu) − e^epsilon Φ(−mu/2 − epsilon/mu).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, logsumexp, ndtr

from understudy.errors import InputError, UnsupportedEvent
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
_HOPELESS = 60.0  # above this epsilon a finer number changes no decision and would need a huge grid
MAX_EVENTS = 1_000
MAX_DELTAS = 10
MAX_EXECUTIONS = 1_000_000
MAX_GRID = 10_000_000  # points of one privacy loss distribution
MAX_WORK = 1 << 29  # numbers that are computed to build all of them
_COMPOSING = 1 << 21  # what adding one distribution to the others weighs compared with building it
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
INTERVAL = 1e-4  # of privacy losses; a coarser grid is sound but wastes noise in long runs
_REACH = 12.0  # standard deviations; the mass beyond is below 10⁻³² and counts as certain failure
_CELLS_PER_STEP = 5
_MOST_CELLS = 1 << 23  # wider cells are sound, only less exact
_CHUNK = 1 << 16


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
    return _epsilon(tuple(events), delta, interval)


def delta(events: Iterable[Event], epsilon: float) -> float:
    """Delta at `epsilon` for one unit added or removed; an upper bound."""
    parts = tuple(events)
    if not parts:
        return 0.0
    if _has_no_guarantee(parts):
        return 1.0
    if all(isinstance(event, Gaussian) for event in parts):
        return math.exp(gaussian_log_delta(_mu(parts), epsilon))
    aside, curve = _without_deltas(parts)
    best = aside + renyi_delta(curve, epsilon)
    if all(has_loss_distribution(event) for event in parts):
        best = min(best, loss_delta(parts, epsilon))
    return min(1.0, best)


def replace_one_epsilon(events: Iterable[Event], delta: float) -> float:
    """Epsilon at `delta` when one unit's data is replaced by other data, the stricter relation.

    Un-subsampled noise: the sum moves twice as far, so the noise multiplier halves (exact). Everything
    else: remove, then add, i.e. 2·epsilon(δ′) with δ = δ′·(1 + e^epsilon(δ′)).
    """
    parts = tuple(events)
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
    return float(renyi_curve(events)[np.isclose(ORDERS, order)].item())


@lru_cache(maxsize=1024)
def _epsilon(parts: tuple[Event, ...], delta: float, interval: float = INTERVAL) -> float:
    if not parts:
        return 0.0
    if _has_no_guarantee(parts):
        return math.inf
    if all(isinstance(event, Gaussian) for event in parts):
        return gaussian_epsilon(_mu(parts), delta)
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
    shifts = [event.max_windows * event.sampling_rate / event.noise_multiplier for event in windowed]
    mean_mu = math.sqrt(sum(event.iterations * shift**2 for event, shift in zip(windowed, shifts, strict=True)))
    return gaussian_epsilon(mean_mu, delta) > _HOPELESS


def _renyi_route(parts: tuple[Event, ...], delta: float) -> float:
    """Rényi DP, at any order if all is concentrated; deltas of approximate events are set aside, the rest is pure."""
    aside, curve = _without_deltas(parts)
    best = renyi_epsilon(curve, delta - aside) if aside < delta else math.inf
    rho = concentrated_rho(parts)
    return best if rho is None else min(best, concentrated_epsilon(rho, delta))


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
    price = _renyi_route(unknown, delta / 2)
    if price >= _HOPELESS:
        return math.inf
    return loss_epsilon((*known, ApproximateDP(max(price, 1e-12), delta / 2)), delta, interval)


def _without_deltas(parts: tuple[Event, ...]) -> tuple[float, Curve]:
    aside = sum(event.delta for event in parts if isinstance(event, ApproximateDP))
    return aside, renyi_curve(PureDP(part.epsilon) if isinstance(part, ApproximateDP) else part for part in parts)


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


def _mu(parts: tuple[Event, ...]) -> float:
    gaussians = (event for event in parts if isinstance(event, Gaussian))
    return math.hypot(*(math.sqrt(event.count) / event.noise_multiplier for event in gaussians))


def check_form(bodies: Sequence[Any]) -> None:
    """Refuse events, as JSON, that are too many to be read."""
    if len(bodies) > MAX_EVENTS:
        raise _too_much(f"at most {MAX_EVENTS} events")


def check_workload(events: Sequence[Event]) -> None:
    """Refuse events whose account would take minutes or more memory than a computer has.

    A certificate comes from anybody: three kilobytes may ask for hours. What is refused here is refused when a run is
    charged as well, so that no certificate is ever issued that `verify` would not check.
    """
    check_form(events)
    for event in events:
        if not isinstance(event, Gaussian) and event.executions > MAX_EXECUTIONS:
            raise _too_much(f"at most {MAX_EXECUTIONS:,} executions of {type(event).__name__}")
        if _grid(event) > MAX_GRID:
            raise _too_much(f"more noise for the reach of one unit in {type(event).__name__}, or fewer windows")
    if sum(_work(event) for event in events) > MAX_WORK:
        raise _too_much("fewer events that are not plain Gaussians, or fewer windows a unit")


def _grid(event: Event) -> float:
    """Points of the event's privacy loss distribution: the widest loss, divided by the grid's interval."""
    if isinstance(event, SubsampledGaussian | MixtureOfGaussians):
        shift, scale = getattr(event, "max_windows", 1), event.noise_multiplier
        return float(shift * (shift + 12 * scale) / scale / scale / INTERVAL)
    return 24 * event.noise_multiplier if isinstance(event, DiscreteGaussian) and event.one_vote else 1.0


def _work(event: Event) -> float:
    if isinstance(event, Gaussian) or not has_loss_distribution(event):
        return 1.0
    work = _COMPOSING + _grid(event)
    if isinstance(event, MixtureOfGaussians):
        shifts = event.max_windows + 1
        work += shifts * num_cells(float(event.max_windows), event.noise_multiplier, INTERVAL)
    return work if math.isfinite(work) else float(2 * MAX_WORK)


def _too_much(expected: str) -> InputError:
    return InputError(
        f"These events ask for more computing than an account may take: {expected} are expected. If this is a "
        "certificate, do not rely on it; if it is your own run, choose fewer windows, larger noise or fewer releases."
    )


# --- privacy loss distributions, composed numerically and rounded against us (dp-accounting) --------------------
#
# Capped windows (`MixtureOfGaussians`): a unit moves the noisy sum by the number of its windows that were sampled,
# Binomial(max_windows, rate), so the two neighbours are N(0, s²) and a mixture of N(i, s²), in clipping norms.
# How the grid stays on the safe side: the line is cut into cells so narrow that the privacy loss changes by a fifth of
# a grid step; each cell's mass takes the largest loss of the cell; and a loss between two grid points is spread over
# both so that neither neighbour's probability changes, which can only make them easier to tell apart ("connect the
# dots", arXiv:2207.04380).


def has_loss_distribution(event: Event) -> bool:
    """Whether a pair of distributions is known that dominates every neighbour under this event."""
    if isinstance(event, DiscreteGaussian):
        return event.one_vote
    return isinstance(event, Gaussian | SubsampledGaussian | MixtureOfGaussians | PureDP | ApproximateDP)


@lru_cache(maxsize=64)
def composed_loss(events: tuple[Event, ...], interval: float = INTERVAL) -> Any:
    """The privacy loss distribution of all events together. Valid for parameters frozen before first access."""
    from dp_accounting.pld import privacy_loss_distribution

    total = privacy_loss_distribution.identity(value_discretization_interval=interval)
    for event in events:
        total = total.compose(_loss(event, interval))
    return total


def loss_epsilon(events: tuple[Event, ...], delta: float, interval: float = INTERVAL) -> float:
    """Epsilon at `delta`, an upper bound."""
    return float(composed_loss(events, interval).get_epsilon_for_delta(delta))


def loss_delta(events: tuple[Event, ...], epsilon: float) -> float:
    """Delta at `epsilon`, an upper bound."""
    return float(composed_loss(events).get_delta_for_epsilon(epsilon))


@lru_cache(maxsize=256)
def _loss(event: Event, interval: float) -> Any:
    """Of all executions together: several Gaussians are one with less noise, all else is composed with itself."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as library

    grid = {"value_discretization_interval": interval}
    if isinstance(event, Gaussian):
        return library.from_gaussian_mechanism(event.noise_multiplier / event.count**0.5, **grid)
    if isinstance(event, SubsampledGaussian):
        one = library.from_gaussian_mechanism(event.noise_multiplier, sampling_prob=event.sampling_rate, **grid)
    elif isinstance(event, DiscreteGaussian):
        one = library.from_discrete_gaussian_mechanism(
            event.noise_multiplier, sensitivity=1, use_connect_dots=True, **grid
        )
    elif isinstance(event, MixtureOfGaussians):
        one = mixture_loss(event.sampling_rate, event.noise_multiplier, event.max_windows, interval)
    else:  # randomised response with failure probability delta dominates every (epsilon, delta)-DP mechanism
        assert isinstance(event, PureDP | ApproximateDP)
        failure = event.delta if isinstance(event, ApproximateDP) else 0.0
        one = library.from_privacy_parameters(common.DifferentialPrivacyParameters(event.epsilon, failure), **grid)
    return one if isinstance(event, ApproximateDP) else one.self_compose(event.executions)


def mixture_loss(sampling_rate: float, noise_multiplier: float, max_windows: int, interval: float) -> Any:
    """Privacy loss distribution for one unit removed and for one unit added."""
    from dp_accounting.pld import privacy_loss_distribution
    from scipy.stats import binom

    shifts = np.arange(max_windows + 1, dtype=np.float64)
    weights = binom.pmf(shifts, max_windows, sampling_rate)
    shifts, weights = shifts[weights > 0], weights[weights > 0]
    furthest = float(shifts.max())  # the loss has slope at most furthest/scale²
    low, high = -_REACH * noise_multiplier, furthest + _REACH * noise_multiplier
    edges = np.linspace(low, high, num_cells(furthest, noise_multiplier, interval) + 1)
    losses = _loss_at(edges, shifts, weights, noise_multiplier)
    removed = _mass(edges, shifts, weights, noise_multiplier)
    added = _mass(edges, np.zeros(1), np.ones(1), noise_multiplier)
    # The loss rises with x for the mixture against N(0), and falls for N(0) against the mixture.
    return privacy_loss_distribution.PrivacyLossDistribution(
        _spread(losses[1:], removed, interval), _spread(-losses[:-1], added, interval)
    )


def num_cells(furthest: float, scale: float, interval: float) -> int:
    """Returns into how many cells the line is cut."""
    width = interval * scale**2 / max(furthest, 1.0) / _CELLS_PER_STEP
    length = furthest + 2 * _REACH * scale
    return _MOST_CELLS if length >= _MOST_CELLS * width else max(1000, math.ceil(length / width))


def _loss_at(
    points: NDArray[np.float64], shifts: NDArray[np.float64], weights: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """log of mixture density / N(0) density."""
    out = np.empty_like(points)
    constant = np.log(weights) - shifts**2 / (2 * scale**2)
    for start in range(0, len(points), _CHUNK):
        part = points[start : start + _CHUNK, None] * (shifts / scale**2) + constant
        out[start : start + _CHUNK] = logsumexp(part, axis=1)
    return out


def _mass(
    edges: NDArray[np.float64], shifts: NDArray[np.float64], weights: NDArray[np.float64], scale: float
) -> NDArray[np.float64]:
    """Probability of each cell, from whichever tail is small there, so that nothing cancels."""
    total = np.zeros(len(edges) - 1)
    for shift, weight in zip(shifts, weights, strict=True):
        standard = (edges - shift) / scale
        lower, upper = ndtr(standard), ndtr(-standard)
        total += weight * np.where(standard[1:] < 0, np.diff(lower), -np.diff(upper))
    return total


def _spread(losses: NDArray[np.float64], mass: NDArray[np.float64], interval: float) -> Any:
    """Puts each cell's mass on the two grid points around its loss."""
    from dp_accounting.pld import pld_pmf

    below = np.floor(losses / interval)
    rest = losses - below * interval
    # p·e^(−loss) must stay the same: share on the upper point = (1 − e^−rest) / (1 − e^−interval).
    share = np.clip(np.expm1(-rest) / math.expm1(-interval), 0.0, 1.0)
    lowest = int(below.min())
    places = (below - lowest).astype(np.int64)
    size = int(places.max()) + 2
    probabilities = np.bincount(places, mass * (1 - share), size) + np.bincount(places + 1, mass * share, size)
    missing = max(0.0, 1.0 - float(probabilities.sum()))
    return pld_pmf.DensePLDPmf(interval, lowest, probabilities, missing, True)
