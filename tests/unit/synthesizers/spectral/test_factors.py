import numpy as np
import pytest

from understudy.statistics.moments import symmetric
from understudy.synthesizers.spectral import factors


@pytest.mark.parametrize("channels", [2, 5])
def test_moments_are_the_mean_products_of_channels(channels: int) -> None:
    scores = np.random.default_rng(0).normal(size=(9, 6, channels))
    whole = np.einsum("sti,stj->sij", scores, scores) / 6
    np.testing.assert_allclose(symmetric(factors.moments(scores), channels), whole)


def test_the_radius_lets_most_series_pass_unclipped() -> None:
    """Independent channels, and channels that are all the same."""
    scores = np.random.default_rng(1).normal(size=(1000, 24, 4))
    for drawn in (scores, np.repeat(scores[:, :, :1], 4, axis=2)):
        norms = np.linalg.norm(factors.moments(drawn), axis=1)
        assert (norms <= factors.clip_radius(4)).mean() > 0.9


def test_channels_that_move_as_one_become_factors_of_unit_size() -> None:
    rng = np.random.default_rng(2)
    common, apart, other = rng.normal(size=(3, 500, 24, 1))
    scores = np.concatenate([common, np.sqrt(0.92) * common + np.sqrt(0.08) * apart, other], axis=2)
    rotation = factors.fit_rotation(factors.moments(scores).mean(0), 3)
    turned = (scores @ rotation).reshape(-1, 3)
    assert abs(np.corrcoef(turned.T)[0, 1]) < 0.02
    np.testing.assert_array_equal(rotation[2], [0, 0, 1])
    np.testing.assert_allclose(scores @ rotation @ np.linalg.inv(rotation), scores, atol=1e-9)


@pytest.mark.parametrize("noisy", [np.zeros(6), np.full(6, -40.0), 100 * np.random.default_rng(3).normal(size=6)])
def test_whatever_noise_makes_of_it_a_rotation_can_be_undone(noisy: np.ndarray) -> None:
    rotation = factors.fit_rotation(noisy, 3)
    assert np.isfinite(rotation).all()
    assert np.linalg.cond(rotation) < 1e6


def test_groups_are_connected_channels() -> None:
    together = np.eye(5, dtype=bool)
    for pair in ((0, 3), (3, 4)):
        together[pair] = together[pair[::-1]] = True
    assert factors._groups(together) == [[0, 3, 4]]
