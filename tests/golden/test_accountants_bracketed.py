"""Every accountant lies between an optimistic estimate and an independent second one, both from the densities alone.

The brackets are narrower than 3 %, so an accountant that is wrong by a constant, or rounded in our favour, is found.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from tests.golden.privacy_curves import Pair, coin, curves, epsilons, moved_normal, votes
from understudy.privacy.accounting import delta, epsilon, replace_one_epsilon
from understudy.privacy.events import (
    ApproximateDP,
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    PureDP,
    SubsampledGaussian,
)
from understudy.privacy.losses import mixture_loss

DELTA = 1e-6
NARROW = 1.03
ROUNDING = 1e-6  # of Fourier transforms
Parts = list[tuple[tuple[Pair, Pair], int]]


def windows(rate: float, most: int) -> dict[float, float]:
    return {float(k): float(binom.pmf(k, most, rate)) for k in range(most + 1) if binom.pmf(k, most, rate) > 0}


def parts_of(event: Event) -> Parts:
    """What an event is, by its definition in `events`."""
    match event:
        case Gaussian(noise, count, _):
            return [(moved_normal({1.0: 1.0}, noise), count)]
        case SubsampledGaussian(rate, noise, count):
            return [(moved_normal(windows(rate, 1), noise), count)]
        case MixtureOfGaussians(rate, noise, most, count):
            return [(moved_normal(windows(rate, most), noise), count)]
        case DiscreteGaussian(noise, count, _):
            return [(votes(noise), count)]
        case PureDP(cost, count):
            return [(coin(cost), count)]
        case ApproximateDP(cost, failure):
            return [(coin(cost, failure), 1)]
    raise AssertionError(event)


EVENTS: dict[str, tuple[Event, ...]] = {
    "Gaussians": (Gaussian(3.0, 4), Gaussian(6.0, 2)),
    "one loud Gaussian": (Gaussian(0.8),),
    "sampled units": (SubsampledGaussian(0.05, 1.2, 60),),
    "rarely sampled units": (SubsampledGaussian(0.01, 0.7, 40),),
    "everybody sampled": (SubsampledGaussian(1.0, 9.0, 30),),
    "windows": (MixtureOfGaussians(0.1, 5.0, 3, 50),),
    "many windows": (MixtureOfGaussians(0.05, 9.0, 12, 40),),
    "all windows always": (MixtureOfGaussians(1.0, 8.0, 4, 3),),
    "votes": (DiscreteGaussian(3.0, 10, one_vote=True),),
    "votes with little noise": (DiscreteGaussian(0.6, 2, one_vote=True),),
    "pure": (PureDP(0.3, 6),),
    "many pure": (PureDP(0.02, 400),),
    "approximate": (ApproximateDP(0.5, 2e-7), ApproximateDP(0.25, 3e-7)),
    "of every kind": (
        Gaussian(6.0),
        PureDP(0.2, 2),
        SubsampledGaussian(0.05, 1.5, 30),
        MixtureOfGaussians(0.1, 9.0, 3, 20),
        ApproximateDP(0.1, 1e-7),
        DiscreteGaussian(8.0, 1, one_vote=True),
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_epsilon_and_delta_lie_between_two_estimates_of_their_own(name: str) -> None:
    events = EVENTS[name]
    parts = [part for event in events for part in parts_of(event)]
    below, above = epsilons(parts, DELTA)
    found = epsilon(events, DELTA)
    assert below <= found * (1 + ROUNDING)
    assert found <= above * (1 + 1e-3) + 1e-3
    assert above <= below * NARROW + 1e-3  # else the bracket would say little
    low = max(curve.delta(found) for curve in curves(parts, above=False))
    assert low <= delta(events, found) * (1 + 1e-4)
    assert delta(events, found) <= DELTA * 1.05


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_bracket_finds_noise_wrong_by_ten_percent(factor: float) -> None:
    """Negative control."""
    for name in ("Gaussians", "sampled units", "windows", "votes"):
        below, above = epsilons([part for event in EVENTS[name] for part in parts_of(event)], DELTA)
        wrong = [_scaled(event, factor) for event in EVENTS[name]]
        assert not below <= epsilon(wrong, DELTA) <= above * (1 + 1e-3)


def _scaled(event: Event, factor: float) -> Event:
    fields = {**vars(event), "noise_multiplier": factor * event.noise_multiplier}  # type: ignore[union-attr]
    return type(event)(**fields)


def exact_deltas(rate: float, scale: float, most: int, at: float) -> tuple[float, float]:
    """Delta of one iteration with one unit removed and added, by adaptive integration."""
    shares = windows(rate, most)

    def density(x: float) -> float:
        return math.exp(-((x / scale) ** 2) / 2) / (scale * math.sqrt(2 * math.pi))

    def mixture(x: float) -> float:
        return sum(share * density(x - shift) for shift, share in shares.items())

    def beyond(first, second) -> float:
        ends = np.linspace(-12 * scale, most + 12 * scale, 60)
        gap = lambda x: max(0.0, first(x) - math.exp(at) * second(x))  # noqa: E731
        return sum(quad(gap, low, high, epsabs=0, epsrel=1e-11, limit=400)[0] for low, high in pairwise(ends))

    return beyond(mixture, density), beyond(density, mixture)


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("at", [0.0, 0.05, 0.2])
def test_windows_are_rounded_against_us_in_both_directions_and_by_a_hair(at: float) -> None:
    """A grid step of 10⁻⁴, cut in five: rounding the other way takes some 10⁻⁵ off delta, integration errs by 10⁻¹⁰."""
    sides = [side.delta(at) for side in mixture_loss(0.2, 6.0, 3, 1e-4)]
    for found, exact in zip(sides, exact_deltas(0.2, 6.0, 3, at), strict=True):
        assert exact * (1 - 1e-8) <= found <= exact * (1 + 5e-3) + 1e-15


def test_the_mass_beyond_the_grid_counts_as_certain_failure() -> None:
    for rate, scale, most in ((0.3, 2.0, 2), (1.0, 0.5, 1), (0.01, 40.0, 30)):
        for side in mixture_loss(rate, scale, most, 1e-2):
            assert side.mass.sum() + side.failure == pytest.approx(1.0, abs=1e-12)


def replaced(event: Event) -> Parts:
    """The pair when a unit's data becomes the opposite: what replace-one has to cover at the least."""
    match event:
        case Gaussian(noise, count, _):
            return [(moved_normal({1.0: 1.0}, noise, {-1.0: 1.0}), count)]
        case SubsampledGaussian(rate, noise, count):
            other = {-shift: share for shift, share in windows(rate, 1).items()}
            return [(moved_normal(windows(rate, 1), noise, other), count)]
        case MixtureOfGaussians(rate, noise, most, count):
            other = {-shift: share for shift, share in windows(rate, most).items()}
            return [(moved_normal(windows(rate, most), noise, other), count)]
        case DiscreteGaussian(noise, count, True):
            return [(votes(noise), 2 * count)]  # a vote taken from one place and given to another
        case PureDP(cost, count):
            return [(coin(2 * cost), count)]
    raise AssertionError(event)


