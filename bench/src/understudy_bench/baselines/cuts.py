"""Two ways to make columns of few levels from series: means of segments, or a few frequencies.

Both work on [series, step, channel] without gaps, on a scale that public or released facts give, series by series.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from understudy.data import Schema
from understudy.data.channels import num_codes
from understudy.data.timegrid import parse_frequency
from understudy.statistics.marginals import Marginal
from understudy.statistics.series import to_frequencies, to_steps

SEGMENTS, SEGMENT_LEVELS = 10, 50  # Pub2Priv, appendix E
LEVELS = 16
_LEVEL_EDGES = np.linspace(-2.1, 2.1, LEVELS - 1)
_SIZES = 2.0 ** np.arange(-6, 1)
_MOVE_EDGES = np.concatenate([-_SIZES[::-1], [0.0], _SIZES])  # an octave a level: what matters is how many times
_ROUGH_EDGES = 2.0 ** np.linspace(-6, 1, LEVELS - 1)
_DAY = 86_400_000_000  # microseconds


class Cut(Protocol):
    """Series as columns of levels, and back."""

    @property
    def domain(self) -> tuple[int, ...]:
        """Levels of each column."""

    def codes(self, working: np.ndarray) -> np.ndarray:
        """Returns levels [series, column] of working series [series, step, channel]."""

    def working(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Returns working series for levels."""

    def values(self, working: np.ndarray) -> np.ndarray:
        """Returns values in the user's units."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Means of up to ten segments in fifty even levels between the declared bounds; final, implements `Cut`.

    Working scale takes the bounds to −1 and 1. Of a category, which has no mean, the middle of the segment is taken.
    """

    schema: Schema

    @property
    def domain(self) -> tuple[int, ...]:
        """One column for each segment of each channel."""
        return tuple(levels for levels in self._levels for _ in range(self._number))

    @property
    def _number(self) -> int:
        return min(SEGMENTS, self.schema.num_steps)

    @property
    def _levels(self) -> list[int]:
        return [num_codes(channel) or SEGMENT_LEVELS for channel in self.schema.channels]

    def codes(self, working: np.ndarray) -> np.ndarray:
        """Levels of every segment, channel by channel."""
        parts = np.array_split(working, self._number, axis=1)
        means = np.stack([part.mean(axis=1) for part in parts], axis=2)  # [series, channel, segment]
        middles = np.stack([part[:, part.shape[1] // 2] for part in parts], axis=2)
        coded = np.array([num_codes(channel) is not None for channel in self.schema.channels])
        share = (np.where(coded[:, None], middles, means) + 1) / 2
        levels = np.array(self._levels)[:, None]
        # Codes sit on both ends of their range, levels of a number between the ends.
        cells = np.where(coded[:, None], np.rint(share * (levels - 1)), np.floor(share * levels))
        return np.clip(cells, 0, levels - 1).astype(np.int64).reshape(len(working), len(self.domain))

    def working(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Every segment constant at the middle of its level, as in the paper."""
        levels = np.array(self._levels)[:, None]
        cells = codes.reshape(len(codes), len(levels), self._number)
        coded = np.array([num_codes(channel) is not None for channel in self.schema.channels])[:, None]
        share = np.where(coded, cells / np.maximum(levels - 1, 1), (cells + 0.5) / levels)
        lengths = [len(part) for part in np.array_split(np.arange(self.schema.num_steps), self._number)]
        return np.asarray(np.repeat(2 * share - 1, lengths, axis=2).transpose(0, 2, 1))

    def values(self, working: np.ndarray) -> np.ndarray:
        """Between the bounds."""
        low, high = np.array([channel.bounds for channel in self.schema.channels]).T
        return np.asarray(low + (high - low) * (working + 1) / 2)


@dataclass(frozen=True, eq=False)
class Frequencies:
    """A few frequencies and the roughness of the rest, in sixteen levels; final, implements `Cut`.

    Working scale are normal scores by released marginals, so that public levels fit whatever the bounds are.

    Attributes:
        marginals: Released distribution of each channel.
        profile: Released mean score [step, channel], taken out before the transform.
        places: Frequencies that are kept.
        nodes: Quantiles [channel, node] of the scores that are drawn, by which they are ranked; None before any were.
    """

    marginals: tuple[Marginal, ...]
    profile: np.ndarray
    places: tuple[int, ...]
    nodes: np.ndarray | None = None

    @property
    def domain(self) -> tuple[int, ...]:
        """Kept frequencies and the roughness, channel by channel."""
        return (LEVELS,) * (len(self.places) + 1) * self.profile.shape[1]

    def codes(self, working: np.ndarray) -> np.ndarray:
        """Levels of every kept frequency and of the roughness."""
        steps = working.shape[1]
        found = to_frequencies(working - self.profile) / np.sqrt(steps)
        rest = np.sqrt(np.delete(np.square(found), self.places, axis=1).sum(axis=1))
        edges = [_LEVEL_EDGES if place == 0 else _MOVE_EDGES for place in self.places]
        parts = [np.searchsorted(own, found[:, place]) for own, place in zip(edges, self.places, strict=True)]
        parts.append(np.searchsorted(_ROUGH_EDGES, rest))
        return np.stack(parts, axis=2).reshape(len(working), len(self.domain)).astype(np.int64)

    def working(self, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Somewhere within the levels; what lies between the kept frequencies falls off with frequency."""
        steps, channels = self.profile.shape
        cells = codes.reshape(len(codes), channels, len(self.places) + 1)
        found = rng.standard_normal((len(codes), steps, channels)) / np.sqrt(np.maximum(np.arange(steps), 1))[:, None]
        found[:, list(self.places)] = 0.0
        size = np.sqrt(np.square(found).sum(axis=1, keepdims=True))
        found *= _within(_ROUGH_EDGES, cells[:, :, -1], rng)[:, None] / np.where(size > 0, size, 1.0)
        for number, place in enumerate(self.places):
            edges = _LEVEL_EDGES if place == 0 else _MOVE_EDGES
            found[:, place] = _within(edges, cells[:, :, number], rng)
        return to_steps(found * np.sqrt(steps)) + self.profile

    def values(self, working: np.ndarray) -> np.ndarray:
        """By rank among drawn scores, so that released marginals come out."""
        ranks = ndtr(working)
        if self.nodes is not None:
            even = np.linspace(0, 1, self.nodes.shape[1])
            ranks = np.stack([np.interp(working[:, :, c], own, even) for c, own in enumerate(self.nodes)], axis=2)
        return np.stack([own.values_of(ranks[:, :, c]) for c, own in enumerate(self.marginals)], axis=2)


def kept_frequencies(schema: Schema, number: int) -> tuple[int, ...]:
    """Returns the slowest frequencies, and those of a day and of half a day where a series sees two days or more."""
    steps = schema.num_steps
    per_day = _DAY / max(parse_frequency(schema.time.frequency).microseconds, 1)
    daily = {round(2 * steps * turns / per_day) for turns in (1, 2)} if 4 <= per_day <= steps / 2 else set()
    return tuple(sorted(place for place in {*range(number), *daily} if place < steps))


def _within(edges: np.ndarray, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns numbers anywhere in their cells; the outer ones are as wide as the edge next to them is far from 0."""
    ends = np.concatenate([[min(2 * edges[0], 0.0)], edges, [2 * edges[-1]]])
    return np.asarray(ends[cells] + (ends[cells + 1] - ends[cells]) * rng.random(cells.shape))
