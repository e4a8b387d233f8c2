"""The mu-test is exact: its intervals, its false alarms and its power are what they say."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, nct
from understudy_bench.audit.shift import mu_interval, mu_test, power_of, required_runs, student_tail

from tests.meta.pages import ROOT
from understudy.auditing.scores import Scores
from understudy.errors import InputError
from understudy.privacy.events import Gaussian

FALSE_ALARM = 1e-9


def gaussian_scores(mu: float, runs: int, rng: np.random.Generator) -> Scores:
    return Scores(rng.normal(3, 0.2, runs), rng.normal(3 + 0.2 * mu, 0.2, runs))


@pytest.mark.parametrize("mu", [0.5, 3.0])
def test_both_bounds_are_crossed_exactly_as_often_as_they_say(mu: float) -> None:
    """200 intervals at 80 %: a tenth errs on each side. False-alarm rate 1e-9 each; intervals that err in
    four tenths are found (the control)."""
    rng, repeats = np.random.default_rng(0), 200
    intervals = [mu_interval(gaussian_scores(mu, 30, rng), 0.8) for _ in range(repeats)]
    for errors in (sum(i.low > mu for i in intervals), sum(i.high < mu for i in intervals)):
        assert binom.ppf(FALSE_ALARM, repeats, 0.1) <= errors <= binom.isf(FALSE_ALARM, repeats, 0.1)
    narrow = sum(mu_interval(gaussian_scores(mu, 30, rng), 0.2).low > mu for _ in range(repeats))
    assert narrow > binom.isf(FALSE_ALARM, repeats, 0.1)


def test_two_thousand_runs_certify_nearly_all_of_a_mu_of_one() -> None:
    rng = np.random.default_rng(1)
    assert min(mu_interval(gaussian_scores(1.0, 2000, rng), 0.95).low for _ in range(20)) > 0.8


def test_the_direction_of_a_shift_does_not_matter_and_its_unit_neither() -> None:
    scores = gaussian_scores(2.0, 100, np.random.default_rng(2))
    other = Scores(-70 * scores.absent, -70 * scores.present)
    assert mu_interval(scores).low == pytest.approx(mu_interval(other).low)


def test_noise_that_is_missing_is_found_and_equal_arms_say_nothing() -> None:
    assert mu_interval(Scores(np.zeros(20), np.ones(20))).low > 50
    assert mu_interval(Scores(np.ones(20), np.ones(20))).low == 0


@pytest.mark.parametrize("runs", [10, 100, 3000])
@pytest.mark.parametrize("mu", [0.5, 10.0])
def test_power_is_the_share_of_audits_that_find_the_excess(mu: float, runs: int) -> None:
    """Simulated with 2000 t statistics; alpha and power at sizes that can be counted; false alarm 1e-9."""
    rng, repeats, alpha = np.random.default_rng(3), 2000, 0.1
    excess = float(brentq(lambda excess: power_of(mu, excess, runs, alpha) - 0.7, 0.0, 1000.0))
    for truth, promised in ((mu, alpha / 2), (mu * (1 + excess), 0.7)):
        scale, freedom = np.sqrt(runs / 2), 2 * runs - 2
        found = (rng.normal(truth * scale, 1, repeats)) / np.sqrt(rng.chisquare(freedom, repeats) / freedom)
        hits = int((found > nct.isf(alpha / 2, freedom, mu * scale)).sum())
        assert binom.ppf(FALSE_ALARM, repeats, promised) <= hits <= binom.isf(FALSE_ALARM, repeats, promised)


# Runs per arm at which counting errors (95 %) reaches a power of 90 %: the mu-test needs no more.
COUNTING = {(0.25, 2.0): 1000, (0.5, 2.0): 500, (1.0, 2.0): 200, (1.0, 1.25): 1000, (1.0, 1.1): 10_000, (2.0, 1.5): 200}


@pytest.mark.parametrize(("claim", "most"), COUNTING.items())
def test_fewer_runs_are_needed_than_for_counting_errors(claim: tuple[float, float], most: int) -> None:
    mu, factor = claim
    runs = required_runs(mu, factor - 1, alpha=0.05, power=0.9)
    assert runs <= most
    assert power_of(mu, factor - 1, runs, 0.05) >= 0.9 > power_of(mu, factor - 1, runs - 1, 0.05)


def test_the_page_about_tests_prints_the_runs_that_are_needed() -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    table = page.split("| claimed μ |")[1].split("\n\n")[0].splitlines()[2:]
    for mu, *printed in ([cell.strip() for cell in row.strip("|").split("|")] for row in table):
        for excess, runs in zip((1.0, 1 / 0.9 - 1), printed, strict=True):
            assert required_runs(float(mu), excess, alpha=1e-9, power=1 - 1e-6) == int(runs)


def test_an_excess_that_no_affordable_audit_shows_is_refused() -> None:
    with pytest.raises(InputError, match="can show"):
        required_runs(0.01, 0.01)
    with pytest.raises(InputError, match="positive mu"):
        required_runs(0.0, 0.5)


@pytest.mark.parametrize(
    ("runs", "mu", "found"),
    [(5, 0.5, 3.0), (20, 1.0, 3.0), (40, 10.0, 25.0), (1000, 10.0, 11.0), (10_000, 1.0, 1.1), (1000, 0.0, 0.3)],
)
def test_the_tail_of_the_t_distribution_agrees_with_scipy_where_that_converges(
    runs: int, mu: float, found: float
) -> None:
    scale, freedom = np.sqrt(runs / 2), 2 * runs - 2
    expected = nct.sf(found * scale, freedom, mu * scale)
    assert student_tail(found * scale, freedom, mu * scale) == pytest.approx(expected, rel=1e-5)


def test_the_tail_of_the_t_distribution_agrees_with_chance_where_scipy_gives_up() -> None:
    rng, runs, draws = np.random.default_rng(6), 2000, 20_000
    scale, freedom = np.sqrt(runs / 2), 2 * runs - 2
    found = rng.normal(2 * scale, 1, draws) / np.sqrt(rng.chisquare(freedom, draws) / freedom)
    for share in (0.1, 0.5, 0.9):
        assert student_tail(float(np.quantile(found, share)), freedom, 2 * scale) == pytest.approx(1 - share, abs=0.02)
    assert student_tail(scale, freedom, 2 * scale) == pytest.approx(1.0)


def test_the_best_scene_of_a_family_speaks_and_all_of_them_are_paid_for() -> None:
    rng = np.random.default_rng(5)
    family = {"quiet": gaussian_scores(0.1, 200, rng), "loud": gaussian_scores(2.0, 200, rng)}
    found = mu_test(family, delta=1e-5)
    assert (found.attack, found.family, found.ceiling) == ("loud", 2, None)
    assert found.evidence.mu < mu_test({"loud": family["loud"]}, delta=1e-5).evidence.mu
    assert found.refutes([Gaussian(1.0)])
    assert not found.refutes([Gaussian(0.5)])
    with pytest.raises(InputError, match="at least one scene"):
        mu_test({}, delta=1e-5)