REPLACED = {
    "Gaussian": (Gaussian(4.0, 3), 1.001),
    "sampled": (SubsampledGaussian(0.1, 2.0, 40), 1.6),
    "windows": (MixtureOfGaussians(0.1, 9.0, 3, 20), 1.6),
    "votes": (DiscreteGaussian(6.0, 5, one_vote=True), 1.6),  # priced as a move by two, not by √2
    "pure": (PureDP(0.2, 3), 1.01),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replace_one_covers_a_unit_turned_into_its_opposite(name: str) -> None:
    """Above by what two steps of group privacy cost, which is more for some events than for others."""
    event, slack = REPLACED[name]
    below, _ = epsilons(replaced(event), DELTA)
    found = replace_one_epsilon([event], DELTA)
    assert below <= found * (1 + ROUNDING)
    assert found <= slack * below + 1e-3


def test_replace_one_of_an_approximate_event_is_two_steps_of_it() -> None:
    """What never happens under one table happens with δ under its neighbour, and with δ + e^ε·δ two steps away."""
    cost = 0.4
    room = DELTA / (1 + math.exp(cost))
    assert 2 * cost * (1 - 1e-5) <= replace_one_epsilon([ApproximateDP(cost, 0.9 * room)], DELTA) <= 2 * cost * 1.01
    assert math.isinf(replace_one_epsilon([ApproximateDP(cost, 1.1 * room)], DELTA))
