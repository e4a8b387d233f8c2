"""Distances between series as a TS2Vec encoder sees them.

The encoder is trained once for an evaluation, on real series put aside for it, and is the same for all comparisons.
PETS judges with the encoder that also guided its method, which favours the method.
"""

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from scipy.optimize import linear_sum_assignment
from torch import nn

from understudy.data import Panel
from understudy.evaluation.measures import RankedPools
from understudy.evaluation.metric import Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison, Scale
from understudy.synthesizers.pets.modules import EncoderSimilarity, TS2Vec
from understudy.synthesizers.pets.pretraining import train_ts2vec
from understudy_bench.metrics.distances import bootstrap
from understudy_bench.metrics.networks import seeded

MATCHED = 400  # series of each side that are matched exactly: the work grows with the third power
PROJECTIONS = 128
BATCH, DEPTH, SEED = 8, 10, 0
SMALL_ARRAY, SMALL_ITERATIONS, ITERATIONS = 100_000, 200, 600  # as published with TS2Vec


def frechet_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Returns ‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½) of two sets of embeddings [series, dimension].

    With Σ = RᵀR the last trace is the sum of the singular values of R₁R₂ᵀ, which needs no root of a matrix and is exact
    for covariances without full rank.
    """
    means, roots = [], []
    for embeddings in (first, second):
        points = np.asarray(embeddings, dtype=np.float64)
        means.append(points.mean(axis=0))
        roots.append(np.linalg.qr(points - means[-1], mode="r") / np.sqrt(len(points) - 1))
    shared = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    apart = np.sum((means[0] - means[1]) ** 2)
    return max(float(apart + sum(np.sum(root**2) for root in roots) - 2 * shared), 0.0)


def matched_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the 1-Wasserstein distance of two equally large sets [series, dimension]: the cheapest matching."""
    squares = [np.einsum("nd,nd->n", points, points, dtype=np.float64) for points in (first, second)]
    costs = np.sqrt(np.maximum(squares[0][:, None] + squares[1] - 2.0 * first @ second.T, 0))
    rows, columns = linear_sum_assignment(costs)
    return float(np.linalg.norm((first[rows] - second[columns]).astype(np.float64), axis=1).mean())  # Eq. 5, p = 1


def sliced_distance(first: np.ndarray, second: np.ndarray, seed: int) -> float:
    """Returns the mean 1-Wasserstein distance along random directions."""
    directions = np.random.default_rng(seed).standard_normal((first.shape[1], PROJECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    pools = RankedPools.of(*((points @ directions)[:, None] for points in (first, second)))
    return float(pools.wasserstein(np.ones(len(first)), np.ones(len(second))).mean())


@dataclass(frozen=True, eq=False, kw_only=True)
class Judge:
    """A frozen encoder, the scale it was trained in, and what it has encoded while the panels last."""

    encoder: TS2Vec
    scale: Scale
    sha256: str
    _seen: "WeakKeyDictionary[Panel, np.ndarray]" = field(default_factory=WeakKeyDictionary)

    def embed(self, panel: Panel) -> np.ndarray:
        """Returns one vector per series."""
        if panel not in self._seen:
            with seeded(SEED):
                self._seen[panel] = EncoderSimilarity(network=self.encoder)(self.scale.unit(panel))
        return self._seen[panel]


@lru_cache(maxsize=1)
def judge(unseen: Panel, cap: int | None) -> Judge:
    """Returns the encoder of an evaluation, trained on real series put aside for it.

    Args:
        cap: Most iterations. With one, blocks whose dilation exceeds the series are left out as well: they can't look
            past a single step. None trains as published.
    """
    scale = Scale.of(unseen)
    series = scale.unit(unseen)
    iterations = SMALL_ITERATIONS if series.size <= SMALL_ARRAY else ITERATIONS
    depth = DEPTH if cap is None else min(DEPTH, unseen.num_steps.bit_length())
    with seeded(SEED):
        encoder = train_ts2vec(
            series, iterations=min(iterations, cap or iterations), batch=BATCH, seed=SEED, depth=depth
        )
    return Judge(encoder=encoder, scale=scale, sha256=encoder_sha256(encoder))


def encoder_sha256(encoder: nn.Module) -> str:
    """Returns the hash of all weights with their names and shapes."""
    digest = hashlib.sha256()
    for name, weight in sorted(encoder.state_dict().items()):
        digest.update(f"{name}{tuple(weight.shape)}".encode())
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _embedded(comparison: Comparison, effort: Effort) -> tuple[np.ndarray, np.ndarray, str]:
    """Returns embeddings of the real and the candidate series, and a note on the encoder."""
    if comparison.real.num_steps < 2:
        raise Undefined("series are too short; the encoder needs at least 2 steps.")
    by = judge(comparison.unseen, effort.iteration_cap)
    return by.embed(comparison.real), by.embed(comparison.candidate), f"TS2Vec encoder, sha256 {by.sha256}."


def _context_fid(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    real, candidate, note = _embedded(comparison, effort)

    def again(real_rows: np.ndarray, candidate_rows: np.ndarray) -> float:
        return frechet_distance(real[real_rows], candidate[candidate_rows])

    return Measured(
        value=frechet_distance(real, candidate),
        replicates=bootstrap(again, comparison.real, comparison.candidate, effort.replicates, seed),
        notes=(note, "Grows as series get fewer: read it beside other real series, which are as many."),
    )


def _wasserstein(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    real, candidate, note = _embedded(comparison, effort)
    size = min(MATCHED, len(real), len(candidate))
    rng = np.random.default_rng(seed)

    def matched(real_rows: np.ndarray, candidate_rows: np.ndarray) -> float:
        rows = (rng.permutation(drawn)[:size] for drawn in (real_rows, candidate_rows))
        return matched_distance(*(points[some] for points, some in zip((real, candidate), rows, strict=True)))

    return Measured(
        value=matched(np.arange(len(real)), np.arange(len(candidate))),
        replicates=bootstrap(matched, comparison.real, comparison.candidate, effort.replicates, seed),
        parts={f"sliced, {PROJECTIONS} directions": sliced_distance(real, candidate, seed)},
        notes=(note, f"Exact matching of {size} series of each side, drawn at random."),
    )


METRICS = (
    Metric(
        name="pets.context_fid",
        title="Context-FID: distance of learned representations",
        direction="lower",
        range=(0.0, float("inf")),
        reference="PETS, section 4: Fréchet distance of TS2Vec embeddings",
        measure=_context_fid,
    ),
    Metric(
        name="pets.wasserstein",
        title="How far learned representations have to move to match",
        direction="lower",
        range=(0.0, float("inf")),
        reference="PETS, Eq. 5 with p = 1, in TS2Vec's space",
        measure=_wasserstein,
    ),
)
