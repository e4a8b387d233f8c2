"""One kind of series, between coefficients and Gaussian coordinates."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from understudy.synthesizers.spectral.levels import Distribution
from understudy.synthesizers.spectral.profile import Profile
from understudy.synthesizers.spectral.spectrum import Strengths

_SCORE_LIMIT = 4.0


@dataclass(frozen=True, eq=False)
class Kind:
    """Coordinates of a series, in blocks of one number per channel: level, volatility, then every frequency."""

    profile: Profile
    strengths: Strengths
    levels: Distribution
    volatilities: Distribution

    def coordinates_of(self, coefficients: np.ndarray) -> np.ndarray:
        """Returns coordinates [series, block, channel] of coefficients [series, frequency, channel]."""
        steps = coefficients.shape[1]
        volatility = self.strengths.volatilities_of(coefficients[:, 1:])
        moves = coefficients[:, 1:] / self.strengths.relative / np.exp(volatility)[:, None]
        level = self.levels.scores_of(coefficients[:, 0] / np.sqrt(steps))
        blocks = [level[:, None], self.volatilities.scores_of(volatility)[:, None], moves]
        return np.clip(np.concatenate(blocks, axis=1), -_SCORE_LIMIT, _SCORE_LIMIT)

    def coefficients_of(self, coordinates: np.ndarray) -> np.ndarray:
        """Returns coefficients [series, frequency, channel]; inverse of `coordinates_of`."""
        steps = coordinates.shape[1] - 1
        level = self.levels.numbers_of(ndtr(coordinates[:, 0])) * np.sqrt(steps)
        volatility = np.exp(self.volatilities.numbers_of(ndtr(coordinates[:, 1])))
        moves = coordinates[:, 2:] * self.strengths.relative * volatility[:, None]
        return np.concatenate([level[:, None], moves], axis=1)

    def variances(self) -> np.ndarray:
        """Returns the variance [block, channel] each block has among the coefficients; the volatility's is its own."""
        steps = len(self.strengths.relative) + 1
        mass = np.diff(self.volatilities.cumulative, axis=1)
        middle = (self.volatilities.edges[1:] + self.volatilities.edges[:-1]) / 2
        size = mass @ np.exp(2 * middle)
        level, volatility = self.levels.second_moment * steps, self.volatilities.second_moment
        return np.concatenate([level[None], volatility[None], self.strengths.relative**2 * size])
