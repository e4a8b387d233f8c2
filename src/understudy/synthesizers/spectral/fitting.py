"""From what was released to the model: post-processing only, no private data in sight."""

from dataclasses import replace

import numpy as np

from understudy.data import Channel, Schema
from understudy.synthesizers.base import num_pooled
from understudy.synthesizers.spectral import dependence, gaps, profile, sampling
from understudy.synthesizers.spectral.counts import nearest_distribution, shrink, smooth_by_risk
from understudy.synthesizers.spectral.dependence import Coupling, Covariance
from understudy.synthesizers.spectral.kind import Kind
from understudy.synthesizers.spectral.levels import LEVEL_EDGES, VOLATILITY_EDGES, Distribution, fit_distribution
from understudy.synthesizers.spectral.model import Model
from understudy.synthesizers.spectral.profile import Profile

_MOST_MISSING = 0.9  # of series, in a column that was declared
_POOL_SERIES, _POOL_NODES = 4096, 1025


def length_shares(noisy_votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns the distribution of lengths: most series run to the end, the others end anywhere."""
    if len(noisy_votes) < 2:
        return np.ones(len(noisy_votes))
    early, total = smooth_by_risk(noisy_votes[:-1], noise), max(float(noisy_votes.sum()), 1e-9)
    return nearest_distribution(np.append(early, noisy_votes[-1]) / total)


def kind_profiles(
    sums: np.ndarray, counts: np.ndarray, noise: float, schema: Schema, season: int | None
) -> list[Profile]:
    """Returns the profile of each kind from released sums [kind, moment]: of all, of its level, and its own."""
    shape, number = (schema.num_steps, schema.num_channels), len(counts)
    pooled = profile.denoise_nested(sums, counts, noise, (number,), shape, season)[0]
    levels_of_detail = (number, number // sampling.num_labels(schema), 1)
    means = profile.denoise_nested(sums, counts, noise, levels_of_detail, shape, season)
    pooled_noise = noise * float(np.sqrt(number)) / float(counts.sum())
    return profile.fit_profiles(means, pooled, counts / counts.sum(), shape, pooled_noise)


def kind_distributions(
    sums: np.ndarray, counts: np.ndarray, noise: float, edges: tuple[np.ndarray, np.ndarray]
) -> tuple[list[Distribution], list[Distribution]]:
    """Returns levels and volatilities of each kind from released votes [kind, which, channel, cell]."""
    level, volatility = (
        [fit_distribution(*settled, edges[which], points) for settled in pooled_kinds(sums[:, which], counts, noise)]
        for which, points in enumerate((LEVEL_EDGES, VOLATILITY_EDGES))
    )
    return level, volatility


def gap_models(noisy_votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns the gap model [channel, cell] of each channel that may be missing."""
    models = [gaps.fit_gaps(votes, noise) for votes in noisy_votes]
    stacked = [np.concatenate([model.counts, model.lengths, model.ranks]) for model in models]
    return np.stack(stacked) if stacked else np.zeros_like(noisy_votes)


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


def energy(kinds: list[Kind], counts: np.ndarray) -> np.ndarray:
    """Returns the strength [block] of the population's spectrum, every channel weighing the same."""
    variances = np.einsum("k,kbc->bc", counts / counts.sum(), np.stack([kind.variances() for kind in kinds]))
    return np.asarray((variances / variances.sum(0)).sum(1))


def fit_covariances(
    sums: np.ndarray, counts: np.ndarray, noise: float, coupling: Coupling, kinds: list[Kind], clockless: bool
) -> list[Covariance]:
    """Returns the covariances of each kind."""
    fitted = []
    for (moments, remaining), kind in zip(pooled_kinds(sums, counts, noise), kinds, strict=True):
        deviation = np.sqrt(kind.variances()) if clockless else None
        fitted.append(dependence.fit_covariance(moments, remaining, coupling, deviation))
    return fitted


def missing_shares(totals: np.ndarray, columns: tuple[Channel, ...], count: float) -> np.ndarray:
    """Returns how often each single column is missing: what the votes for its values lack of the number of series.

    At most nine times in ten: where noise says that nobody has a column, the noise is wrong about one that was
    declared, and a table without any value of it could not be read back.
    """
    lacking = np.clip(1 - totals / max(count, 1.0), 0.0, _MOST_MISSING)
    return np.where([column.missing for column in columns], lacking, 0.0)


def with_score_nodes(model: Model, schema: Schema) -> Model:
    """Adds the quantiles of the model's own scores, from a large draw: post-processing, seeded so that it repeats."""
    rng = np.random.default_rng(0)
    kinds = sampling.draw_kinds(model, schema, num_pooled(schema, _POOL_SERIES), None, rng)
    scores, _ = sampling.draw_scores(model, schema, kinds, rng)
    _, missing = sampling.draw_absence(model, schema, scores, rng)
    nodes = np.linspace(0, 1, _POOL_NODES)
    quantiles = [np.quantile(scores[:, :, c][~missing[:, :, c]], nodes) for c in range(schema.num_channels)]
    return replace(model, score_nodes=np.stack(quantiles))
