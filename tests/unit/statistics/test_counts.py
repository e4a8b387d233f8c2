import numpy as np
import pytest
from scipy.special import ndtr

from understudy.statistics.counts import (
    cumulative_of,
    nearest_distribution,
    share_among,
    shrink,
    smooth_by_risk,
)
from understudy.statistics.shapes import quiet_ends, smoothed_cumulative

CELLS = 48
EDGES = np.linspace(-3.5, 3.5, CELLS + 1)


def bell(mean: float, deviation: float) -> np.ndarray:
    shares = np.exp(-0.5 * ((EDGES[1:] + EDGES[:-1]) / 2 - mean) ** 2 / deviation**2)
    return shares / shares.sum()


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_distribution_is_the_projection_onto_the_simplex(seed: int) -> None:
    """Optimality: every kept cell moves by the same amount, every emptied one would have gone below zero."""
    weights = np.random.default_rng(seed).normal(0, 1, 9)
    shares = nearest_distribution(weights)
    moved = weights - shares
    kept = shares > 0
    np.testing.assert_allclose(moved[kept], moved[kept][0], atol=1e-12)
    assert (weights[~kept] <= moved[kept][0] + 1e-12).all()
    assert shares.sum() == pytest.approx(1)


def test_a_distribution_is_its_own_nearest_one() -> None:
    np.testing.assert_allclose(nearest_distribution(bell(0.3, 1.0)), bell(0.3, 1.0), atol=1e-12)


@pytest.mark.parametrize("weights", [np.zeros(5), np.full(5, -3.0), np.array([1e12, 0, -1e12]), np.ones(1)])
def test_anything_finite_becomes_a_distribution(weights: np.ndarray) -> None:
    shares, cumulative = nearest_distribution(weights), cumulative_of(weights)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    assert cumulative[0] == 0
    assert cumulative[-1] == 1
    assert (np.diff(cumulative) >= 0).all()


def test_without_noise_nothing_is_smoothed() -> None:
    cells = np.random.default_rng(0).random(CELLS)
    np.testing.assert_allclose(smooth_by_risk(cells, 0.0), cells, atol=1e-12)


def test_smoothing_takes_out_most_of_the_noise_around_a_smooth_shape() -> None:
    truth, noise, rng = bell(0, 1), 0.02, np.random.default_rng(1)
    errors = []
    for _ in range(50):
        noisy = truth + noise * rng.normal(size=CELLS)
        errors.append((((smooth_by_risk(noisy, noise) - truth) ** 2).sum(), ((noisy - truth) ** 2).sum()))
    smoothed, raw = np.mean(errors, axis=0)
    assert smoothed < 0.4 * raw


def test_a_spike_far_above_the_noise_is_not_smoothed_away() -> None:
    spike = np.zeros(CELLS)
    spike[20] = 1.0
    np.testing.assert_allclose(smooth_by_risk(spike, 1e-4), spike, atol=1e-12)


def test_figures_within_the_noise_of_the_pool_are_taken_from_the_pool() -> None:
    pooled = np.linspace(0, 1, 50)
    near, weight_near = shrink(pooled + 0.01, pooled, noise=0.1)
    far, weight_far = shrink(pooled + 5.0, pooled, noise=0.1)
    np.testing.assert_array_equal(near, pooled)
    assert weight_near == 0
    assert weight_far > 0.99
    np.testing.assert_allclose(far, pooled + 5.0, rtol=1e-2)


@pytest.mark.filterwarnings("error")
def test_figures_that_equal_the_pool_stay_as_they_are_however_large_the_noise() -> None:
    own = np.full(4, 0.25)
    assert shrink(own, own, np.float64(1e9))[0].tolist() == own.tolist()


def test_only_columns_declared_alike_share() -> None:
    rows = [np.full(9, 1.0), np.full(9, 1.1), np.full(9, 4.0)]
    first, second, other = share_among(rows, noise=1.0, groups=["price", "price", "load"])
    np.testing.assert_allclose(first, 1.05)
    np.testing.assert_allclose(second, 1.05)
    np.testing.assert_array_equal(other, rows[2])


def test_the_ends_of_an_empty_grid_are_quiet_and_its_middle_is_not() -> None:
    cells = 0.01 * np.random.default_rng(4).normal(size=CELLS)
    cells[20:28] += 1.0
    first, last = quiet_ends(cells, 0.01)
    assert 10 <= first <= 20
    assert 10 <= last <= CELLS - 28
    assert quiet_ends(np.ones(5), 0.01) == (0, 0)


