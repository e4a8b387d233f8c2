"""The sketch of x′: noisy histograms of its columns and how they move together, from which reference points are drawn.

It is bought once and stays inside: whoever held it would hold the distribution that is to be hidden. It is
differentially private all the same, so whatever is trained on its points is post-processing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from understudy.data import Channel
from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Cells, Products
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.marginals import Marginal, grid_of, marginal_from
from understudy.statistics.moments import num_pairs, symmetric

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
    """Releases the sketch of sensitive columns [series, column]: a vote for each, and products of their scores."""
    number = len(columns)
    bound = float(np.sqrt(number))
    noise = grant.deviation(COUNTS, bound * private.reach)
    grids = [grid_of(column, noise / private.population) for column in columns]
    sizes = np.array([grid.num_cells for grid in grids])
    series, column = np.nonzero(~np.isnan(values))
    cells = np.stack([grid.cells_of(np.nan_to_num(values[:, n])) for n, grid in enumerate(grids)], axis=1)
    votes = Cells(series, column, cells[series, column], 1.0, len(values), sizes)
    counted = Statistic(label=COUNTS, shape=(int(sizes.sum()),), bound=bound)
    parts = np.split(grant.release(counted, private.given(votes)), np.cumsum(sizes)[:-1])
    marginals = tuple(marginal_from(part, grid, noise) for part, grid in zip(parts, grids, strict=True))
    if number == 1:
        return Sketch(marginals, np.eye(1))
    scores = np.stack([np.nan_to_num(own.scores_of(values[:, n])) for n, own in enumerate(marginals)], axis=1)
    radius = _RADIUS * float(np.sqrt(num_pairs(number)))
    together = Statistic(label=TOGETHER, shape=(num_pairs(number),), bound=radius)
    mean = grant.release(together, private.given(Products(scores[:, None]))) / private.population
    error = grant.deviation(TOGETHER, radius * private.reach) / private.population
    return Sketch(marginals, nearest_correlation(symmetric(mean[None], number)[0], error))


def nearest_correlation(moments: np.ndarray, error: float) -> np.ndarray:
    """Returns a correlation matrix near noisy moments, of which nothing below twice the noise is believed."""
    deviation = np.sqrt(np.maximum(np.diag(moments), 0.1))
    believed = np.where(np.abs(moments) > 2 * error, moments, 0.0) / np.outer(deviation, deviation)
    np.fill_diagonal(believed, 1.0)
    values, vectors = np.linalg.eigh(np.clip(believed, -1, 1))
    positive = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    size = np.sqrt(np.diag(positive))
    return np.asarray(positive / np.outer(size, size))
