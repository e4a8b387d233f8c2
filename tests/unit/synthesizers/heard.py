"""One release, heard at the border: the exact sum, the furthest that one unit moves it, and how long vectors were."""

from dataclasses import dataclass
from unittest import mock

import numpy as np

from understudy.privacy import border
from understudy.privacy.border import Statistic
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import Private


@dataclass(frozen=True)
class Heard:
    """What `Grant.release` was asked for.

    Attributes:
        value: Clipped sum without noise.
        reach: Furthest that one protected unit moves it; what noise is a multiple of.
        lengths: Length of each unit's vector before the clip, in bounds.
    """

    value: np.ndarray
    reach: float
    lengths: np.ndarray

    @property
    def clipped(self) -> float:
        """Share of all lengths that lies beyond the bound."""
        beyond = np.maximum(self.lengths * (1 - 1e-9) - 1, 0).sum()
        return float(beyond / max(self.lengths.sum(), 1e-12))

    def moved(self, other: "Heard") -> float:
        """Returns how far apart two sums are, in units of the reach."""
        assert self.value.shape == other.value.shape
        assert self.reach == other.reach
        return float(np.linalg.norm(self.value - other.value)) / self.reach


def heard(grant: Grant, statistic: Statistic, private: Private) -> Heard:
    """Returns what a release would add noise to; executes nothing."""
    lengths, genuine = [np.zeros(0)], border.clip_factors

    def listen(own: np.ndarray, bound: float) -> np.ndarray:
        lengths.append(own / bound)
        return genuine(own, bound)

    reach = statistic.bound * private.reach
    step = statistic.step or border.lattice_step(statistic.bound, grant.deviation(statistic.label, reach))
    with mock.patch.object(border, "clip_factors", listen):
        value = private.total(statistic, step) * step
    return Heard(value, reach, np.concatenate(lengths))
