"""The fast way: diffusion over how series follow public signals; everything else is a bought `spectral` release.

A series has hundreds of numbers and a private gradient can teach a few dozen. So what is diffused is small: for each
factor of the series, its level and what it measures along each signal, scaled to white noise by what `spectral`
expects. Where the denoiser learned nothing, samples are `spectral`'s.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch import nn

from understudy.data import Panel
from understudy.nn.diffusion import Diffusion
from understudy.synthesizers.pub2priv.conditions import Conditions
from understudy.synthesizers.pub2priv.coordinates import Coordinates, Measurements
from understudy.synthesizers.pub2priv.denoising import Examples
from understudy.synthesizers.pub2priv.networks import GaussianDenoiser

_BOUND = 8.0  # on measurements, which have deviation one if `spectral` is right
_CHUNK_NUMBERS = 8_000_000


def shape_of(conditions: Conditions, num_signals: int) -> tuple[int, int]:
    """Returns how many factors there are, and measurements of each: the level only where context has one of its own."""
    return conditions.schema.num_channels, conditions.num_signals(num_signals) + int(conditions.own)


def denoiser_of(
    conditions: Conditions, num_signals: int, diffusion: Diffusion, width: int, depth: int
) -> GaussianDenoiser:
    """Returns the denoiser before it learned anything; its size follows from public facts."""
    groups, places = shape_of(conditions, num_signals)
    return GaussianDenoiser(
        signal=diffusion.signal(), groups=groups, places=places, condition=conditions.num_levels,
        width=width, depth=depth,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Projected:
    """What is diffused, and the way back from it.

    Attributes:
        num_signals: Signals that each factor is measured along, as far as there are so many.
    """

    conditions: Conditions
    coordinates: Coordinates
    num_signals: int

    @property
    def shape(self) -> tuple[int, int]:
        """Factors, and measurements of each."""
        return shape_of(self.conditions, self.num_signals)

    @property
    def loss_weight(self) -> float:
        """Turns the mean over measurements into their sum, whose gradients are as long as the clip; measured."""
        return float(np.prod(self.shape))

    def network(self, diffusion: Diffusion, width: int, depth: int) -> nn.Module:
        """Returns the denoiser, which knows nothing yet."""
        return denoiser_of(self.conditions, self.num_signals, diffusion, width, depth)

    def examples(self, panel: Panel, classes: np.ndarray) -> Examples:
        """Returns what the denoiser is trained on, a row for each series.

        Privacy: private if the panel is; a row follows from its own series, its own context and released arrays.
        """
        x = np.zeros((panel.num_series, *self.shape), dtype=np.float32)
        known = np.zeros(x.shape, dtype=bool)
        for rows in self._chunks(panel.num_series):
            coordinates = self.coordinates.of(panel, classes, rows)
            context = None if panel.context is None else panel.context[rows]
            for here, measured in self._measured(context, classes[rows]):
                own = measured.of(coordinates[here]).reshape(-1, *self.shape)
                x[rows][here] = np.clip(own, -_BOUND, _BOUND)
                known[rows][here] = measured.known.reshape(own.shape)
        return {"x": np.where(known, x, 0), "known": known, "condition": self.levels(panel.context, panel.num_series)}

    def levels(self, context: np.ndarray | None, num_series: int) -> np.ndarray:
        """Returns the condition of each series."""
        return self.conditions.levels(context, num_series)

    def scores(
        self, x: np.ndarray, context: np.ndarray | None, classes: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns (scores [series, step, channel], scores of static columns) of series that measure as x."""
        scores: list[np.ndarray] = []
        singles: list[np.ndarray] = []
        for rows in self._chunks(len(x)):
            moved = self.coordinates.drawn(classes[rows], rng)
            own = None if context is None else context[rows]
            for here, measured in self._measured(own, classes[rows]):
                expected, rest = measured.split(moved[here], x[rows][here].reshape(len(here), -1))
                moved[here] = self.coordinates.joined(expected, rest)
            for parts, part in zip((scores, singles), self.coordinates.scores(moved, classes[rows]), strict=True):
                parts.append(part)
        return np.concatenate(scores), np.concatenate(singles)

    def _measured(self, context: np.ndarray | None, classes: np.ndarray) -> Iterator[tuple[np.ndarray, Measurements]]:
        """Returns, class by class, which series of a chunk belong to it and what they are measured by."""
        distinct, which = _distinct(context, len(classes))
        signals = self.conditions.signals(distinct, 1 if distinct is None else len(distinct), self.num_signals)
        for kind in np.unique(classes):
            here = np.flatnonzero(classes == kind)
            used, place = np.unique(which[here], return_inverse=True)
            measured = self.coordinates.measurements(signals[used], kind, level=self.conditions.own)
            yield here, measured.take(place)

    def _chunks(self, num_series: int) -> Iterator[slice]:
        schema = self.coordinates.schema
        size = max(1, _CHUNK_NUMBERS // ((schema.num_steps + 1) * schema.num_channels * int(np.prod(self.shape))))
        return (slice(first, min(first + size, num_series)) for first in range(0, num_series, size))


def _distinct(context: np.ndarray | None, num_series: int) -> tuple[np.ndarray | None, np.ndarray]:
    """Returns the distinct contexts of a chunk, and which of them each series has."""
    if context is None:
        return None, np.zeros(num_series, dtype=np.int64)
    if context.strides[0] == 0:
        return context[:1], np.zeros(num_series, dtype=np.int64)
    _, first, which = np.unique(context.reshape(num_series, -1), axis=0, return_index=True, return_inverse=True)
    return context[first], which.ravel()
