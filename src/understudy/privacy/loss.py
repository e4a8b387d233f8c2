"""Privacy loss distributions of events, composed numerically and rounded against us (dp-accounting).

dp-accounting and scipy.stats are imported where they are used: they take a second, and plans of Gaussians need neither.

Capped windows (`MixtureOfGaussians`): a unit moves the noisy sum by the number of its windows that were sampled,
Binomial(max_windows, rate), so the two neighbours are N(0, s²) and a mixture of N(i, s²), in clipping norms.
How the grid stays on the safe side: the line is cut into cells so narrow that the privacy loss changes by a fifth of a
grid step; each cell's mass takes the largest loss of the cell; and a loss between two grid points is spread over both
so that neither neighbour's probability changes, which can only make them easier to tell apart ("connect the dots",
arXiv:2207.04380).
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from understudy.privacy.events import (
    ApproximateDP,
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    PureDP,
    SubsampledGaussian,
)

INTERVAL = 1e-4  # a coarser grid is sound but wastes noise in long runs
_REACH = 12.0  # standard deviations; the mass beyond is below 10⁻³² and counts as certain failure
_CELLS_PER_STEP = 5
_MOST_CELLS = 1 << 23  # wider cells are sound, only less exact
_CHUNK = 1 << 16


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
        delta = event.delta if isinstance(event, ApproximateDP) else 0.0
        one = library.from_privacy_parameters(common.DifferentialPrivacyParameters(event.epsilon, delta), **grid)
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
