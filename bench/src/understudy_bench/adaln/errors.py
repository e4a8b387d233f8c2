"""Errors of fillings as Tables 1 and 6 to 9 of DP-aware AdaLN-Zero print them, and what can be said without `dit`."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.covariance import LedoitWolf

from understudy.data import Panel
from understudy.data.masks import MASKS
from understudy.evaluation import fillings as point
from understudy.evaluation.fillings import straight_lines
from understudy.evaluation.measures import kolmogorov_smirnov, wasserstein
from understudy.evaluation.panels import Completion
from understudy_bench.adaln.data import Study
from understudy_bench.metrics import adaln as distributions
from understudy_bench.metrics.distances import jensen_shannon, kullback_leibler

NUM_DRAWS = 19
TASKS = {"impute": ("random", "stride"), "stride": ("stride",), "forecast": ("block",)}
_POOLS: dict[str, distributions.MakeAspect] = {
    "kl": partial(distributions.histogram_aspect, kullback_leibler),
    "js": partial(distributions.histogram_aspect, jensen_shannon),
    "ws": wasserstein,
    "ks": kolmogorov_smirnov,
    "mmd": distributions.discrepancy_aspect,
}
_FLOOR = 1e-3  # added to the variance of every score, so that a covariance of few series can be inverted
Fill = Callable[[np.ndarray, np.random.Generator], np.ndarray]  # hidden [series, step] → draws [draw, series, step, …]


def errors(study: Study, fill: Fill) -> dict[str, float]:
    """Returns every figure of every task for one way of filling; hidden steps are the same for all ways.

    Errors are in standard deviations of what was learned from. The first draw stands for a filling where
    distributions are compared, as the paper's single sample does.
    """
    made = {kind: _completed(study, kind, fill) for kind in dict.fromkeys(sum(TASKS.values(), ()))}
    figures = {kind: _figures(one, study) for kind, one in made.items()}
    return {
        f"{task}_{name}": float(np.mean([figures[kind][name] for kind in kinds]))
        for task, kinds in TASKS.items()
        for name in next(iter(figures.values()))
    }


def _completed(study: Study, kind: str, fill: Fill) -> Completion:
    test, history = study.test, study.history
    steps = MASKS[kind](test.num_series, test.num_steps - history, np.random.default_rng(7))
    draws = fill(np.pad(steps, ((0, 0), (history, 0))), np.random.default_rng(8))
    return Completion(kind=kind, truth=test.values[:, history:], hidden=steps, draws=draws[:, :, history:])


def _figures(made: Completion, study: Study) -> dict[str, float]:
    places = list(range(made.truth.shape[2]))
    spread = np.nanstd(study.train.values, axis=(0, 1))
    parts: dict[str, list[float]] = {name: [] for name in ("rmse", "mae", "mape", "r2", "coverage")}
    for place in places:
        one = point.counted(made.truth[..., place], made.draws[..., place], made.hidden)
        parts["rmse"].append(math.sqrt(point.squared_error(*one)) / spread[place])
        parts["mae"].append(point.absolute_error(*one) / spread[place])
        parts["mape"].append(point.percentage_error(*one))
        parts["r2"].append(point.determination(*one))
        parts["coverage"].append(point.interval_coverage(*one))
    found = {name: float(np.mean(figures)) for name, figures in parts.items()}
    found |= {name: distributions.filled_pools(make, made, places) for name, make in _POOLS.items()}
    return found | {"spec": distributions.filled_spectra(made, places)}


# --- what anybody could have said -------------------------------------------------------------------------------


def naive_ways(study: Study) -> dict[str, Fill]:
    """Straight lines between what is shown, the last shown value, and the same time of the day before."""
    return {
        "straight lines": lambda hidden, rng: _straight(study.test, hidden),
        "last value": lambda hidden, rng: _lagged(study.test, hidden, 1),
        "seasonal naive": lambda hidden, rng: _lagged(study.test, hidden, _per_day(study)),
    }


def _per_day(study: Study) -> int:
    return 24 if study.train.schema.time.frequency == "1h" else 96


def _straight(test: Panel, hidden: np.ndarray) -> np.ndarray:
    return straight_lines(Completion(kind="", truth=test.values, hidden=hidden, draws=test.values[None]))


def _lagged(test: Panel, hidden: np.ndarray, lag: int) -> np.ndarray:
    """Returns values with hidden steps replaced by what stood `lag` steps before, filled or not; else by lines."""
    made = np.where(hidden[:, :, None], np.nan, test.values).astype(np.float64)
    for step in range(lag, made.shape[1]):
        made[:, step] = np.where(np.isnan(made[:, step]), made[:, step - lag], made[:, step])
    made = np.where(hidden[:, :, None], made, test.values)
    return np.where(np.isnan(made), _straight(test, hidden)[0], made)[None]


# --- what a release of series says ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GaussianFillings:
    """Fills gaps by the normal distribution of scores that synthetic series have, given what is shown.

    This is what a release without `impute`, such as `spectral`, can say: its series are drawn, values become normal
    scores by their own ranks, and a covariance (Ledoit and Wolf 2004) answers. Post-processing.
    """

    synthetic: Panel
    test: Panel

    def __call__(self, hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Returns draws [draw, series, step, channel]."""
        known = [np.sort(values[~np.isnan(values)]) for values in np.moveaxis(self.synthetic.values, 2, 0)]
        covariance = self._covariance(known)
        truth = _scores(self.test.values, known).reshape(len(hidden), -1)
        unseen = np.repeat(hidden, len(known), axis=1) | np.isnan(truth)
        drawn = np.repeat(truth[None], NUM_DRAWS, axis=0)
        for rows in _alike(unseen):
            drawn[:, rows] = _conditional(truth[rows], unseen[rows[0]], covariance, rng)
        return _values(drawn.reshape(NUM_DRAWS, *self.test.values.shape), known)

    def _covariance(self, known: list[np.ndarray]) -> np.ndarray:
        scores = _scores(self.synthetic.values, known)
        flat = np.nan_to_num(scores.reshape(len(scores), -1))
        covariance = LedoitWolf(assume_centered=True).fit(flat).covariance_
        return np.asarray(covariance + _FLOOR * np.eye(len(covariance)))


