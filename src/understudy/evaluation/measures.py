"""What figures are computed from, and how far chance moves them: resampling units only changes weights."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from understudy.evaluation.metric import Effort, Measure, Measured, Undefined
from understudy.evaluation.panels import Comparison


def spectra(values: np.ndarray) -> np.ndarray:
    """Returns shares of power [series, frequency, channel] of values without gaps; all 0 for a series at rest."""
    centred = values.astype(np.float64) - values.mean(axis=1, keepdims=True, dtype=np.float64)
    power = np.abs(np.fft.rfft(centred, axis=1)[:, 1:]) ** 2
    total = power.sum(axis=1, keepdims=True)
    return np.divide(power, total, out=np.zeros_like(power), where=total > 1e-12 * values.shape[1])


def around_mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns values [series, step, channel] around each series' mean, 0 where none was observed, and where one was."""
    observed = ~np.isnan(values)
    count = np.maximum(observed.sum(axis=1, keepdims=True), 1)
    mean = np.where(observed, values, 0).sum(axis=1, keepdims=True, dtype=np.float64) / count
    return np.where(observed, values - mean, 0.0), observed


def ratio(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Returns total over count, NaN where nothing was counted."""
    return np.asarray(total / np.where(count > 0, count, np.nan))


def autocorrelations(values: np.ndarray, max_lag: int) -> np.ndarray:
    """Returns the sample autocorrelations [series, lag, channel] at lags 1 to `max_lag`, each around its own mean.

    The biased estimate of Pub2Priv, App. F. A series at rest has 0; NaN where no two steps so far apart were observed.
    """
    centred, observed = around_mean(values)
    moves = np.where(observed, values, -np.inf).max(axis=1) > np.where(observed, values, np.inf).min(axis=1)
    size = np.where(moves, np.einsum("stc,stc->sc", centred, centred), 1.0)
    found = np.empty((len(values), max_lag, values.shape[2]))
    for lag in range(1, max_lag + 1):
        products = np.einsum("stc,stc->sc", centred[:, lag:], centred[:, :-lag])
        pairs = (observed[:, lag:] & observed[:, :-lag]).any(axis=1)
        found[:, lag - 1] = np.where(pairs, np.where(moves, products / size, 0.0), np.nan)
    return found


def run_lengths(where: np.ndarray) -> np.ndarray:
    """Returns for each step how many true steps in a row end there, [series, step]."""
    length = np.zeros(where.shape)
    for step in range(where.shape[1]):
        length[:, step] = np.where(where[:, step], 1 + (length[:, step - 1] if step else 0), 0)
    return length


def cell_counts(values: np.ndarray, borders: np.ndarray) -> np.ndarray:
    """Returns how many values [series, step] lie in each cell, [series, cell]; the outer cells take what is beyond."""
    cells = len(borders) - 1
    place = np.clip(np.searchsorted(borders, values, side="right") - 1, 0, cells - 1)
    flat = (np.arange(len(values))[:, None] * cells + place)[~np.isnan(values)]
    return np.bincount(flat, minlength=len(values) * cells).reshape(len(values), cells).astype(np.float32)


def total_variation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns half the summed difference along the first axis; NaN where a table is empty."""
    return np.asarray(np.abs(shares(first) - shares(second)).sum(axis=0) / 2)


def shares(table: np.ndarray) -> np.ndarray:
    table = np.asarray(table, dtype=np.float64)
    return ratio(table, table.sum(axis=0, keepdims=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedPools:
    """Values of real and candidate series, column by column. A weight says how often a series counts.

    Where only the real series have values in a column the distance is 1; where they have none it is NaN.
    """

    owner: np.ndarray  # [column, rank] place of the series a value belongs to in the flat array of all columns' weights
    widths: np.ndarray  # [column, rank - 1] distance from each value to the next larger one; 0 to and between gaps
    present: np.ndarray  # [column, series] how many values a series has
    num_real: int

    @classmethod
    def of(cls, real: np.ndarray, candidate: np.ndarray) -> "RankedPools":
        """Pools values [series, value, column]; NaN is a gap."""
        together = np.concatenate([real, candidate]).transpose(2, 0, 1)
        num_columns, num_series, num_values = together.shape
        flat = together.reshape(num_columns, -1)
        order = np.argsort(flat, axis=1)
        ranked = np.take_along_axis(flat, order, axis=1)
        owner = np.where(np.isnan(ranked), num_series, order // max(num_values, 1))
        return cls(
            owner=owner + np.arange(num_columns)[:, None] * (num_series + 1),
            widths=np.nan_to_num(np.diff(ranked, axis=1).astype(np.float64)),
            present=(~np.isnan(together)).sum(axis=2).astype(np.float64),
            num_real=len(real),
        )

    def kolmogorov(self, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Returns the greatest difference of the distribution functions, for each column."""
        moves = self.widths > 0
        return self._known(lambda gaps: np.minimum((gaps * moves).max(axis=1, initial=0.0), 1.0), real, candidate)

    def wasserstein(self, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Returns the area between the distribution functions, for each column."""
        return self._known(lambda gaps: np.einsum("cr,cr->c", gaps, self.widths), real, candidate)

    def _known(
        self, distance: Callable[[np.ndarray], np.ndarray], real: np.ndarray, candidate: np.ndarray
    ) -> np.ndarray:
        """Returns the distance made of |F − F̃| [column, rank - 1] to the right of every value but the last."""
        totals = self.present[:, : self.num_real] @ real, self.present[:, self.num_real :] @ candidate
        scaled = [w / np.maximum(n, 1e-300)[:, None] for w, n in zip((real, -candidate), totals, strict=True)]
        signed = np.concatenate([*scaled, np.zeros((len(totals[0]), 1))], axis=1)  # the weight of gaps
        gaps = np.abs(np.cumsum(signed.ravel()[self.owner], axis=1)[:, :-1])
        return np.where(totals[0] == 0, np.nan, np.where(totals[1] == 0, 1.0, distance(gaps)))


def confidence_interval(measured: Measured, limits: tuple[float, float]) -> tuple[float, float] | None:
    """Returns the 95 % interval of a figure, within the metric's range; None without replicates.

    Bootstrap: 1.96 standard errors, since percentiles are off for small distances. Repeats: Student's t of the mean.
    """
    if measured.replicates is None or len(measured.replicates) < 2:
        return None
    number = len(measured.replicates)
    factor = 1.96 if measured.kind == "bootstrap" else student.ppf(0.975, number - 1) / number**0.5
    return _within(measured.value, factor, measured.replicates, limits)


def prediction_interval(figures: np.ndarray, limits: tuple[float, float], level: float) -> tuple[float, float]:
    """Returns where one more figure of the same kind lies with probability `level`, if they are about normal."""
    number = len(figures)
    factor = student.ppf(0.5 + level / 2, number - 1) * (1 + 1 / number) ** 0.5
    return _within(float(np.mean(figures)), factor, figures, limits)


def _within(middle: float, factor: float, figures: np.ndarray, limits: tuple[float, float]) -> tuple[float, float]:
    reach = float(factor * np.std(figures, ddof=1))
    return max(middle - reach, limits[0]), min(middle + reach, limits[1])


Gap = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Aspect:
    """One figure, or a few of a kind."""

    names: Sequence[str]  # what each figure speaks about, such as a channel
    figures: Gap  # (weights of real series, of candidates) to one figure per name; NaN where there is none


def of_sums(names: Sequence[str], real: np.ndarray, candidate: np.ndarray, gap: Gap) -> Aspect:
    """Returns the figures that `gap` makes of two sums over series, from one row of summands per series."""
    return Aspect(names, lambda r, c: np.atleast_1d(gap(_total(real, r), _total(candidate, c))))


def kolmogorov_smirnov(name: str, real: np.ndarray, candidate: np.ndarray) -> Aspect:
    """Returns the distance of two pools [series, value]: 1 without candidates' values, none without real ones."""
    return Aspect([name], RankedPools.of(real[:, :, None], candidate[:, :, None]).kolmogorov)


def wasserstein(name: str, real: np.ndarray, candidate: np.ndarray) -> Aspect:
    """Returns how far mass has to move between two pools [series, value], in standard deviations of the real one."""
    seen = real[~np.isnan(real)]
    spread = float(seen.std(dtype=np.float64)) if len(seen) else 1.0
    pools = RankedPools.of(real[:, :, None] / (spread or 1.0), candidate[:, :, None] / (spread or 1.0))
    return Aspect([name], pools.wasserstein)


def mean_figure(
    aspects: Sequence[Aspect],
    comparison: Comparison,
    effort: Effort,
    seed: int,
    *,
    otherwise: str,
    summary: Callable[[np.ndarray], float] = np.nanmean,
) -> Measured:
    """Returns the mean (or `summary`) of all figures with replicates; `otherwise` says why there may be none at all."""

    def figures(*weights: np.ndarray) -> np.ndarray:
        return np.concatenate([np.empty(0), *(aspect.figures(*weights) for aspect in aspects)])

    panels = comparison.real, comparison.candidate
    found = figures(*(np.ones(panel.num_series) for panel in panels))
    if not np.isfinite(found).any():
        raise Undefined(otherwise)
    drawn = (drawn_units(panel.unit, effort.replicates, [seed, side]) for side, panel in enumerate(panels))
    return Measured(
        value=float(summary(found)),
        replicates=np.array([float(summary(figures(*weights))) for weights in zip(*drawn, strict=True)]),
        parts=largest([name for aspect in aspects for name in aspect.names], found),
    )


def mean_of(aspects: Callable[[Comparison], Iterable[Aspect]], otherwise: str, **how: Any) -> Measure:
    """Returns the measure that is the mean of all figures of the aspects of a comparison, as `mean_figure` has it."""
    return lambda comparison, effort, seed: mean_figure(
        list(aspects(comparison)), comparison, effort, seed, otherwise=otherwise, **how
    )


def mean_share(contributions: np.ndarray, unit: np.ndarray, effort: Effort, seed: int, **facts: Any) -> Measured:
    """Returns the mean of one contribution per series, with replicates where units are drawn again."""
    weights = drawn_units(unit, effort.replicates, seed)
    replicates = weights @ contributions / np.maximum(weights.sum(axis=1), 1)
    return Measured(value=float(contributions.mean()), replicates=replicates, **facts)


def drawn_units(unit: np.ndarray, replicates: int, seed: int | Sequence[int]) -> np.ndarray:
    """Returns how often each series counts when units are drawn again, [replicate, series]."""
    _, place = np.unique(unit, return_inverse=True)
    number = int(place.max(initial=0)) + 1
    counts = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), replicates)
    return counts[:, place].astype(np.float64)


def largest(names: Sequence[str], figures: np.ndarray, most: int = 40) -> dict[str, float]:
    """Returns figures by name: all of them, or where there are many the largest ones."""
    known = np.flatnonzero(np.isfinite(figures))
    kept = np.sort(known[np.argsort(-figures[known], kind="stable")[:most]])
    return {names[place]: float(figures[place]) for place in kept}


def _total(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    flat = rows.reshape(len(rows), -1)
    return np.asarray(weights.astype(flat.dtype) @ flat, dtype=np.float64).reshape(rows.shape[1:])
