"""Canaries against the releases of the privacy core: is one unit hidden as well as was charged, among anybody?

The mu-test over every canary and every crowd. All scenes of a test together raise a false alarm with probability
1e-9; a defect of the stated size goes unnoticed with probability 1e-6 (`required_runs` computes the runs).
"""

from collections.abc import Callable

import numpy as np
import pytest
from understudy_bench.audit.shift import mu_test, required_runs

from tests.canaries.mechanisms import (
    LABEL,
    Mechanism,
    audit_mechanism,
    discrete_gaussian_sum,
    gaussian_sum,
    grant_for,
    observe,
)
from tests.canaries.scenes import Scene, scenes
from understudy.auditing.scores import LowerBound
from understudy.privacy.border import Given, Statistic
from understudy.privacy.contributions import Rows
from understudy.privacy.events import DiscreteGaussian, Gaussian
from understudy.privacy.noise import NoiseSource

FALSE_ALARM, MISSED = 1e-9, 1e-6
BLOCKS = (3, 4)
RADIUS = 50.0  # noise of more than one, so that a variance is not taken for a deviation unnoticed
LONG = scenes(BLOCKS, canary_length=1000.0, others_length=100.0, rng=np.random.default_rng(0))
VOTES = [scene for scene in scenes(BLOCKS, rng=np.random.default_rng(0)) if scene.name.endswith(("zero", "opposed"))]
ONE_VOTE = [scene for scene in VOTES if scene.name.startswith("e_0, ")]
BY_NAME = {scene.name: scene for scene in LONG}
CHARGED = Gaussian(0.1)  # little noise: the fewest runs, and the same code
HALF_NOISE, TEN_PERCENT_LESS = 1.0, 1 / 0.9 - 1


def runs_for(mu: float, excess: float, family: int) -> int:
    return required_runs(mu, excess, alpha=FALSE_ALARM / family, power=1 - MISSED)


def audited(mechanism: Mechanism, tried: tuple[Scene, ...], excess: float) -> LowerBound:
    runs = runs_for(1 / CHARGED.noise_multiplier, excess, len(tried))
    return audit_mechanism(mechanism, tried, runs=runs, confidence=1 - FALSE_ALARM)


def test_a_sum_of_clipped_rows_hides_every_canary_in_every_crowd() -> None:
    assert not audited(gaussian_sum(CHARGED, RADIUS), LONG, HALF_NOISE).refutes([CHARGED])


def test_half_of_the_charged_noise_is_caught() -> None:
    found = audited(gaussian_sum(Gaussian(0.05), RADIUS), LONG, HALF_NOISE)
    assert found.refutes([CHARGED])
    assert found.family == len(LONG)


def test_ten_percent_of_the_noise_is_not_missing() -> None:
    tried = (BY_NAME["random, others opposed"],)
    assert not audited(gaussian_sum(CHARGED, RADIUS), tried, TEN_PERCENT_LESS).refutes([CHARGED])


def test_ten_percent_less_noise_than_charged_is_caught() -> None:
    tried = (BY_NAME["random, others opposed"],)
    assert audited(gaussian_sum(Gaussian(0.09), RADIUS), tried, TEN_PERCENT_LESS).refutes([CHARGED])


def test_one_scalar_of_noise_is_caught_by_coordinates_that_cancel_it_and_by_them_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    genuine = NoiseSource.discrete_gaussian
    monkeypatch.setattr(
        NoiseSource, "discrete_gaussian", lambda source, scale, size: np.full(size, genuine(source, scale, 1)[0])
    )
    naive = tuple(scene for scene in LONG if scene.name.startswith("ones"))
    assert not audited(gaussian_sum(CHARGED, RADIUS), naive, HALF_NOISE).refutes([CHARGED])
    found = audited(gaussian_sum(CHARGED, RADIUS), LONG, HALF_NOISE)
    assert found.refutes([CHARGED])
    assert found.attack.startswith(("e_0 −", "random"))


def said_short(lengths: np.ndarray) -> np.ndarray:
    """Lengths as contributions that say they are short would tell them."""
    return np.minimum(lengths, RADIUS)


def of_the_crowd(lengths: np.ndarray) -> np.ndarray:
    """One length for everybody, the mean: the batch is bounded, nobody in it is."""
    return np.full(len(lengths), np.sqrt(np.square(lengths).mean()))


@pytest.mark.parametrize("wrong", [said_short, of_the_crowd])
def test_contributions_with_wrong_lengths_are_caught(
    wrong: Callable[[np.ndarray], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has to be trusted of a kind of contributions, and how an audit sees that it is wrong."""
    right = Rows.norms
    monkeypatch.setattr(Rows, "norms", lambda rows: wrong(right(rows)))

    def run(rows: np.ndarray, runs: int) -> np.ndarray:
        grant = grant_for(Gaussian(CHARGED.noise_multiplier, runs))
        statistic = Statistic(label=LABEL, shape=rows.shape[1:], bound=RADIUS)
        return np.stack([grant.release(statistic, Given(Rows(rows))) for _ in range(runs)])

    assert audited(run, LONG, HALF_NOISE).refutes([CHARGED])


def discrete(event: DiscreteGaussian, claimed: DiscreteGaussian, tried: list[Scene]) -> LowerBound:
    """Whole-numbered rows; a unit moves the sum by no more than its own length."""
    runs = runs_for(1 / claimed.noise_multiplier, HALF_NOISE, len(tried))
    family = {
        scene.name: observe(discrete_gaussian_sum(event, float(np.linalg.norm(scene.canary))), scene, runs)
        for scene in tried
    }
    return mu_test(family, delta=1e-5, confidence=1 - FALSE_ALARM)


def test_a_sum_of_votes_hides_every_canary() -> None:
    charged = DiscreteGaussian(1.0)
    assert not discrete(charged, charged, VOTES).refutes([charged])


def test_a_single_vote_is_hidden_and_half_of_its_noise_is_caught() -> None:
    """Against the exact price of one vote; the price of whole vectors leaves some room above it."""
    charged = DiscreteGaussian(1.0, one_vote=True)
    assert not discrete(charged, charged, ONE_VOTE).refutes([charged])
    assert discrete(DiscreteGaussian(0.5, one_vote=True), charged, ONE_VOTE).refutes([charged])


def test_half_of_the_charged_noise_on_votes_is_caught() -> None:
    assert discrete(DiscreteGaussian(0.5), DiscreteGaussian(1.0), VOTES[-2:]).refutes([DiscreteGaussian(1.0)])
