"""From what was released to the model, one section per release: post-processing only, no private data in sight.

Functions named `…_of` or `…_vectors` say what a series contributes; `learning` calls them behind the border.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.fft import dct, idct
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtri, ndtri

from understudy.data import Schema
from understudy.statistics import copula
from understudy.statistics.columns import num_labels
from understudy.statistics.copula import (
    LEVEL_EDGES,
    NUM_CELLS,
    VOLATILITY_EDGES,
    Distribution,
    Kind,
    Model,
    Profile,
    Strengths,
)
from understudy.statistics.counts import least_risk, shrink, smoothed_cumulative
from understudy.statistics.marginals import SCORE_LIMIT
from understudy.statistics.moments import num_pairs, symmetric, triangle
from understudy.statistics.series import bands
from understudy.synthesizers.sampling import num_pooled

_POOL_SERIES, _POOL_NODES = 4096, 1025


def pooled_kinds(sums: np.ndarray, counts: np.ndarray, noise: float) -> list[tuple[np.ndarray, float]]:
    """Returns (figures per series, their remaining noise) of each kind, drawn towards all kinds together.

    Args:
        sums: Released sums [kind, …], each with noise of standard deviation `noise`.
    """
    pooled, pooled_noise = sums.sum(0) / counts.sum(), noise * np.sqrt(len(counts)) / counts.sum()
    settled = []
    for own, count in zip(sums, counts, strict=True):
        figures, weight = shrink(own / count, pooled, noise / count)
        settled.append((figures, float(np.hypot(weight * noise / count, (1 - weight) * pooled_noise))))
    return settled


def with_score_nodes(model: Model, schema: Schema) -> Model:
    """Adds the quantiles of the model's own scores, from a large draw: post-processing, seeded so that it repeats."""
    rng = np.random.default_rng(0)
    kinds = copula.sample_kinds(model, schema, num_pooled(schema, _POOL_SERIES), None, rng)
    scores, _ = copula.sample_scores(model, schema, kinds, rng)
    _, missing = copula.sample_absence(model, schema, scores, rng)
    nodes = np.linspace(0, 1, _POOL_NODES)
    quantiles = [np.quantile(scores[:, :, c][~missing[:, :, c]], nodes) for c in range(schema.num_channels)]
    return replace(model, score_nodes=np.stack(quantiles))


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


@dataclass(frozen=True)
class Split:
    """Series whose level in `channel` lies below `threshold` are one kind, the others another."""

    channel: int
    threshold: float


