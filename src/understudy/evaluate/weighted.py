"""Figures of weighted series: drawing series again only changes weights, it takes no second look at values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.evaluate.comparison import Comparison
from understudy.evaluate.intervals import bootstrap
from understudy.evaluate.metric import Effort, Measured, Undefined
from understudy.evaluate.ranked import RankedPools

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
