"""Step five: how strong each frequency is.

What a series contributes is the direction of its spectrum, |c_k| / ‖c‖ over the frequencies k > 0 of a channel: a
vector of length one whatever the series, so that no clip radius has to be known. How far out along that direction a
series lies, its *volatility*, is counted separately, as the level is.

Notation: c coefficients, s relative strengths with mean square one, v = log of the root mean square of c / s.
"""

from dataclasses import dataclass

import numpy as np

from understudy.synthesizers.spectral.counts import running_mean

_REACH = 3  # neighbours on each side of a frequency that it is compared with
_SMALLEST = 0.02  # relative strength of the weakest frequency


def directions(coefficients: np.ndarray) -> np.ndarray:
    """Returns |c| / ‖c‖ along the frequencies of [series, frequency, channel]; a series without movement gives 0."""
    sizes = np.abs(coefficients)
    norm = np.sqrt((sizes**2).sum(axis=1, keepdims=True))
    return np.where(norm > 1e-9, sizes / np.maximum(norm, 1e-9), 0.0)


@dataclass(frozen=True, eq=False)
class Strengths:
    """Relative strengths [frequency, channel] with mean square one."""

    relative: np.ndarray

    def volatilities_of(self, coefficients: np.ndarray) -> np.ndarray:
        """Returns v [series, channel]; no movement gives a very small number."""
        if coefficients.shape[1] == 0:
            return np.zeros((len(coefficients), coefficients.shape[2]))
        square = ((coefficients / self.relative) ** 2).mean(axis=1)
        return 0.5 * np.log(np.maximum(square, 1e-12))


def fit_strengths(mean_directions: np.ndarray, noise: float) -> Strengths:
    """Returns the strengths behind a noisy mean direction [frequency, channel].

    Each is drawn towards the mean of its neighbours as far as noise explains the difference.
    """
    if mean_directions.shape[0] == 0:
        return Strengths(mean_directions)
    smooth, _ = running_mean(mean_directions, _REACH)
    distance = ((mean_directions - smooth) ** 2).mean(axis=0)
    weight = np.clip(1 - noise**2 / np.maximum(distance, 1e-300), 0, 1)
    settled = smooth + weight * (mean_directions - smooth)
    typical = np.sqrt(np.maximum((settled**2).mean(axis=0), 1e-12))
    relative = np.maximum(settled / typical, _SMALLEST)
    return Strengths(relative / np.sqrt((relative**2).mean(axis=0)))
