import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from understudy_bench.audit.shift import GaussianShift

from understudy.auditing.scores import ErrorRates, LowerBound
from understudy.privacy import accounting
from understudy.privacy.certificate import issue
from understudy.privacy.events import Event, Gaussian, NonPrivate, PureDP, SubsampledGaussian
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers.contract.panels import plain_schema


def result_of(evidence: ErrorRates | GaussianShift) -> LowerBound:
    return LowerBound(attack="canary", family=1, runs=100, confidence=0.95, evidence=evidence, ceiling=3.28, delta=1e-5)


def gaussian_rates(mu: float, false_positive: float) -> ErrorRates:
    """The best test against a Gaussian of this mu."""
    return ErrorRates(false_positive, float(ndtr(ndtri(1 - false_positive) - mu)))


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("false_positive", [1e-3, 0.1, 0.5, 0.9])
def test_a_gaussian_is_refuted_by_exactly_those_who_do_better_than_its_best_test(
    mu: float, false_positive: float
) -> None:
    best = gaussian_rates(mu, false_positive)
    assert best.mu == pytest.approx(mu)
    assert not result_of(best).refutes([Gaussian(1 / (1.001 * mu))])
    assert result_of(best).refutes([Gaussian(1 / (0.97 * mu))])


@pytest.mark.parametrize("mu", [0.3, 1.0, 10.0])
def test_a_shift_refutes_the_gaussians_that_are_said_to_be_noisier(mu: float) -> None:
    found = result_of(GaussianShift(mu))
    assert not found.refutes([Gaussian(1 / mu)])
    assert not found.refutes([Gaussian(math.sqrt(2) / (1.0001 * mu), count=2)])
    assert found.refutes([Gaussian(math.sqrt(2) / (0.999 * mu), count=2)])


def test_nothing_found_refutes_nothing_and_nothing_refutes_what_promises_nothing() -> None:
    for nothing in (ErrorRates(1.0, 1.0), ErrorRates(0.5, 0.5), GaussianShift(0.0)):
        assert result_of(nothing).epsilon == 0
        assert not result_of(nothing).refutes([])
        assert not result_of(nothing).refutes([PureDP(0.01)])
    certain = result_of(ErrorRates(1e-6, 1e-6))
    assert not certain.refutes([NonPrivate("a baseline")])
    assert certain.refutes([])


def test_epsilon_from_error_rates_is_read_both_ways() -> None:
    assert ErrorRates(0.01, 0.5).epsilon(0.0) == pytest.approx(math.log(50))
    assert ErrorRates(0.5, 0.01).epsilon(0.0) == pytest.approx(math.log(50))
    assert ErrorRates(0.01, 0.5).epsilon(0.1) == pytest.approx(math.log(40))


@pytest.mark.parametrize("event", [PureDP(1.3), SubsampledGaussian(0.2, 1.0, 5), Gaussian(0.8)])
def test_no_test_that_an_event_allows_refutes_it(event: Event) -> None:
    """Rates on the event's own trade-off curve, as its accountant gives it, in both directions."""
    losses = [(math.exp(at), accounting.delta([event], at)) for at in np.linspace(0, 5, 101)]
    for a in (0.01, 0.1, 0.3):
        least = max(0.0, *(1 - odds * a - delta for odds, delta in losses), *((1 - a - d) / o for o, d in losses))
        assert not result_of(ErrorRates(a, least + 2e-3)).refutes([event])
        assert result_of(ErrorRates(a, 0.9 * least)).refutes([event])


def test_a_certificate_is_contradicted_through_its_events() -> None:
    schema = plain_schema()
    from understudy.privacy.budget import Guarantee
    from understudy.privacy.plan import PlanEntry

    plan = SpendingPlan((PlanEntry("mean", Gaussian(2.0)),), Guarantee(5.0, 1e-5))
    grant = Ledger.in_memory(Guarantee(5.0, 1e-5)).charge(plan, label="run", noise=NoiseSource.secure())
    certificate = issue(grant, schema, method="test")
    assert result_of(GaussianShift(0.51)).contradicts(certificate)
    assert not result_of(GaussianShift(0.49)).contradicts(certificate)


def test_the_sentence_states_the_bound_the_ceiling_and_that_failure_proves_nothing() -> None:
    text = result_of(ErrorRates(0.01, 0.5)).sentence()
    assert "at least 3.91" in text
    assert "no attack can certify more than 3.28" in text
    assert "does not mean privacy" in text
    assert "no attack can" not in replace(result_of(GaussianShift(1.0)), ceiling=None).sentence()
