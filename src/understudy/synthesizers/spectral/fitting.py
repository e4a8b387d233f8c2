"""From what was released to the model: post-processing only, no private data in sight."""

from dataclasses import replace

import numpy as np

from understudy.data import Schema
from understudy.synthesizers.spectral import dependence, levels, sampling
from understudy.synthesizers.spectral.counts import nearest_distribution, shrink, smooth_by_risk
from understudy.synthesizers.spectral.dependence import Coupling, Covariance
from understudy.synthesizers.spectral.kind import Kind
from understudy.synthesizers.spectral.levels import Distribution
from understudy.synthesizers.spectral.marginals import Marginal, pack
from understudy.synthesizers.spectral.model import Model

_POOL_SERIES, _POOL_NODES = 4096, 1025


def length_shares(noisy_votes: np.ndarray, noise: float) -> np.ndarray:
    """Returns the distribution of lengths: most series run to the end, the others end anywhere."""
    if len(noisy_votes) < 2:
        return np.ones(len(noisy_votes))
    early, total = smooth_by_risk(noisy_votes[:-1], noise), max(float(noisy_votes.sum()), 1e-9)
    return nearest_distribution(np.append(early, noisy_votes[-1]) / total)


def fit_distributions(votes: np.ndarray, counts: np.ndarray, noise: float, edges: np.ndarray) -> list[Distribution]:
    pooled, pooled_noise = votes.sum(0) / counts.sum(), noise * np.sqrt(len(counts)) / counts.sum()
    fitted = []
    for own, count in zip(votes, counts, strict=True):
        shares, weight = shrink(own / count, pooled, noise / count)
        remaining = float(np.hypot(weight * noise / count, (1 - weight) * pooled_noise))
        fitted.append(levels.fit_distribution(shares, remaining, edges))
    return fitted


def energy(kind_models: list[Kind], counts: np.ndarray) -> np.ndarray:
    """Returns the strength [block] of the population's spectrum, every channel weighing the same."""
    pairs = zip(counts / counts.sum(), kind_models, strict=True)
    energy = np.asarray(sum(share * kind.variances() for share, kind in pairs))
    return np.asarray((energy / energy.sum(0)).sum(1))


def fit_covariances(
    sums: np.ndarray,
    counts: np.ndarray,
    noise: float,
    coupling: Coupling,
    kind_models: list[Kind],
    clockless: bool,
) -> list[Covariance]:
    pooled, pooled_noise = sums.sum(0) / counts.sum(), noise * np.sqrt(len(counts)) / counts.sum()
    fitted = []
    for own, count, kind in zip(sums, counts, kind_models, strict=True):
        moments, weight = shrink(own / count, pooled, noise / count)
        pair_noise = np.hypot(weight * noise / count, (1 - weight) * pooled_noise) / np.sqrt(2)
        deviation = np.sqrt(kind.variances()) if clockless else None
        fitted.append(dependence.fit_covariance(moments, float(pair_noise), coupling, deviation))
    return fitted


def assemble(
    marginals: list[Marginal], counts: np.ndarray, kind_models: list[Kind], covariances: list[Covariance]
) -> Model:
    left, right = (np.concatenate([getattr(m.grid, end) for m in marginals]) for end in ("left", "right"))
    cumulative, nodes = pack(marginals)
    return Model(
        cells=np.stack([left, right]),
        cumulative=cumulative,
        column_cells=nodes - 1,
        kind_share=counts / counts.sum(),
        mean=np.stack([kind.profile.mean for kind in kind_models]),
        spread=np.stack([kind.profile.spread for kind in kind_models]),
        strength=np.stack([kind.strengths.relative for kind in kind_models]),
        levels=np.stack([kind.levels.cumulative for kind in kind_models]),
        volatilities=np.stack([kind.volatilities.cumulative for kind in kind_models]),
        coupled=np.stack([c.coupled for c in covariances]),
        free=np.stack([c.free for c in covariances]),
        rotation=np.zeros((0, 0)),
        order=np.zeros(0, dtype=np.int64),
        score_nodes=np.zeros((0, 0)),
        gaps=np.zeros((0, 0)),
        length_shares=np.zeros(0),
    )


def with_score_nodes(model: Model, schema: Schema) -> Model:
    """Adds the quantiles of the model's own scores, from a large draw: post-processing, seeded so that it repeats."""
    rng = np.random.default_rng(0)
    kinds = sampling.draw_kinds(model, schema, _POOL_SERIES, None, rng)
    scores, _ = sampling.draw_scores(model, schema, kinds, rng)
    _, missing = sampling.draw_absence(model, schema, scores, rng)
    nodes = np.linspace(0, 1, _POOL_NODES)
    quantiles = [np.quantile(scores[:, :, c][~missing[:, :, c]], nodes) for c in range(schema.num_channels)]
    return replace(model, score_nodes=np.stack(quantiles))
