"""Privacy loss distributions on a grid, composed by Fourier transform and rounded against us.

Capped windows (`MixtureOfGaussians`): a unit moves the noisy sum by the number of its windows that were sampled,
Binomial(max_windows, rate), so the two neighbours are N(0, s²) and a mixture of N(i, s²), in clipping norms. The line
is cut into cells of about a grid step of loss. All that is between two losses is spread over both so that neither
neighbour's probability changes, which can only make them easier to tell apart ("connect the dots", arXiv:2207.04380):
first from the inside of a cell to its ends, then from there to the grid. What lies beyond the cells counts as certain
failure. A sampled unit has one window, and a Gaussian one that is always sampled.

The grid is as coarse as keeps an account below a second and 200 MB; a coarse one is sound and only less exact.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import betainc, logsumexp, ndtr

from understudy.privacy.events import (
    ApproximateDP,
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    PureDP,
    SubsampledGaussian,
)

Floats = NDArray[np.float64]
INTERVAL = 1e-4  # of privacy losses, unless a distribution would get too many points
_COARSEST = 2e-2
_POINTS = 1 << 19  # of all distributions before they are composed
_EVALUATIONS = 1 << 22  # of the density of a shifted normal
_COMPOSED = 1 << 20  # points of a composition
_REACH = 12.0  # standard deviations; the mass beyond is below 10⁻³²
_RARE = 1e-24  # probability that counts as certain failure
_TAIL = 1e-15  # of a composition, the same
_CHUNK = 1 << 20
_FEWEST = 1000  # cells
_LARGEST_DISCRETE = 50_000.0  # noise multiplier: twenty times as many whole numbers


def are_known(event: Event) -> bool:
    """Whether a pair of distributions is known that dominates every neighbour under this event."""
    if isinstance(event, DiscreteGaussian):
        return event.one_vote
    return isinstance(event, Gaussian | SubsampledGaussian | MixtureOfGaussians | PureDP | ApproximateDP)


def fits(event: Event) -> bool:
    """Whether some grid keeps the event's distribution small enough."""
    return _grid([event], INTERVAL) <= _COARSEST


def epsilon(events: tuple[Event, ...], delta: float, interval: float, last: ApproximateDP | None = None) -> float:
    """Epsilon at `delta`, an upper bound; `last` is one more event, known by its guarantee alone."""
    found = _composed(events, interval)
    if found is None:
        return math.inf
    return max(loss.epsilon(delta) if last is None else _with_one_more(loss, delta, last) for loss in found)


@dataclass(frozen=True, eq=False)
class Loss:
    """One direction: probability of each loss, multiples of `interval` from `lowest` on, and of certain failure."""

    interval: float
    lowest: int
    mass: Floats
    failure: float

    @cached_property
    def losses(self) -> Floats:
        """All losses, rising."""
        return (self.lowest + np.arange(len(self.mass), dtype=np.float64)) * self.interval

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        """Σ mass and Σ mass · e^(−loss) from each loss on; failure counts in the first."""
        faded = self.mass * np.exp(-np.maximum(self.losses, -700.0))
        tail, faded = (np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (self.mass, faded))
        return tail + self.failure, faded

    def delta(self, epsilon: float) -> float:
        """Σ over losses above epsilon of mass · (1 − e^(epsilon − loss)), and failure."""
        tail, faded = (part[np.searchsorted(self.losses, epsilon, side="right")] for part in self._tails)
        return float(tail - (math.exp(epsilon) * faded if epsilon < 700 else 0.0))

    def epsilon(self, delta: float) -> float:
        """Least epsilon of at least 0 at `delta`: between two losses delta is linear in e^epsilon."""
        tail, faded = self._tails
        first = int(np.searchsorted(self.losses, 0.0))
        with np.errstate(over="ignore", invalid="ignore"):
            above = tail[first:-1] - np.exp(self.losses[first:]) * faded[first:-1] > delta
        place = first + (int(np.flatnonzero(above)[-1]) + 1 if above.any() else 0)
        if self.delta(0.0) <= delta:
            return 0.0
        if self.failure >= delta or place == len(self.mass) or self.losses[place] > 700:
            return math.inf
        return max(0.0, math.log((tail[place] - delta) / faded[place]))


