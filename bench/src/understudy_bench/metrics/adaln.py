"""Distances of distributions and of spectra as DP-aware AdaLN-Zero reports them: for whole series, and for fillings."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from understudy.evaluation.measures import (
    Aspect,
    cell_counts,
    kolmogorov_smirnov,
    mean_figure,
    of_sums,
    spectra,
    wasserstein,
)
from understudy.evaluation.metric import Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison, Completion
from understudy_bench.metrics.distances import even_borders, jensen_shannon, kullback_leibler, quantile_cells
from understudy_bench.metrics.kernels import gram, squared_discrepancy

CELLS = 50
_KERNEL_CELLS = 256
_NO_NUMBERS = "no channel holds numbers that were observed on both sides."
MakeAspect = Callable[[str, np.ndarray, np.ndarray], Aspect]


def histogram_aspect(
    distance: Callable[[np.ndarray, np.ndarray], float], name: str, real: np.ndarray, candidate: np.ndarray
) -> Aspect:
    """Returns a distance of histograms over 50 equal cells from the least to the greatest value of both pools."""
    borders = even_borders(real, candidate, CELLS)
    counts = cell_counts(real, borders), cell_counts(candidate, borders)
    return of_sums([name], *counts, lambda p, q: np.array([distance(p, q)]))


def discrepancy_aspect(name: str, real: np.ndarray, candidate: np.ndarray) -> Aspect:
    """Returns the squared MMD of two pools, Gaussian kernel, median bandwidth.

    All values count, each as the mean of its cell; the 256 cells hold about equally many of both pools.
    """
    borders, middles = quantile_cells(np.concatenate([real.ravel(), candidate.ravel()]), _KERNEL_CELLS)
    matrix = gram(middles[:, None])
    counts = cell_counts(real, borders), cell_counts(candidate, borders)

    def gap(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return squared_discrepancy(matrix, first, second) if first.any() and second.any() else np.array(np.nan)

    return of_sums([name], *counts, gap)


def spectral_gap(real: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Returns the mean squared difference of two mean spectra per channel, from summed spectra [frequency, channel]."""
    means = [totals / np.maximum(totals.sum(axis=0), 1e-12) for totals in (real, candidate)]
    return np.asarray(((means[0] - means[1]) ** 2).mean(axis=0))


def _pools(make: MakeAspect, comparison: Comparison, effort: Effort, seed: int) -> Measured:
    both = [comparison.numeric(panel) for panel in (comparison.real, comparison.candidate)]
    aspects = [
        make(name, *(values[:, :, place] for values in both)) for place, name in enumerate(comparison.numeric_names)
    ]
    measured = mean_figure(aspects, comparison, effort, seed, otherwise=_NO_NUMBERS)
    filled = {c.kind: filled_pools(make, c, comparison.scale.numeric) for c in comparison.completions}
    return _with_fillings(measured, filled)


def filled_pools(make: MakeAspect, completion: Completion, places: list[int]) -> float:
    """Returns the mean distance over channels of hidden values and of one draw in their place."""
    figures = []
    for place in places:
        truth = np.where(completion.hidden, completion.truth[:, :, place], np.nan)
        drawn = np.where(np.isnan(truth), np.nan, completion.draws[0, :, :, place])
        if (~np.isnan(truth)).any():
            figures.append(float(make("", truth, drawn).figures(np.ones(len(truth)), np.ones(len(truth)))[0]))
    return float(np.mean(figures)) if figures else float("nan")


def _spectral(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    if comparison.real.num_steps < 4:
        raise Undefined("series of at least 4 steps are needed.")
    real, candidate = (spectra(comparison.numeric_unit(panel)) for panel in (comparison.real, comparison.candidate))
    aspect = of_sums(comparison.numeric_names, real, candidate, spectral_gap)
    measured = mean_figure([aspect], comparison, effort, seed, otherwise=_NO_NUMBERS)
    filled = {c.kind: filled_spectra(c, comparison.scale.numeric) for c in comparison.completions}
    return _with_fillings(measured, filled)


def filled_spectra(completion: Completion, places: list[int]) -> float:
    """Returns the spectral distance of whole series and of the same series filled, where all of them was observed."""
    truth, drawn = completion.truth[:, :, places], completion.draws[0][:, :, places]
    whole = ~np.isnan(truth).any(axis=(1, 2))
    if not whole.any():
        return float("nan")
    filled = np.where(completion.hidden[:, :, None], drawn, truth)
    sides = (spectra(values[whole]).sum(axis=0) for values in (truth, filled))
    return float(spectral_gap(*sides).mean())


def _with_fillings(measured: Measured, filled: dict[str, float]) -> Measured:
    known = {f"fillings, {kind}": figure for kind, figure in filled.items() if np.isfinite(figure)}
    return replace(measured, parts={**measured.parts, **known})


def _metric(name: str, title: str, top: float, reference: str, measure: Callable[..., Measured]) -> Metric:
    return Metric(
        name=f"conditional.{name}",
        title=title,
        direction="lower",
        range=(0.0, top),
        reference=f"DP-aware AdaLN-Zero, Tables 6 and 8; {reference}",
        measure=measure,
    )


_INFINITE = float("inf")
METRICS = (
    _metric(
        "kl",
        "Values: Kullback–Leibler divergence of the candidate from real",
        _INFINITE,
        "50 cells, nats",
        partial(_pools, partial(histogram_aspect, kullback_leibler)),
    ),
    _metric(
        "js",
        "Values: Jensen–Shannon distance",
        1.0,
        "50 cells, base 2, root of the divergence",
        partial(_pools, partial(histogram_aspect, jensen_shannon)),
    ),
    _metric(
        "wasserstein",
        "Values: how far mass has to move, in standard deviations",
        _INFINITE,
        "1-Wasserstein distance",
        partial(_pools, wasserstein),
    ),
    _metric(
        "ks",
        "Values: greatest difference of distribution functions",
        1.0,
        "two-sample statistic",
        partial(_pools, kolmogorov_smirnov),
    ),
    _metric(
        "mmd",
        "Values: squared maximum mean discrepancy",
        2.0,
        "Gaussian kernel, median bandwidth, values rounded to 256 cells",
        partial(_pools, discrepancy_aspect),
    ),
    _metric("spectral", "Mean spectra: squared difference", 1.0, "share of power, mean over frequencies", _spectral),
)
