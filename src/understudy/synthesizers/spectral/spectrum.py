"""Step five: how strong each frequency is.

What a series contributes is the direction of its spectrum, |c_k| / ‖c‖ over the frequencies k > 0 of a channel: a
vector of length one whatever the series, so that no clip radius has to be known. How far out along that direction a
series lies, its *volatility*, is counted separately, as the level is.

Notation: c coefficients, s relative strengths with mean square one, v = log of the root mean square of c / s.
"""

import numpy as np

from understudy.statistics.copula import Strengths
from understudy.statistics.counts import least_risk, shrink
from understudy.statistics.series import bands, unit_length

_REACHES = (0, 1, 3, 7, 15, 31, 63, 127)  # neighbours on each side that a frequency may be averaged with
_SLOPES = np.arange(-0.5, 2.1, 0.05)  # of the strength over the frequency, in powers
_SMALLEST = 0.02  # relative strength of the weakest frequency


def directions(coefficients: np.ndarray) -> np.ndarray:
    """Returns |c| / ‖c‖ along the frequencies of [series, frequency, channel]; a series without movement gives 0."""
    return unit_length(np.abs(coefficients))


def fit_strengths(mean_directions: np.ndarray, noise: float, season: int | None = None) -> Strengths:
    """Returns the strengths behind a noisy mean direction [frequency, channel].

    Octave by octave, those of the season apart, a frequency is the mean of as many neighbours as the least estimated
    risk asks for: of none where noise is small, of most of an octave where it is not. Means of bands are drawn towards
    a power of the frequency. What noise is left is the least strength: one that is too small blows up what it divides,
    and with it the volatility of every series.
    """
    if mean_directions.shape[0] == 0:
        return Strengths(mean_directions)
    settled = np.stack([_settled(own, noise, season) for own in mean_directions.T], axis=1)
    typical = np.sqrt(np.maximum((settled**2).mean(axis=0), 1e-12))
    relative = np.maximum(settled / typical, _SMALLEST)
    return Strengths(relative / np.sqrt((relative**2).mean(axis=0)))


def _settled(noisy: np.ndarray, noise: float, season: int | None) -> np.ndarray:
    """Returns one channel's mean direction without most of its noise."""
    groups = [band - 1 for band in bands(len(noisy) + 1, season) if band[0] > 0]
    middle = np.array([band.mean() + 1 for band in groups])
    means = np.array([noisy[band].mean() for band in groups])
    left = np.array([max(noise, 1e-12) / np.sqrt(len(band)) for band in groups])
    power = _nearest_power(middle, means, left)
    drawn = power + shrink((means - power) / left, np.zeros(len(means)), 1.0)[0] * left
    settled = np.empty_like(noisy)
    for band, mean, better in zip(groups, means, drawn, strict=True):
        smooth, remaining = least_risk(noisy[band], noise, _REACHES)
        settled[band] = np.maximum(smooth + better - mean, min(remaining, better))
    return settled


def _nearest_power(frequency: np.ndarray, means: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Returns the power of the frequency nearest to noisy means of bands."""
    shapes = (frequency / frequency[-1]) ** -_SLOPES[:, None]
    size = np.maximum((shapes * means / noise**2).sum(1) / (shapes**2 / noise**2).sum(1), 1e-3)
    fitted = size[:, None] * shapes
    return np.asarray(fitted[(((means - fitted) / noise) ** 2).sum(1).argmin()])
