"""A bound from one run: published values, coins that were really thrown, and refusals.

Coins are drawn afresh each time. The calibration test alarms falsely with probability below 1e-9: true claims are
contradicted in at most 5 % of runs each, and 24 of 60 such would have to fall together.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from understudy.audit.one_run import Guesses, audit_one_run
from understudy.errors import InputError
from understudy.privacy.events import PureDP


def guesses(canaries: int, guessed: int, correct: int, delta: float = 0.0) -> Guesses:
    return Guesses(canaries, guessed, correct, 0.05, delta)


def test_pure_claims_are_tested_by_a_binomial() -> None:
    assert guesses(100, 100, 80).p_value(1.0, 0.0) == pytest.approx(binom.sf(79, 100, 1 / (1 + math.exp(-1))))
    assert guesses(100, 100, 50).epsilon(0.0) == 0.0
    lowest = guesses(1000, 1000, 1000).epsilon(0.0)
    assert lowest == pytest.approx(-math.log(0.05 ** (-1 / 1000) - 1), rel=1e-6)  # q^1000 = 0.05


def test_delta_takes_something_away_and_never_adds() -> None:
    bounds = [guesses(1000, 200, 190, delta).epsilon(delta) for delta in (0.0, 1e-6, 1e-4)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > bounds[-1]


def test_more_right_guesses_prove_more() -> None:
    proven = [guesses(1000, 200, correct).epsilon(0.0) for correct in range(100, 201, 20)]
    assert proven == sorted(proven)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_true_claim_is_seldom_contradicted_and_a_false_one_always(epsilon: float) -> None:
    rng, right = np.random.default_rng(), 1 / (1 + math.exp(-epsilon))
    true, false = 0, 0
    for _ in range(60):
        coins = rng.random(300) < 0.5
        told = np.where(rng.random(300) < right, coins, ~coins)  # randomised response is the worst case
        result = audit_one_run({"answers": told.astype(float)}, coins, guesses=300, delta=1e-6)
        true += result.refutes([PureDP(epsilon)])
        false += result.refutes([PureDP(epsilon / 4)])
    assert true < 24
    assert false > (50 if epsilon == 2.0 else 0)


def test_coins_that_are_known_reach_the_ceiling_and_not_more() -> None:
    coins = np.random.default_rng(0).random(200) < 0.5
    result = audit_one_run({"copy": coins * 1.0, "nothing": np.zeros(200)}, coins, guesses=60, delta=1e-6)
    assert result.attack == "copy"
    assert result.epsilon == pytest.approx(result.ceiling)
    assert "one run" in result.sentence()


@pytest.mark.parametrize("number", [0, 7, 300])
def test_a_number_of_guesses_that_makes_no_sense_is_refused(number: int) -> None:
    with pytest.raises(InputError, match="even number"):
        audit_one_run({"copy": np.zeros(200)}, np.zeros(200, dtype=bool), guesses=number, delta=1e-6)


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="finite"):
        audit_one_run({"broken": np.full(200, np.nan)}, np.zeros(200, dtype=bool), guesses=20, delta=1e-6)
