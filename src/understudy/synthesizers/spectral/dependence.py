"""Step seven: which coordinates of a series move together.

Coordinates are of unit size: single columns first, then blocks of one number per channel (level, volatility, every
frequency). One Gaussian release of second moments. Pairs *inside* a block are always measured; pairs of two blocks as
`choose_coupling` decides, because long series have more pairs than a population can pay for. What is released is
clipped as a whole, so the bound is the radius.

Notation: y coordinates of one series, W weights of pairs, D the number of coordinates, b a block.
"""

from dataclasses import dataclass

import numpy as np

from understudy.privacy.contributions import Products, SideBySide
from understudy.statistics.copula import Covariance
from understudy.statistics.counts import shrink
from understudy.statistics.series import bands, dct_matrix, num_pairs, symmetric

MAX_COUPLED = 1024
_SLACK = 1.5  # clip radius² over its expectation for independent Gaussian coordinates
_DOUBT = 0.5  # how far a variance of unit-size coordinates may be expected to lie from one
_FLOOR = 0.005  # smallest eigenvalue of a block of correlations


@dataclass(frozen=True, eq=False)
class Coupling:
    """Which pairs are measured, and how strongly.

    Coordinates stand in this order: single columns, the channels of every coupled block, the channels of every free
    block. Coupled blocks are measured against each other, free ones within themselves only.
    """

    num_single: int
    num_channels: int
    num_coupled_blocks: int
    order: np.ndarray  # blocks (level, volatility, frequencies), the coupled ones first
    cross_weight: float  # of a pair from two blocks, relative to a pair of the same one

    @property
    def num_coupled(self) -> int:
        """Coordinates whose pairs are all measured."""
        return self.num_single + self.num_coupled_blocks * self.num_channels

    @property
    def num_free(self) -> int:
        """Blocks that keep only the pairs of their own."""
        return len(self.order) - self.num_coupled_blocks

    @property
    def num_pairs(self) -> int:
        """Length of the released vector."""
        return num_pairs(self.num_coupled) + self.num_free * num_pairs(self.num_channels)

    @property
    def same_block(self) -> np.ndarray:
        """True [coupled, coupled] for pairs of one block."""
        return np.asarray(self.block[:, None] == self.block[None])

    @property
    def radius(self) -> float:
        """Clip radius of the weighted second moments, from their size for independent Gaussian coordinates."""
        width = self.num_channels
        within = len(self.order) * (width**2 + 2 * width) + 3 * self.num_single
        across = self.num_coupled**2 - self.num_coupled_blocks * width**2 - self.num_single
        diagonal = 3 * (len(self.order) * width + self.num_single)
        return float(np.sqrt(_SLACK * (within + self.cross_weight**2 * across + diagonal) / 2))

    @property
    def block(self) -> np.ndarray:
        """Block [coupled] of each coupled coordinate; a single column is one by itself."""
        grouped = np.repeat(np.arange(self.num_coupled_blocks), self.num_channels)
        return np.concatenate([np.arange(self.num_single), self.num_single + grouped])

    def moments(self, singles: np.ndarray, blocks: np.ndarray, kinds: np.ndarray, num_kinds: int) -> SideBySide:
        """Returns second moments of [series, single] and [series, block, channel], kind by kind."""
        arranged = np.concatenate([singles, blocks[:, self.order].reshape(len(blocks), -1)], axis=1)
        coupled, free = np.split(arranged, [self.num_coupled], axis=1)
        apart = free.reshape(len(free), self.num_free, self.num_channels)
        return SideBySide(
            [
                Products(coupled[:, None], self.block, 1.0, self.cross_weight, kinds, num_kinds),
                Products(apart, place=kinds, num_places=num_kinds),
            ]
        )

    def by_kind(self, released: np.ndarray, num_kinds: int) -> np.ndarray:
        """Returns the released sums [kind, pair] of `moments`."""
        split = num_kinds * num_pairs(self.num_coupled)
        return np.concatenate([part.reshape(num_kinds, -1) for part in np.split(released, [split])], axis=1)


