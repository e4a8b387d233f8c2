"""How much better than naive a light forecaster is that learned from the candidate."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.data import Panel
from understudy.data.timegrid import season_steps
from understudy.evaluate.metric import Effort, Measured, Undefined, general
from understudy.evaluate.panels import Comparison
from understudy.evaluate.weighted import drawn_units

_MAX_LAGS = 12
_MAX_ROWS = 40_000
_RIDGE = 1e-4  # of the mean variance of the lags


@dataclass(frozen=True, eq=False, kw_only=True)
class _Windows:
    """Steps to be forecast one step ahead, with the steps before them.

    Attributes:
        lags: [row, feature], the steps before in all channels, and the step a season before.
        truth: [row, channel].
        counted: [row, channel], whether the step was observed; gaps before it are closed by straight lines.
        naive: Forecasts [row, channel] by name.
        series: Series of each row.
    """

    lags: np.ndarray
    truth: np.ndarray
    counted: np.ndarray
    naive: dict[str, np.ndarray]
    series: np.ndarray

    @classmethod
    def of(cls, comparison: Comparison, panel: Panel, lags: int, season: int | None, seed: int) -> "_Windows":
        unit = comparison.numeric_unit(panel).astype(np.float64)
        seen = ~np.isnan(comparison.numeric(panel))
        seen[:, : max(lags, season or 1)] = False  # too early to be forecast
        series, step = np.nonzero(seen.any(axis=2))
        rows = np.sort(np.random.default_rng(seed).permutation(len(series))[:_MAX_ROWS])
        series, step = series[rows], step[rows]
        past = [unit[series, step - lag] for lag in range(1, lags + 1)]
        naive = {"persistence": past[0]}
        if season is not None:
            naive["seasonal naive"] = unit[series, step - season]
        features = np.concatenate([*past, *([naive["seasonal naive"]] if season else [])], axis=1)
        return cls(lags=features, truth=unit[series, step], counted=seen[series, step], naive=naive, series=series)

    def forecaster(self, weights: np.ndarray) -> Callable[["_Windows"], np.ndarray]:
        """Returns ridge regression of the change since the step before on the steps before, series weighted.

        What is not learned is no change: the forecaster shrinks towards persistence.
        """
        of_row = weights[self.series, None]
        total = max(float(of_row.sum()), 1e-12)
        change = self.truth - self.naive["persistence"]
        middle, drift = (of_row * self.lags).sum(axis=0) / total, (of_row * change).sum(axis=0) / total
        weighted = (self.lags - middle) * of_row
        products = weighted.T @ (self.lags - middle)
        penalty = _RIDGE * max(float(np.trace(products)) / len(products), 1e-12)
        slopes = np.linalg.solve(products + penalty * np.eye(len(products)), weighted.T @ (change - drift))
        return lambda other: np.asarray(other.naive["persistence"] + (other.lags - middle) @ slopes + drift)

    def error(self, forecast: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Returns the mean absolute error of each channel, series weighted."""
        counted = self.counted * weights[self.series, None]
        total = (np.abs(forecast - self.truth) * counted).sum(axis=0)
        return np.asarray(total / np.maximum(counted.sum(axis=0), 1e-12))


def _measure(comparison: Comparison, effort: Effort, seed: int) -> Measured:
    steps = comparison.real.num_steps
    if steps < 4 or not comparison.numeric_names:
        raise Undefined("channels of numbers with at least 4 steps are needed.")
    season, lags = season_steps(comparison.real.schema.time, steps), min(_MAX_LAGS, steps // 2)
    panels = comparison.candidate, comparison.real, comparison.reference
    candidate, real, test = (_Windows.of(comparison, panel, lags, season, seed) for panel in panels)
    if not all(len(side.series) for side in (candidate, real, test)):
        raise Undefined("too few steps were observed to forecast from.")
    once = [np.ones(panel.num_series) for panel in panels]
    naive = {name: test.error(forecast, once[2]) for name, forecast in test.naive.items()}
    best = min(naive, key=lambda name: float(naive[name].sum()))
    if not naive[best].sum() > 0:
        raise Undefined("every series stays at rest: the naive forecast is never wrong.")

    def errors(side: _Windows, learned: np.ndarray, tested: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return test.error(side.forecaster(learned)(test), tested), test.error(test.naive[best], tested)

    drawn = [drawn_units(p.unit, effort.replicates, seed + i) for i, p in enumerate((panels[0], panels[2]))]
    found, on_real = errors(candidate, once[0], once[2]), errors(real, once[1], once[2])
    return Measured(
        value=_skill(*found),
        replicates=np.array([_skill(*errors(candidate, *weights)) for weights in zip(*drawn, strict=True)]),
        parts={
            "skill when trained on real": _skill(*on_real),
            "MAE trained on candidate": float(found[0].mean()),
            "MAE trained on real": float(on_real[0].mean()),
            **{f"MAE {name}": float(error.mean()) for name, error in naive.items()},
            **{f"skill: {n}": _skill(e, b) for n, e, b in zip(comparison.numeric_names, *found, strict=True) if b > 0},
        },
        notes=(
            f"Ridge regression on {lags} lags of all channels, one step ahead, tested on real series that neither side "
            f"learned from, in units of the real range; at most {_MAX_ROWS} rows of each side. Against {best}, the "
            "better of the naive forecasts.",
        ),
    )


def _skill(error: np.ndarray, naive: np.ndarray) -> float:
    return 1 - float(error.sum() / max(float(naive.sum()), 1e-12))


METRICS = (
    general(
        "forecast_skill",
        "Forecasting skill learned from the candidate, over the better naive forecast",
        "skill 1 − MAE/MAE of the better of persistence and seasonal naive; TSTR with ridge regression",
        _measure, direction="higher", range=(float("-inf"), 1.0),
    ),
)  # fmt: skip
