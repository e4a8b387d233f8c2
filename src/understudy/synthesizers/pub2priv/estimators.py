"""How series follow their context: one noisy sum next to a `spectral` release, and samples that follow as closely.

*Correlation*, for few units: one mean product for each factor, column of context and band b of two octaves, ⟨s_b, d_b⟩
of the directions s and d of all movements of a factor and of a column, length one each.

*Regression*, for many: of shapes on context. The *shape* of a series is its levels and the direction of its strongest
frequencies, of length one, so that no clip radius has to be guessed. Each series adds the products of its shape with
itself and with its mapped context; mean and covariance of shapes given context follow. The products of the correlation
are in the sum as well and are used alone where they explain enough: a regression has to be found among hundreds of
numbers, each with its noise.

Everything else of a sample is `spectral`'s, but for runs of equal values, whose mean length every series votes for.

Notation of the regression: s shape, u mapped context, S and U their bounds, M regression of s on whitened u.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.stats import chi2

from understudy.data import Continuous, Panel, Schema
from understudy.data.panel import broadcast_context
from understudy.privacy.border import Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Cells, Contributions, Crossed, Products, Rows, SideBySide, shortened
from understudy.privacy.grant import Grant
from understudy.privacy.plan import noise_multipliers
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import copula, gaps
from understudy.statistics.columns import classes_of, static_values
from understudy.statistics.copula import LEVEL_EDGES, Model, normal_of, numbers_of
from understudy.statistics.series import filled, num_pairs, symmetric, to_frequencies, to_steps, unit_length
from understudy.synthesizers.base import SampleRequest
from understudy.synthesizers.pub2priv.context import Context, FeatureMap

PREFIX, PRODUCTS = "spectral.", "correlation.products"  # arrays of the `spectral` release, and of the mean products
CORRELATION = "correlation"  # label under which the sum is charged
NUM_RUN_CELLS = len(gaps.LENGTH_EDGES)
_BAND = 4  # ratio of the ends of neighbouring bands
_RUN_SHARE = 1 / 3  # weight of the vote for a run length, relative to all products
_SIGNIFICANT = 4.0  # standard deviations of noise from which a vote counts
_FALSE_IN_BANDS = (
    0.1,
    0.1,
    0.003,
)  # false-alarm rate of a band; a fast one that is followed by mistake roughens every series
_FLATTEST = 0.1  # relative eigenvalue below which directions of context are not separated
_STEEPEST = 2.0  # bound on the movements of a series relative to those of its context
_MOST = 0.97  # bound on the share of a series' movements that its context explains
_LEAST_MOVES = 0.1  # residual movements of a band, relative to explained ones, at least
_SURE = 2.0  # standard deviations of noise taken off an explained share

Arrays = Mapping[str, np.ndarray]


def products_bound(context: Context) -> float:
    """Returns the bound on the products of one series: Σ_b ⟨s_b, d_b⟩² ≤ 1 for each factor and column."""
    return float(np.sqrt(context.schema.num_channels * context.num_columns))


def vote_weight(context: Context) -> float:
    """Returns the weight of a vote relative to the products, and where there are none."""
    return _RUN_SHARE * max(products_bound(context), 1.0)


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
        """Returns the bound on what one series adds, its products and one vote."""
        return float(np.hypot(products_bound(context), vote_weight(context)))

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

        shape, bound = (int(np.prod(self.products_shape)) + NUM_RUN_CELLS,), self.largest_bound(self.context)
        return Statistic(label=CORRELATION, shape=shape, bound=bound, contributions=contributions)

    def release(self, private: PrivateSeries, grant: Grant, public: np.ndarray | None) -> dict[str, np.ndarray]:
        """Releases the mean products, 0 where noise may explain them, and the shares of run lengths."""
        statistic, weight = self.correlations(), vote_weight(self.context)
        noisy = grant.release(statistic, private)
        noise = grant.deviation(CORRELATION, statistic.bound * private.reach) / private.population
        products, votes = np.split(noisy / private.population, [-NUM_RUN_CELLS])
        products = significant(products.reshape(self.products_shape), noise)
        return {PRODUCTS: products, f"{CORRELATION}.runs": significant_shares(votes / weight, noise / weight)}

    def factors(self, panel: Panel) -> np.ndarray:
        """Returns factors [series, step, factor], the profile of their class included; private if the panel is."""
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
        """Samples as `spectral` does, turned towards what was learned about the context, in runs of equal values."""
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
        single, shares = marginals[schema.num_channels :], model.facts.static_missing
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

        Weights of columns are bounded, because contexts may have next to nothing in a band that those of the fit had.
        """
        expected = np.zeros((*signals.shape[:2], products.shape[1]))
        for band, both in zip(self.bands, products, strict=True):
            gram = np.einsum("sfc,sfd->cd", signals[:, band], signals[:, band], optimize=True) / len(signals)
            weights = np.linalg.pinv(gram, rcond=_FLATTEST, hermitian=True) @ both.T  # [column, factor]
            steep = np.maximum(np.linalg.norm(weights, axis=0), 1e-12)
            expected[:, band] = signals[:, band] @ (weights * np.minimum(1.0, _STEEPEST / steep))
        length = np.sqrt((expected**2).sum(axis=1, keepdims=True))
        return expected * np.minimum(1.0, _MOST / np.maximum(length, 1e-12))

    def _around(self, expected: np.ndarray, moves: np.ndarray) -> np.ndarray:
        """Returns directions of length one around the expectation; the residual is a sample of `spectral`.

        A band that follows context keeps its residual; bands that do not share what is left of length one.
        """
        whole, known = (
            np.stack([(part[:, band] ** 2).sum(axis=1).mean(axis=0) for band in self.bands])  # energy [band, factor]
            for part in (moves, expected)
        )
        residual = np.where(known > 0, np.maximum(whole - known, _LEAST_MOVES * known), 0.0)
        silent = np.where(known > 0, 0.0, whole)
        left = np.maximum(1 - (known + residual).sum(axis=0), 0.0)
        kept = residual + silent * np.minimum(left / np.maximum(silent.sum(axis=0), 1e-12), 1.0)
        scale = np.sqrt(np.maximum(kept / np.maximum(whole, 1e-12), _LEAST_MOVES))
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

    Of correlations c_b in bands with shares g_b of the movements, Σ c_b²/g_b ≥ (Σ c_b)²; noise is taken off Σ c_b.
    """
    size = np.abs(products.sum(axis=0)) - _SURE * noise * np.sqrt((products != 0).sum(axis=0))
    return float((np.maximum(size, 0.0) ** 2).max(axis=1, initial=0.0).mean())


def significant(products: np.ndarray, noise: float) -> np.ndarray:
    """Returns the products [band, factor, column] that stand out of noise of a known size, and 0 for the others."""
    false = [_FALSE_IN_BANDS[min(band, len(_FALSE_IN_BANDS) - 1)] for band in range(len(products))]
    loudest = noise**2 * chi2.isf(false, max(products.shape[2], 1))
    return np.where((products**2).sum(axis=2, keepdims=True) > loudest[:, None, None], products, 0.0)


# --- runs of equal values: shares change at reviews, tariffs at dates ------------------------------------------------


def run_votes(panel: Panel, weight: float) -> Cells:
    """Returns a vote of each series for the cell of its mean run length; private if the panel is."""
    return replace(Cells.one_each(run_length_cells(panel)[:, None], NUM_RUN_CELLS), worth=weight)


def run_length_cells(panel: Panel) -> np.ndarray:
    """Returns the cell of `gaps.LENGTH_EDGES` of each series' mean run length; private if the panel is.

    A run goes on where every continuous channel repeats and none is at a bound, where series rest for other reasons.
    """
    places = _repeating_channels(panel.schema)
    values = panel.values[:, :, places]
    low, high = np.array([panel.schema.channels[place].bounds for place in places], dtype=values.dtype).reshape(-1, 2).T
    before, after = values[:, :-1], values[:, 1:]
    comparable = ((before > low) & (before < high) & ~np.isnan(after)).all(axis=2)  # missing values are neither
    changed = comparable & (before != after).any(axis=2)
    mean = (comparable.sum(axis=1) + 1) / (changed.sum(axis=1) + 1)
    return np.clip(np.searchsorted(gaps.LENGTH_EDGES, mean, side="right") - 1, 0, NUM_RUN_CELLS - 1)


def _repeating_channels(schema: Schema) -> list[int]:
    """Returns the places of continuous channels; whole numbers and codes repeat by themselves."""
    return [place for place, channel in enumerate(schema.channels) if isinstance(channel, Continuous)]


def repeated(values: np.ndarray, shares: np.ndarray, schema: Schema, rng: np.random.Generator) -> np.ndarray:
    """Returns values [series, step, channel] in runs of sampled lengths, each of its middle value so as not to lag."""
    number, steps = values.shape[:2]
    length = gaps.sample_lengths(shares, gaps.LENGTH_EDGES, steps, number, rng)[:, None]
    middle = np.minimum(np.arange(steps) // length * length + length // 2, steps - 1)
    runs = np.array(values)
    for place in _repeating_channels(schema):
        runs[:, :, place] = np.take_along_axis(values[:, :, place], middle, axis=1)
    return runs


def significant_shares(votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns shares of the cells whose votes stand out of the noise; without any, runs of one step."""
    sure = np.where(votes > _SIGNIFICANT * noise, votes, 0.0)
    return sure / sure.sum() if sure.any() else np.eye(len(votes))[0]


