"""How well hidden values were filled, by the way steps were hidden: the suite `conditional`, for releases that impute.

The error functions take (truth, draws, hidden). Truth has any shape, draws one axis more in front, hidden the shape of
truth. Values count where they were hidden and are known. The mean of the draws represents them where errors are
squared, the median where they are not.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from understudy.data.masks import MASKS
from understudy.evaluate.metric import Effort, Measured, Metric, Undefined
from understudy.evaluate.panels import Comparison, Completion, Panels
from understudy.synthesizers import Release
from understudy.synthesizers.completing import fillings

Figure = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
NO_FILLINGS = (
    "this release can't impute, so nothing was hidden and filled; releases that offer `impute` are judged on it."
)


def squared_error(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns the mean squared error of the mean draw."""
    known, drawn = _counted(truth, draws, hidden)
    return float(((drawn.mean(axis=0) - known) ** 2).mean())


def absolute_error(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns the mean absolute error of the median draw."""
    known, drawn = _counted(truth, draws, hidden)
    return float(np.abs(np.median(drawn, axis=0) - known).mean())


def percentage_error(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns the mean absolute error of the median draw in percent of the truth.

    A truth nearer to 0 than a thousandth of its standard deviation counts as that far: otherwise one value that
    happens to be 0 would decide the figure.
    """
    known, drawn = _counted(truth, draws, hidden)
    size = np.maximum(np.abs(known), max(1e-3 * float(known.std()), 1e-12))
    return float((np.abs(np.median(drawn, axis=0) - known) / size).mean() * 100)


def determination(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns R² of the mean draw, pooled over all values; NaN where the truth does not vary."""
    known, drawn = _counted(truth, draws, hidden)
    variance = float(known.var())
    return 1 - float(((drawn.mean(axis=0) - known) ** 2).mean()) / variance if variance > 0 else float("nan")


def ranked_probability_score(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns the mean CRPS, E|X − y| − E|X − X'|/2, unbiased in the number of draws (Ferro 2014, Eq. 8).

    With one draw it is the mean absolute error.
    """
    known, drawn = _counted(truth, draws, hidden)
    number = len(drawn)
    error = float(np.abs(drawn - known).mean())
    if number == 1:
        return error
    ranks = 2 * np.arange(1, number + 1) - number - 1  # Σ_{i<j} |x_i − x_j| = Σ (2i − n − 1) x_(i)
    spread = (ranks @ np.sort(drawn, axis=0)).mean() / (number * (number - 1))
    return error - float(spread)


def interval_coverage(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray, level: float = 0.9) -> float:
    """Returns the share of values within the central interval of the draws; `level` if they are distributed alike.

    Ends lie at the ranks that another draw would fall between with that probability, so few draws are not blamed.
    """
    known, drawn = _counted(truth, draws, hidden)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return float(((low <= known) & (known <= high)).mean())


def _counted(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if draws.shape[1:] != truth.shape or hidden.shape != truth.shape:
        raise ValueError("Expected draws [draw, *truth] and hidden of the truth's shape.")
    counted = hidden & ~np.isnan(truth)
    return truth[counted].astype(np.float64), draws[:, counted].astype(np.float64)


def by_channel(completion: Completion, places: list[int], figure: Figure) -> np.ndarray:
    """Returns the figure of each channel; NaN where nothing hidden was ever observed."""
    figures = []
    for place in places:
        truth, draws = completion.truth[:, :, place], completion.draws[:, :, :, place]
        counted = completion.hidden & ~np.isnan(truth)
        figures.append(figure(truth, draws, completion.hidden) if counted.any() else float("nan"))
    return np.array(figures)


def straight_lines(completion: Completion) -> np.ndarray:
    """Returns the naive filling, as a single draw: straight lines, ends held, the mean if all is hidden."""
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
    note = f"{draws} fillings of each series; mean over channels and ways of hiding, compared with straight lines."
    return Measured(value=float(np.mean(own)), parts=parts, notes=(note,))


def _spread(values: np.ndarray) -> float:
    seen = values[~np.isnan(values)]
    return float(seen.std(dtype=np.float64)) or 1.0 if len(seen) else 1.0


def _root(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    return float(np.sqrt(squared_error(truth, draws, hidden)))


def _metric(name: str, title: str, figure: Figure, *, standardised: bool, direction: str = "lower") -> Metric:
    limits = {"lower": (0.0, float("inf")), "higher": (float("-inf"), 1.0), "near": (0.0, 1.0)}
    return Metric(
        name=f"conditional.{name}",
        title=title,
        direction=direction,  # type: ignore[arg-type]
        range=limits[direction],
        reference="DP-aware AdaLN-Zero, Tables 6 and 8; formula of the standard measure",
        measure=partial(_measure, figure, standardised),
    )


METRICS = (
    _metric("rmse", "Fillings: root mean squared error, in standard deviations", _root, standardised=True),
    _metric("mae", "Fillings: mean absolute error, in standard deviations", absolute_error, standardised=True),
    _metric("mape", "Fillings: error in percent", percentage_error, standardised=False),
    _metric("r2", "Fillings: share explained", determination, standardised=False, direction="higher"),
    _metric("crps", "Fillings: ranked probability score", ranked_probability_score, standardised=True),
    _metric(
        "coverage",
        "Fillings: truth within the central 90 %",
        interval_coverage,
        standardised=False,
        direction="near",
    ),
)


KINDS = ("random", "block", "stride")  # where all is hidden, there is nothing to fill from
MAX_SERIES, NUM_DRAWS = 100, 19


def with_completions(panels: Panels, release: Release | None, *, seed: int = 0) -> Panels:
    """Returns the panels with fillings of other real series; as they were if there is no release that can impute.

    Privacy: internal. The series that are filled were not learned from, and their truth stays with the fillings.
    """
    if release is None or not release.completes:
        return panels
    rng = np.random.default_rng([seed, 17])
    chosen = np.sort(rng.permutation(panels.other.num_units)[:MAX_SERIES])
    series = panels.other.take_units(chosen)
    made = []
    for kind in KINDS:
        steps = MASKS[kind](series.num_series, series.num_steps, rng)
        drawn = fillings(release, series, steps[:, :, None] & series.observed, num_draws=NUM_DRAWS, rng=rng)
        made.append(Completion(kind=kind, truth=series.values, hidden=steps, draws=drawn))
    return replace(panels, completions=tuple(made))
