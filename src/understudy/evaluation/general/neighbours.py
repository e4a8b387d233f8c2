"""Neighbours: precision, recall, density and coverage, and copies of training series or of each other."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np

from understudy.data import Panel
from understudy.evaluation.measures import drawn_units, mean_share
from understudy.evaluation.metric import ABOVE, Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison, Scale
from understudy.nn.nearest import nearest

NEIGHBOURS = 5
BAND = 0.1  # of the series' length, how far warping may shift steps against each other
_MEBIBYTES = 64  # of distances at a time
_WARPED_CANDIDATES, _WARPED_NEIGHBOURS = 300, 40
Numbers = TypeVar("Numbers", float, np.ndarray)


def flat_series(real: Panel, *others: Panel) -> list[np.ndarray]:
    """Returns series as points [series, step · feature] in the scale of the real ones, without gaps."""
    scale = Scale.of(real)
    points = [scale.unit(panel).reshape(panel.num_series, -1) for panel in (real, *others)]
    if points[0].std(axis=0).max(initial=0.0) == 0:
        raise Undefined("all real series are equal: nothing is nearer than anything else.")
    return points


def _equally_many(*panels: Panel, seed: int) -> list[np.ndarray]:
    """Returns rows of each panel, drawn at random, as many as the smallest has: a larger side would win by number."""
    rng, size = np.random.default_rng(seed), min(panel.num_series for panel in panels)
    return [np.sort(rng.permutation(panel.num_series)[:size]) for panel in panels]


def _distances(queries: np.ndarray, base: np.ndarray) -> Iterator[np.ndarray]:
    """Yields squared distances [row, point] of one stretch of queries after the other, in bounded memory."""
    from sklearn.metrics import pairwise_distances_chunked

    return iter(pairwise_distances_chunked(queries, base, squared=True, working_memory=_MEBIBYTES))


def warped_distances(first: np.ndarray, second: np.ndarray, band: int) -> np.ndarray:
    """Returns the distance [...] of series [..., step, channel] without gaps, warped in time; axes before broadcast.

    Sakoe and Chiba (1978): the root of the least sum of squared differences over all monotone alignments that stay
    within `band` steps of the diagonal. The maintained libraries need numba or walk over pairs one by one.
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


def _radii(points: np.ndarray, neighbours: int) -> np.ndarray:
    """Returns each point's squared distance to its k-th nearest other point."""
    rank = min(neighbours, len(points) - 1)
    return np.concatenate([np.partition(tile, rank, axis=1)[:, rank] for tile in _distances(points, points)])


def ball_shares(real: np.ndarray, candidate: np.ndarray, neighbours: int = NEIGHBOURS) -> dict[str, np.ndarray]:
    """Returns what each point adds to the four figures, which are the means of these.

    Notation: B(x) is the ball around x that reaches its k-th nearest fellow. Precision: candidates in some B(real).
    Recall: real points in some B(candidate); outliers inflate these balls, so a wild candidate may recall everything.
    Density: how many B(real) hold a candidate, over k. Coverage: B(real) that hold a candidate.
    """
    limits = _radii(real, neighbours), _radii(candidate, neighbours)
    covered, holders = np.zeros(len(real), dtype=bool), []
    for distances in _distances(candidate, real):
        inside = distances <= limits[0]
        holders.append(inside.sum(axis=1))
        covered |= inside.any(axis=0)
    recalled = [(distances <= limits[1]).any(axis=1) for distances in _distances(real, candidate)]
    count = np.concatenate(holders)
    return {
        "precision": (count > 0).astype(float),
        "recall": np.concatenate(recalled).astype(float),
        "density": count / min(neighbours, len(real) - 1),
        "coverage": covered.astype(float),
    }


@lru_cache(maxsize=16)  # four metrics ask for the same balls
def _shares(real: Panel, candidate: Panel, seed: int) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    rows = _equally_many(real, candidate, seed=seed)
    points = (side[chosen] for side, chosen in zip(flat_series(real, candidate), rows, strict=True))
    return rows, ball_shares(*points)


def _balls(name: str, comparison: Comparison, effort: Effort, seed: int) -> Measured:
    rows, shares = _shares(comparison.real, comparison.candidate, seed)
    of_candidates = name in ("precision", "density")
    unit = comparison.candidate.unit[rows[1]] if of_candidates else comparison.real.unit[rows[0]]
    note = f"{NEIGHBOURS} neighbours, {len(unit)} series of each side, Euclidean distance of scaled series."
    return mean_share(shares[name], unit, effort, seed, notes=(note,))


def corrected_share(share: Numbers, num_training: int, num_others: int) -> Numbers:
    """Returns the share of the training side with its odds divided by what mere number gives it.

    Of n training series and m others the nearest is a training series with odds n/m where nothing was copied: that
    becomes 0.5. Where every candidate is a copy it is 1 whatever the numbers.
    """
    return share * num_others / (share * num_others + (1 - share) * num_training)


