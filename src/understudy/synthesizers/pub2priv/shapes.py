"""The shape of a series in few bounded numbers: its levels, and the directions of its strongest frequencies.

Whatever a series does, the frequencies of a factor that are kept have length one together: how it moves, not how much.
So a sum over series needs no clip radius that anybody would have to guess. How much a series moves, and what its other
frequencies do, is `spectral`'s to say.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.data import Panel
from understudy.privacy.mechanisms import clip_rows
from understudy.synthesizers.pub2priv.coordinates import Coordinates
from understudy.synthesizers.spectral.series import unit_length

_FEWEST, _NUMBERS = 4, 16  # frequencies of each factor at least, and numbers of all factors together
_LEVEL_WEIGHT = 0.35  # of the score of a level beside a direction
_LEVEL_REACH = 0.5  # most that all levels weigh, beside what all directions do


@dataclass(frozen=True, eq=False)
class Shapes:
    """Which numbers of a series are its shape, and the way back from them."""

    coordinates: Coordinates

    @cached_property
    def frequencies(self) -> np.ndarray:
        """The strongest frequencies of the released spectrum, counted from 0; how many is a public number."""
        energy = (self.coordinates.model.strength**2).mean(axis=(0, 2))
        strongest = np.argsort(-energy, kind="stable")
        return np.sort(strongest[: most_frequencies(self.coordinates.schema.num_channels)])

    @property
    def size(self) -> int:
        """Numbers of a shape."""
        return self.coordinates.schema.num_channels * (1 + len(self.frequencies))

    @property
    def reach(self) -> float:
        """Most that a shape measures."""
        return shape_reach(self.coordinates.schema.num_channels)

    def of(self, panel: Panel, classes: np.ndarray, rows: slice) -> np.ndarray:
        """Returns shapes [series, number], none longer than `reach`.

        Privacy: private if the panel is; a row follows from its own series and released arrays.
        """
        coefficients = self.coordinates.coefficients(panel, classes, rows)
        steps, channels = self.coordinates.schema.num_steps, self.coordinates.schema.num_channels
        levels = np.zeros((len(coefficients), channels))
        for kind in np.unique(classes[rows]):
            here = classes[rows] == kind
            road = self.coordinates.model.kind(kind)
            levels[here] = road.levels.scores_of(coefficients[here, 0] / np.sqrt(steps))
        weighed = clip_rows(_LEVEL_WEIGHT * levels, _LEVEL_REACH * np.sqrt(channels))
        directions = unit_length(coefficients[:, 1:][:, self.frequencies])
        return clip_rows(np.concatenate([weighed, directions.reshape(len(levels), -1)], axis=1), self.reach)

    def placed(self, shapes: np.ndarray, drawn: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Returns coordinates as `spectral` drew them, with the levels and the strongest frequencies of shapes."""
        model, single = self.coordinates.model, self.coordinates.num_single
        channels = self.coordinates.schema.num_channels
        blocks = np.array(drawn[:, single:]).reshape(len(drawn), -1, channels)
        place = np.argsort(model.order)
        blocks[:, place[0]] = shapes[:, :channels] / _LEVEL_WEIGHT
        moves = unit_length(shapes[:, channels:].reshape(len(shapes), len(self.frequencies), channels))
        strength = model.strength[classes][:, self.frequencies]
        size = np.sqrt((strength**2).sum(axis=1, keepdims=True))
        blocks[:, place[2 + self.frequencies]] = moves * size / strength
        return np.concatenate([drawn[:, :single], blocks.reshape(len(drawn), -1)], axis=1)


def most_frequencies(num_channels: int) -> int:
    """Returns how many frequencies are kept at most; a public number."""
    return max(_FEWEST, _NUMBERS // num_channels)


def shape_reach(num_channels: int) -> float:
    """Returns the bound on a shape: directions have length one each, levels half of that together."""
    return float(np.sqrt(num_channels) * np.hypot(1.0, _LEVEL_REACH))
