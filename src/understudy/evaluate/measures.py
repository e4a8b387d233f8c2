"""What figures are computed from: spectra, autocorrelations, frequency tables, and distances between series."""

import math
from collections.abc import Iterator

import numpy as np

from understudy.data import Panel
from understudy.evaluate.metric import Undefined
from understudy.evaluate.panels import Scale


def spectra(values: np.ndarray) -> np.ndarray:
    """Returns each series' share of power at each frequency, [series, frequency, channel]; all 0 for one at rest.

    Args:
        values: [series, step, channel] without gaps; each series is taken around its own mean.
    """
    centred = values.astype(np.float64) - values.mean(axis=1, keepdims=True, dtype=np.float64)
    power = np.abs(np.fft.rfft(centred, axis=1)[:, 1:]) ** 2
    total = power.sum(axis=1, keepdims=True)
    moves = total > 1e-12 * values.shape[1]
    return np.divide(power, total, out=np.zeros_like(power), where=moves)


def autocorrelations(values: np.ndarray, max_lag: int) -> np.ndarray:
    """Returns the sample autocorrelations [series, lag, channel] at lags 1 to `max_lag`, each around its own mean.

    The biased estimate of Pub2Priv, App. F: pairs with a gap add nothing, the variance is that of all steps. A series
    at rest has 0; NaN where a series has no two observed steps that far apart.

    Args:
        values: [series, step, channel], NaN where not observed.
    """
    observed = ~np.isnan(values)
    count = np.maximum(observed.sum(axis=1, keepdims=True), 1)
    mean = np.where(observed, values, 0).sum(axis=1, keepdims=True, dtype=np.float64) / count
    centred = np.where(observed, values - mean, 0)
    moves = np.where(observed, values, -np.inf).max(axis=1) > np.where(observed, values, np.inf).min(axis=1)
    size = np.where(moves, np.einsum("stc,stc->sc", centred, centred), 1.0)
    found = np.empty((len(values), max_lag, values.shape[2]))
    for lag in range(1, max_lag + 1):
        products = np.einsum("stc,stc->sc", centred[:, lag:], centred[:, :-lag])
        pairs = (observed[:, lag:] & observed[:, :-lag]).any(axis=1)
        found[:, lag - 1] = np.where(pairs, np.where(moves, products / size, 0.0), np.nan)
    return found


def cell_counts(values: np.ndarray, borders: np.ndarray) -> np.ndarray:
    """Returns how many values of each series lie in each cell, [series, cell], from [series, step].

    NaN lies in no cell; the outer cells also take what is beyond them.
    """
    cells = len(borders) - 1
    place = np.clip(np.searchsorted(borders, values, side="right") - 1, 0, cells - 1)
    flat = (np.arange(len(values))[:, None] * cells + place)[~np.isnan(values)]
    return np.bincount(flat, minlength=len(values) * cells).reshape(len(values), cells).astype(np.float32)


def total_variation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns half the summed difference along the first axis; NaN where a table is empty."""
    return np.asarray(np.abs(shares(first) - shares(second)).sum(axis=0) / 2)


def shares(table: np.ndarray) -> np.ndarray:
    table = np.asarray(table, dtype=np.float64)
    total = table.sum(axis=0, keepdims=True)
    return np.divide(table, total, out=np.full_like(table, np.nan), where=total > 0)


BAND = 0.1  # of the series' length, how far warping may shift steps against each other
_TILE_BYTES = 61 * 2**20


def flat_series(real: Panel, *others: Panel) -> list[np.ndarray]:
    """Returns series as points [series, step · feature] in the scale of the real ones, without gaps."""
    scale = Scale.of(real)
    points = [scale.unit(panel).reshape(panel.num_series, -1) for panel in (real, *others)]
    if points[0].std(axis=0).max(initial=0.0) == 0:
        raise Undefined("all real series are equal: nothing is nearer than anything else.")
    return points


def equally_many(*panels: Panel, seed: int) -> list[np.ndarray]:
    """Returns rows of each panel, drawn at random, as many as the smallest has: a larger side would win by number."""
    rng, size = np.random.default_rng(seed), min(panel.num_series for panel in panels)
    return [np.sort(rng.permutation(panel.num_series)[:size]) for panel in panels]


def squared_distances(queries: np.ndarray, base: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yields (rows of `queries`, their squared distances [row, point]), at most 61 MiB at a time."""
    rows = max(1, _TILE_BYTES // (4 * max(1, len(base))))
    norms = np.einsum("pd,pd->p", base, base)
    for first in range(0, len(queries), rows):
        part = slice(first, first + rows)
        own = np.einsum("qd,qd->q", queries[part], queries[part])
        distances = queries[part] @ base.T
        distances *= -2
        distances += own[:, None]
        distances += norms
        yield part, np.maximum(distances, 0, out=distances)


def band_steps(num_steps: int) -> int:
    """Returns how many steps warping may shift a step."""
    return max(1, math.ceil(BAND * num_steps))


def warped_distances(first: np.ndarray, second: np.ndarray, band: int) -> np.ndarray:
    """Returns the distance [...] of series [..., step, channel] without gaps, warped in time; axes before broadcast.

    Sakoe and Chiba (1978): the root of the least sum of squared differences over all monotone alignments that stay
    within `band` steps of the diagonal and move all channels together. Written here because the maintained libraries
    bring a compiler (tslearn and aeon need numba) or walk over pairs one by one (dtaidistance).
    """
    num_steps, shape = first.shape[-2], np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    outside = np.full(shape, np.inf)
    row = [outside] * (num_steps + 1)  # row[j]: least cost of aligning the steps so far with the first j of `second`
    row[0] = np.zeros(shape)
    for i in range(num_steps):
        before, row = row, [outside] * (num_steps + 1)
        for j in range(max(0, i - band), min(num_steps, i + band + 1)):
            cost = ((first[..., i, :] - second[..., j, :]) ** 2).sum(axis=-1)
            row[j + 1] = cost + np.minimum(np.minimum(before[j], before[j + 1]), row[j])
    return np.sqrt(row[num_steps])
