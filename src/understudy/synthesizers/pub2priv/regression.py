"""The estimator for many units: a linear regression of shapes on context, from one noisy sum of products.

The *shape* of a series is its levels and the direction of its strongest frequencies, whose length is one whatever the
series does; so no clip radius has to be guessed. Each series adds the products of its shape with itself and with its
mapped context, the products of `correlation`, and a vote for its run length. From the noisy sum follow the mean and the
covariance of shapes given context. Gradients would spend the same budget on the same regression in many noisy steps.

Where the correlations explain enough, they alone are used: a regression has to be found among hundreds of numbers, each
with its noise. Sizes of movements, other frequencies, gaps and static columns are `spectral`'s.

Notation: s shape, u mapped context, S and U their bounds, M regression of s on whitened u.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from understudy.data import Panel, Schema
from understudy.privacy.border import Statistic
from understudy.privacy.budget import Guarantee
from understudy.privacy.contributions import Contributions, Crossed, Products, Rows, SideBySide, shortened
from understudy.privacy.grant import Grant
from understudy.privacy.plan import noise_multipliers
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import classes_of
from understudy.statistics.moments import num_pairs, symmetric
from understudy.statistics.series import to_frequencies, to_steps, unit_length
from understudy.synthesizers.pub2priv.context import Context, FeatureMap
from understudy.synthesizers.pub2priv.correlation import (
    NUM_RUN_CELLS,
    PRODUCTS,
    ContextCorrelation,
    explained_share,
    products_bound,
    run_votes,
    significant,
    significant_shares,
)

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
    def vote_weight(self) -> float:
        """Weight of the vote."""
        return self._products_bound / _VOTE_SHARE

    @property
    def correlation_weight(self) -> float:
        """Weight of the products of `correlation`."""
        return _CORRELATION_SHARE * self._moments_bound / max(self.correlations_bound, 1.0)

    @property
    def bound(self) -> float:
        """Bound on what one series adds."""
        return float(np.hypot(self._moments_bound, self.correlation_weight * self.correlations_bound))

    @property
    def _moments_bound(self) -> float:
        """Bound on products and vote: ‖suᵀ‖ = ‖s‖ ‖u‖, a vote is one number, of ssᵀ a triangle."""
        return float(np.hypot(self._products_bound, self.vote_weight))

    @property
    def _products_bound(self) -> float:
        shape, context = self.shape_bound, self.context_bound
        own = _TRIANGLE * _OWN_WEIGHT**2 * (shape**4 + (0.0 if self.context_known else context**4))
        return float(np.sqrt(own + (shape * context) ** 2))

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

        Movements that all series have in common stay in the shape: without them, series that move little would be
        nothing but that, whatever their context.

        Privacy: private if the panel is; a row follows from its own series and released arrays.
        """
        factors, channels, model = self.factors(panel), self.schema.num_channels, self.model
        means = to_frequencies((factors - model.mean[classes]) / model.spread[classes])[:, 0]
        levels = np.zeros_like(means)  # normal scores, the profile of the class taken out
        for kind in np.unique(classes):
            here = classes == kind
            levels[here] = model.kind(kind).levels.scores_of(means[here] / np.sqrt(self.schema.num_steps))
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
            numbers = self.model.kind(kind).levels.numbers_of(ndtr(levels[here]))
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

    From public facts alone. A population that is bought counts as large, as nothing else is known when this is
    planned, and so do events, of which one series has many.
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
    """Returns the Gaussian behind a noisy sum; post-processing.

    A response is taken as it was measured, or left out if noise may explain it. Shrinking it would only make room for
    residual movements, because the length of shapes is known.

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
