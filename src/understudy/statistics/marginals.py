"""A histogram per column, and the map it defines between values and normal scores.

Notation: F is a column's distribution function as released; the normal score of a value x is Φ⁻¹(F(x)). A value with
mass of its own (an *atom*: a category, or exactly the lower or upper bound) is scored at the middle of its mass, so
that a home whose panels never produce has a constant score and not an invented noise.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtr, ndtri

from understudy.data import Binary, Categorical, Channel, Integer
from understudy.statistics.counts import cumulative_of
from understudy.statistics.shapes import smoothed_cumulative, with_tails

SCORE_LIMIT = 3.5  # scores beyond it say no more than "extreme"
_CELLS_PER_OCTAVE = {10: 0.003, 7: 0.006, 5: 0.04}  # and the standard error of F up to which
_FEW = np.concatenate([[0.0, 1 / 128, 1 / 64, 1 / 32], np.arange(1, 17) / 16])  # of the range
_EVEN = np.linspace(0, 1, 129)
_EVEN_CELLS = 60  # no cell is wider than this part of the range, but of counts
_SIGNIFICANT = 3.0  # standard deviations of noise from which a bound counts as a value with mass of its own
_LOW_OCTAVES, _HIGH_OCTAVES = 10, 6
_FAR_OCTAVES, _CELLS_PER_FAR_OCTAVE = 10, 4  # below the others, where the lower bound is zero
_MANY_NUMBERS, _CELLS_PER_OCTAVE_OF_MANY = 1000, 4  # whole numbers from zero to this are counts of something
_PARTS = 4  # of a cell, over which its mass is spread as its neighbours foretell


@dataclass(frozen=True)
class Grid:
    """Public cells of one column, in increasing order; an atom has equal ends."""

    left: np.ndarray
    right: np.ndarray
    finer: "Grid | None" = None  # cells to tell a distribution on whose counts were made on few

    @property
    def num_cells(self) -> int:
        """Cells of the grid."""
        return len(self.left)

    @property
    def is_codes(self) -> bool:
        """Whether the column holds categories: then the code is the cell."""
        return bool((self.left == self.right).all())

    def cells_of(self, values: np.ndarray) -> np.ndarray:
        """Returns the cell of each value; values are inside the bounds."""
        if self.is_codes:
            return np.clip(np.rint(values), 0, self.num_cells - 1).astype(np.intp)
        cells = np.asarray(np.searchsorted(self.right[:-1], values, side="left"))  # 0 for the lower bound itself
        cells[values >= self.right[-1]] = self.num_cells - 1
        return cells


def declared_like(column: Channel) -> Hashable:
    """Columns with the same kind, bounds and gaps are declared alike."""
    return column.kind, column.bounds, column.missing


def grid_of(column: Channel, cell_noise: float) -> Grid:
    """Returns the cells of a column from its declared bounds.

    Cells between the bounds are geometric from both ends, so that a bound declared far too wide costs resolution
    only logarithmically; from a bound of zero they go down to a millionth of the range, and counts, which come in all
    magnitudes, are resolved by magnitude alone. Every cell brings noise of its own, and a smooth curve through the sums
    tells what cells do not: the louder the noise, the fewer cells, and in the end a few to fit a normal distribution
    to. Cells of numbers with a step, as whole ones are, end halfway between them, so that one which comes back from
    anywhere in its cell is rounded to itself.
    """
    if isinstance(column, Categorical | Binary):
        codes = np.arange(int(column.bounds[1]) + 1, dtype=np.float64)
        return Grid(codes, codes)
    for per_octave, most in _CELLS_PER_OCTAVE.items():
        inner = _geometric(column, per_octave)
        if _counts(column) or cell_noise * np.sqrt(len(inner)) / 2 <= most:
            return _grid(column, inner)
    finest = _geometric(column, max(_CELLS_PER_OCTAVE))
    return replace(_grid(column, _FEW), finer=_grid(column, np.unique(np.concatenate([finest, _EVEN]))))


def _counts(column: Channel) -> bool:
    return isinstance(column, Integer) and column.bounds[0] == 0 and column.bounds[1] >= _MANY_NUMBERS


def _geometric(column: Channel, per_octave: int) -> np.ndarray:
    counts = _counts(column)
    per_octave = _CELLS_PER_OCTAVE_OF_MANY if counts else per_octave
    rising = 0.5 * 2.0 ** (-np.arange(_LOW_OCTAVES * per_octave, -1, -1) / per_octave)
    falling = 1.0 - 0.5 * 2.0 ** (-np.arange(1, _HIGH_OCTAVES * per_octave + 1) / per_octave)
    far = np.arange(_FAR_OCTAVES * _CELLS_PER_FAR_OCTAVE if column.bounds[0] == 0 else 0, 0, -1) / _CELLS_PER_FAR_OCTAVE
    edges = np.concatenate([[0.0], rising[0] * 2.0**-far, rising, falling, [1.0]])
    parts = np.ones(len(edges) - 1) if counts else np.ceil(np.diff(edges) * _EVEN_CELLS)
    return np.interp(np.arange(parts.sum() + 1), np.append(0, np.cumsum(parts)), edges)


def _grid(column: Channel, shares: np.ndarray) -> Grid:
    """Returns cells between shares of the range, and both bounds."""
    low, high = column.bounds
    edges = low + (high - low) * shares
    step = 1.0 if isinstance(column, Integer) else getattr(column, "resolution", None)
    if step is not None and 2 * step < high - low:
        halves = step * np.concatenate([np.floor(edges / step) + 0.5, np.ceil(edges / step) - 0.5])
        edges = np.unique([low, *np.clip(halves, low + step / 2, high - step / 2), high])
    return Grid(np.concatenate([[low], edges[:-1], [high]]), np.concatenate([[low], edges[1:], [high]]))


def vote_counts(values: np.ndarray, weights: np.ndarray, grid: Grid) -> np.ndarray:
    """Returns the weighted number of observed `values` [series, step] per cell; NaN votes for nothing."""
    observed = ~np.isnan(values)
    cells = grid.cells_of(values[observed])
    votes = np.broadcast_to(weights[:, None], values.shape)[observed]
    return np.bincount(cells, weights=votes, minlength=grid.num_cells)


@dataclass(frozen=True)
class Marginal:
    """A released distribution of one column on its public grid."""

    grid: Grid
    cumulative: np.ndarray  # [cells + 1], from 0 to 1

    def scores_of(self, values: np.ndarray) -> np.ndarray:
        """Returns normal scores; NaN stays NaN."""
        width, mass = self.grid.right - self.grid.left, np.diff(self.cumulative)
        slope = np.divide(mass, width, out=np.zeros_like(mass), where=width > 0)
        start = self.cumulative[:-1] + np.where(width > 0, 0.0, mass / 2)
        unknown = np.isnan(values)
        filled = np.where(unknown, self.grid.left[0], values)
        cells = self.grid.cells_of(filled)
        scores = bounded_scores(start[cells] + slope[cells] * (filled - self.grid.left[cells]))
        return np.where(unknown, np.nan, scores) if unknown.any() else scores

    def values_of(self, ranks: np.ndarray) -> np.ndarray:
        """Returns the values at the given ranks in [0, 1]."""
        ranks = np.minimum(ranks, np.nextafter(1.0, 0.0))  # rank 1 belongs to the last cell that holds something
        cells = np.clip(np.searchsorted(self.cumulative, ranks, side="right") - 1, 0, self.grid.num_cells - 1)
        mass = np.diff(self.cumulative)[cells]
        inside = np.clip((ranks - self.cumulative[cells]) / np.where(mass > 0, mass, 1), 0, 1)
        return self.grid.left[cells] + inside * (self.grid.right - self.grid.left)[cells]

    def values_at(self, scores: np.ndarray) -> np.ndarray:
        """Returns the values at normal scores."""
        return self.values_of(ndtr(scores))


def joined_marginals(marginals: Sequence[Marginal]) -> dict[str, np.ndarray]:
    """Returns marginals laid end to end: `cells` (left and right ends), `cumulative` and `column_cells`."""
    sides = [[getattr(marginal.grid, side) for marginal in marginals] for side in ("left", "right")]
    return {
        "cells": np.stack([np.concatenate([np.zeros(0), *side]) for side in sides]),
        "cumulative": np.concatenate([np.zeros(0), *(marginal.cumulative for marginal in marginals)]),
        "column_cells": np.array([marginal.grid.num_cells for marginal in marginals], dtype=np.int64),
    }


def split_marginals(cells: np.ndarray, cumulative: np.ndarray, column_cells: np.ndarray) -> list[Marginal]:
    """Inverse of `joined_marginals`."""
    ends = np.cumsum(column_cells)
    return [
        Marginal(Grid(*cells[:, end - size : end]), cumulative[end - size + column : end + column + 1])
        for column, (size, end) in enumerate(zip(column_cells, ends, strict=True))
    ]


def marginal_from(noisy_counts: np.ndarray, grid: Grid, noise: float, at_bounds: float | None = None) -> Marginal:
    """Returns the distribution behind noisy counts; `at_bounds` is their noise at the bounds, if it is another."""
    total = max(float(noisy_counts.sum()), 1e-9)
    shares, noise = noisy_counts / total, noise / total
    if grid.is_codes:
        return Marginal(grid, cumulative_of(shares))
    loud = noise if at_bounds is None else at_bounds / total
    atoms = np.where(shares > _SIGNIFICANT * loud, shares, 0.0)
    if grid.finer is not None:
        return _from_few(shares[1:-1], noise, atoms, grid, grid.finer)
    inner = with_tails(shares[1:-1], noise, grid.right[:-1])
    return _smooth(Marginal(grid, cumulative_of(np.concatenate([atoms[:1], inner, atoms[-1:]]))))


def _smooth(marginal: Marginal) -> Marginal:
    """Returns the distribution on parts of its cells, between whose ends it rises without a bend (Fritsch and Carlson).

    The sums at the ends of cells stay as they are.
    """
    edges, low, high = marginal.grid.right[:-1], marginal.grid.left[:1], marginal.grid.right[-1:]
    parts = (edges[:-1, None] + np.diff(edges)[:, None] * np.arange(_PARTS) / _PARTS).ravel()
    fine = np.append(parts, edges[-1])
    rising = np.maximum.accumulate(np.clip(PchipInterpolator(edges, marginal.cumulative[1:-1])(fine), 0.0, 1.0))
    grid = Grid(np.concatenate([low, fine[:-1], high]), np.concatenate([low, fine[1:], high]))
    return Marginal(grid, np.concatenate([[0.0], rising, [1.0]]))


def _from_few(noisy: np.ndarray, noise: float, atoms: np.ndarray, few: Grid, many: Grid) -> Marginal:
    """Returns a distribution on many cells behind the noisy shares of few."""
    inside = smoothed_cumulative(noisy, noise, few.right[:-1], many.right[:-1], skewed=True)
    cumulative = np.concatenate([[0.0], atoms[0] + inside * max(float(noisy.sum()), noise)])
    whole = np.append(cumulative, cumulative[-1] + atoms[-1])
    return Marginal(many, whole / whole[-1])


def bounded_scores(ranks: np.ndarray) -> np.ndarray:
    """Returns Φ⁻¹ of ranks, kept within ±SCORE_LIMIT."""
    return np.clip(ndtri(ranks), -SCORE_LIMIT, SCORE_LIMIT)
