"""Whether synthetic series lie closer to real ones than series of one kind lie to each other.

A diagnostic: with as many real as synthetic series, independent draws from one distribution give 0.5, copies give 1,
series far from all real ones give 0. It is no measure of privacy: a mechanism without any protection can score 0.
"""

from typing import Literal

import numpy as np
from scipy.stats import entropy

from understudy.evaluation.metric import Effort, Measured, Metric
from understudy.evaluation.panels import Comparison
from understudy.nn.nearest import nearest
from understudy_bench.metrics.distances import bootstrap_mean

BASELINE = 0.5


def identifiability_syn(real: np.ndarray, synthetic: np.ndarray) -> np.ndarray:
    """Returns for each synthetic point whether a real one is nearer than any other synthetic one (Pub2Priv, Eq. 8)."""
    return _distance(synthetic, real) < _distance_to_others(synthetic)  # Eq. 8


def identifiability_adsgan(
    real: np.ndarray, synthetic: np.ndarray, weights: Literal["entropy", "none"] = "entropy"
) -> np.ndarray:
    """Returns for each real point whether a synthetic one is nearer than any other real one, as ADS-GAN counts.

    Args:
        weights: `entropy` divides each feature by the entropy of its real values, rounded to two decimals, so that
            features which hardly vary count more; one without entropy is left as it is. Points lie in [0, 1].
    """
    if weights == "entropy":
        spread = _entropies(real)
        real, synthetic = real / spread, synthetic / spread
    return _distance(real, synthetic) < _distance_to_others(real)


def _distance(queries: np.ndarray, base: np.ndarray) -> np.ndarray:
    places = nearest(queries, base)[0][:, 0]
    return _squared(queries - base[places])


def _distance_to_others(points: np.ndarray) -> np.ndarray:
    """Returns the squared distance from each point to the nearest of the others."""
    places = nearest(points, points, 2)[0]
    own = places[:, 0] == np.arange(len(points))
    return _squared(points - points[np.where(own, places[:, 1], places[:, 0])])


def _squared(differences: np.ndarray) -> np.ndarray:
    """Returns squared lengths from the differences themselves: copies are at 0 exactly."""
    return np.einsum("nd,nd->n", differences, differences, dtype=np.float64)


def _entropies(points: np.ndarray) -> np.ndarray:
    found = [entropy(np.unique(feature, return_counts=True)[1]) for feature in np.round(points, 2).T]
    return np.array([value if value > 0 else 1.0 for value in found], dtype=np.float32)


def _equally_many(comparison: Comparison, seed: int) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Returns flattened series, as many of one as of the other, and a note on it."""
    both = [
        view.reshape(len(view), -1)
        for view in (comparison.unit(comparison.real), comparison.unit(comparison.candidate))
    ]
    size, rng = min(map(len, both)), np.random.default_rng(seed)
    note = f"{size} real and {size} other series, drawn at random, so that independent draws of one kind give 0.5."
    real, candidate = (points[np.sort(rng.permutation(len(points))[:size])] for points in both)
    return real, candidate, (note, "A diagnostic; it neither shows nor refutes privacy.")


def _nearer_to_real(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    real, candidate, notes = _equally_many(comparison, seed)
    return _share(identifiability_syn(real, candidate), effort, seed, {}, notes)


def _nearer_to_synthetic(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    real, candidate, notes = _equally_many(comparison, seed)
    plain = float(identifiability_adsgan(real, candidate, "none").mean())
    return _share(identifiability_adsgan(real, candidate), effort, seed, {"without weights": plain}, notes)


def _share(nearer: np.ndarray, effort: Effort, seed: int, parts: dict[str, float], notes: tuple[str, ...]) -> Measured:
    return Measured(
        value=float(nearer.mean()),
        replicates=bootstrap_mean(nearer.astype(np.float64), effort.replicates, seed),
        parts={**parts, "independent draws of one kind": BASELINE},
        notes=notes,
    )


METRICS = (
    Metric(
        name="pub2priv.identifiability",
        title="Nearest-neighbour ratio: series nearer to a real one than to each other (a diagnostic, not privacy)",
        direction="near",
        range=(0.0, 1.0),
        reference="Pub2Priv, Eq. 8, which calls it identifiability",
        measure=_nearer_to_real,
    ),
    Metric(
        name="pub2priv.identifiability_adsgan",
        title="Nearest-neighbour ratio from the real side: real series nearer to a candidate than to each other",
        direction="near",
        range=(0.0, 1.0),
        reference="Yoon et al. 2020 (ADS-GAN), with features weighted by entropy",
        measure=_nearer_to_synthetic,
    ),
)
