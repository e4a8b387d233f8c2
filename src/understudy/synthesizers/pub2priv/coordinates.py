"""Between series and the Gaussian coordinates of a `spectral` release, and what a signal measures in them.

A series becomes normal scores, factors, frequencies and Gaussian coordinates y ~ N(0, C), as `spectral` describes. How
a series follows a public signal is a linear measurement of y. Its distribution under `spectral` is known, so it can be
scaled to a standard normal; and series that are to have another one are drawn by `spectral` and then moved.

Notation: y coordinates of one series, C their released covariance, Ψ measurements as rows, b = Ψ y, ΨCΨᵀ = LLᵀ.
"""

from dataclasses import dataclass

import numpy as np

from understudy.data import Panel, Schema
from understudy.statistics.columns import single_values
from understudy.statistics.copula import Model
from understudy.statistics.series import filled, to_frequencies, to_steps

_SMALLEST = 1e-4  # share of its variance that a measurement must have for itself beside those before it


@dataclass(frozen=True, eq=False)
class Measurements:
    """What some series are measured by, each with signals of its own.

    Attributes:
        functionals: Ψ [series, measurement, coordinate].
        spread: C Ψᵀ [series, coordinate, measurement].
        factor: L [series, measurement, measurement].
        known: Which measurements say something, [series, measurement]; a signal at rest says nothing.
    """

    functionals: np.ndarray
    spread: np.ndarray
    factor: np.ndarray
    known: np.ndarray

    def take(self, rows: np.ndarray) -> "Measurements":
        """Returns the measurements of some series; any of them may be taken more than once."""
        return Measurements(self.functionals[rows], self.spread[rows], self.factor[rows], self.known[rows])

    def of(self, coordinates: np.ndarray) -> np.ndarray:
        """Returns L⁻¹ b [series, measurement]: standard normal if `spectral` is all there is to say."""
        taken = np.einsum("smd,sd->sm", self.functionals, coordinates, optimize=True)
        return np.linalg.solve(self.factor, taken[:, :, None])[:, :, 0]

    def split(self, coordinates: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns what `wanted` measurements make one expect, and the rest of `coordinates`, which measures as nothing.

        Together they measure as wanted and else are as likely as the coordinates were (Matheron's rule).
        """
        return self._expected(wanted), coordinates - self._expected(self.of(coordinates))

    def _expected(self, measured: np.ndarray) -> np.ndarray:
        """Returns C Ψᵀ (Ψ C Ψᵀ)⁻¹ b [series, coordinate]."""
        known = np.where(self.known, measured, 0.0)
        return (self.spread @ np.linalg.solve(np.swapaxes(self.factor, 1, 2), known[:, :, None]))[:, :, 0]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The road of one released model; `schema` is the contract it was learned under, without context."""

    model: Model
    schema: Schema

    @property
    def num_single(self) -> int:
        """Static columns but the label."""
        return len([column for column in self.schema.static if column.name != self.schema.label])

    def of(self, panel: Panel, kinds: np.ndarray, rows: slice) -> np.ndarray:
        """Returns coordinates [series, coordinate] of some series.

        Privacy: private if the panel is; a series follows from its own values alone.
        """
        marginals, channels = self.model.marginals, self.schema.num_channels
        values = single_values(self.schema, panel.static[rows], None)
        single = np.zeros(values.shape)
        for place, own in enumerate(values.T):
            single[:, place] = np.nan_to_num(marginals[channels + place].scores_of(own))
        coefficients = self.coefficients(panel, kinds, rows)
        blocks = np.empty((len(values), self.schema.num_steps + 1, channels))
        for kind in np.unique(kinds[rows]):
            here = kinds[rows] == kind
            blocks[here] = self.model.kind(kind).coordinates_of(coefficients[here])
        return self._arranged(single, blocks)

    def coefficients(self, panel: Panel, kinds: np.ndarray, rows: slice) -> np.ndarray:
        """Returns frequencies [series, frequency, factor] of some series, the profile of their class taken out.

        Privacy: private if the panel is; a series follows from its own values alone.
        """
        mean, spread = self.model.mean[kinds[rows]], self.model.spread[kinds[rows]]
        return to_frequencies((self.factors(panel, rows) - mean) / spread)

    def factors(self, panel: Panel, rows: slice) -> np.ndarray:
        """Returns factors [series, step, factor] of some series as they are, with the profile of their class.

        Privacy: private if the panel is; a series follows from its own values alone.
        """
        marginals = self.model.marginals
        raw = [marginals[place].scores_of(panel.values[rows, :, place]) for place in range(self.schema.num_channels)]
        scores = filled(np.stack(raw, axis=2), panel.lengths[rows])
        return np.einsum("stc,cf->stf", scores, self.model.rotation)  # each series by itself, to the last bit

    def drawn(self, kinds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Returns coordinates as `spectral` draws them."""
        model = self.model
        drawn = np.empty((len(kinds), model.coupled.shape[1] + int(np.prod(model.free.shape[1:3]))))
        for kind in np.unique(kinds):
            rows = np.flatnonzero(kinds == kind)
            drawn[rows] = model.covariance(kind).sample(len(rows), rng)
        return drawn

    def measurements(self, signals: np.ndarray, kind: int, *, level: bool) -> Measurements:
        """Returns how series follow signals [series, step, signal]: measurements factor by factor, level first.

        Args:
            level: Whether the level of a factor is measured too.
        """
        functionals = self._functionals(signals, level)
        spread = self._times_covariance(functionals, kind)
        gram = np.einsum("smd,snd->smn", spread, functionals, optimize=True)
        factor, known = _factor(gram)
        return Measurements(functionals, np.swapaxes(spread, 1, 2), factor, known)

    def scores(self, coordinates: np.ndarray, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns (scores [series, step, channel], scores of the static columns) behind coordinates."""
        steps, channels = self.schema.num_steps, self.schema.num_channels
        blocks = np.empty((len(coordinates), steps + 1, channels))
        blocks[:, self.model.order] = coordinates[:, self.num_single :].reshape(blocks.shape)
        scores = np.empty((len(coordinates), steps, channels))
        for kind in np.unique(kinds):
            rows, road = kinds == kind, self.model.kind(kind)
            scores[rows] = road.profile.restore(to_steps(road.coefficients_of(blocks[rows])))
        return scores @ np.linalg.inv(self.model.rotation), coordinates[:, : self.num_single]

    def joined(self, expected: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Returns expected + rest, the rest scaled factor by factor so that movements have mean square one.

        Real series have it by the making of their coordinates (`Kind.coordinates_of` divides by their volatility), so a
        series that follows a signal closely has little else.
        """
        shape = (len(expected), self.schema.num_steps + 1, self.schema.num_channels)
        moves = self.model.order >= 2
        known, free = (part[:, self.num_single :].reshape(shape)[:, moves] for part in (expected, rest))
        scale = np.ones(shape)
        scale[:, moves] = scale_to_unit(known, free)[:, None]
        single = np.ones((len(expected), self.num_single))
        return expected + rest * np.concatenate([single, scale.reshape(len(expected), -1)], axis=1)

    def _arranged(self, singles: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        return np.concatenate([singles, blocks[:, self.model.order].reshape(len(blocks), -1)], axis=1)

    def _functionals(self, signals: np.ndarray, level: bool) -> np.ndarray:
        """Returns [series, factor · measurement, coordinate].

        A signal's frequencies are laid on the coordinates as they are. A series that measures high then moves like the
        signal seen through the factor's own spectrum: halfway between copying what the factor never does and following
        only its slowest part.
        """
        num_series, steps, num_signals = signals.shape
        channels, first = self.schema.num_channels, int(level)
        moves = to_frequencies(signals)[:, 1:]
        blocks = np.zeros((num_series, channels, first + num_signals, steps + 1, channels))
        for place in range(channels):
            if level:
                blocks[:, place, 0, 0, place] = 1.0
            blocks[:, place, first:, 2:, place] = np.swapaxes(moves, 1, 2)
        flat = blocks.reshape(-1, steps + 1, channels)
        arranged = self._arranged(np.zeros((len(flat), self.num_single)), flat)
        return arranged.reshape(num_series, channels * (first + num_signals), -1)

    def _times_covariance(self, rows: np.ndarray, kind: int) -> np.ndarray:
        covariance = self.model.covariance(kind)
        size = len(covariance.coupled)
        coupled = rows[..., :size] @ covariance.coupled
        if not len(covariance.free):
            return coupled
        free = rows[..., size:].reshape(*rows.shape[:2], *covariance.free.shape[:2])
        moved = np.einsum("smbj,bij->smbi", free, covariance.free, optimize=True)
        return np.concatenate([coupled, moved.reshape(*rows.shape[:2], -1)], axis=2)


def scale_to_unit(known: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Returns s ≥ 0 [series, factor] with mean (known + s · free)² = 1 over the movements, as far as there is one."""
    square, half = (free**2).sum(axis=1), (known * free).sum(axis=1)
    missing = known.shape[1] - (known**2).sum(axis=1)
    root = np.sqrt(np.maximum(half**2 + square * missing, 0.0))
    return np.maximum((root - half) / np.maximum(square, 1e-12), 0.0)


def _factor(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (L, which measurements are known) of ΨCΨᵀ, with 1 on the diagonal where a measurement says nothing new.

    Cholesky's recursion row by row, all series at once: few measurements, many series.
    """
    number = gram.shape[1]
    factor, known = np.zeros(gram.shape), np.zeros(gram.shape[:2], dtype=bool)
    for row in range(number):
        for column in range(row):
            product = (factor[:, row, :column] * factor[:, column, :column]).sum(1)
            own = (gram[:, row, column] - product) / factor[:, column, column]
            factor[:, row, column] = np.where(known[:, column], own, 0.0)
        rest = gram[:, row, row] - (factor[:, row, :row] ** 2).sum(1)
        known[:, row] = rest > _SMALLEST * np.maximum(gram[:, row, row], 1e-12)
        factor[:, row, row] = np.where(known[:, row], np.sqrt(np.maximum(rest, 0.0)), 1.0)
        factor[:, row, :row] *= known[:, row, None]
    return factor, known
