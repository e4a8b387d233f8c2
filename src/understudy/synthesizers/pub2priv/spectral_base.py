"""The `spectral` release that the default builds on, and how long series repeat a value.

Both estimators read a series in the factors of that release, and turn samples of it towards the context.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from understudy.data import Continuous, Panel, Schema
from understudy.statistics import copula, gaps
from understudy.statistics.columns import static_values
from understudy.statistics.copula import Model
from understudy.statistics.series import filled, to_frequencies, to_steps
from understudy.synthesizers.base import SampleRequest

PREFIX = "spectral."  # of the arrays of the release
NUM_RUN_CELLS = len(gaps.LENGTH_EDGES)
_SIGNIFICANT = 4.0  # standard deviations of noise from which a vote counts


@dataclass(frozen=True, eq=False)
class SpectralBase:
    """A released model; `schema` is the contract it was learned under, without context."""

    model: Model
    schema: Schema

    @classmethod
    def of(cls, schema: Schema, arrays: Mapping[str, np.ndarray]) -> "SpectralBase":
        """Returns the model that a release holds."""
        own = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
        return cls(Model.from_arrays(own), schema.without_context())

    @property
    def num_single(self) -> int:
        """Static columns but the label."""
        return len([column for column in self.schema.static if column.name != self.schema.label])

    def factors(self, panel: Panel) -> np.ndarray:
        """Returns factors [series, step, factor] of series, the profile of their class included.

        Privacy: private if the panel is; a series follows from its own values alone.
        """
        marginals = self.model.marginals
        raw = [marginals[place].scores_of(panel.values[:, :, place]) for place in range(self.schema.num_channels)]
        scores = filled(np.stack(raw, axis=2), panel.lengths)
        return np.einsum("stc,cf->stf", scores, self.model.rotation)  # each series by itself, to the last bit

    def levels(self, factors: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Returns the normal score [series, factor] of each factor's mean, the profile of the class taken out."""
        steps = self.schema.num_steps
        coefficients = to_frequencies((factors - self.model.mean[classes]) / self.model.spread[classes])
        levels = np.zeros((len(factors), self.schema.num_channels))
        for kind in np.unique(classes):
            here = classes == kind
            levels[here] = self.model.kind(kind).levels.scores_of(coefficients[here, 0] / np.sqrt(steps))
        return levels

    def sample_coordinates(self, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Samples the Gaussian coordinates of series of the given classes."""
        model = self.model
        sampled = np.empty((len(classes), model.coupled.shape[1] + int(np.prod(model.free.shape[1:3]))))
        for kind in np.unique(classes):
            rows = np.flatnonzero(classes == kind)
            sampled[rows] = model.covariance(kind).sample(len(rows), rng)
        return sampled

    def scores(self, coordinates: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns (scores [series, step, channel], scores of the static columns) of coordinates."""
        steps, channels = self.schema.num_steps, self.schema.num_channels
        blocks = np.empty((len(coordinates), steps + 1, channels))
        blocks[:, self.model.order] = coordinates[:, self.num_single :].reshape(blocks.shape)
        scores = np.empty((len(coordinates), steps, channels))
        for kind in np.unique(classes):
            rows, road = classes == kind, self.model.kind(kind)
            scores[rows] = road.profile.restore(to_steps(road.coefficients_of(blocks[rows])))
        return scores @ np.linalg.inv(self.model.rotation), coordinates[:, : self.num_single]

    def panel(
        self,
        schema: Schema,
        request: SampleRequest,
        classes: np.ndarray,
        scores: tuple[np.ndarray, np.ndarray],
        run_shares: np.ndarray,
    ) -> Panel:
        """Returns synthetic series of given scores (of channels, of static columns), with runs of equal values."""
        model, rng, (channels, singles) = self.model, request.rng, scores
        lengths, missing = copula.sample_absence(model, schema, channels, rng)
        ranks, marginals = copula.ranks_of(model, channels), model.marginals
        values = np.stack([marginals[c].values_of(ranks[:, :, c]) for c in range(schema.num_channels)], axis=2)
        values = repeated(values, run_shares, schema, rng)
        single, shares = marginals[schema.num_channels :], model.single_missing
        static = static_values(schema, classes, ndtr(singles), single, shares, rng)
        return request.panel(schema, np.where(missing, np.nan, values), lengths, static)


# --- runs of equal values: shares change at reviews, tariffs at dates ------------------------------------------------


def repeating_channels(schema: Schema) -> list[int]:
    """Returns the places of continuous channels; whole numbers and codes repeat by themselves."""
    return [place for place, channel in enumerate(schema.channels) if isinstance(channel, Continuous)]


def run_length_cells(panel: Panel) -> np.ndarray:
    """Returns the cell of `gaps.LENGTH_EDGES` of each series' mean run length.

    A run goes on where every continuous channel repeats and none is at a bound, where series rest for other reasons.

    Privacy: private if the panel is; a cell follows from its own series alone.
    """
    places = repeating_channels(panel.schema)
    values = panel.values[:, :, places]
    low, high = np.array([panel.schema.channels[place].bounds for place in places], dtype=values.dtype).reshape(-1, 2).T
    before, after = values[:, :-1], values[:, 1:]
    with np.errstate(invalid="ignore"):
        resting = (before <= low) | (before >= high)
        comparable = (~np.isnan(before) & ~np.isnan(after) & ~resting).all(axis=2)
        changed = comparable & (before != after).any(axis=2)
    mean = (comparable.sum(axis=1) + 1) / (changed.sum(axis=1) + 1)
    return np.clip(np.searchsorted(gaps.LENGTH_EDGES, mean, side="right") - 1, 0, NUM_RUN_CELLS - 1)


def repeated(values: np.ndarray, shares: np.ndarray, schema: Schema, rng: np.random.Generator) -> np.ndarray:
    """Returns values [series, step, channel] in runs whose lengths are sampled from the released shares.

    A run takes its middle value: slow movements were learned from series with runs, and must not lag twice.
    """
    number, steps = values.shape[:2]
    length = gaps.sample_lengths(shares, gaps.LENGTH_EDGES, steps, number, rng)[:, None]
    middle = np.minimum(np.arange(steps) // length * length + length // 2, steps - 1)
    runs = np.array(values)
    for place in repeating_channels(schema):
        runs[:, :, place] = np.take_along_axis(values[:, :, place], middle, axis=1)
    return runs


def significant_shares(votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns shares of the cells whose votes stand out of the noise; without any, runs of one step.

    A run that is wrong costs a series its movements; a run that is missed costs only its repeats.
    """
    sure = np.where(votes > _SIGNIFICANT * noise, votes, 0.0)
    return sure / sure.sum() if sure.any() else np.eye(len(votes))[0]