def _copied(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    real, candidate, reference = flat_series(comparison.real, comparison.candidate, comparison.reference)
    distances = [nearest(candidate, side)[1][:, 0] for side in (real, reference)]
    return _nearer_to_training(distances, comparison, comparison.candidate.unit, effort, seed)


def _copied_warped(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """Warping costs too much for all pairs, so it decides among the series of both sides that are nearest unwarped.

    Both sides are one pool here, so that without copying any of its series is the nearest with the same chance.
    """
    real, candidate, reference = flat_series(comparison.real, comparison.candidate, comparison.reference)
    rows = np.sort(np.random.default_rng(seed).permutation(len(candidate))[:_WARPED_CANDIDATES])
    pool = np.concatenate([comparison.unit(p) for p in (comparison.real, comparison.reference)]).astype(np.float64)
    number, band = min(_WARPED_NEIGHBOURS, len(pool)), max(1, math.ceil(BAND * comparison.real.num_steps))
    places, _ = nearest(candidate[rows], np.concatenate([real, reference]), number)
    own = comparison.unit(comparison.candidate)[rows, None].astype(np.float64)
    distances, training = warped_distances(own, pool[places], band), places < len(real)
    sides = [np.where(side, distances, np.inf).min(axis=1) for side in (training, ~training)]
    note = (
        f"{len(rows)} candidates; dynamic time warping by at most {band} steps ({BAND:.0%} of the length) of their "
        f"{number} nearest series."
    )
    return _nearer_to_training(sides, comparison, comparison.candidate.unit[rows], effort, seed, note)


def _nearer_to_training(
    distances: list[np.ndarray], comparison: Comparison, unit: np.ndarray, effort: Effort, seed: int, *notes: str
) -> Measured:
    """Returns the corrected share of candidates nearer to a training series than to others; equally near counts ½."""
    share = (distances[0] < distances[1]) + 0.5 * (distances[0] == distances[1])
    sizes = comparison.real.num_series, comparison.reference.num_series
    note = f"{sizes[0]} training series and {sizes[1]} others, Euclidean distance of scaled series."
    plain = mean_share(share, unit, effort, seed, notes=(note, *notes))
    assert plain.replicates is not None
    corrected = corrected_share(plain.replicates, *sizes)
    return replace(plain, value=corrected_share(plain.value, *sizes), replicates=corrected)


def _variety(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    """Distance to the nearest fellow, candidate over real: 0 for repetitions of a few series."""
    panels = comparison.real, comparison.candidate
    both, rows = flat_series(*panels), _equally_many(*panels, seed=seed)
    gaps = [np.sqrt(_radii(points[chosen], 1)) for points, chosen in zip(both, rows, strict=True)]
    if not gaps[0].mean() > 0:
        raise Undefined("every real series has an exact double.")
    drawn = [
        drawn_units(panel.unit[chosen], effort.replicates, seed + side) @ gap
        for side, (panel, chosen, gap) in enumerate(zip(panels, rows, gaps, strict=True))
    ]
    spreads = [float(points.std(axis=0).mean()) for points in both]
    return Measured(
        value=float(gaps[1].mean() / gaps[0].mean()),
        replicates=drawn[1] / np.maximum(drawn[0], 1e-12),
        parts={"spread over all series, candidate over real": spreads[1] / spreads[0]},
        notes=(f"{len(rows[0])} series of each side, Euclidean distance of scaled series.",),
    )


def _doubles(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    keys, real = ([series.tobytes() for series in panel.values] for panel in (comparison.candidate, comparison.real))
    times, training = Counter(keys), set(real)
    copied = {"also among the training series": float(np.mean([key in training for key in keys]))}
    double = np.array([times[key] > 1 for key in keys], dtype=float)
    return mean_share(double, comparison.candidate.unit, effort, seed, parts=copied)


def _metric(name: str, title: str, reference: str, **facts: Any) -> Metric:
    return Metric(f"general.{name}", title, reference, **{"measure": partial(_balls, name), **facts})


_COPIED = (
    "share of candidates nearer to a training series than to others, corrected for their number; 0.5 if not copied"
)
_KYNKAANNIEMI = "Kynkäänniemi et al. (2019), arXiv:1904.06991, Eq. 1–2"
_NAEEM = "Naeem et al. (2020), arXiv:2002.09797"
_higher, _near = partial(_metric, direction="higher"), partial(_metric, direction="near")
METRICS = (
    _higher("precision", "Synthetic series inside the real support (precision)", _KYNKAANNIEMI),
    _higher("recall", "Real series inside the synthetic support (recall)", _KYNKAANNIEMI),
    _near("density", "Real neighbourhoods around a synthetic series (density)", f"{_NAEEM}, Eq. 3", range=ABOVE),
    _higher("coverage", "Real neighbourhoods that hold a synthetic series (coverage)", f"{_NAEEM}, Eq. 4"),
    _near("copied", "Nearest neighbour in the training set rather than held out (DCR share)", _COPIED, measure=_copied),
    _near(
        "copied_warped", "Nearest neighbour in the training set, by dynamic time warping", _COPIED,
        measure=_copied_warped, seconds=1.1,
    ),
    _near(
        "variety", "Nearest-neighbour distance among synthetic series (diversity)",
        "mean distance to the nearest neighbour in the same set, candidate over real", measure=_variety, range=ABOVE,
    ),
    _near("doubles", "Exact duplicates", "share of series that occur more than once", measure=_doubles),
)  # fmt: skip