# --- regression -----------------------------------------------------------------------------------------------------

REGRESSION = "regression"  # label under which the sum is charged
_CORRELATION_SHARE = 1 / 3  # weight of the products of `correlation`, relative to all others
_ENOUGH = 0.4  # share of what a regression explains that correlations have to, by a lower bound
_FEWEST, _NUMBERS = 4, 16  # frequencies of each factor at least, and numbers of all factors together
_LEVEL_WEIGHT = 0.35  # of the score of a level, relative to a direction
_LEVEL_BOUND = 0.5  # of all levels together, relative to all directions
_OWN_WEIGHT = 0.5  # of ssᵀ and uuᵀ, relative to suᵀ
_TRIANGLE = 0.75  # share of the square of a symmetric product that its upper triangle usually has at most
_VOTE_SHARE = 6.0  # bound on all products over the weight of a vote
_FLOOR = 0.3  # smallest variance of a direction of shapes, in units of what noise makes of none
_FALSE = 0.1  # false-alarm rate of a response to one direction of context
_LOUDEST = 0.1  # noise of a response to one direction over the mean square of shapes, at most
_LEAST_REST = 1e-3  # variance of a direction that no context explains, at least
_LEAST_SHARE = 0.05  # share of all variance that no context explains, at least

Part = tuple[np.ndarray, float]  # places of numbers of a shape, and the sum of their mean squares


