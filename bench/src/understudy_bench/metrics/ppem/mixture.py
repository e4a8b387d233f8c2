"""A smooth density of real series, by its score: what the Stein discrepancies compare candidates with."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from understudy.data import Panel
from understudy.evaluation.metric import Undefined
from understudy.evaluation.panels import Scale

NUM_COMPONENTS = 5  # as in the study of the PPEM paper, section 5.1
NUM_DIMENSIONS = 5
_SERIES_PER_COMPONENT = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixture:
    """A mixture of Gaussians.

    Attributes:
        weights: [component].
        means: [component, dimension].
        precisions: [component, dimension, dimension], inverses of the covariances.
    """

    weights: np.ndarray
    means: np.ndarray
    precisions: np.ndarray

    def score(self, points: np.ndarray) -> np.ndarray:
        """Returns ∇ log p at points [point, dimension]."""
        pulls = np.einsum("kij,pkj->pki", self.precisions, self.means - points[:, None, :])
        squared = np.einsum("pki,pki->pk", self.means - points[:, None, :], pulls)
        log = np.log(self.weights) + np.linalg.slogdet(self.precisions)[1] / 2 - squared / 2
        shares = np.exp(log - log.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("pk,pki->pi", shares, pulls))


@dataclass(frozen=True, eq=False, kw_only=True)
class SeriesDensity:
    """Real series as a mixture over their leading principal components, each with variance 1."""

    scale: Scale
    middle: np.ndarray
    axes: np.ndarray
    mixture: Mixture

    def points(self, panel: Panel) -> np.ndarray:
        """Returns series as points [series, dimension] of the space that the density lives in."""
        flat = self.scale.unit(panel).reshape(panel.num_series, -1)
        return np.asarray((flat - self.middle) @ self.axes, dtype=np.float64)


@lru_cache(maxsize=16)  # three metrics ask for the same density
def series_density(real: Panel) -> SeriesDensity:
    """Returns the density of real series: at most 5 components in at most 5 dimensions, fewer for few series."""
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture

    scale = Scale.of(real)
    flat = scale.unit(real).reshape(real.num_series, -1)
    if not flat.std(axis=0).max(initial=0.0) > 1e-6:
        raise Undefined("all real series are equal: they have no density.")
    leading = PCA(min(NUM_DIMENSIONS, *flat.shape), svd_solver="randomized", random_state=0).fit(flat)
    spread = np.sqrt(leading.explained_variance_)
    kept = spread > 1e-5 * spread[0]
    axes = (leading.components_[kept] / spread[kept, None]).T
    points = ((flat - leading.mean_) @ axes).astype(np.float64)
    number = max(1, min(NUM_COMPONENTS, len(points) // _SERIES_PER_COMPONENT))
    fitted = GaussianMixture(number, reg_covar=1e-3, random_state=0).fit(points)
    mixture = Mixture(weights=fitted.weights_, means=fitted.means_, precisions=fitted.precisions_)
    return SeriesDensity(scale=scale, middle=leading.mean_, axes=axes, mixture=mixture)
