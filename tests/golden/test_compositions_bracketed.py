"""Rényi and concentrated DP, and ledgers: each between an optimistic estimate and an independent second one.

Optimistic estimates come from exact divergences of the worst mechanism of a kind, by sums and integrals.
"""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from understudy.errors import BudgetExceeded
from understudy.privacy.accounting import ORDERS as KNOWN_ORDERS
from understudy.privacy.accounting import (
    concentrated_budget,
    concentrated_epsilon,
    concentrated_rho,
    epsilon,
    gaussian_epsilon,
    renyi_at,
    renyi_curve,
    renyi_epsilon,
)
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import (
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    PureDP,
    SubsampledGaussian,
)
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.selections import domain_threshold

DELTA = 1e-6
ORDERS = (1.1, 1.5, 2.0, 5.0, 20.0, 128.0)


def renyi_of_points(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Larger of both directions, in logarithms."""
    kept = (p > 0) & (q > 0)
    sides = [order * np.log(a[kept]) + (1 - order) * np.log(b[kept]) for a, b in ((p, q), (q, p))]
    return max(float(logsumexp(side)) / (order - 1) for side in sides)


def renyi_of_normals(shares: dict[float, float], scale: float, order: float) -> float:
    """A mixture of moved normals against one that stays, both directions, on a fine grid (trapezoids: exact here)."""
    reach = max(shares) * (order + 1) + 14 * scale
    x = np.arange(-reach, reach, scale / 40)
    parts = [math.log(share) - (x - shift) ** 2 / (2 * scale**2) for shift, share in shares.items()]
    p, q = logsumexp(np.stack(parts), axis=0), -(x**2) / (2 * scale**2)
    whole = math.log(scale / 40 / (scale * math.sqrt(2 * math.pi)))
    sides = [order * a + (1 - order) * b for a, b in ((p, q), (q, p))]
    return max((float(logsumexp(side)) + whole) / (order - 1) for side in sides)


def randomised_response(cost: float) -> tuple[np.ndarray, np.ndarray]:
    yes = 1 / (1 + math.exp(-cost))
    return np.array([yes, 1 - yes]), np.array([1 - yes, yes])


def renyi_of_votes(scale: float, order: float) -> float:
    """An integer with discrete Gaussian noise, moved by one."""
    x = np.arange(-math.ceil(order + 30 * scale), math.ceil(order + 30 * scale) + 1)
    p, q = -((x - 1) ** 2) / (2 * scale**2), -(x**2) / (2 * scale**2)
    return float(logsumexp(order * p + (1 - order) * q) - logsumexp(q)) / (order - 1)


def windows(rate: float, most: int) -> dict[float, float]:
    return {float(k): float(binom.pmf(k, most, rate)) for k in range(most + 1)}


def all_or_none(rate: float, most: int) -> dict[float, float]:
    """What windows are priced as: every window of a unit where one of them is drawn."""
    return {0.0: (1 - rate) ** most, float(most): 1 - (1 - rate) ** most}


Divergence = Callable[[float], float]
DIVERGENCES: dict[str, tuple[Event, Divergence, Divergence]] = {
    "Gaussian": (Gaussian(3.0, 2), *2 * (lambda a: 2 * renyi_of_normals({1.0: 1.0}, 3.0, a),)),
    "votes": (DiscreteGaussian(2.0, 3), *2 * (lambda a: 3 * renyi_of_votes(2.0, a),)),
    "sampled": (SubsampledGaussian(0.1, 2.0, 5), *2 * (lambda a: 5 * renyi_of_normals(windows(0.1, 1), 2.0, a),)),
    "windows": (
        MixtureOfGaussians(0.1, 6.0, 3, 2),
        lambda a: 2 * renyi_of_normals(windows(0.1, 3), 6.0, a),
        lambda a: 2 * renyi_of_normals(all_or_none(0.1, 3), 6.0, a),
    ),
    "pure": (PureDP(0.7, 3), *2 * (lambda a: 3 * renyi_of_points(*randomised_response(0.7), a),)),
    "hardly private": (PureDP(9.0), *2 * (lambda a: renyi_of_points(*randomised_response(9.0), a),)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", DIVERGENCES)
def test_renyi_divergences_lie_at_or_just_above_the_exact_ones(name: str, order: float) -> None:
    """Between whole orders sampled noise is priced by a chord, which is up to twice as much."""
    event, exact, second = DIVERGENCES[name]
    found = renyi_at([event], order)
    assert found >= exact(order) * (1 - 1e-7)
    chord = order != int(order) and name in ("sampled", "windows")
    assert found <= second(order) * (2 if chord else 1 + 1e-6)


CONCENTRATED: dict[str, tuple[Event, Callable[[float], float], float]] = {
    "Gaussian": (Gaussian(3.0, 2), lambda a: 2 * a / 18, 1.0),
    "votes": (DiscreteGaussian(2.0, 3), lambda a: 3 * renyi_of_votes(2.0, a), 1.01),
    "pure": (PureDP(0.1, 4), lambda a: 4 * renyi_of_points(*randomised_response(0.1), a), 1.01),
    "pure and large": (PureDP(2.0), lambda a: renyi_of_points(*randomised_response(2.0), a), 1.4),
}


@pytest.mark.parametrize("name", CONCENTRATED)
def test_rho_covers_the_divergence_of_the_worst_mechanism_at_every_order(name: str) -> None:
    event, exact, slack = CONCENTRATED[name]
    rho = concentrated_rho([event])
    worst = max(exact(order) / order for order in (1.0001, 1.01, *ORDERS))
    assert rho is not None
    assert worst * (1 - 1e-6) <= rho <= worst * slack * (1 + 1e-3)


def converted(divergence: Callable[[float], float], delta: float) -> float:
    """Canonne, Kamath & Steinke (2020), Proposition 12, over many orders; written down once more."""
    costs = [divergence(a) + _price_of_delta(a, delta) for a in 1 + 10.0 ** np.arange(-2, 6, 0.01)]
    return float(min(costs))


def _price_of_delta(order: float, delta: float) -> float:
    with mpmath.workdps(30):
        a = mpmath.mpf(order)
        return float((mpmath.log(1 / mpmath.mpf(delta)) - mpmath.log(a)) / (a - 1) + mpmath.log(1 - 1 / a))


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.3, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_epsilon_of_concentrated_dp_lies_between_a_gaussian_and_a_looser_bound(rho: float, delta: float) -> None:
    found = concentrated_epsilon(rho, delta)
    assert gaussian_epsilon(math.sqrt(2 * rho), delta) <= found  # a Gaussian is rho-zCDP: no bound may be below it
    assert found <= rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun & Steinke (2016), Proposition 1.3
    assert found == pytest.approx(converted(lambda order: rho * order, delta), rel=2e-3)
    room = concentrated_budget(found, delta)
    assert rho * (1 - 1e-6) <= room <= rho * (1 + 1e-9)


def test_the_conversion_from_renyi_is_the_published_one() -> None:
    for event in (Gaussian(2.0), SubsampledGaussian(0.05, 1.0, 100)):
        curve = renyi_curve([event])
        found = renyi_epsilon(curve, DELTA)
        assert found >= epsilon([event], DELTA) * (1 - 1e-9)
        again = min(cost + _price_of_delta(float(a), DELTA) for a, cost in zip(KNOWN_ORDERS, curve, strict=True))
        assert found == pytest.approx(again, rel=1e-9)


def runs_until_refused(ledger: Ledger, event: Event, promised: Guarantee) -> int:
    for number in range(100_000):
        try:
            ledger.charge(SpendingPlan((PlanEntry("x", event),), promised), label="x", noise=NoiseSource.seeded(1))
        except BudgetExceeded:
            return number
    raise AssertionError


def exact_pure_epsilon(cost: float, count: int, delta: float) -> float:
    """Epsilon of `count` randomised responses, summed over how many lied (Kairouz, Oh & Viswanath 2015)."""
    lied = np.arange(count + 1)
    yes = 1 / (1 + math.exp(-cost))
    log_p, losses = binom.logpmf(lied, count, 1 - yes), (count - 2 * lied) * cost
    low, high = 0.0, count * cost
    for _ in range(60):
        middle = (low + high) / 2
        beyond = losses > middle
        failed = float((np.exp(log_p[beyond]) * -np.expm1(middle - losses[beyond])).sum())
        low, high = (middle, high) if failed > delta else (low, middle)
    return high


def by_divergence(divergence: Divergence, orders: np.ndarray) -> Callable[[int], float]:
    """What so many runs cost by Rényi DP at the best of some orders; a second estimate of what a ledger counts."""
    costs = np.array([divergence(float(order)) for order in orders])
    prices = np.array([_price_of_delta(float(order), DELTA) for order in orders])
    return lambda number: float((number * costs + prices).min())


ANY_ORDER = 1 + 10.0 ** np.arange(-1, 4, 0.01)
LEDGERS = {
    "rdp, Gaussians": (
        "rdp",
        Gaussian(60.0),
        lambda number: gaussian_epsilon(math.sqrt(number) / 60, DELTA),
        lambda: by_divergence(lambda order: order / 7200, KNOWN_ORDERS),
    ),
    "zcdp, Gaussians": (
        "zcdp",
        Gaussian(60.0),
        lambda number: gaussian_epsilon(math.sqrt(number) / 60, DELTA),
        lambda: by_divergence(lambda order: order / 7200, ANY_ORDER),
    ),
    "zcdp, pure": (
        "zcdp",
        PureDP(0.02),
        lambda number: exact_pure_epsilon(0.02, number, DELTA),
        lambda: by_divergence(lambda order: order * 0.02**2 / 2, ANY_ORDER),
    ),
    "rdp, pure": (
        "rdp",
        PureDP(0.02),
        lambda number: exact_pure_epsilon(0.02, number, DELTA),
        lambda: by_divergence(lambda order: renyi_of_points(*randomised_response(0.02), order), KNOWN_ORDERS),
    ),
    "basic, pure": ("basic", PureDP(0.05), lambda number: number * 0.05, lambda: lambda number: number * 0.05),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_pays_for_no_more_runs_than_cost_what_it_holds_and_for_nearly_as_many(name: str) -> None:
    """Runs of one kind, charged until it refuses: within the budget exactly, and by the rule of the ledger just so."""
    kind, event, exact, make_second = LEDGERS[name]
    whole, second = Guarantee(1.0, DELTA), make_second()
    ledger = Ledger.in_memory(whole, composition=kind, max_runs=1000 if kind == "basic" else 1)
    promised = Guarantee(1.0, DELTA / 1000 if kind == "basic" else DELTA)
    number = runs_until_refused(ledger, event, promised)
    assert exact(number) <= whole.epsilon * (1 + 1e-6)
    assert second(number) <= whole.epsilon * (1 + 1e-6)
    assert second(math.ceil(1.02 * number) + 1) > whole.epsilon


@pytest.mark.parametrize("cost", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("failure", [1e-3, 1e-9])
def test_the_threshold_of_a_category_is_the_least_that_hides_a_single_unit(cost: float, failure: float) -> None:
    """P[1 + noise > T] summed term by term."""
    threshold = domain_threshold(cost, failure)

    def shown(least: int) -> float:
        terms = np.arange(max(least, 0), max(least, 0) + math.ceil(60 / cost))
        rate = math.exp(-cost)
        return float((1 - rate) / (1 + rate) * np.exp(-cost * terms).sum())

    assert shown(threshold) <= failure * (1 + 1e-9)
    assert threshold == 1 or shown(threshold - 1) > failure
