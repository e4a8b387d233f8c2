"""Step three: mean and spread of the scores at every step, for every kind of series.

What remains after subtracting the mean and dividing by the spread has the same distribution at every step, which is
what makes one spectrum enough.
"""

from dataclasses import dataclass

import numpy as np
from scipy.fft import dct, idct

_SLACK = 2.5  # clip radius² over its expectation
_THRESHOLD = 2.5  # coefficients of a profile below so many standard deviations of noise are noise
_SMALLEST_SPREAD = 0.05


def clip_radius(num_steps: int, num_channels: int) -> float:
    """Returns the most one series may weigh in `moment_vector`; scores have mean 0 and variance 1 by construction."""
    return float(np.sqrt(_SLACK * 2 * num_steps * num_channels))


def count_weight(num_steps: int, num_channels: int) -> float:
    """Returns the weight of "one more series" beside the moments: half of what a series' scores weigh."""
    return float(np.sqrt(num_steps * num_channels / 4))


def moment_vectors(scores: np.ndarray) -> np.ndarray:
    """Returns [series, 2 · step · channel]: each series' scores and their centred squares."""
    flat = scores.reshape(len(scores), -1)
    return np.concatenate([flat, (flat**2 - 1) / np.sqrt(2)], axis=1)


@dataclass(frozen=True)
class Profile:
    """Mean and spread [step, channel] of one kind of series."""

    mean: np.ndarray
    spread: np.ndarray

    def standardise(self, scores: np.ndarray) -> np.ndarray:
        """Takes the profile out of scores [series, step, channel]."""
        return (scores - self.mean) / self.spread

    def restore(self, standard: np.ndarray) -> np.ndarray:
        """Puts the profile back."""
        return self.mean + self.spread * standard


def fit_profile(moments: np.ndarray, noise: float, count: float, shape: tuple[int, int]) -> Profile:
    """Returns the profile of noisy moment sums; `noise` is their standard deviation."""
    size = shape[0] * shape[1]
    share = noise / max(count, 1.0)
    mean = _significant(moments[:size].reshape(shape) / max(count, 1.0), share)
    square = 1 + np.sqrt(2) * moments[size:].reshape(shape) / max(count, 1.0)
    square = _significant(square, share * np.sqrt(2))
    return Profile(mean, np.sqrt(np.maximum(square - mean**2, _SMALLEST_SPREAD**2)))


def _significant(profile: np.ndarray, noise: float) -> np.ndarray:
    """Keeps the overall mean and the frequencies of [step, channel] that stand out of the noise."""
    coefficients = dct(profile, axis=0, norm="ortho")
    quiet = np.abs(coefficients) < _THRESHOLD * noise
    quiet[0] = False
    return idct(np.where(quiet, 0, coefficients), axis=0, norm="ortho")
