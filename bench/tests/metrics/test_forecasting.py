"""A forecaster learns what can be learned and nothing else."""

import numpy as np
import pytest
from understudy_bench.metrics.forecasting import forecast_error, persistence_error


def waves(number: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    phase = rng.uniform(0, 2 * np.pi, (number, 1, 1))
    return 0.5 + 0.4 * np.sin(phase + 0.9 * np.arange(12)[None, :, None]) * np.ones((1, 1, 2))


def test_persistence_repeats_the_step_before_the_last() -> None:
    series = np.array([[[0.0], [1.0], [4.0]], [[2.0], [2.0], [1.0]]])
    assert persistence_error(series) == 2.0


def test_a_wave_is_forecast_better_than_by_repeating_its_last_step() -> None:
    error = forecast_error(waves(400, 0), waves(100, 1), epochs=80, seed=0)
    assert error < 0.3 * persistence_error(waves(100, 1))


def test_training_on_shuffled_waves_teaches_nothing_about_waves() -> None:
    shuffled = np.random.default_rng(2).permuted(waves(400, 0), axis=1)
    taught = forecast_error(waves(400, 0), waves(100, 1), epochs=80, seed=0)
    assert forecast_error(shuffled, waves(100, 1), epochs=80, seed=0) > 3 * taught


def test_the_same_seed_gives_the_same_error() -> None:
    errors = [forecast_error(waves(100, 0), waves(50, 1), epochs=2, seed=3) for _ in range(2)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)
