"""Do the mechanisms keep their promise on neighbours? False-alarm rate 1e-9; an error of 10 % is found."""

import numpy as np
import pytest
from scipy.stats import chi2

from tests.releases import released
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, PureDP
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan

FALSE_ALARM = 1e-9


def granted(event, label="it"):
    """Many executions under one charge: the ledger's room is not what is tested here."""
    plan = SpendingPlan((PlanEntry(label, event),), Guarantee(1e9, 1e-9))
    return Ledger.in_memory(Guarantee(1e10, 1e-9)).charge(plan, label="test", noise=NoiseSource.secure())


def p_value_of_scale(values, scale):
    statistic = float(np.square(values / scale).sum())
    return 2 * min(chi2.cdf(statistic, values.size), chi2.sf(statistic, values.size))


@pytest.mark.parametrize(("multiplier", "bound"), [(2.0, 1.0), (0.5, 8.0)])
def test_a_released_statistic_carries_noise_multiplier_times_bound(multiplier, bound):
    noise = released(granted(Gaussian(multiplier)), "it", np.zeros((1, 100_000)), bound)
    assert p_value_of_scale(noise, multiplier * bound) > FALSE_ALARM
    for wrong in (0.9, 1.1):
        assert p_value_of_scale(noise, multiplier * bound * wrong) < FALSE_ALARM


def exponential_probabilities(scores, epsilon, sensitivity):
    weights = np.exp(epsilon * scores / (2 * sensitivity))
    return weights / weights.sum()


def test_the_quantile_mechanism_draws_with_exactly_the_promised_odds():
    """Chi-squared against the law; and the law itself keeps epsilon between all neighbours."""
    from understudy.privacy.selections import quantile_scores

    epsilon, q, grid, draws = 1.0, 0.75, np.linspace(0, 8, 9), 4000
    values = np.array([1.0, 2.0, 2.5, 6.0, 7.0])
    law = exponential_probabilities(quantile_scores(values, grid, q), epsilon, 0.75)
    grant = granted(PureDP(epsilon, count=draws))
    drawn = [grant.quantile("it", values, grid, q) for _ in range(draws)]
    counts = np.array([np.sum(np.isclose(drawn, point)) for point in grid])

    def p_value(probabilities):
        return chi2.sf((np.square(counts - draws * probabilities) / (draws * probabilities)).sum(), len(grid) - 1)

    assert p_value(law) > FALSE_ALARM
    assert p_value(exponential_probabilities(quantile_scores(values, grid, q), 1.6 * epsilon, 0.75)) < FALSE_ALARM
    for added in (-1.0, 2.2, 9.0):
        other = exponential_probabilities(quantile_scores(np.append(values, added), grid, q), epsilon, 0.75)
        assert np.abs(np.log(law / other)).max() <= epsilon + 1e-12
