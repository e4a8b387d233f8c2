"""Is the noise what the accountant believes? False-alarm rate 1e-9 per test; an error of 10 % is found.

Each test has a negative control: the same check must fail on noise that is wrong by 10 %.
"""

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chi2, kstest, norm

from understudy.privacy.noise import NoiseSource

FALSE_ALARM = 1e-9
WRONG = (0.9, 1.1)
DRAWS = 200_000


def p_value_of_scale(values, scale):
    """Two-sided, exact for normals: the sum of squares is chi-squared."""
    statistic = float(np.square(values / scale).sum())
    return 2 * min(chi2.cdf(statistic, len(values)), chi2.sf(statistic, len(values)))


def p_value_of_mean(values, scale):
    return 2 * norm.sf(abs(float(values.mean())) / scale * math.sqrt(len(values)))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 37.5])
def test_normals_have_the_scale_asked_for(scale):
    values = NoiseSource.secure().normal(scale, DRAWS)
    assert p_value_of_scale(values, scale) > FALSE_ALARM
    assert p_value_of_mean(values, scale) > FALSE_ALARM


@pytest.mark.parametrize("factor", WRONG)
def test_the_scale_test_finds_noise_wrong_by_ten_percent(factor):
    assert p_value_of_scale(NoiseSource.secure().normal(factor, DRAWS), 1.0) < FALSE_ALARM


def test_normals_are_normal():
    assert kstest(NoiseSource.secure().normal(1.0, DRAWS), "norm").pvalue > FALSE_ALARM


@pytest.mark.parametrize("factor", WRONG)
def test_the_shape_test_finds_noise_wrong_by_ten_percent(factor):
    assert kstest(NoiseSource.secure().normal(factor, DRAWS), "norm").pvalue < FALSE_ALARM


def test_the_far_tail_is_there():
    """Beyond four standard deviations: a Poisson number of draws with a known mean."""
    drawn = NoiseSource.secure().normal(1.0, 4_000_000)
    expected = 2 * ndtr(-4.0) * drawn.size
    assert abs(int((np.abs(drawn) > 4).sum()) - expected) < -ndtri(FALSE_ALARM / 2) * math.sqrt(expected)