def choose_coupling(
    num_single: int, energy: np.ndarray, num_channels: int, *, clockless: bool, relative_noise: float
) -> Coupling:
    """Decides from public numbers and the released spectrum [block] which pairs to pay for.

    Series with a clock (every one starts on the same Monday) have patterns locked to it, which couple frequencies
    across the spectrum: the strongest frequencies are coupled, as many as the noise lets one see. Series without a
    clock have almost none of that, so every frequency is coupled, at a low weight, and most of the budget stays
    with the pairs inside a frequency.
    """
    num_blocks = len(energy)
    if clockless:
        affordable = (MAX_COUPLED - num_single) // num_channels
        coupled, order = min(num_blocks, max(1, affordable)), np.arange(num_blocks)
        return Coupling(num_single, num_channels, coupled, order, float(1 / np.sqrt(coupled + num_single)))
    # The edge of the noise, 2 · noise · √D with noise = multiplier · √1.5 · D / (√2 · population), stays below one.
    affordable = min(int((1 / (1.73 * relative_noise)) ** (2 / 3)), MAX_COUPLED) - num_single
    coupled = min(num_blocks, max(2, affordable // num_channels))
    order = np.concatenate([[0, 1], 2 + np.argsort(-energy[2:], kind="stable")])
    order[:coupled].sort()
    return Coupling(num_single, num_channels, coupled, order, 1.0)


def unpack_moments(vector: np.ndarray, coupling: Coupling) -> tuple[np.ndarray, np.ndarray]:
    """Returns (coupled moments without their weights, moments of the free blocks)."""
    split, width = num_pairs(coupling.num_coupled), coupling.num_channels
    coupled = symmetric(vector[None, :split], coupling.num_coupled)[0]
    coupled /= np.where(coupling.same_block, 1.0, coupling.cross_weight)
    return coupled, symmetric(vector[split:].reshape(coupling.num_free, num_pairs(width)), width)


def fit_covariance(moments: np.ndarray, noise: float, coupling: Coupling, deviation: np.ndarray | None) -> Covariance:
    """Returns the covariances behind noisy mean second moments.

    Args:
        deviation: Standard deviations [frequency, channel] of the coefficients when series have no clock, so that
            correlations across frequencies are known up to the spectrum; None when they have one.
    """
    coupled, free = unpack_moments(moments, coupling)
    variance = np.concatenate([np.diag(coupled), np.diagonal(free, axis1=1, axis2=2).ravel()])
    middle = shrink(np.array([np.median(variance)]), np.ones(1), 1.25 * noise / np.sqrt(len(variance)), _DOUBT)[0][0]
    scale = 1 / min(max(float(middle), 0.2), 2.0)  # the clip shrank all moments alike
    coupled, free, noise = coupled * scale, free * scale, noise * scale
    spread = np.sqrt(_variances(variance * scale, noise, coupling))
    first, rest = spread[: len(coupled)], spread[len(coupled) :].reshape(free.shape[:2])
    repaired = _repair_blocks(coupled / np.outer(first, first), noise, coupling)
    expected = np.zeros_like(repaired)
    if deviation is not None and coupling.num_free == 0 and coupling.num_single == 0:
        expected = np.where(
            coupling.same_block, 0.0, stationary_prior(repaired, deviation * first.reshape(deviation.shape))
        )
    across = np.where(coupling.same_block, 0.0, coupled / np.outer(first, first) - expected)
    signal = np.where(coupling.same_block, 0.0, _loud_directions(across, noise / coupling.cross_weight))
    correlation = nearest_correlation(repaired + expected + signal)
    own = [np.outer(s, s) * _correlation_block(b / np.outer(s, s), noise) for b, s in zip(free, rest, strict=True)]
    return Covariance(correlation * np.outer(first, first), np.stack(own) if own else free)


def _variances(noisy: np.ndarray, noise: float, coupling: Coupling) -> np.ndarray:
    """Returns variances near one, of single columns and of blocks in their order: what noise explains is taken out.

    Octave by octave, because a spectrum that was measured with noise is off by about the same at frequencies that are
    near each other.
    """
    rest = noisy[coupling.num_single :].reshape(len(coupling.order), coupling.num_channels)
    blocks = rest[np.argsort(coupling.order)]
    settled = np.empty_like(blocks)
    for group in (np.array([0]), *(band + 1 for band in bands(len(blocks) - 1))):
        mean = blocks[group].mean(axis=0, keepdims=True)
        pooled = shrink(mean, np.ones_like(mean), noise / np.sqrt(len(blocks[group])), _DOUBT)[0]
        settled[group] = shrink(blocks[group], np.broadcast_to(pooled, blocks[group].shape), noise, _DOUBT)[0]
    whole = np.concatenate([np.ones(coupling.num_single), settled[coupling.order].ravel()])
    return np.clip(whole, 0.1, 4.0)


def _loud_directions(matrix: np.ndarray, noise: float) -> np.ndarray:
    """Keeps the directions whose eigenvalue leaves the bulk of a noise matrix, the semicircle's edge 2 · noise · √D.

    An eigenvalue λ appears as λ + noise² D / λ (Capitaine, Donati-Martin and Féral 2009); that is undone.
    """
    values, vectors = np.linalg.eigh(matrix)
    edge = 2 * noise * np.sqrt(len(matrix))
    loud = np.abs(values) > edge * (1 + len(matrix) ** (-2 / 3))  # 1 % by Tracy and Widom (1996)
    size = np.abs(values[loud])
    true = np.sign(values[loud]) * (size + np.sqrt(size**2 - edge**2)) / 2
    return np.asarray((vectors[:, loud] * true) @ vectors[:, loud].T)


def _repair_blocks(moments: np.ndarray, noise: float, coupling: Coupling) -> np.ndarray:
    """Returns a matrix whose blocks are correlation matrices and whose other pairs are zero."""
    repaired = np.eye(len(moments))
    for start in range(coupling.num_single, len(moments), coupling.num_channels):
        here = slice(start, start + coupling.num_channels)
        repaired[here, here] = _correlation_block(moments[here, here], noise)
    return repaired


def _correlation_block(block: np.ndarray, noise: float) -> np.ndarray:
    """Lifts eigenvalues that noise could have made to a floor."""
    unit = block.copy()
    np.fill_diagonal(unit, 1.0)
    return nearest_correlation(unit, min(max(_FLOOR, 0.15 * noise * np.sqrt(len(block))), 0.5))


def nearest_correlation(matrix: np.ndarray, floor: float = 1e-3) -> np.ndarray:
    """Returns a correlation matrix: eigenvalues lifted to `floor`, then the diagonal scaled back to one."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    lifted = (vectors * np.maximum(values, floor)) @ vectors.T
    deviation = np.sqrt(np.diag(lifted))
    return lifted / np.outer(deviation, deviation)


def stationary_prior(correlation: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Returns the correlations across frequencies that a process without a clock has.

    A spectrum alone, turned back into time, would be mirrored at both ends of the window. Averaging its covariance
    along each lag makes it the same at every step; the correlations across frequencies follow.
    """
    num_channels = deviation.shape[1]
    clock = np.delete(np.arange(len(correlation)), np.s_[num_channels : 2 * num_channels])  # without volatility
    frequencies = np.delete(deviation, 1, axis=0)
    covariance = _same_at_every_step(
        correlation[np.ix_(clock, clock)] * np.multiply.outer(frequencies.ravel(), frequencies.ravel()),
        frequencies.shape,
    )
    variance = np.diag(covariance)
    prior = np.zeros_like(correlation)
    prior[np.ix_(clock, clock)] = covariance / np.sqrt(np.maximum(np.outer(variance, variance), 1e-18))
    return prior


def _same_at_every_step(covariance: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns the covariance of coefficients after averaging it over time along every lag."""
    num_steps, num_channels = shape
    basis = np.kron(dct_matrix(num_steps), np.eye(num_channels))
    in_time = (basis.T @ covariance @ basis).reshape(num_steps, num_channels, num_steps, num_channels)
    averaged = np.empty_like(in_time)
    for lag in range(1 - num_steps, num_steps):
        step = np.arange(max(0, -lag), min(num_steps, num_steps - lag))
        averaged[step, :, step + lag, :] = in_time[step, :, step + lag, :].mean(0)
    size = num_steps * num_channels
    return np.asarray(basis @ averaged.reshape(size, size) @ basis.T)