def _scores(values: np.ndarray, known: list[np.ndarray]) -> np.ndarray:
    ranks = [(np.searchsorted(own, values[..., place]) + 0.5) / (len(own) + 1) for place, own in enumerate(known)]
    return np.where(np.isnan(values), np.nan, ndtri(np.clip(np.stack(ranks, axis=-1), 1e-4, 1 - 1e-4)))


def _values(scores: np.ndarray, known: list[np.ndarray]) -> np.ndarray:
    places = [ndtr(scores[..., place]) * (len(own) - 1) for place, own in enumerate(known)]
    return np.stack([np.interp(at, np.arange(len(own)), own) for at, own in zip(places, known, strict=True)], axis=-1)


def _alike(masks: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the rows of each mask that occurs."""
    _, which = np.unique(masks, axis=0, return_inverse=True)
    for mask in range(which.max() + 1):
        yield np.flatnonzero(which == mask)


def _conditional(rows: np.ndarray, unseen: np.ndarray, covariance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns rows with unseen entries drawn from the normal distribution given the seen ones."""
    seen = ~unseen
    weights = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, unseen)])  # [seen, unseen]
    left = covariance[np.ix_(unseen, unseen)] - covariance[np.ix_(unseen, seen)] @ weights
    factor = np.linalg.cholesky(left + 1e-6 * np.eye(len(left)))
    drawn = np.repeat(rows[None], NUM_DRAWS, axis=0)
    noise = rng.standard_normal((NUM_DRAWS, len(rows), len(left)))
    drawn[:, :, unseen] = rows[:, seen] @ weights + noise @ factor.T
    return drawn
