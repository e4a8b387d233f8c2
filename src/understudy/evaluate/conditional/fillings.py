"""Metrics of fillings: defined for releases that can impute, by the way steps were hidden."""

from collections.abc import Callable
from functools import partial

import numpy as np

from understudy.evaluate.comparison import Comparison, Completion
from understudy.evaluate.conditional import point
from understudy.evaluate.metric import Effort, Measured, Metric, Undefined

Figure = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
NO_FILLINGS = (
    "this release can't impute, so nothing was hidden and filled; releases that offer `impute` are judged on it."
)


def by_channel(completion: Completion, places: list[int], figure: Figure) -> np.ndarray:
    """Returns the figure of each channel; NaN where nothing hidden was ever observed."""
    figures = []
    for place in places:
        truth, draws = completion.truth[:, :, place], completion.draws[:, :, :, place]
        counted = completion.hidden & ~np.isnan(truth)
        figures.append(figure(truth, draws, completion.hidden) if counted.any() else float("nan"))
    return np.array(figures)


def straight_lines(completion: Completion) -> np.ndarray:
    """Returns what anybody would fill in, as a single draw: straight lines, ends held, the mean if all is hidden."""
    filled = np.array(completion.truth, dtype=np.float64)
    filled[completion.hidden] = np.nan
    steps = np.arange(filled.shape[1])
    for place in range(filled.shape[2]):
        seen = completion.truth[:, :, place]
        middle = float(seen[~np.isnan(seen)].mean()) if (~np.isnan(seen)).any() else 0.0
        for row in filled[:, :, place]:
            known = ~np.isnan(row)
            row[~known] = np.interp(steps[~known], steps[known], row[known]) if known.any() else middle
    return filled[None]


def _measure(figure: Figure, standardised: bool, comparison: Comparison, effort: Effort, seed: int) -> Measured:
    if not comparison.completions:
        raise Undefined(NO_FILLINGS)
    places = comparison.scale.numeric
    values = comparison.numeric(comparison.real)
    spread = np.array([_spread(values[:, :, place]) if standardised else 1.0 for place in range(len(places))])
    parts: dict[str, float] = {}
    for completion in comparison.completions:
        plain = Completion(
            kind=completion.kind, truth=completion.truth, hidden=completion.hidden, draws=straight_lines(completion)
        )
        for name, one in ((completion.kind, completion), (f"{completion.kind}: straight lines", plain)):
            figures = by_channel(one, places, figure) / spread
            if np.isfinite(figures).any():
                parts[name] = float(np.nanmean(figures))
    own = [parts[completion.kind] for completion in comparison.completions if completion.kind in parts]
    if not own:
        raise Undefined("no hidden value was ever observed.")
    draws = len(comparison.completions[0].draws)
    note = f"{draws} fillings of each series; mean over channels and ways of hiding, beside straight lines."
    return Measured(value=float(np.mean(own)), parts=parts, notes=(note,))


def _spread(values: np.ndarray) -> float:
    seen = values[~np.isnan(values)]
    return float(seen.std(dtype=np.float64)) or 1.0 if len(seen) else 1.0


def _root(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    return float(np.sqrt(point.squared_error(truth, draws, hidden)))


def _metric(name: str, title: str, figure: Figure, *, standardised: bool, direction: str = "lower") -> Metric:
    limits = {"lower": (0.0, float("inf")), "higher": (float("-inf"), 1.0), "near": (0.0, 1.0)}
    return Metric(
        name=f"conditional.{name}",
        title=title,
        direction=direction,  # type: ignore[arg-type]
        range=limits[direction],
        reference="paper 003, Tables 6 and 8; formula of the standard measure",
        measure=partial(_measure, figure, standardised),
    )


METRICS = (
    _metric("rmse", "Fillings: root mean squared error, in standard deviations", _root, standardised=True),
    _metric("mae", "Fillings: mean absolute error, in standard deviations", point.absolute_error, standardised=True),
    _metric("mape", "Fillings: error in percent", point.percentage_error, standardised=False),
    _metric("r2", "Fillings: share explained", point.determination, standardised=False, direction="higher"),
    _metric("crps", "Fillings: ranked probability score", point.ranked_probability_score, standardised=True),
    _metric(
        "coverage",
        "Fillings: truth within the central 90 %",
        point.interval_coverage,
        standardised=False,
        direction="near",
    ),
)
