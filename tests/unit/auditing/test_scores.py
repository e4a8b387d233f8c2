"""Scores become bounds that hold as often as they say, and as high as so few runs allow."""

import numpy as np
import pytest
from scipy.stats import binom

from understudy.auditing.scores import Scores, audit_scores, ceiling
from understudy.errors import InputError

# A perfect attacker at 95 %, delta = 1e-5: counted runs per arm → most that can be certified.
CEILINGS = {10: 0.81, 20: 1.60, 50: 2.57, 100: 3.28, 200: 3.98, 500: 4.91, 1000: 5.60, 5000: 7.21, 20_000: 8.60}


def gaussian_scores(mu: float, runs: int, rng: np.random.Generator) -> Scores:
    return Scores(rng.normal(0, 1, runs), rng.normal(mu, 1, runs))


@pytest.mark.parametrize(("runs", "most"), CEILINGS.items())
def test_the_ceiling_is_that_of_a_perfect_attack(runs: int, most: float) -> None:
    assert ceiling(runs, delta=1e-5) == pytest.approx(most, abs=0.006)
    perfect = Scores(np.zeros(2 * runs), np.ones(2 * runs))
    found = audit_scores({"perfect": perfect}, delta=1e-5)
    assert found.runs == runs
    assert found.epsilon == pytest.approx(ceiling(runs, delta=1e-5)) == found.ceiling


def test_a_family_costs_confidence_and_lowers_the_ceiling() -> None:
    perfect = Scores(np.zeros(200), np.ones(200))
    alone = audit_scores({"a": perfect}, delta=1e-5)
    among = audit_scores(dict.fromkeys("abcde", perfect), delta=1e-5)
    assert among.family == 5
    assert among.epsilon == pytest.approx(ceiling(100, delta=1e-5, family=5))
    assert among.epsilon < alone.epsilon


def test_an_attack_that_is_right_the_wrong_way_round_is_as_good() -> None:
    scores = gaussian_scores(2.0, 1000, np.random.default_rng(1))
    flipped = Scores(-scores.absent, -scores.present)
    there, back = (audit_scores({"attack": each}, delta=1e-5) for each in (scores, flipped))
    assert there.epsilon == pytest.approx(back.epsilon)
    assert there.epsilon > 0.5


def test_the_strongest_attack_of_a_family_is_named() -> None:
    rng = np.random.default_rng(2)
    family = {"weak": gaussian_scores(0.2, 500, rng), "strong": gaussian_scores(3.0, 500, rng)}
    assert audit_scores(family, delta=1e-5).attack == "strong"


@pytest.mark.parametrize("mu", [0.0, 1.0, 2.0])
def test_a_certified_mu_exceeds_the_truth_no_more_often_than_it_says(mu: float) -> None:
    """200 audits at 95 %. An honest bound errs in more than 18 of them with probability below 0.01; the alarm is
    set where it has 1e-9. Clopper & Pearson and two error rates at half each make it err far less."""
    rng = np.random.default_rng(3)
    exceeded = sum(
        audit_scores({"a": gaussian_scores(mu, 500, rng)}, delta=1e-5, aim="mu").evidence.mu > mu for _ in range(200)
    )
    assert exceeded <= 18
    assert exceeded <= binom.isf(1e-9, 200, 0.05)


def test_the_best_of_many_attacks_without_their_price_would_err_more_often() -> None:
    """Negative control for Bonferroni, at 50 % so that errors can be counted: thirty attacks on nothing."""
    rng, repeats = np.random.default_rng(4), 40
    cheated = kept = 0
    for _ in range(repeats):
        family = {str(number): gaussian_scores(0.0, 60, rng) for number in range(30)}
        alone = [audit_scores({"a": each}, delta=1e-5, confidence=0.5, aim="mu") for each in family.values()]
        cheated += max(found.evidence.mu for found in alone) > 0
        kept += audit_scores(family, delta=1e-5, confidence=0.5, aim="mu").evidence.mu > 0
    most = binom.isf(1e-9, repeats, 0.5)
    assert kept <= most < cheated


def test_two_thousand_runs_certify_most_of_a_mu_of_one() -> None:
    rng = np.random.default_rng(5)
    found = [audit_scores({"a": gaussian_scores(1.0, 2000, rng)}, delta=1e-5, aim="mu").evidence.mu for _ in range(20)]
    assert np.median(found) >= 0.7


def test_the_runs_that_count_do_not_choose() -> None:
    """Had the second half a say, the threshold would rise above its scores of a half, and nothing would err."""
    absent = np.concatenate([np.zeros(50), np.repeat([0.0, 0.5], [43, 7])])
    found = audit_scores({"a": Scores(absent, np.ones(100))}, delta=1e-5)
    assert binom.cdf(7, 50, found.evidence.false_positive) == pytest.approx(0.025)
    assert binom.cdf(0, 50, found.evidence.false_negative) == pytest.approx(0.025)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ({}, {}),
        ({"a": Scores(np.zeros(3), np.zeros(3))}, {}),
        ({"a": Scores(np.zeros(9), np.zeros(9))}, {"confidence": 1.0}),
        ({"a": Scores(np.zeros(9), np.zeros(9))}, {"delta": 1.0}),
    ],
)
def test_audits_that_could_conclude_nothing_are_refused(family: dict, settings: dict) -> None:
    with pytest.raises(InputError, match="Expected"):
        audit_scores(family, **{"delta": 1e-5, **settings})


@pytest.mark.parametrize("arm", [np.zeros(1), np.zeros((3, 2)), np.array([0.0, np.nan, 1.0])])
def test_scores_have_to_be_finite_and_more_than_one(arm: np.ndarray) -> None:
    with pytest.raises(InputError, match="finite scores"):
        Scores(arm, np.zeros(5))


def test_scores_that_are_all_equal_prove_nothing() -> None:
    assert audit_scores({"a": Scores(np.ones(50), np.ones(50))}, delta=1e-5).epsilon == 0