def cells_of(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Returns the cell between the edges of each number; numbers beyond are in the outer cells."""
    return np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)


def find_splits(noisy_votes: np.ndarray, noise: float, most: int) -> tuple[Split, ...]:
    """Returns the deepest valleys between two modes of votes [channel, cell], at most one per channel.

    Args:
        noise: Standard deviation of the noise in each cell.
        most: How many splits the population's size can bear; a public number.
    """
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
# is what makes one spectrum enough.

_SQUARE_WEIGHT = 0.5  # the mean of a step matters more than its spread
_SMALLEST_SPREAD = 0.25
_FALSE = 0.02  # how often noise alone passes for a band of frequencies
_FALSE_LOUD = 0.01  # how often it passes for a loud frequency somewhere; every series would have to carry that one


def profile_radius(num_steps: int, num_channels: int) -> float:
    """Returns the most one series may weigh in `moment_vectors`; scores have mean 0 and variance 1 by construction."""
    return float(np.sqrt(2.5 * (1 + _SQUARE_WEIGHT**2) * num_steps * num_channels))


def moment_vectors(scores: np.ndarray) -> np.ndarray:
    """Returns [series, 2 · step · channel]: each series' scores and, weighing less, their centred squares."""
    flat = scores.reshape(len(scores), -1)
    return np.concatenate([flat, _SQUARE_WEIGHT * (flat**2 - 1) / np.sqrt(2)], axis=1)


def kind_profiles(
    sums: np.ndarray, counts: np.ndarray, noise: float, schema: Schema, season: int | None
) -> list[Profile]:
    """Returns the profile of each kind from released sums [kind, moment]: of all, of its label, and its own."""
    shape, number = (schema.num_steps, schema.num_channels), len(counts)
    pooled = denoise_nested(sums, counts, noise, (number,), shape, season)[0]
    means = denoise_nested(sums, counts, noise, (number, number // num_labels(schema), 1), shape, season)
    pooled_noise = noise * float(np.sqrt(number)) / float(counts.sum())
    return fit_profiles(means, pooled, counts / counts.sum(), shape, pooled_noise)


def fit_profiles(
    moments: np.ndarray, pooled: np.ndarray, share: np.ndarray, shape: tuple[int, int], noise: float
) -> list[Profile]:
    """Returns a profile per kind: a mean of its own and the spread that all kinds share.

    A spread of its own would need more series than most kinds have; a spread too small by chance would blow up what it
    divides, so none is smaller than `noise`, the standard deviation of the noise of a pooled moment.
    """
    size = shape[0] * shape[1]
    means = moments[:, :size].reshape(-1, *shape)
    square = 1 + np.sqrt(2) / _SQUARE_WEIGHT * pooled[size:].reshape(shape)
    smallest = max(_SMALLEST_SPREAD**2, min(noise, 1.0))
    spread = np.sqrt(np.maximum(square - np.einsum("k,ktc->tc", share, means**2), smallest))
    return [Profile(mean, spread) for mean in means]


def denoise_nested(
    sums: np.ndarray,
    counts: np.ndarray,
    noise: float,
    group_sizes: tuple[int, ...],
    shape: tuple[int, int],
    season: int | None = None,
) -> np.ndarray:
    """Returns mean moments [kind, moment]: of all units, then what sets a group apart, then what sets a kind apart.

    Each level adds the frequencies of its difference to the level above that stand out of its own noise.

    Args:
        group_sizes: How many neighbouring kinds make a group, from all of them down.
        season: Steps of a day, week or year, as the time axis says.
    """
    means = np.zeros_like(sums)
    for size in group_sizes:
        for first in range(0, len(sums), size):
            group = slice(first, first + size)
            count = counts[group].sum()
            expected = (means[group] * counts[group, None]).sum(0) / count
            own, own_noise = sums[group].sum(0) / count, noise * np.sqrt(size) / count
            means[group] += _denoise(own - expected, own_noise, shape, season)
    return means


def _denoise(moments: np.ndarray, noise: float, shape: tuple[int, int], season: int | None) -> np.ndarray:
    """Keeps of noisy mean moments what exceeds the noise."""
    size = shape[0] * shape[1]
    mean, square = (dct(part.reshape(shape), axis=0, norm="ortho") for part in (moments[:size], moments[size:]))
    threshold = noise * -ndtri(_FALSE_LOUD / 2 / size)  # Bonferroni: the universal threshold passes one fit in five
    weight = np.zeros_like(mean)
    for block in bands(shape[0], season):  # Cai (1999): block by block; one loud frequency does not make all heard
        bounded = np.clip(mean[block], -threshold, threshold)
        if (bounded**2).sum() > noise**2 * chdtri(bounded.size, _FALSE):
            weight[block] = shrink(bounded, np.zeros_like(bounded), noise)[1]
    weight = np.where(np.abs(mean) < threshold, weight, 1.0)
    kept = (weight * mean, np.where(np.abs(square) < threshold, 0.0, square))
    return np.concatenate([idct(part, axis=0, norm="ortho").ravel() for part in kept])


# --- spectrum: how strong each frequency is -----------------------------------------------------------------------
#
# What a series contributes is the direction of its spectrum, |c_k| / ‖c‖ over the frequencies k > 0 of a channel: a
# vector of length one whatever the series, so that no clip radius has to be known. How far out along that direction a
# series lies, its *volatility*, is counted separately, as the level is.

_REACHES = (0, 1, 3, 7, 15, 31, 63, 127)  # neighbours on each side that a frequency may be averaged with
_SLOPES = np.arange(-0.5, 2.1, 0.05)  # of the strength over the frequency, in powers
_SMALLEST_STRENGTH = 0.02  # relative strength of the weakest frequency


def fit_strengths(mean_directions: np.ndarray, noise: float, season: int | None = None) -> Strengths:
    """Returns the strengths behind a noisy mean direction [frequency, channel].

    Octave by octave, those of the season apart, a frequency is the mean of as many neighbours as the least estimated
    risk asks for: of none where noise is small, of most of an octave where it is not. Means of bands are drawn towards
    a power of the frequency. What noise is left is the least strength: one that is too small blows up what it divides,
    and with it the volatility of every series.
    """
    if mean_directions.shape[0] == 0:
        return Strengths(mean_directions)
    settled = np.stack([_settled(own, noise, season) for own in mean_directions.T], axis=1)
    typical = np.sqrt(np.maximum((settled**2).mean(axis=0), 1e-12))
    relative = np.maximum(settled / typical, _SMALLEST_STRENGTH)
    return Strengths(relative / np.sqrt((relative**2).mean(axis=0)))


def _settled(noisy: np.ndarray, noise: float, season: int | None) -> np.ndarray:
    """Returns one channel's mean direction without most of its noise."""
    groups = [band - 1 for band in bands(len(noisy) + 1, season) if band[0] > 0]
    middle = np.array([band.mean() + 1 for band in groups])
    means = np.array([noisy[band].mean() for band in groups])
    left = np.array([max(noise, 1e-12) / np.sqrt(len(band)) for band in groups])
    shapes = (middle / middle[-1]) ** -_SLOPES[:, None]
    size = np.maximum((shapes * means / left**2).sum(1) / (shapes**2 / left**2).sum(1), 1e-3)
    fitted = size[:, None] * shapes
    power = fitted[(((means - fitted) / left) ** 2).sum(1).argmin()]  # the nearest power of the frequency
    drawn = power + shrink((means - power) / left, np.zeros(len(means)), 1.0)[0] * left
    settled = np.empty_like(noisy)
    for band, mean, better in zip(groups, means, drawn, strict=True):
        smooth, remaining = least_risk(noisy[band], noise, _REACHES)
        settled[band] = np.maximum(smooth + better - mean, min(remaining, better))
    return settled


# --- shape: distributions of level and volatility, on few cells where noise exceeds the share of a cell ---

_FEW_LEVELS = np.concatenate([LEVEL_EDGES[[0, 4, 8, 12, 16]], [0.0], LEVEL_EDGES[[48, 52, 56, 60, 64]]])  # octaves
_FEW_VOLATILITIES = VOLATILITY_EDGES[[0, 16, 24, 32, 36, 40, 44, 48, 52, 56, 64]]
_MOST_NOISE = 0.012  # of the share of a cell, up to which cells are many


def edges_for(cell_noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns edges of levels and of volatilities."""
    return (_FEW_LEVELS, _FEW_VOLATILITIES) if cell_noise > _MOST_NOISE else (LEVEL_EDGES, VOLATILITY_EDGES)


def fit_shapes(
    sums: np.ndarray, counts: np.ndarray, noise: float, edges: tuple[np.ndarray, np.ndarray]
) -> tuple[list[Distribution], list[Distribution]]:
    """Returns levels and volatilities of each kind from released votes [kind, which, channel, cell]."""
    level, volatility = (
        [fit_distribution(*settled, edges[which], points) for settled in pooled_kinds(sums[:, which], counts, noise)]
        for which, points in enumerate((LEVEL_EDGES, VOLATILITY_EDGES))
    )
    return level, volatility


def fit_distribution(noisy_shares: np.ndarray, noise: float, edges: np.ndarray, points: np.ndarray) -> Distribution:
    """Returns the distributions at `points` behind noisy shares [channel, cell] of the cells between `edges`."""
    rows = [smoothed_cumulative(shares, noise, edges, points) for shares in noisy_shares]
    return Distribution(np.stack(rows), points)


def energy(kinds: list[Kind], counts: np.ndarray) -> np.ndarray:
    """Returns the strength [block] of the population's spectrum, every channel weighing the same."""
    variances = np.einsum("k,kbc->bc", counts / counts.sum(), np.stack([kind.variances() for kind in kinds]))
    return np.asarray((variances / variances.sum(0)).sum(1))
