"""The releases of `spectral`, in order. Each step sees the data through what the steps before it released.

Every release is a `Statistic`: a function from a panel to one vector per series, and a bound that the border enforces.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.data import Panel, Schema
from understudy.privacy.contributions import Cells, Rows, SideBySide
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries, Remembered
from understudy.statistics import facts
from understudy.statistics.basis import Basis, basis_of
from understudy.statistics.columns import classes_of, gappy_channels, num_labels
from understudy.statistics.copula import NUM_CELLS, Covariance, Kind, Model, evened, stacked
from understudy.statistics.facts import Facts
from understudy.statistics.gaps import GapModel, numbers_of
from understudy.statistics.marginals import bounded_scores
from understudy.statistics.queries import Queries, Seen, own_single_values, scores_by
from understudy.statistics.series import num_pairs, unit_length
from understudy.synthesizers.base import Progress
from understudy.synthesizers.spectral import fitting
from understudy.synthesizers.spectral.dependence import Coupling, choose_coupling, fit_covariance
from understudy.synthesizers.spectral.fitting import Split
from understudy.synthesizers.spectral.recipe import SINGLES, affordable_splits, held_columns, num_singles


@dataclass(frozen=True)
class Learning:
    """One run over private series."""

    private: PrivateSeries
    grant: Grant
    max_splits: int
    progress: Progress
    prior: Panel | None = None

    @cached_property
    def schema(self) -> Schema:
        """Contract of what is learned from."""
        return self.private.schema

    @cached_property
    def queries(self) -> Queries:
        """What crosses the border."""
        return Queries(self.private, self.grant, self.prior)

    @cached_property
    def basis(self) -> Basis:
        """Public vectors of time."""
        return basis_of(self.schema)

    def charged(self, label: str) -> bool:
        """Says whether a release was paid for."""
        return any(entry.label == label for entry in self.grant.plan.entries)

    def run(self) -> Model:
        """Makes the releases and returns the model fitted to them."""
        schema = self.schema
        bought = facts.buy(self.private, self.grant, held=held_columns(schema), prior=self.prior)
        self.progress("marginals", 0.2)
        whole = scores_by(bought.marginals)
        rotation = self.release_rotation(whole)
        scores = _turned_by(rotation, whole)
        self.progress("factors", 0.3)
        splits = self.release_splits(scores)
        kinds, num_kinds = _kinds_by(scores, splits), num_labels(schema) * 2 ** len(splits)
        self.progress("levels", 0.35)
        counts, mean, spread = self.release_profiles(scores, kinds, num_kinds)
        coefficients = _coefficients_by(self.basis, scores, kinds, mean, spread)
        self.progress("profile", 0.5)
        strengths, level_shares = self.release_spectra(coefficients, kinds, counts)
        self.progress("spectrum", 0.6)
        shapes = self.release_shapes(coefficients, kinds, strengths, level_shares, counts)
        fitted = [Kind(*parts) for parts in zip(mean, spread, strengths, *shapes, strict=True)]
        self.progress("shape", 0.7)
        once = _once_by(bought, schema)
        single_mean = self.release_singles(once, counts)
        around = Remembered(lambda panel: once(panel) - single_mean[classes_of(panel)])
        coupling, covariances = self.release_dependence(coefficients, kinds, fitted, counts, around)
        self.progress("dependence", 0.9)
        model = Model(
            facts=bought,
            rotation=rotation,
            kind_share=counts / counts.sum(),
            order=coupling.order,
            single_mean=single_mean,
            score_nodes=np.zeros((schema.num_channels, 2)),  # filled in below, from the model itself
            **stacked(fitted),
            **stacked(covariances),
        )
        self.progress("pooling", 1.0)
        return fitting.with_score_nodes(model, schema)

    def release_rotation(self, scores: Seen) -> np.ndarray:
        """Mean products of channels, and the factors they suggest; nothing is released for a single channel."""
        channels = self.schema.num_channels
        if channels == 1:
            return np.eye(1)
        noisy, _ = self.queries.release(
            "factors",
            fitting.factors_radius(channels),
            (num_pairs(channels),),
            lambda panel: Rows(fitting.product_vectors(scores(panel).astype(np.float64))),
        )
        return fitting.fit_rotation(noisy / self.private.population, channels)

    def release_splits(self, scores: Seen) -> tuple[Split, ...]:
        """Counts of levels, and the valleys between their modes; nothing is released where none could be afforded."""
        if not self.charged("levels"):
            return ()
        channels = self.schema.num_channels
        noisy, noise = self.queries.release(
            "levels",
            float(np.sqrt(channels)),
            (channels * NUM_CELLS,),
            lambda panel: Cells.one_each(fitting.cells_of(_means(scores(panel)), fitting.EVEN_EDGES), NUM_CELLS),
        )
        most = min(self.max_splits, affordable_splits(self.schema, self.private.population))
        return fitting.find_splits(noisy.reshape(channels, NUM_CELLS), noise, most)

    def release_profiles(self, scores: Seen, kinds: Seen, num_kinds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Number of series, and mean and spread [kind, step, channel] of their scores."""
        noise = self.queries.noise("profile", 1.0) / self.private.population
        moments = fitting.Moments.of(self.basis, self.schema.num_channels, noise)
        one = fitting.weight_of_one(moments.radius, num_kinds)

        def vectors(panel: Panel) -> Rows:
            own = moments.vectors(scores(panel).astype(np.float64))
            return Rows(np.concatenate([own, np.full((len(own), 1), one)], axis=1), kinds(panel), num_kinds)

        shape = num_kinds, moments.weights.size * self.schema.num_channels + 1
        noisy, noise = self.queries.release("profile", float(np.hypot(moments.radius, one)), shape, vectors)
        counts = fitting.fit_counts(noisy[:, -1] / one, noise / one, self.private.population)
        return counts, *moments.profiles(noisy[:, :-1], counts, noise, num_labels(self.schema))

    def release_spectra(
        self, coefficients: Seen, kinds: Seen, counts: np.ndarray
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Directions of the spectra, |c| / ‖c‖: a vector of length one per series and channel."""
        steps, channels = self.schema.num_steps, self.schema.num_channels
        noisy, noise = self.queries.release(
            "spectrum",
            float(np.sqrt(channels)),
            (len(counts), steps, channels),
            lambda panel: Rows(unit_length(np.abs(coefficients(panel))), kinds(panel), len(counts)),
        )
        found = [fitting.fit_strengths(*own, self.basis) for own in fitting.pooled_kinds(noisy, counts, noise)]
        return [strengths for strengths, _ in found], [level for _, level in found]

    def release_shapes(
        self,
        coefficients: Seen,
        kinds: Seen,
        strengths: list[np.ndarray],
        level_shares: list[np.ndarray],
        counts: np.ndarray,
    ) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        """Votes for the level and for the volatility, one each per series and channel, and for shocks at all steps."""
        steps, channels, basis = self.schema.num_steps, self.schema.num_channels, self.basis
        bound = float(np.sqrt((2 + fitting.SHOCK_LENGTH**2) * channels))
        noise = self.queries.noise("shape", bound)
        edges = fitting.edges_for(noise / self.private.population)
        num_cells = len(edges[0]) - 1

        def votes(panel: Panel) -> SideBySide:
            own, kind = coefficients(panel), kinds(panel)
            shape = (steps + 1, channels)
            sizes = _by_kind(kind, own[:, 1:], lambda one, moves: evened(moves, strengths[one], basis), shape)
            both = fitting.cells_of(own[:, 0] / np.sqrt(steps), edges[0]), fitting.cells_of(sizes[:, 0], edges[1])
            ballot = kind[:, None] * 2 * channels + np.arange(2 * channels)
            cast = Cells.one_each(np.concatenate(both, axis=1), num_cells, ballot, len(counts) * 2 * channels)
            return SideBySide([cast, Rows(fitting.shock_votes(sizes[:, 1:], edges[2]))])

        ballots = [num_cells] * (2 * len(counts) * channels + channels)
        noisy, noise = self.queries.release("shape", bound, (sum(ballots),), votes, ballots)
        cast = noisy.reshape(-1, channels, num_cells)
        both = cast[:-1].reshape(len(counts), 2, channels, num_cells)
        shocks = fitting.fit_shocks(cast[-1], counts.sum(), noise, edges[2])
        return *fitting.fit_shapes(both, counts, noise, edges[:2], level_shares), [shocks] * len(counts)

    def release_singles(self, once: Seen, counts: np.ndarray) -> np.ndarray:
        """Mean scores [label, single] of what a series has once; nothing is released where no label sets them apart."""
        shape = labels, number = num_labels(self.schema), num_singles(self.schema)
        if not self.charged(SINGLES):
            return np.zeros(shape)
        bound = float(np.sqrt(fitting.SLACK * number))
        noisy, noise = self.queries.release(
            SINGLES, bound, shape, lambda panel: Rows(once(panel), classes_of(panel), labels)
        )
        by_label = counts.reshape(labels, -1).sum(axis=1)
        return np.stack([mean for mean, _ in fitting.pooled_kinds(noisy, by_label, noise)])

    def release_dependence(
        self, coefficients: Seen, kinds: Seen, fitted: list[Kind], counts: np.ndarray, singles: Seen
    ) -> tuple[Coupling, list[Covariance]]:
        """Second moments of all coordinates, for each kind."""
        schema, channels, basis = self.schema, self.schema.num_channels, self.basis
        clockless = schema.time.align == "relative" or not schema.unit.protects_a_person
        coupling = choose_coupling(
            num_singles(schema),
            fitting.energy(fitted, counts),
            channels,
            clockless=clockless,
            relative_noise=self.queries.noise("dependence", 1.0) / self.private.population,
        )

        def products(panel: Panel) -> SideBySide:
            kind, shape = kinds(panel), (schema.num_steps + 1, channels)
            blocks = _by_kind(kind, coefficients(panel), lambda one, own: fitted[one].coordinates_of(own, basis), shape)
            return coupling.moments(singles(panel), blocks, kind, len(counts))

        noisy, noise = self.queries.release(
            "dependence", coupling.radius, (len(counts) * coupling.num_pairs,), products
        )
        settled = fitting.pooled_kinds(coupling.by_kind(noisy, len(counts)), counts, noise)
        deviations = [np.sqrt(kind.variances()) if clockless else None for kind in fitted]
        own = zip(settled, deviations, strict=True)
        return coupling, [fit_covariance(*moments, coupling, deviation) for moments, deviation in own]


# --- what the steps see of a panel; a row follows from its own series and from what was released ---------------


def _turned_by(rotation: np.ndarray, scores: Seen) -> Seen:
    """Returns scores as factors; each series by itself, to the last bit."""
    if np.array_equal(rotation, np.eye(len(rotation))):
        return scores
    turn = rotation.astype(np.float32)
    return Remembered(lambda panel: np.einsum("stc,cf->stf", scores(panel), turn))


def _kinds_by(scores: Seen, splits: tuple[Split, ...]) -> Seen:
    """Returns the kind of each series: its label, divided by the splits of the level."""
    number = 2 ** len(splits)
    return Remembered(lambda panel: classes_of(panel) * number + fitting.stratum_of(_means(scores(panel)), splits))


def _coefficients_by(basis: Basis, scores: Seen, kinds: Seen, mean: np.ndarray, spread: np.ndarray) -> Seen:
    """Returns coefficients [series, place, channel], their kind's profile taken out."""
    return lambda panel: basis.coefficients((scores(panel) - mean[kinds(panel)]) / spread[kinds(panel)])


def _once_by(bought: Facts, schema: Schema) -> Seen:
    """Returns scores [series, single] of what a series has once; a missing value counts as the middle."""
    gappy, single = gappy_channels(schema), bought.marginals[schema.num_channels :]

    def scores(panel: Panel) -> np.ndarray:
        values = own_single_values(panel)
        columns = [np.nan_to_num(own.scores_of(values[:, place])) for place, own in enumerate(single)]
        if gappy:
            ranks = GapModel.of(bought.gap_model, schema.num_steps).ranks_of(numbers_of(panel, gappy))
            columns += [*bounded_scores(ranks).T]
        return np.stack(columns, axis=1) if columns else np.zeros((panel.num_series, 0))

    return Remembered(scores)


def _means(scores: np.ndarray) -> np.ndarray:
    """Returns the mean score [series, channel] of each series."""
    return np.asarray(scores.astype(np.float64).sum(axis=1) / scores.shape[1])


def _by_kind(
    kinds: np.ndarray, rows: np.ndarray, function: Callable[[int, np.ndarray], np.ndarray], shape: tuple[int, ...]
) -> np.ndarray:
    """Returns what a function of (kind, rows of that kind) makes of all rows: [row, …shape]."""
    found: np.ndarray = np.empty((len(rows), *shape))
    for kind in np.unique(kinds):
        found[kinds == kind] = function(int(kind), rows[kinds == kind])
    return found
