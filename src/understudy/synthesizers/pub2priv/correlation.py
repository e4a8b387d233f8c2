"""The estimator for few units: the mean correlation of series and context in each band of frequencies.

A regression of shapes on context has hundreds of numbers, which noise drowns where units are few. One product for each
factor, column of context and band of frequencies is left: a series that moves as its context does adds one, and no
series adds more. Everything else of a sample is that of the `spectral` release which both estimators build on.

Notation: s and d directions of all movements of a factor and of a column, length one each; a band b is two octaves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy.stats import chi2

from understudy.data import Continuous, Panel, Schema
from understudy.data.panel import broadcast_context
from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Cells, Contributions, Rows, SideBySide
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import copula, gaps
from understudy.statistics.columns import static_values
from understudy.statistics.copula import Model
from understudy.statistics.series import filled, to_frequencies, to_steps, unit_length
from understudy.synthesizers.base import SampleRequest
from understudy.synthesizers.pub2priv.context import Context

PREFIX, PRODUCTS = "spectral.", "correlation.products"  # arrays of the `spectral` release, and of the mean products
CORRELATION = "correlation"  # label under which the sum is charged
NUM_RUN_CELLS = len(gaps.LENGTH_EDGES)
_BAND = 4  # ratio of the ends of neighbouring bands
_VOTE_SHARE = 1 / 3  # weight of the vote for a run length, relative to all products
_SIGNIFICANT = 4.0  # standard deviations of noise from which a vote counts
_FALSE = (0.1, 0.1, 0.003)  # false-alarm rate of a band; a fast one that is followed by mistake roughens every series
_SMALLEST = 0.1  # relative eigenvalue below which directions of context are not separated
_STEEPEST = 2.0  # bound on the movements of a series relative to those of its context
_MOST = 0.97  # bound on the share of a series' movements that its context explains
_LEAST_REST = 0.1  # residual movements of a band, relative to explained ones, at least
_SURE = 2.0  # standard deviations of noise taken off an explained share

Arrays = Mapping[str, np.ndarray]


def products_bound(context: Context) -> float:
    """Returns the bound on the products of one series: Σ_b ⟨s_b, d_b⟩² ≤ 1 for each factor and column."""
    return float(np.sqrt(context.schema.num_channels * context.num_columns))


def vote_weight(context: Context) -> float:
    """Returns the weight of a vote relative to the products, and where there are none."""
    return _VOTE_SHARE * max(products_bound(context), 1.0)


def correlation_bound(context: Context) -> float:
    """Returns the bound on what one series adds: its products and one vote."""
    return float(np.hypot(products_bound(context), vote_weight(context)))


@dataclass(frozen=True, eq=False)
class ContextCorrelation:
    """Mean products ⟨s_b, d_b⟩, and samples that follow their context as closely.

    `arrays` hold the `spectral` release and, once they are released, the estimator's own.
    """

    context: Context
    arrays: Arrays
    label: ClassVar[str] = CORRELATION
    spectral_share: ClassVar[float] = 0.7  # of mu² for the `spectral` release
    learned: ClassVar[str] = "the correlation of series and context in a band of frequencies"

    @classmethod
    def largest_bound(cls, context: Context) -> float:
        """Returns the bound on what one series adds where no window of context is public."""
        return correlation_bound(context)

    @cached_property
    def model(self) -> Model:
        """The `spectral` release."""
        own = self.arrays.items()
        return Model.from_arrays({name.removeprefix(PREFIX): array for name, array in own if name.startswith(PREFIX)})

    @property
    def schema(self) -> Schema:
        """The contract of what is learned from."""
        return self.context.schema

    @property
    def bands(self) -> list[slice]:
        """Bands of frequencies above 0, slowest first."""
        ends, number = [0], self.schema.num_steps - 1
        while ends[-1] < number:
            ends.append(min(_BAND * (ends[-1] + 1) - 1, number))
        return [slice(*pair) for pair in pairwise(ends)]

    @property
    def products_shape(self) -> tuple[int, int, int]:
        """Bands, factors and columns."""
        return len(self.bands), self.schema.num_channels, self.context.num_columns

    def correlations(self) -> Statistic:
        """Returns the sum of all products, with a vote of each series for its run length."""

        def contributions(panel: Panel) -> Contributions:
            return SideBySide([Rows(self.products(panel)), run_votes(panel, vote_weight(self.context))])

        shape, bound = (int(np.prod(self.products_shape)) + NUM_RUN_CELLS,), correlation_bound(self.context)
        return Statistic(label=CORRELATION, shape=shape, bound=bound, contributions=contributions)

    def release(self, private: PrivateSeries, grant: Grant, public: np.ndarray | None) -> dict[str, np.ndarray]:
        """Releases the mean products, 0 where noise may explain them, and the shares of run lengths."""
        statistic, weight = self.correlations(), vote_weight(self.context)
        noisy = grant.release(statistic, private)
        noise = grant.deviation(CORRELATION, statistic.bound * private.reach) / private.population
        products, votes = np.split(noisy / private.population, [-NUM_RUN_CELLS])
        shares = significant_shares(votes / weight, noise / weight)
        return {
            PRODUCTS: significant(products.reshape(self.products_shape), noise),
            f"{CORRELATION}.runs": shares,
        }

    def factors(self, panel: Panel) -> np.ndarray:
        """Returns factors [series, step, factor] of series, the profile of their class included.

        Privacy: private if the panel is; a series follows from its own values alone.
        """
        marginals = self.model.marginals
        raw = [marginals[place].scores_of(panel.values[:, :, place]) for place in range(self.schema.num_channels)]
        scores = filled(np.stack(raw, axis=2), panel.lengths)
        return np.einsum("stc,cf->stf", scores, self.model.rotation)  # each series by itself, to the last bit

    def products(self, panel: Panel) -> np.ndarray:
        """Returns ⟨s_b, d_b⟩ [series, band, factor, column]; private if the panel is."""
        moves = unit_length(to_frequencies(self.factors(panel))[:, 1:])
        signals = self.context.directions(panel.context, len(moves))
        found = np.zeros((len(moves), *self.products_shape))
        for place, band in enumerate(self.bands):
            found[:, place] = np.einsum("sfa,sfc->sac", moves[:, band], signals[:, band])
        return found

    def panel(self, request: SampleRequest) -> Panel:
        """Samples as `spectral` does, turned towards what was learned about the context, in runs of equal values.

        Where all series of the fit shared a context, series are sampled for that one, and another one is responded to
        afterwards, as `spectral` does.
        """
        model, schema, rng, number = self.model, self.schema, request.rng, request.num_series
        classes = copula.sample_kinds(model, schema, number, request.label, rng)
        shared = None if self.context.ignored else request.fit_context
        context = request.context if shared is None else broadcast_context(shared, number)
        scores, singles = copula.sample_scores(model, schema, classes, rng)
        factors = self.turned(scores @ model.rotation, context, classes, rng)
        scores = np.asarray(factors @ np.linalg.inv(model.rotation))
        if shared is not None and request.context is not None:
            scores = copula.respond(scores, schema, shared, request.context)
        once = copula.ranks_of(model.score_nodes[schema.num_channels :], singles)
        lengths, missing = copula.sample_absence(model, schema, scores, once, rng)
        ranks, marginals = copula.ranks_of(model.score_nodes[: schema.num_channels], scores), model.marginals
        values = np.stack([marginals[c].values_of(ranks[:, :, c]) for c in range(schema.num_channels)], axis=2)
        values = repeated(values, self.arrays[f"{self.label}.runs"], schema, rng)
        single, shares = marginals[schema.num_channels :], model.single_missing
        static = static_values(schema, classes, once, single, shares, rng)
        return request.panel(schema, np.where(missing, np.nan, values), lengths, static)

    def turned(
        self, factors: np.ndarray, context: np.ndarray | None, classes: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Returns sampled factors [series, step, factor] that follow the contexts given."""
        if not self.bands:  # one step, which moves nowhere
            return factors
        frequencies = to_frequencies(factors)
        size = np.sqrt((frequencies[:, 1:] ** 2).sum(axis=1, keepdims=True))
        expected = self._expected(self.arrays[PRODUCTS], self.context.directions(context, len(classes)))
        frequencies[:, 1:] = size * self._around(expected, unit_length(frequencies[:, 1:]))
        return to_steps(frequencies)

    def _expected(self, products: np.ndarray, signals: np.ndarray) -> np.ndarray:
        """Returns the expectation of s [series, frequency, factor] given contexts, no longer than `_MOST`.

        In each band the products with the columns are those of a sum of columns, over all contexts asked for. Its
        weights are bounded, because these contexts may have next to nothing in a band that those of the fit had.
        """
        expected = np.zeros((*signals.shape[:2], products.shape[1]))
        for band, both in zip(self.bands, products, strict=True):
            gram = np.einsum("sfc,sfd->cd", signals[:, band], signals[:, band], optimize=True) / len(signals)
            weights = np.linalg.pinv(gram, rcond=_SMALLEST, hermitian=True) @ both.T  # [column, factor]
            steep = np.maximum(np.linalg.norm(weights, axis=0), 1e-12)
            expected[:, band] = signals[:, band] @ (weights * np.minimum(1.0, _STEEPEST / steep))
        length = np.sqrt((expected**2).sum(axis=1, keepdims=True))
        return expected * np.minimum(1.0, _MOST / np.maximum(length, 1e-12))

    def _around(self, expected: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Returns directions of length one around the expectation; the residual is a sample of `spectral`.

        A band that follows context keeps the residual that `spectral` has there; bands that do not share what is left
        of length one.
        """
        whole, known = (
            np.stack([(part[:, band] ** 2).sum(axis=1).mean(axis=0) for band in self.bands])  # energy [band, factor]
            for part in (moves, expected)
        )
        residual = np.where(known > 0, np.maximum(whole - known, _LEAST_REST * known), 0.0)
        silent = np.where(known > 0, 0.0, whole)
        left = np.maximum(1 - (known + residual).sum(axis=0), 0.0)
        kept = residual + silent * np.minimum(left / np.maximum(silent.sum(axis=0), 1e-12), 1.0)
        scale = np.sqrt(np.maximum(kept / np.maximum(whole, 1e-12), _LEAST_REST))
        rest = moves * np.repeat(scale, [band.stop - band.start for band in self.bands], axis=0)
        square = (expected**2).sum(axis=1)
        rest -= expected * ((expected * rest).sum(axis=1) / np.maximum(square, 1e-12))[:, None]
        return expected + _to_length_one(expected, rest)[:, None] * rest


def _to_length_one(known: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Returns c ≥ 0 [series, factor] with ‖known + c · free‖ = 1 over the frequencies, as far as there is one."""
    square, half = (free**2).sum(axis=1), (known * free).sum(axis=1)
    root = np.sqrt(np.maximum(half**2 + square * (1 - (known**2).sum(axis=1)), 0.0))
    return np.maximum((root - half) / np.maximum(square, 1e-12), 0.0)


def explained_share(products: np.ndarray, noise: float) -> float:
    """Returns a lower bound on the share of movements that one column explains, mean of all factors.

    Of a column with correlations c_b in bands with shares g_b of its movements, Σ c_b²/g_b ≥ (Σ c_b)². The largest of
    several columns owes part of that to noise, so standard deviations of it are taken off Σ c_b.
    """
    size = np.abs(products.sum(axis=0)) - _SURE * noise * np.sqrt((products != 0).sum(axis=0))
    return float((np.maximum(size, 0.0) ** 2).max(axis=1, initial=0.0).mean())


def significant(products: np.ndarray, noise: float) -> np.ndarray:
    """Returns the products [band, factor, column] that stand out of noise of a known size, and 0 for the others."""
    false = [_FALSE[min(band, len(_FALSE) - 1)] for band in range(len(products))]
    loudest = noise**2 * chi2.isf(false, max(products.shape[2], 1))
    return np.where((products**2).sum(axis=2, keepdims=True) > loudest[:, None, None], products, 0.0)


# --- runs of equal values: shares change at reviews, tariffs at dates ------------------------------------------------


def run_votes(panel: Panel, weight: float) -> Cells:
    """Returns a vote of each series for the cell of its mean run length; private if the panel is."""
    return replace(Cells.one_each(run_length_cells(panel)[:, None], NUM_RUN_CELLS), worth=weight)


def run_length_cells(panel: Panel) -> np.ndarray:
    """Returns the cell of `gaps.LENGTH_EDGES` of each series' mean run length.

    A run goes on where every continuous channel repeats and none is at a bound, where series rest for other reasons.

    Privacy: private if the panel is; a cell follows from its own series alone.
    """
    places = _repeating_channels(panel.schema)
    values = panel.values[:, :, places]
    low, high = np.array([panel.schema.channels[place].bounds for place in places], dtype=values.dtype).reshape(-1, 2).T
    before, after = values[:, :-1], values[:, 1:]
    with np.errstate(invalid="ignore"):
        resting = (before <= low) | (before >= high)
        comparable = (~np.isnan(before) & ~np.isnan(after) & ~resting).all(axis=2)
        changed = comparable & (before != after).any(axis=2)
    mean = (comparable.sum(axis=1) + 1) / (changed.sum(axis=1) + 1)
    return np.clip(np.searchsorted(gaps.LENGTH_EDGES, mean, side="right") - 1, 0, NUM_RUN_CELLS - 1)


def _repeating_channels(schema: Schema) -> list[int]:
    """Returns the places of continuous channels; whole numbers and codes repeat by themselves."""
    return [place for place, channel in enumerate(schema.channels) if isinstance(channel, Continuous)]


def repeated(values: np.ndarray, shares: np.ndarray, schema: Schema, rng: np.random.Generator) -> np.ndarray:
    """Returns values [series, step, channel] in runs whose lengths are sampled from the released shares.

    A run takes its middle value: slow movements were learned from series with runs, and must not lag twice.
    """
    number, steps = values.shape[:2]
    length = gaps.sample_lengths(shares, gaps.LENGTH_EDGES, steps, number, rng)[:, None]
    middle = np.minimum(np.arange(steps) // length * length + length // 2, steps - 1)
    runs = np.array(values)
    for place in _repeating_channels(schema):
        runs[:, :, place] = np.take_along_axis(values[:, :, place], middle, axis=1)
    return runs


def significant_shares(votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns shares of the cells whose votes stand out of the noise; without any, runs of one step.

    A run that is wrong costs a series its movements; a run that is missed costs only its repeats.
    """
    sure = np.where(votes > _SIGNIFICANT * noise, votes, 0.0)
    return sure / sure.sum() if sure.any() else np.eye(len(votes))[0]
