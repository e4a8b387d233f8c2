"""`pub2priv-limits`: how near a Gaussian given context can come, on portfolios of simulated markets and without noise.

A judge predicts the next step of one stock from the past of the others, as `predictive` does, but by boosted trees,
which take seconds. Models that see everything, without noise, say what is out of reach for any budget, and so do the
private portfolios themselves with something taken away; `pub2priv` without noise and at epsilon 1 stands beside them.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from understudy.data import Panel
from understudy.statistics.series import to_frequencies, to_steps
from understudy.synthesizers.pub2priv import Pub2Priv
from understudy_bench.cells import Cells
from understudy_bench.data.portfolios import portfolio_strategies, simulate_market
from understudy_bench.pub2priv.experiment import NO_NOISE, SCALES, Experiment, between_extremes
from understudy_bench.pub2priv.portfolio import portfolio_experiment
from understudy_bench.result import Progress, Row, Stopwatch, result, row, spread

_MARKETS = {"quick": (21, 22, 23), "target": tuple(range(21, 31)), "full": tuple(range(21, 51))}  # seeds
_SERIES, _CONTEXT = 12, 5  # frequencies of series, and of each column of context, that a model sees
_KEPT = (60, 12)  # frequencies of real series that are left of them
_KINDS = (("contrarians", True), ("followers of momentum", False))
_RIDGE = 1e-2
_SHOWN = 40_000  # moments of series that a judge learns from, and is judged on
_LAGS = (0, 5, 20, 60, 150)
_TARGET = -1  # the stock to predict
Draw = Callable[[Experiment, int], Panel]


def limits(scale: str, data_root: Path | None, progress: Progress, cells: Cells) -> dict[str, Any]:
    """Error of predicting real portfolios after learning from modelled ones, over that after learning from others."""
    ways: list[tuple[str, Draw, float | None]] = [
        *((f"private portfolios, {kept} of 360 frequencies", partial(_smoothed, kept=kept), None) for kept in _KEPT),
        *((f"private portfolios, {name} alone", partial(_alone, contrarian=which), None) for name, which in _KINDS),
        ("Gaussian, no noise", partial(_gaussian, context=False, apart=False), None),
        ("Gaussian given context, no noise", partial(_gaussian, context=True, apart=False), None),
        ("the same for each strategy, known", partial(_gaussian, context=True, apart=True), None),
        *(("pub2priv", partial(_released, epsilon=epsilon), epsilon) for epsilon in (NO_NOISE, 1.0)),
    ]
    seeds, rows = _MARKETS[scale], []
    for place, (name, draw, epsilon) in enumerate(ways, start=1):
        rows.append(cells(f"{scale} {name} {epsilon}", partial(_row, name, draw, epsilon, seeds)))
        progress(name, place / len(ways))
    second = cells(f"{scale} second", partial(_row, "second real series", lambda made, seed: made.second, None, seeds))
    data = {"name": "portfolios over simulated markets", "sha256": None, "stand_in": False, "simulated": True}
    return result("pub2priv-limits", scale, data, rows, [second])


def _row(name: str, draw: Draw, epsilon: float | None, seeds: tuple[int, ...]) -> Row:
    watch, found = Stopwatch(), []
    for seed in seeds:
        experiment, on_real = _market(seed)
        found.append(prediction_error(draw(experiment, seed), experiment.real) / on_real)
    unit = None if epsilon is None else "entity"
    figures = {"over_train_on_real": spread(found)}
    return row(name, figures, epsilon=epsilon, unit=unit, seconds=watch.seconds, seeds=len(seeds))


@cache
def _market(seed: int) -> tuple[Experiment, float]:
    """Returns portfolios over a simulated market, and the error of a judge that learned from real ones."""
    experiment = portfolio_experiment(simulate_market(seed=seed), SCALES["target"])
    return experiment, prediction_error(experiment.private, experiment.real)


def prediction_error(train: Panel, real: Panel, seed: int = 0) -> float:
    """Returns the squared error of trees that learned from `train` to predict real series, each within its extremes."""
    rng = np.random.default_rng(seed)
    (known, wanted), (seen, truth) = (_moments(between_extremes(panel).values, rng) for panel in (train, real))
    judge = HistGradientBoostingRegressor(max_iter=150, random_state=seed).fit(known, wanted)
    return float(np.mean((judge.predict(seen) - truth) ** 2))


def _moments(values: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Returns what other stocks did up to some steps of some series, and the next value of the one to predict."""
    others = values[:, :, :_TARGET]
    row, step = rng.integers(0, len(values), _SHOWN), rng.integers(0, values.shape[1] - 1, _SHOWN)
    means = np.cumsum(others, axis=1) / np.arange(1, values.shape[1] + 1)[None, :, None]
    past = [others[row, np.maximum(step - lag, 0)] for lag in _LAGS] + [others[row, 0], means[row, step]]
    return np.concatenate([*past, step[:, None]], axis=1), values[row, step + 1, _TARGET]


