"""The releases of `spectral`, in order. Each step sees the data through what the steps before it released.

Privacy, for every `release_…` method: the statistic is a sum over series of vectors whose Euclidean length is bounded
by a public number. For entities a unit's series together weigh one; for events the bound is multiplied by twice the
number of windows one event can touch. Adding or removing one unit moves it by at most that bound, whatever the data.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.data import Channel, Panel
from understudy.data.timegrid import season_steps
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.mechanisms import Bounded, clip_rows
from understudy.synthesizers.base import PrivateSeries, Progress
from understudy.synthesizers.spectral import dependence, factors, gaps, levels, profile, sampling, spectrum
from understudy.synthesizers.spectral.columns import single_columns, single_values
from understudy.synthesizers.spectral.counts import share_among
from understudy.synthesizers.spectral.dependence import Coupling, Covariance
from understudy.synthesizers.spectral.fitting import (
    energy,
    fit_covariances,
    gap_models,
    kind_distributions,
    kind_profiles,
    length_shares,
    missing_shares,
    pooled_kinds,
    with_score_nodes,
)
from understudy.synthesizers.spectral.holders import Held, held_columns
from understudy.synthesizers.spectral.kind import Kind
from understudy.synthesizers.spectral.levels import Distribution, Split
from understudy.synthesizers.spectral.marginals import Marginal, declared_like, grid_of, marginal_from, vote_counts
from understudy.synthesizers.spectral.model import Model
from understudy.synthesizers.spectral.pairs import num_pairs
from understudy.synthesizers.spectral.profile import Profile
from understudy.synthesizers.spectral.series import filled, to_frequencies
from understudy.synthesizers.spectral.spectrum import Strengths

_UNITS_PER_KIND = 1500  # a population is divided no further than this
_CHUNK_VALUES = 2_000_000


@dataclass(frozen=True)
class Learning:
    """One run over one panel.

    Attributes:
        whole: Factor by which the bound of a release exceeds that of the part of it which is made here, because
            other parties make the other parts; every part gets the noise of the whole.
    """

    private: PrivateSeries
    grant: Grant
    max_splits: int
    progress: Progress
    whole: float = 1.0

    @property
    def panel(self) -> Panel:
        """The private series."""
        return self.private.panel

    @property
    def weights(self) -> np.ndarray:
        """What each series weighs."""
        return self.private.weights

    def run(self) -> Model:
        """Makes the releases and returns the model fitted to them."""
        schema = self.panel.schema
        marginals, totals = self.release_marginals(held_columns(schema))
        self.progress("marginals", 0.2)
        whole = self.scores(marginals)
        rotation = self.release_rotation(whole)
        scores = whole @ rotation.astype(np.float32)
        self.progress("factors", 0.3)
        splits = self.release_splits(scores)
        kinds, num_kinds = self.kinds_of(scores, splits), sampling.num_labels(schema) * 2 ** len(splits)
        self.progress("levels", 0.35)
        counts, profiles = self.release_profiles(scores, kinds, num_kinds)
        self.progress("profile", 0.5)
        strengths = self.release_spectra(scores, kinds, profiles, counts)
        self.progress("spectrum", 0.6)
        shapes = self.release_shapes(scores, kinds, profiles, strengths, counts)
        fitted = [Kind(*parts) for parts in zip(profiles, strengths, *shapes, strict=True)]
        self.progress("shape", 0.7)
        coupling, covariances = self.release_dependence(scores, kinds, fitted, counts, marginals)
        self.progress("dependence", 0.9)
        gap_models, lengths = self.release_absence(whole)
        model = Model.of(
            marginals,
            fitted,
            covariances,
            rotation=rotation,
            kind_share=counts / counts.sum(),
            order=coupling.order,
            score_nodes=np.zeros((schema.num_channels, 2)),  # filled in below, from the model itself
            single_missing=missing_shares(totals, self.columns[schema.num_channels :], counts.sum()),
            gaps=gap_models,
            length_shares=lengths,
        )
        self.progress("pooling", 1.0)
        return with_score_nodes(model, schema)

    # --- what every step needs ---------------------------------------------------------------------------------

    def chunks(self) -> Iterator[slice]:
        """Slices of series small enough to hold a few copies of."""
        size = max(1, _CHUNK_VALUES // max(1, self.panel.num_steps * self.panel.schema.num_channels))
        return (slice(begin, begin + size) for begin in range(0, self.panel.num_series, size))

    def noise(self, label: str, bound: float) -> float:
        """Standard deviation of the noise on a release of the given bound."""
        event = self.grant.plan.event(label)
        assert isinstance(event, Gaussian)
        return event.noise_multiplier * bound * self.private.influence * self.whole

    def release(self, label: str, total: np.ndarray, bound: float) -> np.ndarray:
        """Crosses the border with a sum of per-series vectors no longer than `bound`."""
        return self.grant.gaussian(label, Bounded(total, bound * self.private.influence * self.whole))

    @property
    def columns(self) -> tuple[Channel, ...]:
        """Columns with a marginal of their own: channels, then single columns."""
        schema = self.panel.schema
        return (*schema.channels, *single_columns(schema, schema.own_contexts))

    @property
    def season(self) -> int | None:
        """Steps of a day, week or year, as the time axis says."""
        return season_steps(self.panel.schema.time, self.panel.num_steps)

    def single_values(self, rows: slice) -> np.ndarray:
        """Static columns (and summaries of own contexts) of some series."""
        context = self.panel.context if self.panel.schema.own_contexts else None
        return single_values(self.panel.schema, self.panel.static[rows], None if context is None else context[rows])

    # --- the releases ----------------------------------------------------------------------------------------

    def release_marginals(self, held: Held | None = None) -> tuple[list[Marginal], np.ndarray]:
        """Returns the marginals, and how many series have a value in each single column.

        Args:
            held: Who counts which columns; None counts all of them in one place.
        """
        marginals: dict[int, Marginal] = {}
        totals = np.zeros(len(self.columns))
        for label, places in (held or {"marginals": range(len(self.columns))}).items():
            counted, totals[list(places)] = self.count_columns(label, places)
            marginals |= zip(places, counted, strict=True)
        return [marginals[place] for place in range(len(totals))], totals[self.panel.schema.num_channels :]

    def count_columns(self, label: str, places: Sequence[int]) -> tuple[list[Marginal], np.ndarray]:
        """Counts of values per cell: one vote per series and column, spread evenly over the steps."""
        schema, columns = self.panel.schema, [self.columns[place] for place in places]
        bound = float(np.sqrt(len(columns)))
        noise = self.noise(label, bound)
        grids = [grid_of(column, noise / self.private.population) for column in columns]
        counts = [np.zeros(grid.num_cells) for grid in grids]
        for rows in self.chunks():
            weights, singles = self.weights[rows], self.single_values(rows)
            for place, column in enumerate(places):
                if column < schema.num_channels:
                    values = self.panel.values[rows, :, column]
                    counts[place] += vote_counts(values, weights / schema.num_steps, grids[place])
                else:
                    counts[place] += vote_counts(singles[:, [column - schema.num_channels]], weights, grids[place])
        parts = np.split(
            self.release(label, np.concatenate(counts), bound), np.cumsum([grid.num_cells for grid in grids])[:-1]
        )
        alike = share_among(parts, noise, [declared_like(column) for column in columns])
        marginals = [marginal_from(part, grid, noise) for part, grid in zip(alike, grids, strict=True)]
        return marginals, np.array([part.sum() for part in parts])

    def scores(self, marginals: list[Marginal]) -> np.ndarray:
        """Normal scores [series, step, channel] without gaps, in float32."""
        scores = np.empty(self.panel.values.shape, dtype=np.float32)
        for rows in self.chunks():
            values = self.panel.values[rows]
            raw = [marginals[place].scores_of(values[:, :, place]) for place in range(values.shape[2])]
            scores[rows] = filled(np.stack(raw, axis=2), self.panel.lengths[rows])
        return scores

    def release_rotation(self, scores: np.ndarray) -> np.ndarray:
        """Mean products of channels, and the factors they suggest; nothing is released for a single channel."""
        channels = scores.shape[2]
        if channels == 1:
            return np.eye(1)
        radius = factors.clip_radius(channels)
        total = np.zeros(num_pairs(channels))
        for rows in self.chunks():
            total += self.weights[rows] @ clip_rows(factors.moments(scores[rows].astype(np.float64)), radius)
        return factors.fit_rotation(self.release("factors", total, radius) / self.private.population, channels)

    def release_splits(self, scores: np.ndarray) -> tuple[Split, ...]:
        """Counts of levels, and the valleys between their modes."""
        num_channels = self.panel.schema.num_channels
        bound = float(np.sqrt(num_channels))
        votes = np.zeros((num_channels, levels.NUM_CELLS))
        for rows in self.chunks():
            votes += levels.cell_votes(scores[rows].mean(axis=1), self.weights[rows], levels.EVEN_EDGES)
        noisy = self.release("levels", votes, bound)
        labels = sampling.num_labels(self.panel.schema)
        affordable = int(np.log2(max(1.0, self.private.population / _UNITS_PER_KIND / labels)))
        return levels.find_splits(noisy, self.noise("levels", bound), min(self.max_splits, affordable))

    def kinds_of(self, scores: np.ndarray, splits: tuple[Split, ...]) -> np.ndarray:
        """Kind of each series: its label, divided by the splits of the level."""
        kinds = np.zeros(self.panel.num_series, dtype=np.int64)
        for rows in self.chunks():
            kinds[rows] = levels.stratum_of(scores[rows].mean(axis=1), splits)
        label = self.panel.label
        if label is None:
            return kinds
        missing_last = np.where(label < 0, sampling.num_labels(self.panel.schema) - 1, label)
        return missing_last * 2 ** len(splits) + kinds

    def release_profiles(
        self, scores: np.ndarray, kinds: np.ndarray, num_kinds: int
    ) -> tuple[np.ndarray, list[Profile]]:
        """Number of series, and mean and spread of their scores, for each kind."""
        steps, channels = scores.shape[1:]
        radius, one = profile.clip_radius(steps, channels), profile.count_weight(steps, channels)
        bound = float(np.hypot(radius, one))
        sums = np.zeros((num_kinds, 2 * steps * channels + 1))
        for rows in self.chunks():
            moments = clip_rows(profile.moment_vectors(scores[rows].astype(np.float64)), radius)
            vectors = np.concatenate([moments, np.full((len(moments), 1), one)], axis=1)
            _add_by_kind(sums, vectors * self.weights[rows, None], kinds[rows])
        noisy, noise = self.release("profile", sums, bound), self.noise("profile", bound)
        counts = np.maximum(noisy[:, -1] / one, 1.0)
        return counts, kind_profiles(noisy[:, :-1], counts, noise, self.panel.schema, self.season)

    def coefficients(self, scores: np.ndarray, kinds: np.ndarray, profiles: list[Profile], rows: slice) -> np.ndarray:
        """Coefficients [series, frequency, channel] of some series, their kind's profile taken out."""
        mean = np.stack([p.mean for p in profiles])[kinds[rows]]
        spread = np.stack([p.spread for p in profiles])[kinds[rows]]
        return to_frequencies((scores[rows] - mean) / spread)

    def release_spectra(
        self, scores: np.ndarray, kinds: np.ndarray, profiles: list[Profile], counts: np.ndarray
    ) -> list[Strengths]:
        """Directions of the spectra: a vector of length one per series and channel."""
        steps, channels = scores.shape[1:]
        bound = float(np.sqrt(channels))
        sums = np.zeros((len(counts), steps - 1, channels))
        for rows in self.chunks():
            moves = spectrum.directions(self.coefficients(scores, kinds, profiles, rows)[:, 1:])
            _add_by_kind(sums, moves * self.weights[rows, None, None], kinds[rows])
        noisy = self.release("spectrum", sums, bound)
        settled = pooled_kinds(noisy, counts, self.noise("spectrum", bound))
        return [spectrum.fit_strengths(directions, remaining, self.season) for directions, remaining in settled]

    def release_shapes(
        self,
        scores: np.ndarray,
        kinds: np.ndarray,
        profiles: list[Profile],
        strengths: list[Strengths],
        counts: np.ndarray,
    ) -> tuple[list[Distribution], list[Distribution]]:
        """Votes for the level and for the volatility, one each per series and channel."""
        steps, channels = scores.shape[1:]
        bound = float(np.sqrt(2 * channels))
        edges = levels.edges_for(self.noise("shape", bound) / self.private.population)
        votes = np.zeros((len(counts), 2, channels, len(edges[0]) - 1))
        for rows in self.chunks():
            coefficients = self.coefficients(scores, kinds, profiles, rows)
            for kind in np.unique(kinds[rows]):
                here = kinds[rows] == kind
                weights = self.weights[rows][here]
                level = coefficients[here, 0] / np.sqrt(steps)
                volatility = strengths[kind].volatilities_of(coefficients[here, 1:])
                votes[kind, 0] += levels.cell_votes(level, weights, edges[0])
                votes[kind, 1] += levels.cell_votes(volatility, weights, edges[1])
        noisy, noise = self.release("shape", votes, bound), self.noise("shape", bound)
        return kind_distributions(noisy, counts, noise, edges)

    def release_dependence(
        self,
        scores: np.ndarray,
        kinds: np.ndarray,
        fitted: list[Kind],
        counts: np.ndarray,
        marginals: list[Marginal],
    ) -> tuple[Coupling, list[Covariance]]:
        """Second moments of all coordinates, for each kind."""
        channels = scores.shape[2]
        single, profiles = marginals[channels:], [kind.profile for kind in fitted]
        clockless = self.panel.schema.time.align == "relative" or not self.panel.schema.unit.protects_a_person
        coupling = dependence.choose_coupling(
            len(single),
            energy(fitted, counts),
            channels,
            clockless=clockless,
            relative_noise=self.noise("dependence", 1.0) / self.private.population,
        )
        sums = np.zeros((len(counts), coupling.num_pairs))
        for rows in self.chunks():
            coefficients = self.coefficients(scores, kinds, profiles, rows)
            static = self.single_scores(rows, single)
            for kind in np.unique(kinds[rows]):
                here = kinds[rows] == kind
                coordinates = coupling.arrange(static[here], fitted[kind].coordinates_of(coefficients[here]))
                sums[kind] += dependence.moment_sums(coordinates, self.weights[rows][here], coupling)
        noisy = self.release("dependence", sums, coupling.radius)
        noise = self.noise("dependence", coupling.radius)
        return coupling, fit_covariances(noisy, counts, noise, coupling, fitted, clockless)

    def single_scores(self, rows: slice, single: list[Marginal]) -> np.ndarray:
        """Scores [series, single column] of some series; a missing value counts as the middle."""
        values = self.single_values(rows)
        scores = np.zeros(values.shape)
        for place, marginal in enumerate(single):
            scores[:, place] = np.nan_to_num(marginal.scores_of(values[:, place]))
        return scores

    def release_absence(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Votes on gaps and on lengths; nothing is released when neither can occur."""
        schema = self.panel.schema
        gappy = [place for place, channel in enumerate(schema.channels) if channel.missing]
        min_steps = schema.time.min_steps
        width = len(gaps.COUNT_EDGES) + len(gaps.LENGTH_EDGES) + gaps.NUM_RANKS
        if not gappy and min_steps is None:
            return np.zeros((0, width)), np.zeros(0)
        edges = np.zeros(0) if min_steps is None else gaps.length_edges(min_steps, schema.num_steps)
        votes, lengths = np.zeros((len(gappy), width)), np.zeros(len(edges))
        for rows in self.chunks():
            ends, weights = self.panel.lengths[rows], self.weights[rows]
            if min_steps is not None:
                lengths += gaps.length_votes(ends, weights, edges)
            for position, place in enumerate(gappy):
                missing = np.isnan(self.panel.values[rows, :, place])
                votes[position] += gaps.gap_votes(missing, scores[rows, :, place], ends, weights)
        bound = float(np.sqrt(3 * len(gappy) + (min_steps is not None)))
        noisy = self.release("absence", np.concatenate([votes.ravel(), lengths]), bound)
        noise = self.noise("absence", bound)
        return gap_models(noisy[: votes.size].reshape(votes.shape), noise), length_shares(noisy[votes.size :], noise)


def _add_by_kind(sums: np.ndarray, vectors: np.ndarray, kinds: np.ndarray) -> None:
    for kind in np.unique(kinds):
        sums[kind] += vectors[kinds == kind].sum(0)
