"""Figures of weighted series, and how far chance moves them: resampling units only changes weights."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from understudy.data import Panel
from understudy.evaluate.metric import Effort, Measured, Undefined
from understudy.evaluate.panels import Comparison


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedPools:
    """Values of real and candidate series, column by column. A weight says how often a series counts.

    Where only the real series have values in a column the distance is 1; where they have none it is NaN.

    Attributes:
        owner: [column, rank] place of the series a value belongs to in the flat array of all columns' weights.
        widths: [column, rank - 1] distance from each value to the next larger one; 0 to and between gaps.
        present: [column, series] how many values a series has.
    """

    owner: np.ndarray
    widths: np.ndarray
    present: np.ndarray
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

    @property
    def once(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights that count every series once."""
        return np.ones(self.num_real), np.ones(self.present.shape[1] - self.num_real)

    def kolmogorov(self, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Returns the greatest difference of the distribution functions, for each column."""
        differences = self._differences(real, candidate)
        return self._known(np.minimum((differences * (self.widths > 0)).max(axis=1, initial=0.0), 1.0), real, candidate)

    def wasserstein(self, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Returns the area between the distribution functions, for each column."""
        areas = np.einsum("cr,cr->c", self._differences(real, candidate), self.widths)
        return self._known(areas, real, candidate)

    def _differences(self, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        """Returns |F − F̃| [column, rank - 1] to the right of every value but the last."""
        totals = [np.maximum(total, 1e-300)[:, None] for total in self._totals(real, candidate)]
        unweighted = np.zeros_like(totals[0])  # the weight of gaps
        signed = np.concatenate([real / totals[0], -candidate / totals[1], unweighted], axis=1)
        return np.abs(np.cumsum(signed.ravel()[self.owner], axis=1)[:, :-1])

    def _totals(self, real: np.ndarray, candidate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.present[:, : self.num_real] @ real, self.present[:, self.num_real :] @ candidate

    def _known(self, distances: np.ndarray, real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
        num_real, num_candidate = self._totals(real, candidate)
        return np.where(num_real == 0, np.nan, np.where(num_candidate == 0, 1.0, distances))


def bootstrap(
    statistic: Callable[[np.ndarray, np.ndarray], float], real: Panel, candidate: Panel, replicates: int, seed: int
) -> np.ndarray:
    """Returns the statistic of (rows of real, rows of candidate), units drawn again with replacement."""
    rng = np.random.default_rng(seed)
    return np.array([statistic(_rows(real, rng), _rows(candidate, rng)) for _ in range(replicates)])


def confidence_interval(measured: Measured, limits: tuple[float, float]) -> tuple[float, float] | None:
    """Returns the 95 % interval of a figure, within the metric's range; None without replicates.

    Bootstrap: 1.96 standard errors. The percentiles would be off for distances, which the bootstrap pushes upwards
    where they are small. Repeats: Student's t for the mean of the trainings.
    """
    if measured.replicates is None or len(measured.replicates) < 2:
        return None
    number = len(measured.replicates)
    error = float(np.std(measured.replicates, ddof=1))
    reach = (
        1.96 * error if measured.kind == "bootstrap" else error * float(student.ppf(0.975, number - 1)) / number**0.5
    )
    return max(measured.value - reach, limits[0]), min(measured.value + reach, limits[1])


def prediction_interval(figures: np.ndarray, limits: tuple[float, float], level: float) -> tuple[float, float]:
    """Returns where one more figure of the same kind lies with probability `level`, if they are about normal."""
    number = len(figures)
    reach = float(student.ppf(0.5 + level / 2, number - 1)) * float(np.std(figures, ddof=1)) * (1 + 1 / number) ** 0.5
    middle = float(np.mean(figures))
    return max(middle - reach, limits[0]), min(middle + reach, limits[1])


def _rows(panel: Panel, rng: np.random.Generator) -> np.ndarray:
    if panel.num_units == panel.num_series:
        return rng.integers(0, panel.num_series, panel.num_series)
    units = rng.integers(0, panel.num_units, panel.num_units)
    first, last = (np.searchsorted(panel.unit, units, side=side) for side in ("left", "right"))
    return np.concatenate([np.arange(*pair) for pair in zip(first, last, strict=True)])


MAX_PARTS = 40
Gap = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Aspect:
    """One figure, or a few of a kind.

    Attributes:
        names: What each figure speaks about, such as a channel.
        figures: (weights of real series, of candidates) to one figure per name; NaN where there is none.
    """

    names: Sequence[str]
    figures: Gap


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
    """Returns the mean of all figures with bootstrap replicates; `otherwise` says why there may be none at all.

    Args:
        summary: What makes one figure of all of them where the mean would hide a bad one.
    """
    sizes = comparison.real.num_series, comparison.candidate.num_series
    names = [name for aspect in aspects for name in aspect.names]
    figures = _figures(aspects, np.ones(sizes[0]), np.ones(sizes[1]))
    if not np.isfinite(figures).any():
        raise Undefined(otherwise)

    def again(real: np.ndarray, candidate: np.ndarray) -> float:
        weights = (np.bincount(rows, minlength=size) for rows, size in zip((real, candidate), sizes, strict=True))
        return float(summary(_figures(aspects, *(times.astype(np.float64) for times in weights))))

    return Measured(
        value=float(summary(figures)),
        replicates=bootstrap(again, comparison.real, comparison.candidate, effort.replicates, seed),
        parts=largest(names, figures),
    )


def mean_share(contributions: np.ndarray, unit: np.ndarray, effort: Effort, seed: int) -> tuple[float, np.ndarray]:
    """Returns the mean of one contribution per series, and its replicates with units drawn again."""
    weights = drawn_units(unit, effort.replicates, seed)
    return float(contributions.mean()), weights @ contributions / np.maximum(weights.sum(axis=1), 1)


def drawn_units(unit: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """Returns how often each series counts when units are drawn again, [replicate, series]."""
    _, place = np.unique(unit, return_inverse=True)
    number = int(place.max(initial=0)) + 1
    counts = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), replicates)
    return counts[:, place].astype(np.float64)


def largest(names: Sequence[str], figures: np.ndarray) -> dict[str, float]:
    """Returns figures by name: all of them, or where there are many the largest ones."""
    known = np.flatnonzero(np.isfinite(figures))
    kept = np.sort(known[np.argsort(-figures[known], kind="stable")[:MAX_PARTS]])
    return {names[place]: float(figures[place]) for place in kept}


def _figures(aspects: Sequence[Aspect], real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    return np.concatenate([np.empty(0), *(aspect.figures(real, candidate) for aspect in aspects)])


def _total(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    flat = rows.reshape(len(rows), -1)
    return np.asarray(weights.astype(flat.dtype) @ flat, dtype=np.float64).reshape(rows.shape[1:])
