"""Coordinates of a `spectral` release, and what signals measure in them."""

import numpy as np
import pytest

from tests.unit.synthesizers.pub2priv.panels import STEPS, fit, following, smooth
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers.pub2priv import purchases
from understudy.synthesizers.pub2priv.coordinates import Coordinates
from understudy.synthesizers.pub2priv.method import Pub2Priv

PANEL = following(400, 0.7)


@pytest.fixture(scope="module")
def coordinates() -> Coordinates:
    method = Pub2Priv(network="projected", knowledge="none", iterations=1, draws=1)
    release = fit(method, PANEL, noise=NoiseSource.seeded(1))
    return purchases.coordinates_of(PANEL.schema, release.arrays)


def signals(number: int, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([smooth(number, rng), smooth(number, rng)], axis=2)


def drawn(coordinates: Coordinates, number: int, seed: int = 4) -> np.ndarray:
    return coordinates.model.covariance(0).sample(number, np.random.default_rng(seed))


def test_the_road_leads_back_to_the_scores(coordinates: Coordinates) -> None:
    kinds = np.zeros(PANEL.num_series, dtype=np.int64)
    y = coordinates.of(PANEL, kinds, slice(None))
    scores, _ = coordinates.scores(y, kinds)
    inside = (np.abs(y) < 3.9).all(axis=1)  # beyond, coordinates are clipped
    expected = coordinates.model.marginals[0].scores_of(PANEL.values[:, :, 0])
    assert inside.mean() > 0.8
    assert np.abs(scores[inside, :, 0] - expected[inside]).max() < 0.05


def test_measurements_of_what_spectral_draws_are_white_noise(coordinates: Coordinates) -> None:
    """6000 draws: means and covariances within 0.1, eight standard errors (false alarm below 1e-12)."""
    number = 6000
    measured = coordinates.measurements(signals(number), 0, level=True)
    b = measured.of(drawn(coordinates, number))
    assert measured.known.all()
    assert np.abs(b.mean(axis=0)).max() < 0.1
    assert np.abs(np.cov(b.T) - np.eye(b.shape[1])).max() < 0.15


def test_series_that_are_put_together_measure_as_wanted_and_stay_as_likely_otherwise(coordinates: Coordinates) -> None:
    """Moved to white noise again, coordinates keep their covariance; moved to a constant, they measure that."""
    number = 6000
    shared = np.broadcast_to(signals(1), (number, STEPS, 2))
    measured = coordinates.measurements(shared, 0, level=False)
    wanted = np.random.default_rng(5).standard_normal((number, 2))
    moved = sum(measured.split(drawn(coordinates, number), wanted))
    assert np.allclose(measured.of(moved), wanted, atol=1e-8)
    covariance = coordinates.model.coupled[0]
    assert np.abs(np.cov(moved.T)[: len(covariance), : len(covariance)] - covariance).max() < 0.15
    joined = coordinates.joined(*measured.split(moved, np.full((number, 2), 0.5)))
    assert np.allclose(measured.of(joined), 0.5, atol=1e-8)


def test_movements_have_the_size_that_real_ones_have_by_their_making(coordinates: Coordinates) -> None:
    kinds, moves = np.zeros(PANEL.num_series, dtype=np.int64), np.flatnonzero(coordinates.model.order >= 2)
    real = coordinates.of(PANEL, kinds, slice(None))[:, moves]
    assert np.isclose(np.median((real**2).mean(axis=1)), 1.0, atol=1e-3)
    measured = coordinates.measurements(signals(200), 0, level=False)
    for wanted in (0.0, 1.0):
        joined = coordinates.joined(*measured.split(drawn(coordinates, 200), np.full((200, 2), wanted)))
        assert np.allclose((joined[:, moves] ** 2).mean(axis=1), 1.0)


def test_a_signal_at_rest_measures_nothing_and_moves_nothing(coordinates: Coordinates) -> None:
    both = signals(5)
    both[:, :, 1] = 0.0
    measured = coordinates.measurements(both, 0, level=False)
    assert measured.known.tolist() == [[True, False]] * 5
    y = drawn(coordinates, 5)
    wanted = measured.of(y)
    wanted[:, 1] += 7.0
    assert np.allclose(sum(measured.split(y, wanted)), y, atol=1e-8)


def test_the_same_signal_twice_is_measured_once(coordinates: Coordinates) -> None:
    both = signals(5)
    both[:, :, 1] = 2 * both[:, :, 0]
    assert coordinates.measurements(both, 0, level=False).known.tolist() == [[True, False]] * 5
