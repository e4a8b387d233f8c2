"""One noisy mean in place of votes: how often candidates of a public pool should occur.

Every unit adds random Fourier features of its series' embeddings (Rahimi and Recht, 2007), a vector of length one.
Their mean over all units, a smoothed density in the space of embeddings (a mean embedding), is released once. Of all
weights of the pool whose own mean is near the noisy one, those of maximum entropy are taken, so that where the release
says nothing the pool stays as it is. This costs nothing further, so the pool can be as large as memory allows.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.special import logsumexp, softmax

from understudy.data import Panel
from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Rows
from understudy.statistics.columns import classes_of, num_labels
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.pets.modules import in_equal_batches
from understudy.synthesizers.pets.published import Environment
from understudy.synthesizers.pets.voting import Lattice

LABEL = "mean embedding"  # under which the release is charged
FEATURES = 600
_WIDTHS = (0.5, 1.0, 2.0)  # of kernels, in median distances of candidates
_COMPARED = 1000  # candidates whose distances are measured
_SMALLEST_SHARE, _FEWEST, _SHARE_OF_FEW = 0.05, 250, 0.2  # of the pool, that weights are worth as an effective sample
_TURN, _TABLE, _STEEPEST = 32, 16, 2.0**26  # bits of a turn, bits of the table, and the largest frequency
_COSINE = np.cos(2 * np.pi * np.arange(2**_TABLE) / 2**_TABLE).astype(np.float32)
_BATCH = 256  # series embedded at a time, a constant: libraries round batches of different size differently


@dataclass(frozen=True, eq=False)
class Features:
    """Random Fourier features of embeddings, fixed by public candidates and a seed.

    On a public lattice with frequencies in whole parts of a turn, angles are exact and sines come from a table: a
    library's order of summation, which follows from a vector's place among the others, can change no bit.
    """

    lattice: Lattice
    frequency: Float64[np.ndarray, "dimension pair"]  # whole numbers of 2⁻³² turns per step of the lattice

    @classmethod
    def around(cls, embeddings: np.ndarray, rng: np.random.Generator) -> "Features":
        """Return features for Gaussian kernels whose widths suit the candidates' distances."""
        lattice, some = Lattice.around(embeddings), embeddings[rng.permutation(len(embeddings))[:_COMPARED]]
        median = float(np.median(pdist(some))) if len(some) > 1 else 1.0
        widths = (median or 1.0) * np.resize(_WIDTHS, FEATURES // 2)
        wave = rng.standard_normal((embeddings.shape[1], FEATURES // 2)) / widths
        turns = np.rint(wave * lattice.step[:, None].astype(np.float64) / (2 * np.pi) * 2**_TURN)
        return cls(lattice, turns.clip(-_STEEPEST, _STEEPEST))

    def __call__(self, embeddings: np.ndarray) -> Float32[np.ndarray, "row feature"]:
        """Return vectors of length one."""
        angle = (self.lattice.coordinates(embeddings).astype(np.float64) @ self.frequency).astype(np.int64)
        place = angle >> (_TURN - _TABLE)
        both = np.concatenate([place, place - 2**_TABLE // 4], axis=1) % 2**_TABLE
        return _COSINE[both] / np.float32(math.sqrt(FEATURES / 2))


def mean_embedding(encoding: Encoding, environment: Environment, features: Features) -> Statistic:
    """Return the statistic whose sum over units, class by class, is the mean embedding times their number.

    Privacy: a series' vector has length one and follows from that series and public facts alone; a unit adds the mean
    of its series' vectors.
    """
    num_classes = num_labels(encoding.schema)

    def contributions(panel: Panel) -> Rows:
        shown = (part(panel, slice(None)) for part in (encoding.series, encoding.static))
        vectors = in_equal_batches(lambda *own: features(environment.embed(*own)), _BATCH, *shown)
        return Rows(vectors, classes_of(panel), num_classes)

    return Statistic(label=LABEL, shape=(num_classes, FEATURES), bound=1.0, contributions=contributions)


def maximum_entropy(
    features: Float32[np.ndarray, "candidate feature"], mean: Float64[np.ndarray, " feature"], noise: float
) -> Float64[np.ndarray, " candidate"]:
    """Return weights w that minimise KL(w ‖ uniform) + ‖Σ w φ − mean‖² / (2 noise²), by their dual.

    Args:
        noise: Standard deviation of a coordinate of `mean`. It is doubled until the weights are worth, as an effective
            sample 1/Σ w², a twentieth of the pool, and 250 candidates or a fifth of a small pool: no candidate may
            stand for many private series.
    """
    dual, least = np.zeros(len(mean)), max(_SMALLEST_SHARE * len(features), min(_FEWEST, _SHARE_OF_FEW * len(features)))
    while True:

        def objective(dual: np.ndarray, penalty: float = noise**2) -> tuple[float, np.ndarray]:
            logits = features @ dual.astype(np.float32)
            slope = softmax(logits) @ features - mean + penalty * dual
            return float(logsumexp(logits.astype(np.float64))) - dual @ mean + penalty / 2 * dual @ dual, slope

        dual = minimize(objective, dual, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
        weights = softmax((features @ dual.astype(np.float32)).astype(np.float64))
        if 1 / (weights**2).sum() >= least:
            return np.asarray(weights)
        noise *= math.sqrt(2)
