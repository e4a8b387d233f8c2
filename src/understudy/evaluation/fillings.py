"""How well hidden values were filled, by the way steps were hidden: the suite `conditional`, for releases that impute.

The error functions take (known [value], drawn [draw, value]): what was hidden and is known, and what was drawn for it.
The mean of the draws represents them where errors are squared, the median where they are not.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from understudy.data.masks import MASKS
from understudy.evaluation.general.values import channel_spread
from understudy.evaluation.metric import ABOVE, Effort, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison, Completion, Panels, without_gaps
from understudy.synthesizers import Release
from understudy.synthesizers.completing import fillings

Figure = Callable[[np.ndarray, np.ndarray], float]
NO_FILLINGS = (
    "this release can't impute, so nothing was hidden and filled; releases that offer `impute` are judged on it."
)


def counted(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the hidden values that are known and their draws, of [*any], [draw, *any] and [*any]."""
    chosen = hidden & ~np.isnan(truth)
    return truth[chosen].astype(np.float64), draws[:, chosen].astype(np.float64)


def squared_error(known: np.ndarray, drawn: np.ndarray) -> float:
    """Returns the mean squared error of the mean draw."""
    return float(((drawn.mean(axis=0) - known) ** 2).mean())


def absolute_error(known: np.ndarray, drawn: np.ndarray) -> float:
    """Returns the mean absolute error of the median draw."""
    return float(np.abs(np.median(drawn, axis=0) - known).mean())


def percentage_error(known: np.ndarray, drawn: np.ndarray) -> float:
    """Returns the mean absolute error of the median draw in percent of the truth; 0.1 % of its deviation at least."""
    size = np.maximum(np.abs(known), max(1e-3 * float(known.std()), 1e-12))
    return float((np.abs(np.median(drawn, axis=0) - known) / size).mean() * 100)


def determination(known: np.ndarray, drawn: np.ndarray) -> float:
    """Returns R² of the mean draw, pooled over all values; NaN where the truth does not vary."""
    variance = float(known.var())
    return 1 - squared_error(known, drawn) / variance if variance > 0 else float("nan")


def ranked_probability_score(known: np.ndarray, drawn: np.ndarray) -> float:
    """Returns the mean CRPS, E|X − y| − E|X − X'|/2, unbiased in the number of draws (Ferro 2014, Eq. 8).

    With one draw it is the mean absolute error.
    """
    number, error = len(drawn), float(np.abs(drawn - known).mean())
    ranks = 2 * np.arange(1, number + 1) - number - 1  # Σ_{i<j} |x_i − x_j| = Σ (2i − n − 1) x_(i)
    return error - float((ranks @ np.sort(drawn, axis=0)).mean() / max(1, number * (number - 1)))


def interval_coverage(known: np.ndarray, drawn: np.ndarray, level: float = 0.9) -> float:
    """Returns the share of values within the central interval of the draws; `level` if they are distributed alike."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return float(((low <= known) & (known <= high)).mean())


def by_channel(completion: Completion, places: list[int], figure: Figure) -> np.ndarray:
    """Returns the figure of each channel; NaN where nothing hidden was ever observed."""
    truth, draws = completion.truth, completion.draws
    pairs = (counted(truth[:, :, place], draws[:, :, :, place], completion.hidden) for place in places)
    return np.array([figure(*pair) if len(pair[0]) else float("nan") for pair in pairs])


def straight_lines(completion: Completion) -> np.ndarray:
    """Returns the naive filling, as a single draw: straight lines, ends held, the mean if all is hidden."""
    shown = np.where(completion.hidden[:, :, None], np.nan, completion.truth)
    seen = [channel[~np.isnan(channel)] for channel in np.moveaxis(completion.truth, 2, 0)]
    middles = [float(channel.mean()) if len(channel) else 0.0 for channel in seen]
    return np.stack([without_gaps(shown[:, :, place], middle) for place, middle in enumerate(middles)], axis=2)[None]


def _measure(figure: Figure, standardised: bool, comparison: Comparison, effort: Effort, seed: int) -> Measured:
    if not comparison.completions:
        raise Undefined(NO_FILLINGS)
    places = comparison.scale.numeric
    spread = channel_spread(comparison.numeric(comparison.real)) if standardised else 1.0
    parts: dict[str, float] = {}
    for completion in comparison.completions:
        plain = replace(completion, draws=straight_lines(completion))
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


def _root(known: np.ndarray, drawn: np.ndarray) -> float:
    return float(np.sqrt(squared_error(known, drawn)))


def _metric(name: str, title: str, figure: Figure, *, standardised: bool = False, **facts: Any) -> Metric:
    reference = "DP-aware AdaLN-Zero, Tables 6 and 8; formula of the standard measure"
    measure = partial(_measure, figure, standardised)
    return Metric(f"conditional.{name}", f"Imputation: {title}", reference, measure, seconds=4.0, **facts)


METRICS = (
    _metric("rmse", "RMSE of hidden values, in standard deviations", _root, standardised=True, range=ABOVE),
    _metric("mae", "MAE of hidden values, in standard deviations", absolute_error, standardised=True, range=ABOVE),
    _metric("mape", "MAPE of hidden values, in percent", percentage_error, range=ABOVE),
    _metric("r2", "R² of hidden values", determination, direction="higher", range=(-math.inf, 1.0)),
    _metric(
        "crps",
        "CRPS of hidden values, in standard deviations",
        ranked_probability_score,
        standardised=True,
        range=ABOVE,
    ),
    _metric("coverage", "coverage of the central 90 % interval", interval_coverage, direction="near"),
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
