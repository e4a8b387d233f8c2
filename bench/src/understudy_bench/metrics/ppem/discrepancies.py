"""MMD of candidate and real series, and Stein discrepancies of candidates from a density fitted to real series.

What the Stein tests test: that the candidate's series, as points of the real series' leading principal components, were
drawn from a Gaussian mixture fitted to the real ones. Real series were not drawn from one either, so read the figures
beside those of other real series; with enough series every p-value falls to its floor.
"""

from collections.abc import Callable

import numpy as np
import torch

from understudy.evaluation.general.neighbours import flat_series
from understudy.evaluation.measures import drawn_units
from understudy.evaluation.metric import Effort, Measured, Metric
from understudy.evaluation.panels import Comparison
from understudy.synthesizers.ppem.published import normalised_discrepancy
from understudy_bench.metrics.kernels import (
    DRAWS,
    gram,
    linear_test,
    normalised_test,
    quadratic_test,
    shuffled_pairs,
    squared_discrepancy,
    stein_gram,
    two_sample_test,
    unbiased_discrepancy,
)
from understudy_bench.metrics.ppem.mixture import series_density

_MAX_SERIES = 1_000  # of each side, as the PPEM paper does for MMD
_MAX_POINTS = 2_000
_SMALLEST = f"Its p-value can't fall below 1/{DRAWS + 1}."


def _mean_discrepancy(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    panels, rng = (comparison.real, comparison.candidate), np.random.default_rng(seed)
    rows = [rng.permutation(panel.num_series)[:_MAX_SERIES] for panel in panels]
    points = (side[chosen] for side, chosen in zip(flat_series(*panels), rows, strict=True))
    matrix, number = gram(np.concatenate(list(points))), len(rows[0])
    test = two_sample_test(matrix, number, rng)
    drawn = [
        drawn_units(panel.unit[chosen], effort.replicates, seed + side)
        for side, (panel, chosen) in enumerate(zip(panels, rows, strict=True))
    ]
    first, second = (np.zeros((effort.replicates, len(matrix))) for _ in range(2))
    first[:, :number], second[:, number:] = drawn
    return Measured(
        value=test.statistic,
        replicates=np.sqrt(squared_discrepancy(matrix, first, second)),
        parts={"p-value": test.p_value, "squared, unbiased": unbiased_discrepancy(matrix, number)},
        notes=(f"{number} real series and {len(rows[1])} candidates; {DRAWS} permutations. {_SMALLEST}",),
    )


def _quadratic(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    points, unit = _points(comparison, seed)
    matrix = stein_gram(points, series_density(comparison.real).mixture.score)
    test = quadratic_test(matrix, np.random.default_rng(seed))
    weights = drawn_units(unit, effort.replicates, seed)
    others = matrix - np.diag(np.diag(matrix))
    pairs = weights.sum(axis=1) ** 2 - (weights**2).sum(axis=1)
    return Measured(
        value=test.statistic,
        replicates=np.einsum("rp,rp->r", weights @ others, weights) / np.maximum(pairs, 1),
        parts={"p-value": test.p_value},
        notes=(f"{len(points)} candidates, {_space(points)}; {DRAWS} bootstrap draws. {_SMALLEST}",),
    )


def _linear(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    pairs = _pairs(comparison, seed)
    test, drawn = linear_test(pairs), pairs[_again(len(pairs), effort, seed)]
    return Measured(
        value=test.statistic,
        replicates=drawn.mean(axis=1),
        parts={"p-value": test.p_value},
        notes=(f"{len(pairs)} pairs of candidates; one-sided p-value of the normal approximation.",),
    )


def _normalised(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    pairs = _pairs(comparison, seed)
    test, drawn = normalised_test(pairs), pairs[_again(len(pairs), effort, seed)]
    return Measured(
        value=test.statistic,
        replicates=np.asarray(normalised_discrepancy(torch.from_numpy(drawn))),
        parts={"p-value": test.p_value},
        notes=(
            f"{len(pairs)} pairs of candidates, so at most {len(pairs) - 1}; p-value of χ² with 1 degree of freedom.",
        ),
    )


def _points(comparison: Comparison, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(seed).permutation(comparison.candidate.num_series)[:_MAX_POINTS]
    points = series_density(comparison.real).points(comparison.candidate)
    return points[rows], comparison.candidate.unit[rows]


def _pairs(comparison: Comparison, seed: int) -> np.ndarray:
    points, _ = _points(comparison, seed)
    score = series_density(comparison.real).mixture.score
    return shuffled_pairs(points, score, np.random.default_rng(seed))


def _again(number: int, effort: Effort, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, number, (effort.replicates, number))


def _space(points: np.ndarray) -> str:
    return f"as points of {points.shape[1]} principal components"


def _metric(name: str, title: str, low: float, equation: str, measure: Callable[..., Measured]) -> Metric:
    return Metric(
        name=f"ppem.{name}",
        title=title,
        direction="lower",
        range=(low, float("inf")),
        reference=f"PPEM, {equation}",
        measure=measure,
    )


_LEAST = float("-inf")  # unbiased estimates of a small figure fall on both sides of it
METRICS = (
    _metric("mmd", "Maximum mean discrepancy of series", 0.0, "section 5: MMD two-sample test", _mean_discrepancy),
    _metric("ksd", "Stein discrepancy from a density of real series", _LEAST, "Eq. 14", _quadratic),
    _metric("ksd_linear", "Stein discrepancy, over pairs", _LEAST, "Eq. 16", _linear),
    _metric("ksd_normalised", "Stein discrepancy over its own variance", 0.0, "Eq. 17", _normalised),
)
