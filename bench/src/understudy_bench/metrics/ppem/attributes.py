"""Frequencies and densities of single attributes, real beside candidate (PPEM, Fig. 3 and 4)."""

import numpy as np

from understudy.data import Channel
from understudy.data.channels import num_codes
from understudy.evaluation.measures import Aspect, cell_counts, mean_figure, of_sums
from understudy.evaluation.metric import Effort, Measured, Metric
from understudy.evaluation.panels import Comparison

_MAX_VALUES = 2_000


def dimension_probabilities(comparison: Comparison) -> dict[str, tuple[float, float]]:
    """Returns how frequent each category is among (real, candidate) values: the points of PPEM's scatter plot."""
    found: dict[str, tuple[float, float]] = {}
    for column, real, candidate in _categories(comparison):
        counts = [_counts(column, values).sum(axis=0, dtype=np.float64) for values in (real, candidate)]
        if all(count.sum() for count in counts):
            first, second = ((count / count.sum()).tolist() for count in counts)
            found |= dict(zip(_names(column), zip(first, second, strict=True), strict=True))
    return found


def attribute_densities(
    comparison: Comparison, num_points: int = 200, seed: int = 0
) -> dict[str, dict[str, list[float]]]:
    """Returns the smoothed density of each channel of numbers on a common `grid`, for `real` and `candidate`.

    Channels that never move on one side have no density and are left out. At most 2,000 values of each side.
    """
    from scipy.stats import gaussian_kde

    rng, densities = np.random.default_rng(seed), {}
    for place, name in enumerate(comparison.numeric_names):
        pools = [comparison.numeric(panel)[:, :, place].ravel() for panel in (comparison.real, comparison.candidate)]
        seen = [rng.permutation(pool[~np.isnan(pool)])[:_MAX_VALUES].astype(np.float64) for pool in pools]
        if any(len(values) < 2 or np.ptp(values) == 0 for values in seen):
            continue
        low, high = np.quantile(np.concatenate(seen), [0.001, 0.999])
        grid = np.linspace(low, high, num_points)
        curves = {
            side: gaussian_kde(values)(grid).tolist() for side, values in zip(("real", "candidate"), seen, strict=True)
        }
        densities[name] = {"grid": grid.tolist(), **curves}
    return densities


def _probability_error(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    aspects = [_aspect(column, real, candidate) for column, real, candidate in _categories(comparison)]
    return mean_figure(aspects, comparison, effort, seed, otherwise="no channel and no static column holds categories.")


def _aspect(column: Channel, real: np.ndarray, candidate: np.ndarray) -> Aspect:
    return of_sums(_names(column), _counts(column, real), _counts(column, candidate), _share_gap)


def _share_gap(real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    totals = real.sum(), candidate.sum()
    if not all(totals):
        return np.full(len(real), np.nan)
    return np.abs(real / totals[0] - candidate / totals[1])


def _categories(comparison: Comparison) -> list[tuple[Channel, np.ndarray, np.ndarray]]:
    schema, real, candidate = comparison.real.schema, comparison.real, comparison.candidate
    channels = [(c, real.values[:, :, i], candidate.values[:, :, i]) for i, c in enumerate(schema.channels)]
    static = [(c, real.static[:, [i]], candidate.static[:, [i]]) for i, c in enumerate(schema.static)]
    return [one for one in (*channels, *static) if num_codes(one[0]) is not None]


def _counts(column: Channel, values: np.ndarray) -> np.ndarray:
    return cell_counts(values, np.arange((num_codes(column) or 0) + 1) - 0.5)


def _names(column: Channel) -> list[str]:
    return [f"{column.name} is {category}" for category in getattr(column, "categories", ("no", "yes"))]


METRICS = (
    Metric(
        name="ppem.dimension_probability",
        title="Frequency of each single category",
        direction="lower",
        range=(0.0, 1.0),
        reference="PPEM, Fig. 3: mean distance of the Bernoulli probabilities from the diagonal",
        measure=_probability_error,
    ),
)
