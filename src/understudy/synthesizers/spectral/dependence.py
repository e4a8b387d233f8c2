"""Step five: which coordinates of the spectrum move together.

Coordinates are normal scores: first of the static columns, then of all coefficients, frequency by frequency. One
Gaussian release of second moments, in which pairs of *the same* frequency weigh fully and other pairs weigh less:
dependence between channels lives mostly within a frequency, so most of the budget does too. Long series with many
channels have more pairs than a population can pay for; beyond `MAX_COUPLED` coordinates, the higher frequencies keep
only the pairs of their own frequency. What is released is clipped as a whole, so the bound is the radius.

Notation: y coordinates of one series, R their correlation matrix, b a block (one frequency).
"""

from dataclasses import dataclass

import numpy as np

MAX_COUPLED = 1024
_SLACK = 1.5  # clip radius² over its expectation for independent Gaussian coordinates
_FLOOR = 0.005  # smallest eigenvalue of a block of correlations


@dataclass(frozen=True)
class Blocks:
    """Which coordinates belong together: single ones first, then `num_frequencies` blocks of `num_channels`."""

    num_single: int
    num_frequencies: int
    num_channels: int

    @property
    def num_coupled_frequencies(self) -> int:
        """Frequencies whose pairs with other frequencies are measured."""
        return min(self.num_frequencies, max(1, (MAX_COUPLED - self.num_single) // self.num_channels))

    @property
    def num_coupled(self) -> int:
        """Coordinates whose pairs are all measured."""
        return self.num_single + self.num_coupled_frequencies * self.num_channels

    @property
    def num_free(self) -> int:
        """Frequencies that keep only the pairs of their own block."""
        return self.num_frequencies - self.num_coupled_frequencies

    @property
    def same_block(self) -> np.ndarray:
        """True [coupled, coupled] for pairs of one block."""
        grouped = np.repeat(np.arange(self.num_coupled_frequencies), self.num_channels)
        member = np.concatenate([-1 - np.arange(self.num_single), grouped])
        return np.asarray(member[:, None] == member[None])

    @property
    def cross_weight(self) -> float:
        """Weight of a pair from two blocks: both kinds of pairs then take the same share of the radius."""
        return float(1 / np.sqrt(self.num_coupled_frequencies + self.num_single))

    @property
    def radius(self) -> float:
        """Clip radius of the weighted second moments."""
        width = self.num_channels
        within = self.num_frequencies * (width**2 + 2 * width) + 3 * self.num_single
        across = self.num_coupled**2 - self.num_coupled_frequencies * width**2 - self.num_single
        return float(np.sqrt(_SLACK * (within + self.cross_weight**2 * across)))

    def weights(self) -> np.ndarray:
        """Weight [coupled, coupled] of each second moment."""
        return np.where(self.same_block, 1.0, self.cross_weight)


def shrink_factors(coordinates: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Returns per series the factor that brings its weighted second moments inside the radius.

    ‖W ∘ yyᵀ‖² = Σ_b ‖y_b‖⁴ + w² (‖y‖⁴ − Σ_b ‖y_b‖⁴) over the coupled blocks, plus Σ_b ‖y_b‖⁴ over the free ones.
    """
    squares = coordinates**2
    singles, rest = squares[:, : blocks.num_single], squares[:, blocks.num_single :]
    by_block = rest.reshape(len(squares), blocks.num_frequencies, blocks.num_channels).sum(2)
    coupled = by_block[:, : blocks.num_coupled_frequencies]
    within = (coupled**2).sum(1) + (singles**2).sum(1)
    total = coupled.sum(1) + singles.sum(1)
    free = (by_block[:, blocks.num_coupled_frequencies :] ** 2).sum(1)
    norm = np.sqrt(within + blocks.cross_weight**2 * np.maximum(total**2 - within, 0) + free)
    factors = np.minimum(1.0, blocks.radius * (1 - 1e-5) / np.maximum(norm, 1e-12))
    return np.where(np.isfinite(norm), factors, 0.0)


def moment_sums(coordinates: np.ndarray, weights: np.ndarray, blocks: Blocks) -> np.ndarray:
    """Returns the weighted sum of clipped second moments, as one vector whose length per series is ≤ radius."""
    factors = (shrink_factors(coordinates, blocks) * weights)[:, None]
    bounded = np.where(factors > 0, coordinates, 0)
    coupled = bounded[:, : blocks.num_coupled]
    moments = (coupled * factors).T @ coupled * blocks.weights()
    free = bounded[:, blocks.num_coupled :].reshape(len(bounded), blocks.num_free, blocks.num_channels)
    own = np.einsum("sbi,sbj->bij", free * factors[:, :, None], free, optimize=True)
    return np.concatenate([_triangles(moments[None]).ravel(), _triangles(own).ravel()])


def unpack_moments(vector: np.ndarray, blocks: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Returns (coupled moments without their weights, moments of the free blocks)."""
    split = blocks.num_coupled * (blocks.num_coupled + 1) // 2
    coupled = _from_triangles(vector[None, :split], blocks.num_coupled)[0] / blocks.weights()
    free = _from_triangles(vector[split:].reshape(blocks.num_free, blocks.num_channels * (blocks.num_channels + 1) // 2), blocks.num_channels)
    return coupled, free


def _triangles(matrices: np.ndarray) -> np.ndarray:
    """Returns upper triangles [matrix, pair] of the same Euclidean length: pairs off the diagonal weigh √2."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2))


def _from_triangles(pairs: np.ndarray, size: int) -> np.ndarray:
    """Inverse of `_triangles`."""
    rows, columns = np.triu_indices(size)
    matrices = np.zeros((len(pairs), size, size))
    values = pairs / np.where(rows == columns, 1.0, np.sqrt(2))
    matrices[:, rows, columns] = values
    matrices[:, columns, rows] = values
    return matrices


@dataclass(frozen=True)
class Correlation:
    """Correlations of one kind of series: `coupled` [coordinate, coordinate] and `free` [frequency, channel, channel]."""

    coupled: np.ndarray
    free: np.ndarray

    def draw(
        self, num_series: int, rng: np.random.Generator, known: dict[int, np.ndarray] | None = None
    ) -> np.ndarray:
        """Returns coordinates [series, coordinate] from the Gaussian with these correlations.

        Args:
            known: Scores [series] of single coordinates to condition on, by position.
        """
        coupled = rng.standard_normal((num_series, len(self.coupled))) @ np.linalg.cholesky(self.coupled).T
        if known:
            coupled = _condition(coupled, self.coupled, known)
        factors = np.linalg.cholesky(self.free) if len(self.free) else self.free
        noise = rng.standard_normal((num_series, *self.free.shape[:2]))
        free = np.einsum("sbj,bij->sbi", noise, factors, optimize=True)
        return np.concatenate([coupled, free.reshape(num_series, -1)], axis=1)


def _condition(drawn: np.ndarray, correlation: np.ndarray, known: dict[int, np.ndarray]) -> np.ndarray:
    """Moves unconditional draws to draws given the known coordinates (Matheron's rule)."""
    places = list(known)
    wanted = np.stack([known[place] for place in places], axis=1)
    gain = np.linalg.solve(correlation[np.ix_(places, places)], correlation[places])
    moved = drawn + (wanted - drawn[:, places]) @ gain
    moved[:, places] = wanted
    return moved


def fit_correlation(
    coupled: np.ndarray, free: np.ndarray, noise: float, blocks: Blocks, deviation: np.ndarray | None
) -> Correlation:
    """Returns the correlations behind noisy mean second moments.

    Args:
        coupled: Noisy mean second moments of the coupled coordinates.
        free: Those of the free blocks.
        noise: Standard deviation of the noise of a pair inside a block.
        deviation: Standard deviations [frequency, channel] of the coefficients when series have no clock, so that
            correlations across frequencies are known up to the spectrum; None when they have one.
    """
    size = max(float(np.trace(coupled) + np.trace(free, axis1=1, axis2=2).sum()), 1e-9)
    shrunk = size / (len(coupled) + free.shape[0] * free.shape[1])  # the clip shrank all of them alike
    scale = 1 / min(max(shrunk, 0.2), 2.0)
    repaired = _repair_blocks(np.where(blocks.same_block, coupled * scale, 0.0), noise * scale, blocks)
    expected = np.zeros_like(repaired)
    if deviation is not None and blocks.num_free == 0 and blocks.num_single == 0:
        expected = np.where(blocks.same_block, 0.0, stationary_prior(repaired, deviation))
    across = np.where(blocks.same_block, 0.0, coupled * scale - expected)
    signal = _loud_directions(across, noise * scale / blocks.cross_weight)
    own = np.stack([_correlation_block(block, noise * scale) for block in free * scale]) if len(free) else free
    return Correlation(nearest_correlation(repaired + expected + np.where(blocks.same_block, 0, signal)), own)


def _loud_directions(matrix: np.ndarray, noise: float) -> np.ndarray:
    """Keeps the directions whose eigenvalue leaves the bulk of a noise matrix, the semicircle's edge 2 · noise · √D."""
    values, vectors = np.linalg.eigh(matrix)
    loud = np.abs(values) > 1.05 * 2 * noise * np.sqrt(len(matrix))
    return np.asarray((vectors[:, loud] * values[loud]) @ vectors[:, loud].T)


def _repair_blocks(within: np.ndarray, noise: float, blocks: Blocks) -> np.ndarray:
    """Makes every block a correlation matrix."""
    repaired = np.eye(len(within))
    for start in range(blocks.num_single, len(within), blocks.num_channels):
        here = slice(start, start + blocks.num_channels)
        repaired[here, here] = _correlation_block(within[here, here], noise)
    return repaired


def _correlation_block(block: np.ndarray, noise: float) -> np.ndarray:
    """Lifts eigenvalues that noise could have made to a floor."""
    unit = block.copy()
    np.fill_diagonal(unit, 1.0)
    return nearest_correlation(unit, min(max(_FLOOR, 0.5 * noise * np.sqrt(len(block))), 0.5))


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

    Args:
        correlation: Blocks of correlations [coordinate, coordinate], frequency by frequency.
        deviation: Standard deviation [frequency, channel] of the coefficients.
    """
    num_steps, num_channels = deviation.shape
    scale = deviation.ravel()
    basis = np.kron(_dct_matrix(num_steps), np.eye(num_channels))
    in_time = (basis.T @ (correlation * np.outer(scale, scale)) @ basis).reshape(
        num_steps, num_channels, num_steps, num_channels
    )
    averaged = np.empty_like(in_time)
    for lag in range(1 - num_steps, num_steps):
        step = np.arange(max(0, -lag), min(num_steps, num_steps - lag))
        averaged[step, :, step + lag, :] = in_time[step, :, step + lag, :].mean(0)
    size = num_steps * num_channels
    covariance = basis @ averaged.reshape(size, size) @ basis.T
    return covariance / np.sqrt(np.maximum(np.outer(np.diag(covariance), np.diag(covariance)), 1e-18))


def _dct_matrix(num_steps: int) -> np.ndarray:
    step, frequency = np.arange(num_steps), np.arange(num_steps)[:, None]
    matrix = np.sqrt(2 / num_steps) * np.cos(np.pi * (step + 0.5) * frequency / num_steps)
    matrix[0] /= np.sqrt(2)
    return matrix
