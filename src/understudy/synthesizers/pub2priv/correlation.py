"""The estimator for few units: the mean correlation of series and context in each band of frequencies.

A regression of shapes on context has hundreds of numbers, which noise drowns where units are few. One product for each
factor, column of context and band of frequencies is left: a series that moves as its context does adds one, and no
series adds more. Everything else of a sample is `spectral`'s.

Notation: s and d directions of all movements of a factor and of a column, length one each; a band b is two octaves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.stats import chi2

from understudy.data import Panel
from understudy.privacy.border import Statistic
from understudy.privacy.contributions import Cells, Contributions, Rows, SideBySide
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.series import to_frequencies, to_steps, unit_length
from understudy.synthesizers.pub2priv.context import Context
from understudy.synthesizers.pub2priv.spectral_base import (
    NUM_RUN_CELLS,
    SpectralBase,
    run_length_cells,
    significant_shares,
)

CORRELATION = "correlation"  # label under which the sum is charged
PRODUCTS, RUNS = "correlation.products", "correlation.runs"
_BAND = 4  # ratio of the ends of neighbouring bands
_VOTE_SHARE = 1 / 3  # weight of the vote for a run length, relative to all products
_FALSE = (0.1, 0.1, 0.003)  # false-alarm rate of a band; a fast one that is followed by mistake roughens every series
_SMALLEST = 0.1  # relative eigenvalue below which directions of context are not separated
_STEEPEST = 2.0  # bound on the movements of a series relative to those of its context
_MOST = 0.97  # bound on the share of a series' movements that its context explains
_LEAST_REST = 0.1  # residual movements of a band, relative to explained ones, at least
_SURE = 2.0  # standard deviations of noise taken off an explained share


@dataclass(frozen=True, eq=False)
class ContextCorrelation:
    """Mean products ⟨s_b, d_b⟩, and samples that follow their context as closely."""

    context: Context
    base: SpectralBase

    @property
    def bands(self) -> list[slice]:
        """Bands of frequencies above 0, slowest first."""
        ends, number = [0], self.base.schema.num_steps - 1
        while ends[-1] < number:
            ends.append(min(_BAND * (ends[-1] + 1) - 1, number))
        return [slice(*pair) for pair in pairwise(ends)]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Bands, factors and columns."""
        return len(self.bands), self.base.schema.num_channels, self.context.num_columns

    @property
    def products_bound(self) -> float:
        """Bound on the products of one series: Σ_b ⟨s_b, d_b⟩² ≤ 1 for each factor and column."""
        return float(np.sqrt(self.base.schema.num_channels * self.context.num_columns))

    @property
    def bound(self) -> float:
        """Bound on what one series adds to the sum."""
        return correlation_bound(self.base.schema.num_channels, self.context.num_columns)

    @property
    def vote(self) -> float:
        """Weight of a vote."""
        return vote_weight(self.base.schema.num_channels, self.context.num_columns)

    def release(self, private: PrivateSeries, grant: Grant) -> dict[str, np.ndarray]:
        """Releases the mean products, 0 where noise may explain them, and the shares of run lengths."""
        shape = (int(np.prod(self.shape)) + NUM_RUN_CELLS,)
        statistic = Statistic(label=CORRELATION, shape=shape, bound=self.bound, contributions=self.contributions)
        noisy = grant.release(statistic, private)
        noise = grant.deviation(CORRELATION, self.bound * private.reach) / private.population
        products, votes = np.split(noisy / private.population, [-NUM_RUN_CELLS])
        shares = significant_shares(votes / self.vote, noise / self.vote)
        return {PRODUCTS: significant(products.reshape(self.shape), noise), RUNS: shares}

    def contributions(self, panel: Panel) -> Contributions:
        """Returns what series add; private if the panel is."""
        votes = replace(Cells.one_each(run_length_cells(panel)[:, None], NUM_RUN_CELLS), worth=self.vote)
        return SideBySide([Rows(self.products(panel)), votes])

    def products(self, panel: Panel) -> np.ndarray:
        """Returns ⟨s_b, d_b⟩ [series, band, factor, column]; private if the panel is."""
        moves = unit_length(to_frequencies(self.base.factors(panel))[:, 1:])
        signals = self.context.directions(panel.context, len(moves))
        found = np.zeros((len(moves), *self.shape))
        for place, band in enumerate(self.bands):
            found[:, place] = np.einsum("sfa,sfc->sac", moves[:, band], signals[:, band])
        return found

    def scores(
        self,
        arrays: Mapping[str, np.ndarray],
        context: np.ndarray | None,
        classes: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns (scores [series, step, channel], scores of static columns) of series for the contexts given."""
        scores, singles = self.base.scores(self.base.sample_coordinates(classes, rng), classes)
        if not self.bands:  # one step, which moves nowhere
            return scores, singles
        rotation = self.base.model.rotation
        frequencies = to_frequencies(scores @ rotation)
        size = np.sqrt((frequencies[:, 1:] ** 2).sum(axis=1, keepdims=True))
        expected = self._expected(arrays[PRODUCTS], self.context.directions(context, len(classes)))
        frequencies[:, 1:] = size * self._turned(unit_length(frequencies[:, 1:]), expected)
        return np.asarray(to_steps(frequencies) @ np.linalg.inv(rotation)), singles

    def run_shares(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the released shares of run lengths."""
        return arrays[RUNS]

    def _expected(self, products: np.ndarray, signals: np.ndarray) -> np.ndarray:
        """Returns the expectation of s [series, frequency, factor] given contexts, no longer than `_MOST`.

        In each band the products with the columns are those of a sum of columns, over all contexts asked for. Its
        weights are bounded, because these contexts may have next to nothing in a band that those of the fit had.
        """
        expected = np.zeros((*signals.shape[:2], products.shape[1]))
        if not signals.shape[2]:
            return expected
        for band, both in zip(self.bands, products, strict=True):
            gram = np.einsum("sfc,sfd->cd", signals[:, band], signals[:, band], optimize=True) / len(signals)
            weights = np.linalg.pinv(gram, rcond=_SMALLEST, hermitian=True) @ both.T  # [column, factor]
            steep = np.maximum(np.linalg.norm(weights, axis=0), 1e-12)
            expected[:, band] = signals[:, band] @ (weights * np.minimum(1.0, _STEEPEST / steep))
        length = np.sqrt((expected**2).sum(axis=1, keepdims=True))
        return expected * np.minimum(1.0, _MOST / np.maximum(length, 1e-12))

    def _turned(self, moves: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Returns directions of length one around the expectation; the residual is a sample of `spectral`.

        A band that follows context keeps the residual that `spectral` has there; bands that do not share what is left
        of length one.
        """
        whole, known = (self._energies(part) for part in (moves, expected))
        residual = np.where(known > 0, np.maximum(whole - known, _LEAST_REST * known), 0.0)
        silent = np.where(known > 0, 0.0, whole)
        left = np.maximum(1 - (known + residual).sum(axis=0), 0.0)
        kept = residual + silent * np.minimum(left / np.maximum(silent.sum(axis=0), 1e-12), 1.0)
        scale = np.sqrt(np.maximum(kept / np.maximum(whole, 1e-12), _LEAST_REST))
        widths = [band.stop - band.start for band in self.bands]
        rest = moves * np.repeat(scale, widths, axis=0)
        rest -= expected * ((expected * rest).sum(axis=1) / np.maximum((expected**2).sum(axis=1), 1e-12))[:, None]
        return expected + _to_length_one(expected, rest)[:, None] * rest

    def _energies(self, moves: np.ndarray) -> np.ndarray:
        """Returns the mean square length of movements by band and factor."""
        return np.stack([(moves[:, band] ** 2).sum(axis=1).mean(axis=0) for band in self.bands])


def vote_weight(num_channels: int, num_columns: int) -> float:
    """Returns the weight of a vote relative to the products, and where there are none."""
    return _VOTE_SHARE * float(np.sqrt(max(num_channels * num_columns, 1)))


def correlation_bound(num_channels: int, num_columns: int) -> float:
    """Returns the bound on what one series adds: Σ_b ⟨s_b, d_b⟩² ≤ 1 for each factor and column, and one vote."""
    return float(np.hypot(np.sqrt(num_channels * num_columns), vote_weight(num_channels, num_columns)))


def explained_share(products: np.ndarray, noise: float) -> float:
    """Returns a lower bound on the share of movements that one column explains, mean of all factors.

    Of a column with correlations c_b in bands with shares g_b of its movements, Σ c_b²/g_b ≥ (Σ c_b)². The largest of
    several columns owes part of that to noise, so standard deviations of it are taken off Σ c_b.
    """
    size = np.abs(products.sum(axis=0)) - _SURE * noise * np.sqrt((products != 0).sum(axis=0))
    return float((np.maximum(size, 0.0) ** 2).max(axis=1, initial=0.0).mean())


def significant(products: np.ndarray, noise: float) -> np.ndarray:
    """Returns the products [band, factor, column] that stand out of noise of a known size, and 0 for the others."""
    false = [_FALSE[min(band, len(_FALSE) - 1)] for band in range(len(products))]
    loudest = noise**2 * chi2.isf(false, max(products.shape[2], 1))
    return np.where((products**2).sum(axis=2, keepdims=True) > loudest[:, None, None], products, 0.0)


def _to_length_one(known: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Returns c ≥ 0 [series, factor] with ‖known + c · free‖ = 1 over the frequencies, as far as there is one."""
    square, half = (free**2).sum(axis=1), (known * free).sum(axis=1)
    root = np.sqrt(np.maximum(half**2 + square * (1 - (known**2).sum(axis=1)), 0.0))
    return np.maximum((root - half) / np.maximum(square, 1e-12), 0.0)
