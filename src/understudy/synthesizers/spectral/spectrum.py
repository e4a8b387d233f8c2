"""Step five: how strong each frequency is.

What a series contributes is the direction of its spectrum, |c_k| / ‖c‖ over the frequencies k > 0 of a channel: a
vector of length one whatever the series, so that no clip radius has to be known. How far out along that direction a
series lies, its *volatility*, is counted separately, as the level is.

Notation: c coefficients, s relative strengths with mean square one, v = log of the root mean square of c / s.
"""

from dataclasses import dataclass

import numpy as np

from understudy.synthesizers.spectral.counts import least_risk
from understudy.synthesizers.spectral.series import unit_length

_REACHES = (0, 1, 3, 7, 15, 31, 63, 127)  # neighbours on each side that a frequency may be averaged with
_SMALLEST = 0.02  # relative strength of the weakest frequency


def directions(coefficients: np.ndarray) -> np.ndarray:
    """Returns |c| / ‖c‖ along the frequencies of [series, frequency, channel]; a series without movement gives 0."""
    return unit_length(np.abs(coefficients))


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

    Octave by octave, a frequency is the mean of as many neighbours as the least estimated risk asks for: of none where
    noise is small, of most of an octave where it is not. What noise is left is the least strength: one that is too
    small blows up what it divides, and with it the volatility of every series.
    """
    if mean_directions.shape[0] == 0:
        return Strengths(mean_directions)
    settled = np.empty_like(mean_directions)
    for octave in _octaves(len(settled)):
        for channel, own in enumerate(mean_directions[octave].T):
            smooth, left = least_risk(own, noise, _REACHES)
            settled[octave, channel] = np.maximum(smooth, left)
    typical = np.sqrt(np.maximum((settled**2).mean(axis=0), 1e-12))
    relative = np.maximum(settled / typical, _SMALLEST)
    return Strengths(relative / np.sqrt((relative**2).mean(axis=0)))


def _octaves(number: int) -> list[slice]:
    """Returns the frequencies 1, 2 to 3, 4 to 7, … of so many, counted from 0."""
    first = [2**power - 1 for power in range(number.bit_length())]
    return [slice(begin, min(2 * begin + 1, number)) for begin in first]