def _with_one_more(loss: Loss, delta: float, last: ApproximateDP) -> float:
    """Epsilon with randomised response besides, which fails with probability last.delta; its loss is ±last.epsilon."""
    yes = 1 / (1 + math.exp(-last.epsilon))

    def is_enough(at: float) -> bool:
        mixed = yes * loss.delta(at - last.epsilon) + (1 - yes) * loss.delta(at + last.epsilon)
        return last.delta + (1 - last.delta) * mixed <= delta

    low, high = 0.0, max(0.0, float(loss.losses[-1])) + last.epsilon
    if not is_enough(high):
        return math.inf
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


@lru_cache(maxsize=64)
def _composed(events: tuple[Event, ...], interval: float) -> tuple[Loss, ...] | None:
    """Both directions of all events together, on the finest grid that is small enough; None if there is none."""
    interval = _grid(events, interval)
    while interval <= _COARSEST:
        pairs = [_one(event, interval) for event in events]
        times = [_executions(event) for event in events]
        found = [_convolved([pair[side] for pair in pairs], times) for side in (0, 1)]
        if found[0] is not None and found[1] is not None:
            return found[0], found[1]
        interval *= 2
    return None


def _grid(events: Iterable[Event], interval: float) -> float:
    """The interval, doubled until every distribution has few points and takes few evaluations."""
    points = evaluations = 0.0
    for event in events:
        number, (least, most) = _width(event) / interval, _shifts_of(event)
        points, evaluations = points + number, evaluations + max(number, _FEWEST) * (most - least + 1)
    excess = max(points / _POINTS, evaluations / _EVALUATIONS, 1.0)
    return interval * 2.0 ** math.ceil(math.log2(excess)) if excess < 1e9 else math.inf


def _shifts_of(event: Event) -> tuple[int, int]:
    return _shifts(event.max_windows, event.sampling_rate) if isinstance(event, MixtureOfGaussians) else (0, 1)


def _width(event: Event) -> float:
    """Between the least and the largest loss of one execution, about; public sizes alone say it."""
    if isinstance(event, PureDP | ApproximateDP):
        return 2 * event.epsilon
    if isinstance(event, Gaussian):
        return 2 * _REACH * math.sqrt(event.count) / event.noise_multiplier
    assert isinstance(event, SubsampledGaussian | MixtureOfGaussians | DiscreteGaussian)
    if isinstance(event, DiscreteGaussian):  # has a point for each whole number, too
        return 2 * _REACH / event.noise_multiplier if event.noise_multiplier <= _LARGEST_DISCRETE else math.inf
    _, shift = _shifts_of(event)
    return shift * (shift + 2 * _REACH * event.noise_multiplier) / event.noise_multiplier / event.noise_multiplier


def _executions(event: Event) -> int:
    """How often a distribution is to be composed with itself: several Gaussians are one with less noise."""
    return 1 if isinstance(event, Gaussian) else event.executions


def _one(event: Event, interval: float) -> tuple[Loss, Loss]:
    """Of one execution, with one unit removed and with one unit added."""
    if isinstance(event, MixtureOfGaussians):
        return mixture_loss(event.sampling_rate, event.noise_multiplier, event.max_windows, interval)
    if isinstance(event, SubsampledGaussian):
        return mixture_loss(event.sampling_rate, event.noise_multiplier, 1, interval)
    if isinstance(event, Gaussian):
        return mixture_loss(1.0, event.noise_multiplier / event.count**0.5, 1, interval)
    if isinstance(event, DiscreteGaussian):
        return (_vote_loss(event.noise_multiplier, interval),) * 2
    # Randomised response with failure probability delta dominates every (epsilon, delta)-DP mechanism.
    assert isinstance(event, PureDP | ApproximateDP)
    failure = event.delta if isinstance(event, ApproximateDP) else 0.0
    yes = 1 / (1 + math.exp(-event.epsilon))
    truth = np.array([1 - yes, yes]) * (1 - failure)
    return (_spread(np.array([-event.epsilon, event.epsilon]), truth, interval),) * 2