@pytest.mark.parametrize("size", [1.0, 1e9, 1e17, 1e300])
def test_a_projection_is_a_distribution_however_loud_the_noise(size: float) -> None:
    noisy = np.random.default_rng(0).normal(scale=size, size=50)
    mass = nearest_distribution(noisy)
    assert mass.sum() == pytest.approx(1.0)
    assert mass.min() >= 0
    assert mass.argmax() == noisy.argmax()
    assert np.isfinite(cumulative_of(noisy)).all()


@pytest.mark.parametrize("shares", [bell(0, 1), bell(-2, 0.3), 0.5 * bell(-2, 0.4) + 0.5 * bell(1.5, 0.4)])
def test_with_little_noise_the_settled_distribution_is_the_true_one(shares: np.ndarray) -> None:
    truth = np.concatenate([[0], np.cumsum(shares)])
    noisy = shares + 1e-5 * np.random.default_rng(2).normal(size=CELLS)
    assert np.abs(smoothed_cumulative(noisy, 1e-5, EDGES, EDGES) - truth).max() < 2e-3


def test_with_much_noise_the_settled_distribution_is_a_normal_and_not_the_noise() -> None:
    rng, truth = np.random.default_rng(3), np.concatenate([[0], np.cumsum(bell(0, 1))])
    settled, raw = [], []
    for _ in range(30):
        noisy = bell(0, 1) + 0.03 * rng.normal(size=CELLS)
        settled.append(np.abs(smoothed_cumulative(noisy, 0.03, EDGES, EDGES) - truth).max())
        raw.append(np.abs(cumulative_of(noisy) - truth).max())
    assert np.mean(settled) < 0.85 * np.mean(raw)


def test_few_cells_tell_a_bell_where_many_drown_in_the_same_noise() -> None:
    """Eight cells or forty-eight, the same noise on each: the distribution function errs by half as much or less."""
    rng, few, truth = np.random.default_rng(4), EDGES[::6], ndtr(EDGES / 0.9)
    shares = {len(edges): np.diff(ndtr(edges / 0.9)) for edges in (few, EDGES)}
    errors = {}
    for edges in (few, EDGES):
        found = [
            smoothed_cumulative(shares[len(edges)] + 0.05 * rng.normal(size=len(edges) - 1), 0.05, edges, EDGES)
            for _ in range(60)
        ]
        errors[len(edges)] = np.mean([np.abs(one - truth).max() for one in found])
    assert errors[len(few)] < 0.09
    assert errors[len(few)] < 0.6 * errors[len(EDGES)]


def test_inside_a_cell_mass_lies_where_the_bell_has_it() -> None:
    """One wide cell holds a whole narrow bell: halfway to its middle there is still next to nothing."""
    edges = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])
    shares = np.diff(ndtr((edges - 1.0) / 0.5))
    found = smoothed_cumulative(shares, 0.01, edges, np.array([-4.0, 0.2, 1.0, 1.8, 4.0]))
    np.testing.assert_allclose(found, [0.0, ndtr(-1.6), 0.5, ndtr(1.6), 1.0], atol=0.05)
    even = np.interp([0.2, 1.8], edges, np.concatenate([[0], np.cumsum(shares)]))  # control: spread evenly
    assert abs(even[0] - ndtr(-1.6)) > 0.05


def test_a_skewed_column_is_fitted_by_its_logarithm() -> None:
    """Loads near the lower bound of a wide range: a bell of the values would put half of its mass below the bound."""
    edges = 20 * np.concatenate([[0.0, 1 / 128, 1 / 64, 1 / 32], np.arange(1, 17) / 16])
    points = 20 * np.linspace(0, 1, 400)
    with np.errstate(divide="ignore"):
        truth, shares = (ndtr(np.log(at / 0.7) / 1.0) for at in (points, edges))
    fitted = [smoothed_cumulative(np.diff(shares), 0.03, edges, points, skewed=skewed) for skewed in (True, False)]
    near, far = (np.abs(one - truth).max() for one in fitted)
    assert near < 0.05
    assert far > 2 * near


@pytest.mark.parametrize("noisy", [np.zeros(10), np.full(10, -3.0), np.full(10, 1e12)])
def test_any_finite_counts_give_a_distribution(noisy: np.ndarray) -> None:
    found = smoothed_cumulative(noisy, 2.0, EDGES[:41:4], EDGES[:41], skewed=True)
    assert found[0] == pytest.approx(0)
    assert found[-1] == pytest.approx(1)
    assert (np.diff(found) >= -1e-12).all()