def test_draws_are_independent_of_each_other():
    """Neighbours, pairs from one polar point, and blocks: correlations below what chance allows."""
    noise = NoiseSource.secure()
    values = noise.normal(1.0, DRAWS)
    bound = -ndtri(FALSE_ALARM / 20) / math.sqrt(DRAWS / 2)
    for lag in (1, 2, 7, 64, 1 << 13, 1 << 14, DRAWS // 2):
        assert abs(float(np.mean(values[:-lag] * values[lag:]))) < bound
        assert abs(float(np.mean((values[:-lag] ** 2 - 1) * (values[lag:] ** 2 - 1)))) < 2 * bound
    again = noise.normal(1.0, DRAWS)
    assert abs(float(np.mean(values * again))) < bound


def test_the_independence_test_finds_a_correlation_of_ten_percent():
    values = NoiseSource.secure().normal(1.0, DRAWS)
    mixed = values[1:] + 0.1 * values[:-1]
    assert abs(float(np.mean(mixed[:-1] * mixed[1:]))) > -ndtri(FALSE_ALARM / 20) / math.sqrt(DRAWS / 2)


def test_the_same_noise_in_every_coordinate_would_be_found():
    """e₁ − e₂ cancels shared noise; its variance must be twice that of one coordinate."""
    pairs = NoiseSource.secure().normal(1.0, (DRAWS // 2, 2))
    assert p_value_of_scale(pairs[:, 0] - pairs[:, 1], math.sqrt(2)) > FALSE_ALARM


def test_uniforms_are_uniform_and_fill_all_53_bits():
    drawn = NoiseSource.secure().uniform(DRAWS)
    assert kstest(drawn, "uniform").pvalue > FALSE_ALARM
    whole = (drawn * 2.0**53).astype(np.uint64)
    assert (whole * 2.0**-53 == drawn).all()
    for bit in range(53):
        ones = int(((whole >> np.uint64(bit)) & np.uint64(1)).sum())
        assert abs(ones - DRAWS / 2) < -ndtri(FALSE_ALARM / 106) * math.sqrt(DRAWS) / 2


RATE, UNITS, ROUNDS = 0.05, 400, 2000


def z_of_rate(selected, rate):
    """Standardised number of all inclusions under independent coins."""
    return (selected.sum() - rate * selected.size) / math.sqrt(rate * (1 - rate) * selected.size)


def draw_batches(rate):
    noise, selected = NoiseSource.secure(), np.zeros((ROUNDS, UNITS))
    for row in selected:
        row[noise.poisson_selection(rate, UNITS)] = 1
    return selected


def test_units_are_drawn_at_the_declared_rate():
    assert abs(z_of_rate(draw_batches(RATE), RATE)) < -ndtri(FALSE_ALARM / 2)


@pytest.mark.parametrize("factor", WRONG)
def test_the_rate_test_finds_a_rate_wrong_by_ten_percent(factor):
    assert abs(z_of_rate(draw_batches(RATE * factor), RATE)) > -ndtri(FALSE_ALARM / 2)


def dispersion_p(selected):
    """Batch sizes of independent coins are binomial; a fixed batch size has no variance at all."""
    sizes = selected.sum(axis=1)
    statistic = float(((sizes - RATE * UNITS) ** 2).sum() / (UNITS * RATE * (1 - RATE)))
    return 2 * min(chi2.cdf(statistic, ROUNDS), chi2.sf(statistic, ROUNDS))


def test_batch_sizes_vary_like_independent_coins():
    assert dispersion_p(draw_batches(RATE)) > FALSE_ALARM


def test_fixed_batches_would_be_found():
    rng = np.random.default_rng(3)
    fixed = np.zeros((ROUNDS, UNITS))
    for row in fixed:
        row[rng.choice(UNITS, int(RATE * UNITS), replace=False)] = 1
    assert dispersion_p(fixed) < FALSE_ALARM


def test_pairs_of_units_and_of_rounds_are_drawn_independently():
    selected = draw_batches(RATE)
    bound = -ndtri(FALSE_ALARM / 4) * RATE * (1 - RATE)
    centred = selected - RATE
    assert abs((centred[:, :-1] * centred[:, 1:]).mean()) < bound / math.sqrt(ROUNDS * (UNITS - 1))
    assert abs((centred[:-1] * centred[1:]).mean()) < bound / math.sqrt((ROUNDS - 1) * UNITS)


def chi_squared_p(drawn, weights, reach):
    support = np.arange(-reach, reach + 1)
    expected = weights(support.astype(float))
    expected = expected / weights(np.arange(-4000.0, 4001.0)).sum() * len(drawn)
    kept = expected > 20
    counts = np.array([(drawn == value).sum() for value in support[kept]])
    rest, rest_expected = len(drawn) - counts.sum(), len(drawn) - expected[kept].sum()
    statistic = ((counts - expected[kept]) ** 2 / expected[kept]).sum() + (rest - rest_expected) ** 2 / rest_expected
    return chi2.sf(statistic, kept.sum())


@pytest.mark.parametrize("make", [NoiseSource.secure, lambda: NoiseSource.seeded(11)], ids=["secure", "seeded"])
@pytest.mark.parametrize("scale", [0.7, 3.3])
def test_discrete_gaussians_follow_their_law(make, scale):
    def law(factor=1.0):
        return lambda x: np.exp(-(x**2) / (2 * (scale * factor) ** 2))

    drawn = make().discrete_gaussian(scale, 60_000)
    assert chi_squared_p(drawn, law(), 40) > FALSE_ALARM
    for factor in WRONG:
        assert chi_squared_p(drawn, law(factor), 40) < FALSE_ALARM


@pytest.mark.parametrize("make", [NoiseSource.secure, lambda: NoiseSource.seeded(11)], ids=["secure", "seeded"])
def test_discrete_laplace_integers_follow_their_law(make):
    drawn = make().discrete_laplace(2.0, 60_000)
    assert chi_squared_p(drawn, lambda x: np.exp(-np.abs(x) / 2.0), 60) > FALSE_ALARM
    for factor in WRONG:
        scale = 2.0 * factor
        assert chi_squared_p(drawn, lambda x, scale=scale: np.exp(-np.abs(x) / scale), 60) < FALSE_ALARM
