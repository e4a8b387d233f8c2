"""From what was released to the model, one section per release: post-processing only, no private data in sight.

Functions named `…_of` or `…_vectors` say what a series contributes; `learning` calls them behind the border.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components

from understudy.data import Schema
from understudy.privacy.contributions import shortened
from understudy.statistics import copula
from understudy.statistics.basis import Basis
from understudy.statistics.copula import (
    LEVEL_EDGES,
    NODE_RANKS,
    NUM_CELLS,
    SHOCK_EDGES,
    VOLATILITY_EDGES,
    Kind,
    Model,
)
from understudy.statistics.counts import least_risk, nearest_distribution, shrink
from understudy.statistics.marginals import SCORE_LIMIT
from understudy.statistics.series import num_pairs, symmetric, triangle
from understudy.statistics.shapes import Expected, smoothed_cumulative
from understudy.synthesizers.sampling import num_pooled

_POOL_SERIES = 4096


def pooled_kinds(
    sums: np.ndarray, counts: np.ndarray, noise: float, doubt: float = np.inf
) -> list[tuple[np.ndarray, float]]:
    """Returns (figures per series, their remaining noise) of each kind, drawn towards all kinds together."""
    pooled, pooled_noise = sums.sum(0) / counts.sum(), noise * np.sqrt(len(counts)) / counts.sum()
    settled = []
    for own, count in zip(sums, counts, strict=True):
        figures, weight = shrink(own / count, pooled, noise / count, doubt)
        settled.append((figures, float(np.hypot(weight * noise / count, (1 - weight) * pooled_noise))))
    return settled


def with_score_nodes(model: Model, schema: Schema) -> Model:
    """Adds the quantiles of the model's own scores, from a large draw: post-processing, seeded so that it repeats."""
    rng = np.random.default_rng(0)
    kinds = copula.sample_kinds(model, schema, num_pooled(schema, _POOL_SERIES), None, rng)
    scores, singles = copula.sample_scores(model, schema, kinds, rng)
    single_nodes = np.quantile(singles, NODE_RANKS, axis=0).T
    _, missing = copula.sample_absence(model, schema, scores, copula.ranks_of(single_nodes, singles), rng)
    observed = [scores[:, :, c][~missing[:, :, c]] for c in range(schema.num_channels)]
    quantiles = [np.quantile(own if len(own) else np.zeros(1), NODE_RANKS) for own in observed]
    return replace(model, score_nodes=np.concatenate([quantiles, single_nodes]))


# --- factors: channels that move as one become their common movement and what sets them apart -------------------
#
# The high and the low of one day's price differ by a hundredth of what both move. Noise that is small for the
# movement is large for the difference, unless the difference is a coordinate of its own. Channels that hardly
# correlate are left alone: turning them into each other would only blur their shapes.

_TOGETHER = 0.85  # correlation from which channels count as moving together
_SMALLEST_FACTOR = 0.05  # variance below which a factor is left at its own size


def factors_radius(num_channels: int) -> float:
    """Returns the most a series may weigh in `product_vectors`: independent channels weigh √channels, equal √pairs."""
    return float(1.5 * np.sqrt(num_pairs(num_channels)))


def product_vectors(scores: np.ndarray) -> np.ndarray:
    """Returns [series, pair]: mean products of channels over the steps."""
    return triangle(np.einsum("sti,stj->sij", scores, scores, optimize=True) / scores.shape[1])


def fit_rotation(noisy_mean: np.ndarray, num_channels: int) -> np.ndarray:
    """Returns the matrix [channel, factor] that turns scores into factors of about unit size."""
    covariance = symmetric(noisy_mean[None], num_channels)[0]
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.1))
    correlation = covariance / np.outer(deviation, deviation)
    _, group = connected_components(np.abs(correlation) > _TOGETHER, directed=False)
    rotation = np.eye(num_channels)
    for members in (np.flatnonzero(group == one) for one in np.unique(group)):
        if len(members) > 1:
            inside = np.ix_(members, members)
            values, vectors = np.linalg.eigh(correlation[inside])
            rotation[inside] = vectors / np.sqrt(np.maximum(values, _SMALLEST_FACTOR))
    return rotation