def _released(experiment: Experiment, seed: int, *, epsilon: float) -> Panel:
    return experiment.fitted(Pub2Priv(), epsilon, seed)[0]


def _smoothed(experiment: Experiment, seed: int, *, kept: int) -> Panel:
    """Returns the private series themselves without their fastest movements: what the sharpness of trades is worth."""
    frequencies = to_frequencies(np.asarray(experiment.private.values, dtype=np.float64))
    frequencies[:, kept:] = 0.0
    return experiment.private.with_values(to_steps(frequencies).astype(np.float32))


def _alone(experiment: Experiment, seed: int, *, contrarian: bool) -> Panel:
    """Returns the private series of one strategy: what it costs to miss the other."""
    return experiment.private.take_units(np.flatnonzero(_contrarians(experiment) == contrarian))


def _contrarians(experiment: Experiment) -> np.ndarray:
    assert experiment.market is not None
    return portfolio_strategies(experiment.private.num_series, num_starts=len(experiment.market))


def _gaussian(experiment: Experiment, seed: int, *, context: bool, apart: bool) -> Panel:
    """Returns series of a normal distribution with the private series' own moments, for the contexts of real ones.

    Args:
        context: Whether its mean is a regression on the frequencies of context.
        apart: Whether each strategy has a distribution of its own: what no release could be told.
    """
    rng, private, real = np.random.default_rng(seed), experiment.private, experiment.real
    series = _frequencies(private.values, _SERIES)
    known, asked = (_features(panel, context) for panel in (private, real))
    kinds = _contrarians(experiment) if apart else np.zeros(private.num_series, dtype=bool)
    wanted = rng.permutation(np.resize(kinds, real.num_series))
    drawn = np.zeros((real.num_series, series.shape[1]))
    for kind in np.unique(kinds):
        own, here = kinds == kind, wanted == kind
        drawn[here] = _regressed(known[own], series[own], asked[here], rng)
    whole = np.zeros(real.values.shape)
    whole[:, :_SERIES] = drawn.reshape(real.num_series, _SERIES, -1)
    bounds = np.array([channel.bounds for channel in real.schema.channels])
    return real.with_values(np.clip(to_steps(whole), *bounds.T).astype(np.float32))


def _regressed(known: np.ndarray, series: np.ndarray, asked: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns draws around a regression of series on what is known of them, for what is asked."""
    gram = known.T @ known + _RIDGE * np.eye(known.shape[1])
    response = np.linalg.solve(gram, known.T @ series)
    rest = np.cov((series - known @ response).T)
    return np.asarray(asked @ response + rng.multivariate_normal(np.zeros(len(rest)), rest, len(asked)))


def _frequencies(values: np.ndarray, number: int) -> np.ndarray:
    slow = to_frequencies(np.asarray(values, dtype=np.float64))[:, :number]
    return np.asarray(slow.reshape(len(values), -1))


def _features(panel: Panel, context: bool) -> np.ndarray:
    constant = np.ones((panel.num_series, 1))
    assert panel.context is not None
    return np.concatenate([constant, _frequencies(panel.context, _CONTEXT)], axis=1) if context else constant
