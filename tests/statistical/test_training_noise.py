"""The noise on trained parameters: its scale on every one of them, and that no two draws know of each other.

False-alarm rate 1e-9 each; a scale wrong by ten percent and the commonest ways to share noise are caught.
"""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from tests.unit.training.toy import plan_of, squared_error, windows_of
from understudy.privacy.noise import NoiseSource
from understudy.training import PrivateGradient

FALSE_ALARM = 1e-9
ITERATIONS = 8000
PLAN = plan_of(noise_multiplier=1.7, clipping_norm=2.0, expected_batch=5.0)
SCALE = 1.7 * 2.0 / 5.0


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2), nn.Tanh(), nn.Linear(2, 1, bias=False))


@pytest.fixture(scope="module")
def draws() -> np.ndarray:
    """Noisy gradients [iteration, parameter] of empty batches: nothing but noise."""
    gradient = PrivateGradient(network(), PLAN, NoiseSource.secure())
    windows = windows_of({"x": np.zeros((4, 3), np.float32), "y": np.zeros((4, 1), np.float32)})
    nobody, found = np.zeros(0, np.int64), []
    for _ in range(ITERATIONS):
        gradient.write(squared_error, windows, nobody, torch.Generator())
        found.append(gradient.flat.gradient.numpy().copy())
    return np.array(found, dtype=np.float64)


def scale_p_value(draws: np.ndarray, scale: float) -> float:
    statistic = (draws**2).sum() / scale**2
    return 2 * min(stats.chi2.cdf(statistic, draws.size), stats.chi2.sf(statistic, draws.size))


def dependence_p_value(first: np.ndarray, second: np.ndarray, *, same: bool) -> float:
    """χ² of all correlations between columns; `same` leaves each column's correlation with itself out."""
    correlations = first.T @ second / (SCALE**2 * np.sqrt(len(first)))
    picked = correlations[np.triu_indices(len(correlations), 1)] if same else correlations.ravel()
    return float(stats.chi2.sf((picked**2).sum(), picked.size))


def test_every_single_parameter_has_the_stated_noise(draws: np.ndarray) -> None:
    for column in draws.T:
        assert scale_p_value(column, SCALE) > FALSE_ALARM
        assert stats.kstest(column, stats.norm(scale=SCALE).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_ten_percent_error_on_one_parameter_would_be_caught(draws: np.ndarray, factor: float) -> None:
    for column in draws.T:
        assert scale_p_value(column, factor * SCALE) < FALSE_ALARM


def test_noise_is_independent_across_coordinates_and_layers(draws: np.ndarray) -> None:
    assert dependence_p_value(draws, draws, same=True) > FALSE_ALARM


def test_noise_is_independent_across_iterations(draws: np.ndarray) -> None:
    assert dependence_p_value(draws[:-1], draws[1:], same=False) > FALSE_ALARM


def test_noise_shared_between_coordinates_or_iterations_would_be_caught(draws: np.ndarray) -> None:
    shared = draws + 0.2 * draws[:, :1]  # one fifth of one coordinate's noise leaks into the others
    assert dependence_p_value(shared, shared, same=True) < FALSE_ALARM
    stale = draws[1:] + 0.1 * draws[:-1]
    assert dependence_p_value(stale[:-1], stale[1:], same=False) < FALSE_ALARM


def test_noise_is_independent_of_the_data_and_fresh_in_every_process_start() -> None:
    first, second = (PrivateGradient(network(), PLAN, NoiseSource.secure()) for _ in range(2))
    first.finish()
    second.finish()
    assert not (first.flat.gradient == second.flat.gradient).any()
