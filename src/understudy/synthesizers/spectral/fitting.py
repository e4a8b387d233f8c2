"""From what was released to the model: post-processing only, no private data in sight."""

from dataclasses import replace

import numpy as np

from understudy.data import Schema
from understudy.statistics import copula
from understudy.statistics.columns import num_labels
from understudy.statistics.copula import LEVEL_EDGES, VOLATILITY_EDGES, Covariance, Distribution, Kind, Model, Profile
from understudy.statistics.counts import shrink
from understudy.synthesizers.sampling import num_pooled
from understudy.synthesizers.spectral import dependence, profile
from understudy.synthesizers.spectral.dependence import Coupling
from understudy.synthesizers.spectral.levels import fit_distribution

_POOL_SERIES, _POOL_NODES = 4096, 1025


def kind_profiles(
    sums: np.ndarray, counts: np.ndarray, noise: float, schema: Schema, season: int | None
) -> list[Profile]:
    """Returns the profile of each kind from released sums [kind, moment]: of all, of its level, and its own."""
    shape, number = (schema.num_steps, schema.num_channels), len(counts)
    pooled = profile.denoise_nested(sums, counts, noise, (number,), shape, season)[0]
    levels_of_detail = (number, number // num_labels(schema), 1)
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


def with_score_nodes(model: Model, schema: Schema) -> Model:
    """Adds the quantiles of the model's own scores, from a large draw: post-processing, seeded so that it repeats."""
    rng = np.random.default_rng(0)
    kinds = copula.sample_kinds(model, schema, num_pooled(schema, _POOL_SERIES), None, rng)
    scores, _ = copula.sample_scores(model, schema, kinds, rng)
    _, missing = copula.sample_absence(model, schema, scores, rng)
    nodes = np.linspace(0, 1, _POOL_NODES)
    quantiles = [np.quantile(scores[:, :, c][~missing[:, :, c]], nodes) for c in range(schema.num_channels)]
    return replace(model, score_nodes=np.stack(quantiles))
