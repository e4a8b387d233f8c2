"""What forecasts cost that learn nothing: the errors to read every other forecast's error against."""

from dataclasses import dataclass

import numpy as np

from understudy.data.timegrid import season_steps as season_steps


@dataclass(frozen=True, kw_only=True)
class NaiveError:
    """Errors of one way to forecast without learning, over all forecast values that were observed."""

    mae: float
    mse: float

    @property
    def rmse(self) -> float:
        """Root of the mean squared error."""
        return float(np.sqrt(self.mse))


def naive_errors(series: np.ndarray, season: int | None, *, known: int | None = None) -> dict[str, NaiveError]:
    """Returns the errors of `persistence`, `seasonal naive` and `mean`, those that the series allow.

    Persistence repeats the last known step, seasonal naive the last known season, mean the mean of the known steps.

    Args:
        series: Values [series, step, channel], NaN where not observed; as scaled for the error it stands beside.
        season: Steps of one season, as `season_steps` gives it; None for no season.
        known: How many first steps are known; all later ones are forecast from them. None forecasts every step one
            step ahead, from all steps before it.
    """
    forecasts = _one_ahead(series, season) if known is None else _beyond(series, season, known)
    first = 1 if known is None else known
    return {
        name: error
        for name, forecast in forecasts.items()
        if (error := _error(series[:, first:], forecast)) is not None
    }


def naive_parts(errors: dict[str, NaiveError], measure: str = "mae") -> dict[str, float]:
    """Returns the errors as lines to print beside a trained forecaster's: measure is `mae`, `mse` or `rmse`."""
    return {f"{name} {measure.upper()}": getattr(error, measure) for name, error in errors.items()}


def _one_ahead(series: np.ndarray, season: int | None) -> dict[str, np.ndarray]:
    """Returns forecasts of all steps but the first."""
    observed = ~np.isnan(series)
    count = np.maximum(observed.cumsum(axis=1), 1)
    running = np.where(observed, series, 0).cumsum(axis=1) / count
    forecasts = {"persistence": series[:, :-1], "mean": running[:, :-1]}
    if season is not None and season < series.shape[1]:
        unknown = np.full((len(series), season - 1, series.shape[2]), np.nan)
        forecasts["seasonal naive"] = np.concatenate([unknown, series[:, :-season]], axis=1)
    return forecasts


def _beyond(series: np.ndarray, season: int | None, known: int) -> dict[str, np.ndarray]:
    """Returns forecasts of all steps after the `known` first ones."""
    past, ahead = series[:, :known], np.arange(series.shape[1] - known)
    count = np.maximum((~np.isnan(past)).sum(axis=1), 1)
    mean = np.where(np.isnan(past), 0, past).sum(axis=1) / count
    shape = (len(series), len(ahead), series.shape[2])
    forecasts = {
        "persistence": np.broadcast_to(past[:, -1:], shape),
        "mean": np.broadcast_to(mean[:, None], shape),
    }
    if season is not None and season <= known:
        forecasts["seasonal naive"] = past[:, known - season + ahead % season]
    return forecasts


def _error(truth: np.ndarray, forecast: np.ndarray) -> NaiveError | None:
    difference = (truth - forecast).astype(np.float64)
    difference = difference[~np.isnan(difference)]
    if not len(difference):
        return None
    return NaiveError(mae=float(np.abs(difference).mean()), mse=float((difference**2).mean()))
