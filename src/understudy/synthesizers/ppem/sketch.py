"""The sketch of x′: noisy histograms of its columns and how they move together, from which reference points are drawn.

It is bought once and stays inside: whoever held it would hold the distribution that is to be hidden. It is
differentially private all the same, so whatever is trained on its points is post-processing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from understudy.data import Channel
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.mechanisms import Bounded, clip_rows
from understudy.synthesizers.base import PrivateSeries
from understudy.synthesizers.spectral.marginals import Marginal, grid_of, marginal_from, vote_counts
from understudy.synthesizers.spectral.pairs import num_pairs, pack_pairs, unpack_pairs

COUNTS, TOGETHER = "sketch", "sketch dependence"
SHARES = {COUNTS: 0.1, TOGETHER: 0.05}  # of mu²
_LEAST = 1e-3  # eigenvalue of a correlation
_RADIUS = 1.5  # of a column's product with itself that a unit may weigh, as in `spectral`


def shares(num_columns: int) -> dict[str, float]:
    """Returns what a sketch of so many columns buys; one column has nothing to move together with."""
    return SHARES if num_columns > 1 else {COUNTS: SHARES[COUNTS]}


@dataclass(frozen=True, eq=False, repr=False)
class Sketch:
    """Released facts about x′: a marginal for each column, and the correlation of their normal scores."""

    marginals: tuple[Marginal, ...]
    correlation: np.ndarray

    def draw(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Returns points [point, column] in the user's units."""
        factor = np.linalg.cholesky(self.correlation)
        ranks = ndtr(rng.standard_normal((number, len(self.marginals))) @ factor.T)
        return np.stack([own.values_of(ranks[:, n]) for n, own in enumerate(self.marginals)], axis=1)


def buy(values: np.ndarray, columns: tuple[Channel, ...], private: PrivateSeries, grant: Grant) -> Sketch:
    """Releases the sketch of sensitive columns [series, column].

    Privacy: counts are one vote per series and column, so a unit's series together move them by at most √columns.
    Products of scores are clipped row by row to a public length. Both are multiplied by `influence`.
    """
    number = len(columns)
    bound = float(np.sqrt(number)) * private.influence
    noise = _multiplier(grant, COUNTS) * bound
    grids = [grid_of(column, noise / private.population) for column in columns]
    counts = [vote_counts(values[:, [n]], private.weights, grid) for n, grid in enumerate(grids)]
    noisy = grant.gaussian(COUNTS, Bounded(np.concatenate(counts), bound))
    parts = np.split(noisy, np.cumsum([grid.num_cells for grid in grids])[:-1])
    marginals = tuple(marginal_from(part, grid, noise) for part, grid in zip(parts, grids, strict=True))
    if number == 1:
        return Sketch(marginals, np.eye(1))
    scores = np.stack([np.nan_to_num(own.scores_of(values[:, n])) for n, own in enumerate(marginals)], axis=1)
    radius = _RADIUS * number
    total = np.zeros(num_pairs(number))
    for rows in (slice(begin, begin + 4096) for begin in range(0, len(scores), 4096)):
        products = pack_pairs(scores[rows][:, :, None] * scores[rows][:, None])
        total += private.weights[rows] @ clip_rows(products, radius)
    mean = grant.gaussian(TOGETHER, Bounded(total, radius * private.influence)) / private.population
    error = _multiplier(grant, TOGETHER) * radius * private.influence / private.population
    return Sketch(marginals, nearest_correlation(unpack_pairs(mean[None], number)[0], error))


def nearest_correlation(moments: np.ndarray, error: float) -> np.ndarray:
    """Returns a correlation matrix near noisy moments, of which nothing below twice the noise is believed."""
    deviation = np.sqrt(np.maximum(np.diag(moments), 0.1))
    believed = np.where(np.abs(moments) > 2 * error, moments, 0.0) / np.outer(deviation, deviation)
    np.fill_diagonal(believed, 1.0)
    values, vectors = np.linalg.eigh(np.clip(believed, -1, 1))
    positive = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    size = np.sqrt(np.diag(positive))
    return np.asarray(positive / np.outer(size, size))


def _multiplier(grant: Grant, label: str) -> float:
    event = grant.plan.event(label)
    assert isinstance(event, Gaussian)
    return event.noise_multiplier
