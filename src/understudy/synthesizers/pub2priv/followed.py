"""The way for few units: how closely series follow their context, in a few numbers, and `spectral` for all the rest.

A regression of shapes on context has hundreds of numbers, which noise drowns where units are few. What is left then is
one product for each factor, column of context and band of frequencies. A series that moves as its context does adds
one, whatever else it does, and nothing adds more.

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
from understudy.synthesizers.pub2priv.conditions import Conditions
from understudy.synthesizers.pub2priv.coordinates import Coordinates, scale_to_unit
from understudy.synthesizers.pub2priv.holds import NUM_CELLS, hold_cells, sure_shares

FOLLOWED = "followed"  # label under which the sum is charged
PRODUCTS, HOLDS = "followed.products", "followed.holds"
_BAND = 4  # each band of frequencies ends this many times later than the one before
_VOTE_SHARE = 1 / 3  # of the vote for how long values are held, beside all products
_FALSE = (0.1, 0.1, 0.003)  # how often noise alone passes for following in a band; in fast ones that roughens series
_SMALLEST = 0.1  # directions of context beside the largest that are told apart
_STEEPEST = 2.0  # movements of a series over those of its context
_MOST = 0.97  # of all that a series moves that may be its context's
_LEAST_REST = 0.1  # movements of a band that follow nothing, beside those that do
_SURE = 2.0  # deviations of noise by which following is said to be less than it was measured


@dataclass(frozen=True, eq=False)
class Followed:
    """What is summed, and the way back from it."""

    conditions: Conditions
    coordinates: Coordinates

    @property
    def bands(self) -> list[slice]:
        """Bands of movements, slowest first."""
        ends, number = [0], self.coordinates.schema.num_steps - 1
        while ends[-1] < number:
            ends.append(min(_BAND * (ends[-1] + 1) - 1, number))
        return [slice(*pair) for pair in pairwise(ends)]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Bands, factors and columns."""
        return len(self.bands), self.coordinates.schema.num_channels, self.conditions.num_columns

    @property
    def reach(self) -> float:
        """Most that the products of one series measure: Σ_b ⟨s_b, d_b⟩² ≤ 1 for each factor and column."""
        return float(np.sqrt(self.coordinates.schema.num_channels * self.conditions.num_columns))

    @property
    def bound(self) -> float:
        """Most that one series adds to the sum where nothing else is bought."""
        return followed_bound(self.coordinates.schema.num_channels, self.conditions.num_columns)

    @property
    def vote(self) -> float:
        """Weight of a vote."""
        return vote_weight(self.coordinates.schema.num_channels, self.conditions.num_columns)

    def buy(self, private: PrivateSeries, grant: Grant, public: np.ndarray | None) -> dict[str, np.ndarray]:
        """Returns the released mean products, 0 where noise may explain them, and how long values are held."""
        shape = (int(np.prod(self.shape)) + NUM_CELLS,)
        statistic = Statistic(label=FOLLOWED, shape=shape, bound=self.bound, contributions=self.contributions)
        noisy = grant.release(statistic, private)
        noise = grant.deviation(FOLLOWED, self.bound * private.reach) / private.population
        products, votes = np.split(noisy / private.population, [-NUM_CELLS])
        shares = sure_shares(votes / self.vote, noise / self.vote)
        return {PRODUCTS: heard(products.reshape(self.shape), noise), HOLDS: shares}

    def contributions(self, panel: Panel) -> Contributions:
        """Returns what series add; private if the panel is."""
        votes = replace(Cells.one_each(hold_cells(panel, slice(None))[:, None], NUM_CELLS), worth=self.vote)
        return SideBySide([Rows(self.products(panel)), votes])

    def products(self, panel: Panel) -> np.ndarray:
        """Returns ⟨s_b, d_b⟩ [series, band, factor, column], each no longer than `reach`; private if the panel is."""
        moves = unit_length(to_frequencies(self.coordinates.factors(panel, slice(None)))[:, 1:])
        signals = self._directions(panel.context, len(moves))
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
        scores, singles = self.coordinates.scores(self.coordinates.drawn(classes, rng), classes)
        if not self.bands:  # one step, which moves nowhere
            return scores, singles
        rotation = self.coordinates.model.rotation
        frequencies = to_frequencies(scores @ rotation)
        size = np.sqrt((frequencies[:, 1:] ** 2).sum(axis=1, keepdims=True))
        expected = self._expected(arrays[PRODUCTS], self._directions(context, len(classes)))
        frequencies[:, 1:] = size * self._turned(unit_length(frequencies[:, 1:]), expected)
        return np.asarray(to_steps(frequencies) @ np.linalg.inv(rotation)), singles

    def holds(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Returns the released shares of holds."""
        return arrays[HOLDS]

    def _expected(self, products: np.ndarray, signals: np.ndarray) -> np.ndarray:
        """Returns what contexts make one expect of s [series, frequency, factor], no longer than `_MOST`.

        In each band the products with the columns are those of a sum of columns, over all contexts asked for. Its
        weights are kept small, because these contexts may have next to nothing in a band that those of the fit had.
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
        """Returns directions that lie around what is expected; what follows nothing is drawn by `spectral`.

        A band that is followed has as much else as `spectral` leaves it, and bands that are not share what is left of
        length one: the fastest have least to say of few units, and most of it is noise.
        """
        whole, known = (self._energies(part) for part in (moves, expected))
        else_there = np.where(known > 0, np.maximum(whole - known, _LEAST_REST * known), 0.0)
        silent = np.where(known > 0, 0.0, whole)
        left = np.maximum(1 - (known + else_there).sum(axis=0), 0.0)
        kept = else_there + silent * np.minimum(left / np.maximum(silent.sum(axis=0), 1e-12), 1.0)
        scale = np.sqrt(np.maximum(kept / np.maximum(whole, 1e-12), _LEAST_REST))
        widths = [band.stop - band.start for band in self.bands]
        rest = moves * np.repeat(scale, widths, axis=0)
        rest -= expected * ((expected * rest).sum(axis=1) / np.maximum((expected**2).sum(axis=1), 1e-12))[:, None]
        root = np.sqrt(moves.shape[1])
        return expected + scale_to_unit(root * expected, root * rest)[:, None] * rest

    def _directions(self, context: np.ndarray | None, num_series: int) -> np.ndarray:
        """Returns d [series, frequency, column], no column without contexts of their own.

        Privacy: private if the contexts are; a row follows from its own context alone.
        """
        if context is None or not self.conditions.own:
            return np.zeros((num_series, self.coordinates.schema.num_steps - 1, 0))
        signals = np.nan_to_num(self.conditions.of_windows(context)).astype(np.float64)
        return unit_length(to_frequencies(signals)[:, 1:])

    def _energies(self, moves: np.ndarray) -> np.ndarray:
        """Returns the mean square length of movements by band and factor."""
        return np.stack([(moves[:, band] ** 2).sum(axis=1).mean(axis=0) for band in self.bands])


def vote_weight(num_channels: int, num_columns: int) -> float:
    """Returns the weight of a vote beside products, and where there are none."""
    return _VOTE_SHARE * float(np.sqrt(max(num_channels * num_columns, 1)))


def followed_bound(num_channels: int, num_columns: int) -> float:
    """Returns the most that one series adds: Σ_b ⟨s_b, d_b⟩² ≤ 1 for each factor and column, and one vote."""
    return float(np.hypot(np.sqrt(num_channels * num_columns), vote_weight(num_channels, num_columns)))


def explained(products: np.ndarray, noise: float) -> float:
    """Returns the share of movements that mean products say is surely some column's, mean of all factors.

    Of a column that is followed by c_b in bands with shares g_b of its movements, Σ c_b²/g_b ≥ (Σ c_b)². The column
    that seems to be followed most owes part of that to noise, so deviations of it are taken off Σ c_b.
    """
    size = np.abs(products.sum(axis=0)) - _SURE * noise * np.sqrt((products != 0).sum(axis=0))
    return float((np.maximum(size, 0.0) ** 2).max(axis=1, initial=0.0).mean())


def heard(products: np.ndarray, noise: float) -> np.ndarray:
    """Returns the products [band, factor, column] that stand out of noise of a known size, and 0 for the others."""
    false = [_FALSE[min(band, len(_FALSE) - 1)] for band in range(len(products))]
    loudest = noise**2 * chi2.isf(false, max(products.shape[2], 1))
    return np.where((products**2).sum(axis=2, keepdims=True) > loudest[:, None, None], products, 0.0)
