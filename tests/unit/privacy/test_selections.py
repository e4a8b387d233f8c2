"""Questions whether a figure is above a threshold: at one price, bounded in number, and seldom wrong."""

import numpy as np
import pytest
from scipy.stats import binomtest

from understudy.errors import BudgetExceeded, InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import PureDP
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.selections import AboveThreshold, needed_figure

EPSILON, BOUND = 1.0, 2.5


def answers(figure: float, number: int, noise: NoiseSource, questions: int = 1) -> np.ndarray:
    """Whether the first of some questions about a figure was answered with yes, again and again."""
    return np.array([AboveThreshold(EPSILON, noise, questions, 0.05)(figure, BOUND) for _ in range(number)])


def grant(questions: int = 2, epsilon: float = EPSILON):
    plan = SpendingPlan((PlanEntry("check", PureDP(epsilon)),), Guarantee(epsilon, 1e-6))
    return Ledger.in_memory(Guarantee(epsilon, 1e-6)).charge(plan, label="test", noise=NoiseSource.constant(0))


def test_a_clear_figure_is_told_from_one_below() -> None:
    noise = NoiseSource.secure()
    far = 2 * needed_figure(EPSILON, 1, 0.05) * BOUND
    assert answers(far, 300, noise).mean() > 0.9
    assert not answers(-far, 300, noise).any()


def test_a_figure_that_is_not_above_passes_seldom() -> None:
    """At most 5 % of the time; 2,000 questions, and a rate of 0.1 would be seen with a chance above 1 − 1e-9."""
    passed = int(answers(0.0, 2000, NoiseSource.secure()).sum())
    assert binomtest(passed, 2000, 0.05, alternative="greater").pvalue > 1e-9
    assert binomtest(200, 2000, 0.05, alternative="greater").pvalue < 1e-9


def test_one_answer_about_neighbouring_figures_is_nearly_the_same() -> None:
    """A figure one unit higher gets a yes at most e^(ε/4) times as often: its own noise alone hides the step.

    2,500 answers an arm: 0.08 is six standard errors of the comparison, and half of the noise would raise the rate of
    one half by 0.3 instead of 0.14.
    """
    noise = NoiseSource.secure()
    middle = needed_figure(EPSILON, 1, 0.05) * BOUND
    low, high = (answers(middle + shift, 2500, noise).mean() for shift in (0.0, BOUND))
    assert 0.4 < low < 0.6
    assert high <= np.exp(EPSILON / 4) * low + 0.08
    assert 1 - low <= np.exp(EPSILON / 4) * (1 - high) + 0.08


def test_nothing_is_answered_after_a_yes_or_beyond_what_was_paid_for() -> None:
    high, low = 1e6, -1e6
    asked = grant().above_threshold("check", 2, 0.05)
    assert asked(high, BOUND)
    with pytest.raises(BudgetExceeded):
        asked(high, BOUND)
    asked = grant().above_threshold("check", 2, 0.05)
    assert not asked(low, BOUND)
    assert not asked(low, BOUND)
    with pytest.raises(BudgetExceeded):
        asked(low, BOUND)


def test_a_label_gives_one_threshold_only() -> None:
    held = grant()
    held.above_threshold("check", 2, 0.05)
    with pytest.raises(BudgetExceeded):
        held.above_threshold("check", 2, 0.05)


def test_figures_of_several_bounds_are_refused() -> None:
    asked = grant().above_threshold("check", 3, 0.05)
    asked(-1e6, BOUND)
    for wrong in (2 * BOUND, 0.0, float("inf")):
        with pytest.raises(InputError):
            asked(0.0, wrong)
    with pytest.raises(InputError):
        grant().above_threshold("check", 0, 0.05)


def test_noise_has_the_published_scales() -> None:
    """Threshold 2Δ/ε, figure 4Δ/ε: with noise of one deviation each the border between yes and no is exact."""
    steps = 1024
    for constant in (0, 1):
        asked = AboveThreshold(EPSILON, NoiseSource.constant(constant), 1, 0.05)
        margin = int(np.ceil(6 * steps / EPSILON * np.log(2 / 0.05)))
        border = margin + constant * (round(2 * steps / EPSILON) - round(4 * steps / EPSILON))
        assert asked((border + 0.5) / (steps - 1), 1.0)
        asked = AboveThreshold(EPSILON, NoiseSource.constant(constant), 1, 0.05)
        assert not asked((border - 0.5) / (steps - 1), 1.0)