def num_frequencies(schema: Schema) -> int:
    """Returns how many frequencies of a factor belong to a shape."""
    return min(max(_FEWEST, _NUMBERS // schema.num_channels), max(schema.num_steps - 1, 0))


def shape_bound(num_channels: int) -> float:
    """Returns the bound on a shape: directions have length one each, levels half of that together."""
    return float(np.sqrt(num_channels) * np.hypot(1.0, _LEVEL_BOUND))


def identity_map(context: Context) -> FeatureMap:
    """Returns the map that leaves features of context as they are."""
    size = context.num_columns * (1 + num_frequencies(context.schema))
    products = np.zeros((0, 0)) if size else np.ones((1, 1))  # of the intercept alone, which are known
    return FeatureMap(centre=np.zeros(size), turn=np.eye(size), products=products, clip=context.feature_bound)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What one series adds to the sum, and its bound; from public facts."""

    num_shape: int  # of s
    num_context: int  # of u
    shape_bound: float  # S
    context_bound: float  # U
    context_known: bool  # whether public windows gave the products of u with itself; else they are released as well
    correlations_bound: float = 0.0  # on the products of `correlation`

    @classmethod
    def of(cls, context: Context, mapped: FeatureMap) -> "Layout":
        """Returns the layout for series whose context is mapped."""
        schema = context.schema
        return cls(
            num_shape=schema.num_channels * (1 + num_frequencies(schema)),
            num_context=1 + mapped.turn.shape[1],
            shape_bound=shape_bound(schema.num_channels),
            context_bound=mapped.bound,
            context_known=len(mapped.products) > 0,
            correlations_bound=products_bound(context),
        )

    @property
    def sizes(self) -> list[int]:
        """Numbers of ssᵀ, suᵀ, the votes and uuᵀ in the sum."""
        own_context = 0 if self.context_known else num_pairs(self.num_context)
        return [num_pairs(self.num_shape), self.num_shape * self.num_context, NUM_RUN_CELLS, own_context]

    @property
    def _products_bound(self) -> float:
        """Bound on the products: ‖suᵀ‖ = ‖s‖ ‖u‖, of ssᵀ a triangle."""
        shape, context = self.shape_bound, self.context_bound
        own = _TRIANGLE * _OWN_WEIGHT**2 * (shape**4 + (0.0 if self.context_known else context**4))
        return float(np.sqrt(own + (shape * context) ** 2))

    @property
    def vote_weight(self) -> float:
        """Weight of the vote."""
        return self._products_bound / _VOTE_SHARE

    @property
    def _moments_bound(self) -> float:
        return float(np.hypot(self._products_bound, self.vote_weight))

    @property
    def correlation_weight(self) -> float:
        """Weight of the products of the correlation."""
        return _CORRELATION_SHARE * self._moments_bound / max(self.correlations_bound, 1.0)

    @property
    def bound(self) -> float:
        """Bound on what one series adds."""
        return float(np.hypot(self._moments_bound, self.correlation_weight * self.correlations_bound))

    def contributions(self, shapes: np.ndarray, contexts: np.ndarray, votes: Contributions) -> list[Contributions]:
        """Returns what series add, by their shapes and contexts: rows no longer than S and U."""
        own, of_context = (Products(rows[:, None], inside=_OWN_WEIGHT) for rows in (shapes, contexts))
        parts: list[Contributions] = [own, Crossed(shapes, contexts), votes]
        return parts if self.context_known else [*parts, of_context]

    def split(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
        """Returns (shape products, shape by context products, votes, context products if released)."""
        own, both, votes, context = np.split(vector, np.cumsum(self.sizes[:3]))
        shapes = symmetric(own[None] / _OWN_WEIGHT, self.num_shape)[0]
        crossed = both.reshape(self.num_shape, self.num_context)
        contexts = None if self.context_known else symmetric(context[None] / _OWN_WEIGHT, self.num_context)[0]
        return shapes, crossed, votes / self.vote_weight, contexts


@dataclass(frozen=True, eq=False)
class ContextRegression(ContextCorrelation):
    """Shapes of series, their regression on context, and samples of both."""

    label: ClassVar[str] = REGRESSION
    spectral_share: ClassVar[float] = 0.4
    learned: ClassVar[str] = "every mean product of a shape with its context"

    @classmethod
    def largest_bound(cls, context: Context) -> float:
        """Returns the bound on what one series adds where no window of context is public."""
        return Layout.of(context, identity_map(context)).bound

    @cached_property
    def frequencies(self) -> np.ndarray:
        """The strongest frequencies of the released spectrum, counted from 0."""
        energy = (self.model.strength**2).mean(axis=(0, 2))
        return np.sort(np.argsort(-energy, kind="stable")[: num_frequencies(self.schema)])

    def feature_map(self, public: np.ndarray | None) -> FeatureMap:
        """Returns the map of features that public windows [window, step, context] suggest, or the identity."""
        if public is None or not self.context.own:
            return identity_map(self.context)
        return FeatureMap.of_public(self.context.features(public, len(public), self.frequencies))

    def release(self, private: PrivateSeries, grant: Grant, public: np.ndarray | None) -> dict[str, np.ndarray]:
        """Releases the regression of shapes on context, with the public map of context."""
        mapped = self.feature_map(public)
        layout, count = Layout.of(self.context, mapped), private.population
        noisy = grant.release(self.statistic(mapped), private)
        noise = grant.deviation(REGRESSION, layout.bound * private.reach)
        moments, correlations = np.split(noisy, [sum(layout.sizes)])
        fitted = fit_moments(moments, noise, count, layout, mapped.products, self.parts)
        weight = layout.correlation_weight * count
        products = significant(correlations.reshape(self.products_shape) / weight, noise / weight)
        simpler = explained_share(products, noise / weight) > _ENOUGH * fitted.explained / self.schema.num_channels
        released = {f"{REGRESSION}.{name}": getattr(fitted, name) for name in ("gain", "rest", "runs")}
        return {**released, **mapped.to_arrays(), PRODUCTS: products * simpler}

    def statistic(self, mapped: FeatureMap) -> Statistic:
        """Returns the sum of all contributions, with its bound."""
        layout = Layout.of(self.context, mapped)

        def contributions(panel: Panel) -> Contributions:
            contexts = mapped.of(self.context.features(panel.context, panel.num_series, self.frequencies))
            votes = run_votes(panel, layout.vote_weight)
            parts = layout.contributions(self.shapes(panel, classes_of(panel)), contexts, votes)
            return SideBySide([*parts, Rows(layout.correlation_weight * self.products(panel))])

        shape = (sum(layout.sizes) + int(np.prod(self.products_shape)),)
        return Statistic(label=REGRESSION, shape=shape, bound=layout.bound, contributions=contributions)

    def shapes(self, panel: Panel, classes: np.ndarray) -> np.ndarray:
        """Returns shapes [series, number] of length at most `shape_bound`.

        Privacy: private if the panel is; a row follows from its own series and released arrays.
        """
        factors, channels, model = self.factors(panel), self.schema.num_channels, self.model
        means = to_frequencies((factors - model.mean[classes]) / model.spread[classes])[:, 0]
        levels = np.zeros_like(means)  # normal scores, the profile of the class taken out
        for kind in np.unique(classes):
            here = classes == kind
            levels[here] = normal_of(means[here] / np.sqrt(self.schema.num_steps), model.levels[kind], LEVEL_EDGES)
        weighted = shortened(_LEVEL_WEIGHT * levels, _LEVEL_BOUND * np.sqrt(channels))
        directions = unit_length(to_frequencies(factors)[:, 1:][:, self.frequencies])
        both = np.concatenate([weighted, directions.reshape(len(levels), -1)], axis=1)
        return shortened(both, shape_bound(channels))

    @property
    def parts(self) -> list[Part]:
        """Places whose mean squares are known: a level is a score, and the directions of a factor have length one."""
        channels = self.schema.num_channels
        places = np.arange(channels * (1 + len(self.frequencies))).reshape(-1, channels).T
        levels: list[Part] = [(own[:1], _LEVEL_WEIGHT**2) for own in places]
        return levels + [(own[1:], 1.0) for own in places if len(own) > 1]

    def turned(
        self, factors: np.ndarray, context: np.ndarray | None, classes: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Returns sampled factors [series, step, factor] that have shapes sampled for the contexts given."""
        if self.arrays[PRODUCTS].any():
            return super().turned(factors, context, classes, rng)
        features = self.context.features(context, len(classes), self.frequencies)
        gain, rest = self.arrays["regression.gain"], self.arrays["regression.rest"]
        noise = rng.standard_normal((len(features), len(rest)))
        shapes = FeatureMap.from_arrays(self.arrays).of(features) @ gain + noise @ rest.T
        levels = shapes[:, : self.schema.num_channels] / _LEVEL_WEIGHT
        return self.with_directions(shapes, self.with_levels(levels, classes, factors))

    def with_levels(self, levels: np.ndarray, classes: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Returns factors that have levels [series, factor] of the normal scores given."""
        mean, spread = self.model.mean[classes], self.model.spread[classes]
        coefficients = to_frequencies((factors - mean) / spread)
        for kind in np.unique(classes):
            here = classes == kind
            numbers = numbers_of(levels[here], self.model.levels[kind], LEVEL_EDGES)
            coefficients[here, 0] = numbers * np.sqrt(self.schema.num_steps)
        return np.asarray(mean + spread * to_steps(coefficients))

    def with_directions(self, shapes: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Returns factors whose strongest frequencies have the directions of shapes."""
        channels, moves = self.schema.num_channels, to_frequencies(factors)
        wanted = unit_length(shapes[:, channels:].reshape(len(shapes), len(self.frequencies), channels))
        size = np.sqrt((moves[:, 1 + self.frequencies] ** 2).sum(axis=1, keepdims=True))
        moves[:, 1 + self.frequencies] = wanted * size
        return to_steps(moves)


def is_drowned(context: Context, guarantee: Guarantee) -> bool:
    """Whether noise on a response to one direction of context is louder than what would count as significant.

    From public facts alone. A population that is bought counts as large, and so do events: one series has many.
    """
    schema, kind = context.schema, ContextRegression
    size = schema.population.size
    if size is None or schema.unit.kind == "event":
        return False
    noise = noise_multipliers(guarantee, {REGRESSION: 1 - kind.spectral_share})[REGRESSION]
    variance = (noise * kind.largest_bound(context) / size) ** 2
    mean_square = schema.num_channels * (_LEVEL_WEIGHT**2 + 1.0)  # of a shape
    return schema.num_channels * (1 + num_frequencies(schema)) * variance > _LOUDEST * mean_square


class Moments(NamedTuple):
    """Shapes given context, s = gainᵀ u + rest · white noise, and shares of series by run length.

    `explained` is the mean square of shapes that context explains, beyond intercept and noise.
    """

    gain: np.ndarray
    rest: np.ndarray
    runs: np.ndarray
    explained: float


def fit_moments(
    vector: np.ndarray, noise: float, count: float, layout: Layout, products: np.ndarray, parts: Sequence[Part] = ()
) -> Moments:
    """Returns the Gaussian behind a noisy sum; a response is taken as it was measured, or left out as noise.

    Args:
        noise: Standard deviation of each released number.
        count: Public number of series that the sum is over.
        products: Mean products of u among public windows; empty if they were released.
        parts: Numbers of a shape whose squares have a known sum.
    """
    shapes, crossed, votes, contexts = layout.split(vector / count)
    noise = noise / count
    of_context = products if contexts is None else contexts
    white = _whitening(of_context, 0.0 if contexts is None else noise)
    whole = _of_known_size(_lifted(shapes, _FLOOR * noise / _OWN_WEIGHT * np.sqrt(len(shapes))), parts)
    variance = noise**2 * (white**2).sum(axis=0)
    regression = _significant(crossed @ white, variance, float(np.trace(whole)))  # M
    gain, shares = white @ regression.T, significant_shares(votes, noise / layout.vote_weight)
    spread = of_context - np.outer(of_context[:, 0], of_context[0])  # the first number of u is the constant
    noisy = len(regression) * float(variance[regression.any(axis=0)].sum())
    return Moments(gain, _residual(whole, regression), shares, float(np.trace(gain.T @ spread @ gain)) - noisy)


def _significant(regression: np.ndarray, variance: np.ndarray, whole: float) -> np.ndarray:
    """Returns the columns that stand out of noise of a variance each, and 0 for others and where noise is too loud."""
    stands_out = (regression**2).sum(axis=0) > variance * chi2.isf(_FALSE, len(regression))
    return np.asarray(regression * (stands_out & (len(regression) * variance < _LOUDEST * whole)))


def _of_known_size(moments: np.ndarray, parts: Sequence[Part]) -> np.ndarray:
    """Returns mean products of shapes, scaled so that the squares of each part have their known sum."""
    scale = np.ones(len(moments))
    for places, square in parts:
        scale[places] = np.sqrt(square / np.diag(moments)[places].sum())
    return moments * np.outer(scale, scale)


def _residual(whole: np.ndarray, regression: np.ndarray) -> np.ndarray:
    """Returns a root of the residual covariance, with the trace that the regression leaves."""
    left = whole - regression @ regression.T
    values, vectors = np.linalg.eigh((left + left.T) / 2)
    lifted = np.maximum(values, _LEAST_REST)
    amount = max(float(np.trace(left)), _LEAST_SHARE * float(np.trace(whole)))
    return np.asarray((vectors * np.sqrt(lifted * amount / lifted.sum())) @ vectors.T)  # whatever signs of vectors


def _whitening(moments: np.ndarray, noise: float) -> np.ndarray:
    """Returns W [context, direction] with WᵀE[uuᵀ]W = 1, over the directions that stand out of the noise."""
    values, vectors = np.linalg.eigh(moments)
    loud = values > max(2 * noise / _OWN_WEIGHT * np.sqrt(len(moments)), 1e-9)
    return np.asarray(vectors[:, loud] / np.sqrt(values[loud]))


def _lifted(moments: np.ndarray, floor: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(moments)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)
