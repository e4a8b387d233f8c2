"""Precision, recall, density and coverage: which neighbourhoods of one side hold series of the other."""

from functools import lru_cache, partial

import numpy as np

from understudy.data import Panel
from understudy.evaluate.comparison import Comparison
from understudy.evaluate.distances import equally_many, flat_series, squared_distances
from understudy.evaluate.metric import Effort, Measured, Metric
from understudy.evaluate.weighted import mean_share
from understudy.nn.nearest import nearest

NEIGHBOURS = 5


def radii(points: np.ndarray, neighbours: int = NEIGHBOURS) -> np.ndarray:
    """Returns each point's squared distance to its k-th nearest other point."""
    return np.asarray(nearest(points, points, min(neighbours, len(points) - 1) + 1)[1][:, -1])


def ball_shares(real: np.ndarray, candidate: np.ndarray, neighbours: int = NEIGHBOURS) -> dict[str, np.ndarray]:
    """Returns what each point adds to the four figures, which are the means of these.

    Notation: B(x) is the ball around x that reaches its k-th nearest fellow. Precision: candidates in some B(real).
    Recall: real points in some B(candidate); outliers inflate these balls, so a wild candidate may recall everything.
    Density: how many B(real) hold a candidate, over k. Coverage: B(real) that hold a candidate.
    """
    limits = radii(real, neighbours), radii(candidate, neighbours)
    covered = np.zeros(len(real), dtype=bool)
    holders, recalled = [], []
    for _, distances in squared_distances(candidate, real):
        inside = distances <= limits[0]
        holders.append(inside.sum(axis=1))
        covered |= inside.any(axis=0)
    for _, distances in squared_distances(real, candidate):
        recalled.append((distances <= limits[1]).any(axis=1))
    count = np.concatenate(holders)
    return {
        "precision": (count > 0).astype(float),
        "recall": np.concatenate(recalled).astype(float),
        "density": count / min(neighbours, len(real) - 1),
        "coverage": covered.astype(float),
    }


@lru_cache(maxsize=16)  # four metrics ask for the same balls
def _shares(real: Panel, candidate: Panel, seed: int) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    rows = equally_many(real, candidate, seed=seed)
    points = (side[chosen] for side, chosen in zip(flat_series(real, candidate), rows, strict=True))
    return rows, ball_shares(*points)


def _measure(name: str, comparison: Comparison, effort: Effort, seed: int) -> Measured:
    rows, shares = _shares(comparison.real, comparison.candidate, seed)
    of_candidates = name in ("precision", "density")
    unit = comparison.candidate.unit[rows[1]] if of_candidates else comparison.real.unit[rows[0]]
    value, replicates = mean_share(shares[name], unit, effort, seed)
    note = f"{NEIGHBOURS} neighbours, {len(unit)} series of each side, Euclidean distance of scaled series."
    return Measured(value=value, replicates=replicates, notes=(note,))


def _metric(name: str, title: str, reference: str) -> Metric:
    density = name == "density"
    return Metric(
        name=f"general.{name}",
        title=title,
        direction="near" if density else "higher",
        range=(0.0, float("inf") if density else 1.0),
        reference=reference,
        measure=partial(_measure, name),
    )


_KYNKAANNIEMI = "Kynkäänniemi et al. (2019), arXiv:1904.06991, Eq. 1–2"
_NAEEM = "Naeem et al. (2020), arXiv:2002.09797"
METRICS = (
    _metric("precision", "Candidates that lie among real series", _KYNKAANNIEMI),
    _metric("recall", "Real series that lie among candidates", _KYNKAANNIEMI),
    _metric("density", "Real neighbourhoods around each candidate", f"{_NAEEM}, Eq. 3"),
    _metric("coverage", "Real neighbourhoods with a candidate in them", f"{_NAEEM}, Eq. 4"),
)
