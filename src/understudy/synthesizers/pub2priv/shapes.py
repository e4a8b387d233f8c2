"""The shape of a series in few bounded numbers: its levels, and the directions of its strongest frequencies.

Whatever a series does, the frequencies of a factor that are kept have length one together: how it moves, not how much.
So a sum over series needs no clip radius that anybody would have to guess. How much a series moves, and what its other
frequencies do, is `spectral`'s to say. What all series have in common stays in a shape: taken out, series that move
little would be nothing but that, whatever their context.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.data import Panel
from understudy.privacy.contributions import shortened
from understudy.statistics.series import to_frequencies, to_steps, unit_length
from understudy.synthesizers.pub2priv.coordinates import Coordinates
from understudy.synthesizers.pub2priv.moments import Part

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
        weighed = shortened(_LEVEL_WEIGHT * levels, _LEVEL_REACH * np.sqrt(channels))
        moves = to_frequencies(self.coordinates.factors(panel, rows))[:, 1:]
        directions = unit_length(moves[:, self.frequencies])
        return shortened(np.concatenate([weighed, directions.reshape(len(levels), -1)], axis=1), self.reach)

    @property
    def parts(self) -> list[Part]:
        """Places whose mean squares are known: a level is a score, and the directions of a factor have length one."""
        channels = self.coordinates.schema.num_channels
        places = np.arange(self.size).reshape(-1, channels).T
        levels: list[Part] = [(own[:1], _LEVEL_WEIGHT**2) for own in places]
        return levels + [(own[1:], 1.0) for own in places if len(own) > 1]

    def placed(self, shapes: np.ndarray, drawn: np.ndarray) -> np.ndarray:
        """Returns coordinates as `spectral` drew them, with the levels of shapes."""
        single, channels = self.coordinates.num_single, self.coordinates.schema.num_channels
        blocks = np.array(drawn[:, single:]).reshape(len(drawn), -1, channels)
        blocks[:, np.argsort(self.coordinates.model.order)[0]] = shapes[:, :channels] / _LEVEL_WEIGHT
        return np.concatenate([drawn[:, :single], blocks.reshape(len(drawn), -1)], axis=1)

    def turned(self, shapes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Returns scores [series, step, channel] whose strongest frequencies move as shapes say, as much as before."""
        rotation = self.coordinates.model.rotation
        channels = self.coordinates.schema.num_channels
        moves = to_frequencies(scores @ rotation)
        wanted = unit_length(shapes[:, channels:].reshape(len(shapes), len(self.frequencies), channels))
        size = np.sqrt((moves[:, 1 + self.frequencies] ** 2).sum(axis=1, keepdims=True))
        moves[:, 1 + self.frequencies] = wanted * size
        return np.asarray(to_steps(moves) @ np.linalg.inv(rotation))


def most_frequencies(num_channels: int) -> int:
    """Returns how many frequencies are kept at most; a public number."""
    return max(_FEWEST, _NUMBERS // num_channels)


def shape_square(num_channels: int) -> float:
    """Returns the mean square of a shape: a level is a score, and the directions of a factor have length one."""
    return num_channels * (_LEVEL_WEIGHT**2 + 1.0)


def shape_reach(num_channels: int) -> float:
    """Returns the bound on a shape: directions have length one each, levels half of that together."""
    return float(np.sqrt(num_channels) * np.hypot(1.0, _LEVEL_REACH))
