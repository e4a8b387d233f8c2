import numpy as np
import pytest
from scipy.special import ndtr

from understudy.synthesizers.spectral.bells import settle
from understudy.synthesizers.spectral.counts import cumulative_of

CELLS = 48
EDGES = np.linspace(-3.5, 3.5, CELLS + 1)


def bell(mean: float, deviation: float) -> np.ndarray:
    shares = np.exp(-0.5 * ((EDGES[1:] + EDGES[:-1]) / 2 - mean) ** 2 / deviation**2)
    return shares / shares.sum()


@pytest.mark.parametrize("shares", [bell(0, 1), bell(-2, 0.3), 0.5 * bell(-2, 0.4) + 0.5 * bell(1.5, 0.4)])
def test_with_little_noise_the_settled_distribution_is_the_true_one(shares: np.ndarray) -> None:
    truth = np.concatenate([[0], np.cumsum(shares)])
    noisy = shares + 1e-5 * np.random.default_rng(2).normal(size=CELLS)
    assert np.abs(settle(noisy, 1e-5, EDGES, EDGES) - truth).max() < 2e-3


def test_with_much_noise_the_settled_distribution_is_a_bell_and_not_the_noise() -> None:
    rng, truth = np.random.default_rng(3), np.concatenate([[0], np.cumsum(bell(0, 1))])
    settled, raw = [], []
    for _ in range(30):
        noisy = bell(0, 1) + 0.03 * rng.normal(size=CELLS)
        settled.append(np.abs(settle(noisy, 0.03, EDGES, EDGES) - truth).max())
        raw.append(np.abs(cumulative_of(noisy) - truth).max())
    assert np.mean(settled) < 0.85 * np.mean(raw)


def test_few_cells_tell_a_bell_where_many_drown_in_the_same_noise() -> None:
    """Eight cells or forty-eight, the same noise on each: the distribution function errs by half as much or less."""
    rng, few, truth = np.random.default_rng(4), EDGES[::6], ndtr(EDGES / 0.9)
    shares = {len(edges): np.diff(ndtr(edges / 0.9)) for edges in (few, EDGES)}
    errors = {}
    for edges in (few, EDGES):
        found = [
            settle(shares[len(edges)] + 0.05 * rng.normal(size=len(edges) - 1), 0.05, edges, EDGES) for _ in range(60)
        ]
        errors[len(edges)] = np.mean([np.abs(one - truth).max() for one in found])
    assert errors[len(few)] < 0.09
    assert errors[len(few)] < 0.6 * errors[len(EDGES)]


def test_inside_a_cell_mass_lies_where_the_bell_has_it() -> None:
    """One wide cell holds a whole narrow bell: halfway to its middle there is still next to nothing."""
    edges = np.array([-4.0, -2.0, 0.0, 2.0, 4.0])
    shares = np.diff(ndtr((edges - 1.0) / 0.5))
    found = settle(shares, 1e-6, edges, np.array([-4.0, 0.2, 1.0, 1.8, 4.0]))
    np.testing.assert_allclose(found, [0.0, ndtr(-1.6), 0.5, ndtr(1.6), 1.0], atol=0.05)
    even = np.interp([0.2, 1.8], edges, np.concatenate([[0], np.cumsum(shares)]))  # control: spread evenly
    assert abs(even[0] - ndtr(-1.6)) > 0.05


def test_a_skewed_column_is_fitted_by_its_logarithm() -> None:
    """Loads near the lower bound of a wide range: a bell of the values would put half of its mass below the bound."""
    edges = 20 * np.concatenate([[0.0, 1 / 128, 1 / 64, 1 / 32], np.arange(1, 17) / 16])
    points = 20 * np.linspace(0, 1, 400)
    with np.errstate(divide="ignore"):
        truth, shares = (ndtr(np.log(at / 0.7) / 1.0) for at in (points, edges))
    fitted = [settle(np.diff(shares), 0.03, edges, points, skewed=skewed) for skewed in (True, False)]
    near, far = (np.abs(one - truth).max() for one in fitted)
    assert near < 0.05
    assert far > 2 * near


@pytest.mark.parametrize("noisy", [np.zeros(10), np.full(10, -3.0), np.full(10, 1e12)])
def test_any_finite_counts_give_a_distribution(noisy: np.ndarray) -> None:
    found = settle(noisy, 2.0, EDGES[:41:4], EDGES[:41], skewed=True)
    assert found[0] == pytest.approx(0)
    assert found[-1] == pytest.approx(1)
    assert (np.diff(found) >= -1e-12).all()