def _convolved(losses: Sequence[Loss], times: Sequence[int]) -> Loss | None:
    """Each distribution composed so often with itself, and all together; None where it has too many points."""
    low, high = _range(losses, times)
    length = high - low + 1
    if length > _COMPOSED or max(loss.failure for loss in losses) >= 1:
        return None
    size = next_fast_len(length, real=True)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    for loss, number in zip(losses, times, strict=True):
        wrapped = np.bincount(np.arange(len(loss.mass)) % size, loss.mass, size)
        spectrum *= rfft(wrapped) ** number
    lowest = sum(loss.lowest * number for loss, number in zip(losses, times, strict=True))
    mass = np.maximum(np.roll(irfft(spectrum, size), -((low - lowest) % size))[:length], 0.0)  # rounding counts as mass
    certain = sum(number * math.log1p(-loss.failure) for loss, number in zip(losses, times, strict=True))
    return Loss(losses[0].interval, low, mass, _TAIL - math.expm1(certain))


def _range(losses: Sequence[Loss], times: Sequence[int]) -> tuple[int, int]:
    """Places between which all but `_TAIL` of the composed mass lies, by Chernoff's bound at several orders."""
    low = sum(loss.lowest * number for loss, number in zip(losses, times, strict=True))
    high = sum((loss.lowest + len(loss.mass) - 1) * number for loss, number in zip(losses, times, strict=True))
    interval = losses[0].interval
    for order in 4.0 ** np.arange(-3, 5):
        up, down = (
            sum(number * _log_moment(loss, sign * order) for loss, number in zip(losses, times, strict=True))
            for sign in (1, -1)
        )
        high = min(high, math.ceil((up - math.log(_TAIL / 2)) / order / interval))
        low = max(low, math.floor(-(down - math.log(_TAIL / 2)) / order / interval))
    return low, max(low, high)


def _log_moment(loss: Loss, order: float) -> float:
    """Return log Σ mass · e^(order · loss)."""
    with np.errstate(divide="ignore"):
        exponents = order * loss.losses + np.log(np.maximum(loss.mass, 0.0))
    most = float(exponents.max())
    return most + math.log(np.exp(exponents - most).sum())


