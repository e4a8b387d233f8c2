"""Public signals to train θ_T on where no public file is given: prices, weather, load, tariffs, seasons, noise.

Everything is drawn; nothing is taken from a real table. Features of a window share part of their movement, as stocks of
one market or stations of one region do.
"""

import numpy as np

MAX_FEATURES = 7


def draw_signals(num_windows: int, num_steps: int, num_features: int, rng: np.random.Generator) -> np.ndarray:
    """Returns windows [window, step, feature], each feature with mean 0 and deviation 1."""
    kinds = rng.integers(0, len(_KINDS), num_windows)
    common = _drawn(kinds, num_steps, rng)[:, :, None]
    own = np.stack([_drawn(kinds, num_steps, rng) for _ in range(num_features)], axis=2)
    shared = rng.uniform(0.0, 0.95, (num_windows, 1, num_features))
    sign = np.where(rng.random((num_windows, 1, num_features)) < 0.8, 1.0, -1.0)
    mixed = sign * np.sqrt(shared) * common + np.sqrt(1 - shared) * own
    return standardised(mixed).astype(np.float32)


def standardised(windows: np.ndarray) -> np.ndarray:
    """Returns windows [window, step, feature] with mean 0 and deviation 1 over the steps; 0 at rest, NaN if missing."""
    known = ~np.isnan(windows)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    centred = windows - np.where(known, windows, 0).sum(axis=1, keepdims=True) / count
    spread = np.sqrt(np.where(known, centred**2, 0).sum(axis=1, keepdims=True) / count)
    size = np.abs(np.where(known, windows, 0)).max(axis=1, keepdims=True, initial=0)
    return np.asarray(centred * np.where(spread > 1e-6 * size, 1 / np.maximum(spread, 1e-300), 0.0))


def _drawn(kinds: np.ndarray, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    windows = np.empty((len(kinds), num_steps))
    for kind, draw in enumerate(_KINDS):
        rows = np.flatnonzero(kinds == kind)
        windows[rows] = draw(len(rows), num_steps, rng)
    return standardised(windows[:, :, None])[:, :, 0]


def _price(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Geometric random walks whose volatility comes in clusters."""
    calm = _autoregressive(number, steps, 0.97, rng)
    return np.cumsum(np.exp(0.5 * calm) * rng.standard_normal((number, steps)), axis=1)


def _weather(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """A day, slow fronts and a slow season."""
    return _season(number, steps, rng) + 1.5 * _autoregressive(number, steps, 0.97, rng) + _slope(number, steps, rng)


def _load(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Sharp daily peaks with noise that grows with them."""
    peaks = np.exp(1.5 * _season(number, steps, rng))
    return peaks * (1 + 0.3 * rng.standard_normal((number, steps))) + 0.5 * _season(number, steps, rng)


def _tariff(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Steps that last, with a spike now and then."""
    jumps = (rng.random((number, steps)) < 0.05) * rng.standard_normal((number, steps))
    spikes = (rng.random((number, steps)) < 0.02) * rng.exponential(3.0, (number, steps))
    return np.cumsum(jumps, axis=1) + spikes + 0.1 * rng.standard_normal((number, steps))


def _waves(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Two seasons over each other."""
    noise = rng.uniform(0.05, 0.5, (number, 1)) * rng.standard_normal((number, steps))
    return _season(number, steps, rng) + 0.7 * _season(number, steps, rng) + noise


def _noise(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """From nearly independent steps to nearly a random walk."""
    return _autoregressive(number, steps, rng.uniform(0.2, 0.99, (number, 1)), rng)


def _season(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    period = np.exp(rng.uniform(np.log(6), np.log(max(steps, 8)), (number, 1)))
    phase = rng.uniform(0, 2 * np.pi, (number, 1))
    return np.sin(2 * np.pi * np.arange(steps) / period + phase)


def _slope(number: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((number, 1)) * np.linspace(-1, 1, steps)


def _autoregressive(number: int, steps: int, persistence: float | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_normal((number, steps)) * np.sqrt(1 - np.square(persistence))
    series = np.empty((number, steps))
    before = rng.standard_normal((number, 1))
    for step in range(steps):
        before = persistence * before + noise[:, step : step + 1]
        series[:, step : step + 1] = before
    return series


_KINDS = (_price, _weather, _load, _tariff, _waves, _noise)
