"""The exponential mechanism over candidates keeps its odds. False-alarm rate 1e-9; 1.6 times epsilon is found."""

import numpy as np
import pytest
from scipy.stats import chi2

from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import PureDP
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

FALSE_ALARM = 1e-9
EPSILON, DRAWS = 0.8, 4000
MERITS = np.array([[0.2, 0.9, 0.5], [1.0, 0.0, 0.4], [0.3, 0.3, 0.3], [0.0, 0.6, 1.0]])
GIANTS = {
    "beyond the ends": [1e9, -1e9, 0.5],
    "one vote": [0.0, 0.0, 1.0],
    "not a number": [np.nan, 1.0, np.nan],
    "endless": [np.inf, -np.inf, 0.0],
}


def _law(merits: np.ndarray, epsilon: float = EPSILON) -> np.ndarray:
    totals = np.clip(np.nan_to_num(merits, nan=0.5), 0, 1).sum(axis=0)
    weights = np.exp(epsilon * totals)
    return weights / weights.sum()


def _p_value(merits: np.ndarray, law: np.ndarray) -> float:
    plan = SpendingPlan((PlanEntry("it", PureDP(EPSILON, count=DRAWS)),), Guarantee(1e9, 1e-9))
    charged = Ledger.in_memory(Guarantee(1e10, 1e-9)).charge(plan, label="test", noise=NoiseSource.secure())
    grant = Grant(plan=plan, noise=charged.noise, receipt=charged.receipt, record=lambda label, number: 0)  # no diary
    counts = np.bincount([grant.choose("it", merits) for _ in range(DRAWS)], minlength=3)
    return float(chi2.sf((np.square(counts - DRAWS * law) / (DRAWS * law)).sum(), 2))


def test_candidates_are_drawn_with_exactly_the_promised_odds() -> None:
    assert _p_value(MERITS, _law(MERITS)) > FALSE_ALARM
    assert _p_value(np.repeat(MERITS, 3, axis=0), _law(np.repeat(MERITS, 3, axis=0), 1.6 * EPSILON)) < FALSE_ALARM


@pytest.mark.parametrize("giant", GIANTS)
def test_whatever_one_unit_says_the_odds_stay_within_epsilon(giant: str) -> None:
    more = np.vstack([MERITS, GIANTS[giant]])
    assert _p_value(more, _law(more)) > FALSE_ALARM
    assert np.abs(np.log(_law(more) / _law(MERITS))).max() <= EPSILON + 1e-12


def test_a_choice_needs_a_row_for_each_unit_and_two_candidates() -> None:
    plan = SpendingPlan((PlanEntry("it", PureDP(1.0)),), Guarantee(2.0, 1e-9))
    grant = Ledger.in_memory(Guarantee(2.0, 1e-9)).charge(plan, label="test", noise=NoiseSource.secure())
    for odd in (np.zeros(3), np.zeros((3, 1))):
        with pytest.raises(InputError, match="one row per unit"):
            grant.choose("it", odd)
    assert grant.executed == {"it": 0}
    assert grant.choose("it", np.zeros((0, 3))) in (0, 1, 2)