@lru_cache(maxsize=256)
def _shifts(max_windows: int, rate: float) -> tuple[int, int]:
    """Least and most windows of a unit that are sampled but for a probability of `_RARE` on either side."""
    # P(more than k of n) is the regularised incomplete beta function I_rate(k + 1, n − k).
    most = _first(lambda k: betainc(k + 1, max_windows - k, rate) <= _RARE, 1, max_windows)
    least = _first(lambda k: betainc(max_windows - k, k + 1, 1 - rate) > _RARE, 0, most)
    return least, most


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number for which `holds`, which is false and then true; true at `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def mixture_loss(sampling_rate: float, noise_multiplier: float, max_windows: int, interval: float) -> tuple[Loss, Loss]:
    """Privacy loss distribution for one unit removed and for one unit added."""
    least, most = _shifts(max_windows, sampling_rate)
    shifts = np.arange(least, most + 1, dtype=np.float64)
    weights = np.ones(1)
    if len(shifts) > 1:  # Binomial(max_windows, rate), from the ratios of neighbouring terms
        odds = math.log(sampling_rate) - math.log1p(-sampling_rate)
        logarithms = np.append(0.0, np.cumsum(np.log((max_windows - shifts[:-1]) / shifts[1:]) + odds))
        weights = np.exp(logarithms - logsumexp(logarithms))
    low, high = -_REACH * noise_multiplier, most + _REACH * noise_multiplier
    cells = max(
        _FEWEST, math.ceil((high - low) * most / noise_multiplier**2 / interval)
    )  # loss has slope ≤ most/scale²
    edges = np.linspace(low, high, cells + 1)
    rising = _loss_at(edges, shifts, weights, noise_multiplier)
    with_unit = _mass(edges, shifts, weights, noise_multiplier)
    without = _mass(edges, np.zeros(1), np.ones(1), noise_multiplier)
    # The loss rises with x for the mixture against N(0), and falls for N(0) against the mixture.
    return (
        _on_grid(rising, with_unit, without, interval),
        _on_grid(-rising[::-1], without[::-1], with_unit[::-1], interval),
    )


def _vote_loss(noise_multiplier: float, interval: float) -> Loss:
    """Of an integer with discrete Gaussian noise that moves by one, the same in both directions."""
    reach = math.ceil(_REACH * noise_multiplier) + 1
    number = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-(number**2) / (2 * noise_multiplier**2))
    return _spread((number + 0.5) / noise_multiplier**2, mass / mass.sum(), interval)


def _loss_at(points: Floats, shifts: Floats, weights: Floats, scale: float) -> Floats:
    """log of mixture density / N(0) density."""
    out = np.empty_like(points)
    constant = np.log(weights) - shifts**2 / (2 * scale**2)
    rows = max(1, _CHUNK // len(shifts))
    for start in range(0, len(points), rows):
        part = points[start : start + rows, None] * (shifts / scale**2) + constant
        most = part.max(axis=1)
        out[start : start + rows] = most + np.log(np.exp(part - most[:, None]).sum(axis=1))
    return out


def _mass(edges: Floats, shifts: Floats, weights: Floats, scale: float) -> Floats:
    """Probability of each cell, from whichever tail is small there, so that nothing cancels."""
    total = np.zeros(len(edges) - 1)
    for shift, weight in zip(shifts, weights, strict=True):
        standard = (edges - shift) / scale
        tail = ndtr(-np.abs(standard))
        around = np.where(standard[:-1] < 0, 1 - tail[:-1] - tail[1:], -np.diff(tail))
        total += weight * np.where(standard[1:] < 0, np.diff(tail), around)
    return total


def _on_grid(losses: Floats, mass: Floats, other: Floats, interval: float) -> Loss:
    """Each cell's mass at the losses of its ends, and from there on the grid points around them.

    Args:
        other: Mass of the cells for the other neighbour, Σ mass · e^(−loss) over the inside of each.
    """
    # a at the lower end and b at the upper: a + b = mass and a·e^(−lower) + b·e^(−upper) = other.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = -np.expm1(np.log(other) - np.log(mass) + losses[:-1]) / -np.expm1(-np.diff(losses))
    share = np.clip(np.where(np.isfinite(share), share, 1.0), 0.0, 1.0)
    return _spread(losses, np.append(mass * (1 - share), 0.0) + np.append(0.0, mass * share), interval)


def _spread(losses: Floats, mass: Floats, interval: float) -> Loss:
    """Puts each loss's mass on the two grid points around it."""
    below = np.floor(losses / interval)
    rest = losses - below * interval
    # p·e^(−loss) must stay the same: share on the upper point = (1 − e^−rest) / (1 − e^−interval).
    share = np.clip(np.expm1(-rest) / math.expm1(-interval), 0.0, 1.0)
    lowest = int(below.min())
    places = (below - lowest).astype(np.int64)
    size = int(places.max()) + 2
    spread = np.bincount(places, mass * (1 - share), size) + np.bincount(places + 1, mass * share, size)
    return Loss(interval, lowest, np.asarray(spread, dtype=np.float64), max(0.0, 1.0 - float(spread.sum())))