# --- levels: the mean score of a series, which may have several modes; two kinds of homes stay two kinds ---------

EVEN_EDGES = np.linspace(-SCORE_LIMIT, SCORE_LIMIT, NUM_CELLS + 1)
_SIGNIFICANT = 5.0  # a valley counts when it is this many standard deviations of noise deep
_SMALLEST_SIDE = 0.1  # share of the population on the thinner side of a split


class Split(NamedTuple):
    """Series whose level in `channel` lies below `threshold` are one kind, the others another."""

    channel: int
    threshold: float


def cells_of(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns the cell between the edges of each number; numbers beyond are in the outer cells."""
    return np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)


def find_splits(noisy_votes: np.ndarray, noise: float, most: int) -> tuple[Split, ...]:
    """Returns the deepest valleys between two modes of votes [channel, cell], at most one per channel."""
    found = []
    for channel, votes in enumerate(noisy_votes):
        depth, threshold = _deepest_valley(votes, noise)
        if depth > 0:
            found.append((depth / max(votes.sum(), 1.0), Split(channel, threshold)))
    found.sort(key=lambda pair: -pair[0])
    return tuple(split for _, split in found[:most])


def _deepest_valley(votes: np.ndarray, noise: float) -> tuple[float, float]:
    """Returns (depth of the valley below the lower of its two shoulders, its place); depth 0 without one."""
    smooth = np.convolve(votes, [0.25, 0.5, 0.25], mode="same")
    smooth_noise = noise * np.sqrt(0.25**2 * 2 + 0.5**2)
    shoulder = np.minimum(np.maximum.accumulate(smooth), np.maximum.accumulate(smooth[::-1])[::-1])
    depth = shoulder - smooth
    share = np.cumsum(votes) / max(votes.sum(), 1.0)
    allowed = (share > _SMALLEST_SIDE) & (share < 1 - _SMALLEST_SIDE) & (depth > _SIGNIFICANT * smooth_noise)
    allowed &= depth > 0.5 * shoulder  # a real valley, not a dent
    if not allowed.any():
        return 0.0, 0.0
    deepest = np.flatnonzero(allowed & (depth >= depth[allowed].max() - smooth_noise))
    place = int(deepest[len(deepest) // 2])
    return float(depth[allowed].max()), float((EVEN_EDGES[place] + EVEN_EDGES[place + 1]) / 2)


def stratum_of(levels: np.ndarray, splits: tuple[Split, ...]) -> np.ndarray:
    """Returns the kind 0..2^splits-1 of each series from its mean scores [series, channel]."""
    kind = np.zeros(len(levels), dtype=np.int64)
    for split in splits:
        kind = 2 * kind + (levels[:, split.channel] > split.threshold)
    return kind


# --- profile: mean and spread of the scores at every step, for every kind ----------------------------------------
#
# What remains after subtracting the mean and dividing by the spread has the same distribution at every step, which
# is what makes one spectrum enough. Moments are released as coefficients in the basis, the louder the more they are
# expected to say: few units buy the level and a few waves of the day, many buy every step.

SLACK, _SLACK_OF_CHANCE = 1.5, 1.4  # of squared lengths: of a typical series, and of one that is all chance
_DIFFERENCE = 0.2  # of what kinds have in common in squares, and in what sets one kind apart from others
_SMALLEST_SPREAD = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """How loudly moments [which, place] are released: means of coefficients, and of those of squares."""

    basis: Basis
    weights: np.ndarray  # 0 for a moment that is not worth its noise
    prior: np.ndarray  # variance of a moment over populations
    radius: float  # most series weigh less, whether they are as expected or all chance

    @classmethod
    def of(cls, basis: Basis, num_channels: int, relative_noise: float) -> "Moments":
        """Returns the moments whose release leaves the least error under the prior, from public facts."""
        steps = sum(map(len, basis.groups))
        energy, common = (steps * basis.spread_out(part) for part in (basis.shares, basis.shares * basis.common))
        typical = np.stack([0.8 * energy + 0.2, (energy + 1) / 2])
        prior = np.stack([common, _DIFFERENCE * common])
        squared = best_weights(prior, num_channels * typical, np.sqrt(SLACK) * relative_noise)
        radius = np.sqrt(max(SLACK, _SLACK_OF_CHANCE * num_channels * squared.sum()))
        return cls(basis, np.sqrt(squared), prior, float(radius))

    def vectors(self, scores: np.ndarray) -> np.ndarray:
        """Returns [series, which · place · channel]: weighted coefficients of scores and of their centred squares."""
        parts = [self.basis.coefficients(part) for part in (scores, (scores**2 - 1) / np.sqrt(2))]
        weighted = np.stack(parts, axis=1) * self.weights[:, :, None]
        return shortened(weighted.reshape(len(scores), -1), self.radius)

    def profiles(
        self, sums: np.ndarray, counts: np.ndarray, noise: float, num_groups: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns [kind, step, channel]: a mean of each kind and the spread that all kinds share, from released sums.

        The mean is that of all, then what sets the kinds of a label apart, then what sets a kind apart. A spread is
        expected to be even: the same at every step, whatever the mean.
        """
        heard = self.weights[:, :, None] > 0
        released = sums.reshape(len(counts), *self.weights.shape, -1)
        moments = np.divide(released, self.weights[:, :, None], out=np.zeros(released.shape), where=heard)
        loud = np.divide(noise, self.weights, out=np.full(self.weights.shape, np.inf), where=self.weights > 0)
        means, squares = moments[:, 0], moments[:, 1].sum(axis=0) / counts.sum()
        sizes = dict.fromkeys((len(counts), len(counts) // num_groups, 1))
        mean = self.basis.series(denoise_nested(means, counts, loud[0], self.prior[0], tuple(sizes), self.basis))
        common = np.einsum("k,ktc->tc", counts / counts.sum(), mean**2)
        even = 1 - common.mean(axis=0)
        expected = self.basis.coefficients((common + even - 1)[None])[0] / np.sqrt(2)
        noisy = loud[1] * np.sqrt(len(counts)) / counts.sum()
        own = self.basis.denoise(squares - expected, noisy, self.prior[1])
        square = even + np.sqrt(2) * self.basis.series(own[None])[0]
        spread = np.sqrt(np.maximum(square, _SMALLEST_SPREAD**2))
        return mean, np.broadcast_to(spread, mean.shape)


def weight_of_one(radius: float, num_kinds: int) -> float:
    """Returns what one more series weighs beside its moments: kinds are counted, one kind's number is declared."""
    return radius * (0.25 if num_kinds == 1 else 0.6)


def fit_counts(noisy: np.ndarray, noise: float, population: int) -> np.ndarray:
    """Returns the number of series of each kind; together the declared number unless noise can't explain another."""
    whole = shrink(noisy.sum(keepdims=True), np.array([float(population)]), noise * np.sqrt(len(noisy)))[0][0]
    shares = nearest_distribution(noisy / max(noisy.sum(), 1.0))
    return np.maximum(whole * shares, 1.0)


def best_weights(prior: np.ndarray, typical: np.ndarray, noise: float) -> np.ndarray:
    """Returns squared weights a of least error Σ p τ² / (p a + τ²) among vectors of typical length Σ a e = 1.

    The Lagrangian gives a = (τ / √(λ e) − τ² / p)₊: water is poured on what is expected to say most.

    Here p is the prior variance of what is to be heard, e the typical mean square of a series, τ the noise.
    """

    def at(level: float) -> np.ndarray:
        return np.maximum(0.0, noise / (np.exp(level) * np.sqrt(typical)) - noise**2 / prior)

    return at(float(brentq(lambda level: float((at(level) * typical).sum()) - 1, -60, 60)))


def denoise_nested(
    sums: np.ndarray, counts: np.ndarray, noise: np.ndarray, prior: np.ndarray, sizes: tuple[int, ...], basis: Basis
) -> np.ndarray:
    """Returns mean coefficients [kind, place, channel]: of all units, then what sets a group of kinds apart, and so on.

    Args:
        noise, prior: Standard deviation of the noise of a sum, and variance of a mean over populations, by place.
        sizes: How many neighbouring kinds make a group, from all of them down.
    """
    means = np.zeros_like(sums)
    for depth, size in enumerate(sizes):
        for first in range(0, len(sums), size):
            group = slice(first, first + size)
            count = counts[group].sum()
            expected = (means[group] * counts[group, None, None]).sum(0) / count
            own = sums[group].sum(0) / count - expected
            means[group] += basis.denoise(own, noise * np.sqrt(size) / count, prior * _DIFFERENCE**depth)
    return means


# --- spectrum: how strong each coefficient is ---------------------------------------------------------------------
#
# What a series contributes is the direction of its spectrum, |c_k| / ‖c‖ over all places of a channel: a vector of
# length one whatever the series, so that no clip radius has to be known. Scores have variance one by construction, so
# directions say all about energies, that of the level included. How far out along its direction a series lies, its
# *volatility*, and its level are counted separately.

_REACHES = (0, 1, 3, 7, 15, 31, 63, 127)  # neighbours on each side that a coefficient may be averaged with
_SMALLEST_STRENGTH = 0.02  # relative strength of the weakest coefficient
_DOUBT = 0.5  # standard deviation over populations of the logarithm of a subspace's mean amplitude
_NODES = np.exp(np.linspace(-14, 14, 113))  # of the integral over u
_ROUNDS = 12


def fit_strengths(mean_directions: np.ndarray, noise: float, basis: Basis) -> tuple[np.ndarray, np.ndarray]:
    """Returns the strengths behind noisy mean directions [place, channel], and the level's share of the energy.

    A subspace's mean amplitude is drawn towards the prior, and inside it a coefficient is the mean of as many
    neighbours as the least estimated risk asks for: of none where noise is small, of all where it is not.
    """
    steps, channels = mean_directions.shape
    prior = expected_directions(basis.spread_out(basis.shares))
    settled = np.stack([_settled(own, noise, prior, basis.groups) for own in mean_directions.T], axis=1)
    energy = np.stack([energies_behind(own, basis.spread_out(basis.shares)) for own in settled.T], axis=1)
    if steps == 1:
        return np.zeros((0, channels)), np.ones(channels)
    relative = np.sqrt(energy[1:] / energy[1:].mean(axis=0))
    relative = np.maximum(relative, _SMALLEST_STRENGTH)
    return relative / np.sqrt((relative**2).mean(axis=0)), energy[0]


def _settled(noisy: np.ndarray, noise: float, prior: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
    """Returns one channel's mean direction without most of its noise."""
    settled, noise = np.empty_like(noisy), max(noise, 1e-12)
    for places in groups:
        expected, left = prior[places].mean(), noise / np.sqrt(len(places))
        mean = max(noisy[places].mean(), expected / 8)
        weight = weight_of_mean(max(mean, expected / 2), left)
        mean = np.exp(weight * np.log(mean) + (1 - weight) * np.log(expected))
        smooth, _ = least_risk(noisy[places], noise, _REACHES)
        settled[places] = np.maximum(smooth + mean - noisy[places].mean(), mean / 4)
    return settled


def weight_of_mean(mean: float, noise: float) -> float:
    """Returns how far the logarithm of a subspace's noisy mean amplitude is believed, to first order."""
    return float(_DOUBT**2 / (_DOUBT**2 + (noise / mean) ** 2))


def expected_directions(energy: np.ndarray) -> np.ndarray:
    """Returns E |c_k| / ‖c‖ [place] for independent Gaussian coefficients c with energies e.

    1/‖c‖ = π^(−1/2) ∫ u^(−1/2) exp(−u ‖c‖²) du factors over places: with f(u) = Π_j (1 + 2 u e_j)^(−1/2) the mean is
    √(2 e_k) / π · ∫ u^(−1/2) (1 + 2 u e_k)^(−1/2) f(u) du.
    """
    grown = 1 + 2 * _NODES * energy[:, None] / energy.sum()
    weight = np.sqrt(_NODES) * np.exp(-0.5 * np.log(grown).sum(axis=0)) * np.log(_NODES[1] / _NODES[0])
    return np.asarray(np.sqrt(2 * energy / energy.sum()) / np.pi * (weight / np.sqrt(grown)).sum(axis=1))


def energies_behind(directions: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Returns the energies, which add up to one, whose expected directions are nearest to those given."""
    energy = start / start.sum()
    for _ in range(_ROUNDS):
        energy = energy * np.clip(directions / expected_directions(energy), 0.25, 4.0) ** 2
        energy = energy / energy.sum()
    return energy


# --- shape: distributions of level and volatility, on few cells where noise exceeds the share of a cell ---

_FEW_LEVELS = np.concatenate([LEVEL_EDGES[[0, 4, 8, 12, 16]], [0.0], LEVEL_EDGES[[48, 52, 56, 60, 64]]])  # octaves
_FEW_VOLATILITIES = VOLATILITY_EDGES[[0, 16, 24, 32, 36, 40, 44, 48, 52, 56, 64]]
_MOST_NOISE = 0.012  # of the share of a cell, up to which cells are many
_APART = 0.01  # of the share of a cell, by which kinds are expected to differ
SHOCK_LENGTH = 0.5  # the most that shares of a channel's shocks may weigh
_VOLATILITY_SPREAD = 0.15  # standard deviation of the logarithm of sizes, as expected before votes are counted


def edges_for(cell_noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns edges of levels, of volatilities and of shocks."""
    many = LEVEL_EDGES, VOLATILITY_EDGES, SHOCK_EDGES
    return (_FEW_LEVELS, _FEW_VOLATILITIES, 4 * _FEW_LEVELS) if cell_noise > _MOST_NOISE else many


def shock_votes(even: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns [series, channel · cell]: the share of a series' steps in each cell, shortened channel by channel."""
    series, steps, channels = even.shape
    cells = cells_of(even, edges) + np.arange(channels) * (len(edges) - 1)
    place = cells + np.arange(series)[:, None, None] * channels * (len(edges) - 1)
    shares = np.bincount(place.ravel(), minlength=series * channels * (len(edges) - 1)) / steps
    return shortened(shares.reshape(series * channels, -1), SHOCK_LENGTH).reshape(series, -1)


def fit_shocks(sums: np.ndarray, count: float, noise: float, edges: np.ndarray) -> np.ndarray:
    """Returns distribution functions, with mean zero and variance one, behind released votes [channel, cell]."""
    total = np.maximum(sums.sum(axis=1, keepdims=True), 0.1 * count)
    expected = [Expected(0.0, 0.1, 1.0, 0.2)] * len(sums)
    return _distributions((sums / total, noise / count), edges, SHOCK_EDGES, expected)


def fit_shapes(
    sums: np.ndarray,
    counts: np.ndarray,
    noise: float,
    edges: tuple[np.ndarray, np.ndarray],
    level_shares: Sequence[np.ndarray],
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns levels and volatilities of each kind from released votes [kind, which, channel, cell].

    Shares of the level in the energy of each kind, by channel, say what is expected before votes are counted.
    """
    settled = [pooled_kinds(sums[:, which], counts, noise, _APART) for which in (0, 1)]
    levels, volatilities = [], []
    for shares, level, volatility in zip(level_shares, *settled, strict=True):
        deviation, rest = np.sqrt(np.maximum(shares, 1e-3)), 0.5 * np.log(np.maximum(1 - shares, 1e-3))
        expected = [Expected(0.0, 0.1, float(own), 0.25) for own in deviation]
        levels.append(_distributions(level, edges[0], LEVEL_EDGES, expected))
        middle = rest - _VOLATILITY_SPREAD**2
        expected = [Expected(float(own), 0.3, _VOLATILITY_SPREAD, 0.5) for own in middle]
        volatilities.append(_distributions(volatility, edges[1], VOLATILITY_EDGES, expected))
    return levels, volatilities


def _distributions(
    answer: tuple[np.ndarray, float], edges: np.ndarray, points: np.ndarray, expected: Sequence[Expected]
) -> np.ndarray:
    """Returns distribution functions [channel, point] behind noisy shares [channel, cell], and their noise."""
    noisy, noise = answer
    rows = zip(noisy, expected, strict=True)
    return np.stack([smoothed_cumulative(shares, noise, edges, points, expected=own) for shares, own in rows])


def energy(kinds: list[Kind], counts: np.ndarray) -> np.ndarray:
    """Returns the strength [block] of the population's spectrum, every channel weighing the same."""
    variances = np.einsum("k,kbc->bc", counts / counts.sum(), np.stack([kind.variances() for kind in kinds]))
    return np.asarray((variances / variances.sum(0)).sum(1))
