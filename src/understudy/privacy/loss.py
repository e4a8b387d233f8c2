"""Privacy loss distributions of events, composed numerically and rounded against us (dp-accounting).

dp-accounting is imported where it is used: it takes a second, and plans made of Gaussians never need it.
"""

from functools import lru_cache
from typing import Any

from understudy.privacy.events import (
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    PureDP,
    SubsampledGaussian,
)

INTERVAL = 1e-4  # a coarser grid is sound but wastes noise in long runs


def has_loss_distribution(event: Event) -> bool:
    """Whether a pair of distributions is known that dominates every neighbour under this event."""
    if isinstance(event, Composed):
        return all(has_loss_distribution(part) for part in event.parts)
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
    from dp_accounting.pld import privacy_loss_distribution

    if isinstance(event, Gaussian):
        return privacy_loss_distribution.from_gaussian_mechanism(
            standard_deviation=event.noise_multiplier / event.count**0.5,
            value_discretization_interval=interval,
        )
    if isinstance(event, DiscreteGaussian):
        return privacy_loss_distribution.from_discrete_gaussian_mechanism(
            sigma=event.noise_multiplier,
            sensitivity=1,
            value_discretization_interval=interval,
            use_connect_dots=True,
        ).self_compose(event.count)
    if isinstance(event, SubsampledGaussian):
        return privacy_loss_distribution.from_gaussian_mechanism(
            standard_deviation=event.noise_multiplier,
            sampling_prob=event.sampling_rate,
            value_discretization_interval=interval,
        ).self_compose(event.iterations)
    if isinstance(event, MixtureOfGaussians):
        from understudy.privacy.mixture import mixture_loss

        return mixture_loss(event.sampling_rate, event.noise_multiplier, event.max_windows, interval).self_compose(
            event.iterations
        )
    if isinstance(event, PureDP):
        return _approximate(event.epsilon, 0.0, interval).self_compose(event.count)
    if isinstance(event, ApproximateDP):
        return _approximate(event.epsilon, event.delta, interval)
    assert isinstance(event, Composed)
    return composed_loss(event.parts, interval)


def _approximate(epsilon: float, delta: float, interval: float) -> Any:
    """Randomised response with failure probability delta dominates every (epsilon, delta)-DP mechanism."""
    from dp_accounting.pld import common, privacy_loss_distribution

    return privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=interval
    )
