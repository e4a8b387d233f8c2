"""A perceptron that forecasts the last quarter of a series from the first three, trained on series that stand in."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from understudy.data import Panel
from understudy.evaluation.metric import Effort, Measure, Measured, Metric, Undefined
from understudy.evaluation.panels import Comparison
from understudy_bench.metrics.naive import NaiveError, naive_errors, naive_parts, season_steps
from understudy_bench.metrics.networks import Schedule, deal, perceptron, seeded, seeds, tensor, train_epochs

HIDDEN, DROPOUT, BATCH, EPOCHS, PATIENCE = 512, 0.1, 256, 30, 6  # PETS, section 4
KNOWN, WATCHED = 0.75, 0.1
ERRORS: tuple[Literal["mae", "rmse"], ...] = ("rmse", "mae")
Errors = tuple[float, float]  # (mean absolute error, root of the mean squared error)


def forecast_errors(
    train: np.ndarray, watched: np.ndarray, test: np.ndarray, *, seed: int, most_iterations: int | None = None
) -> Errors:
    """Returns (MAE, RMSE) on `test` of a perceptron trained on `train` and stopped by `watched`.

    Args:
        train, watched, test: Series [series, step, channel], standardised alike, without gaps.
        most_iterations: Cuts the number of epochs; None trains as published.
    """
    known = int(KNOWN * train.shape[1])
    series, aside, real = (tensor(part) for part in (train, watched, test))
    num_inputs, num_outputs = (known * series.shape[2], (series.shape[1] - known) * series.shape[2])

    def loss(some: Tensor) -> Tensor:
        return functional.mse_loss(model(some[:, :known]), some[:, known:].flatten(1))

    with seeded(seed):
        model = perceptron((num_inputs, HIDDEN, HIDDEN, num_outputs), dropout=DROPOUT)
        optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-5, fused=True)
        schedule = Schedule(epochs=EPOCHS, batch=BATCH, patience=PATIENCE).within(most_iterations, len(series))
        train_epochs(
            model, optimiser, lambda rows: loss(series[rows]), lambda: loss(aside).item(), len(series), schedule
        )
        with torch.no_grad():
            difference = model(real[:, :known]) - real[:, known:].flatten(1)
    return float(difference.abs().mean()), float(difference.square().mean().sqrt())


@lru_cache(maxsize=8)  # both metrics ask for the same trainings
def _trainings(real: Panel, candidate: Panel, reference: Panel, effort: Effort, seed: int) -> "_Found":
    comparison = Comparison(real=real, candidate=candidate, reference=reference, unseen=reference)
    if not comparison.numeric_names:
        raise Undefined("no channel holds numbers; it needs a continuous or an integer one.")
    if real.num_steps < 4:
        raise Undefined("series are too short; it needs at least 4 steps.")
    values = [comparison.numeric_unit(panel) for panel in (real, candidate, reference)]
    mean, spread = (getattr(np, name)(values[0], axis=(0, 1), dtype=np.float64) for name in ("mean", "std"))
    _, series, test = ((part - mean) / np.where(spread > 0, spread, 1) for part in values)
    errors = []
    for each in seeds(seed, effort.repeats):
        train, watched = deal(candidate.unit, (1 - WATCHED, WATCHED), np.random.default_rng(each))
        parts = (series[train], series[watched], test)
        errors.append(forecast_errors(*parts, seed=each, most_iterations=effort.iteration_cap))
    known = int(KNOWN * real.num_steps)
    zero = NaiveError(mae=float(np.abs(test[:, known:]).mean()), mse=float((test[:, known:] ** 2).mean()))
    naive = naive_errors(test, season_steps(real.schema.time, real.num_steps), known=known)
    return _Found(mae=[mae for mae, _ in errors], rmse=[rmse for _, rmse in errors], naive={"zero": zero, **naive})


@dataclass(frozen=True, eq=False, kw_only=True)
class _Found:
    """Errors of each training, and of forecasts that learn nothing."""

    mae: list[float]
    rmse: list[float]
    naive: dict[str, NaiveError]


def _measure(error: Literal["mae", "rmse"]) -> Measure:
    def measure(comparison: Comparison, effort: Effort, seed: int) -> Measured:
        found = _trainings(comparison.real, comparison.candidate, comparison.reference, effort, seed)
        errors = np.array(getattr(found, error))
        return Measured(
            value=float(errors.mean()),
            replicates=errors,
            kind="repeats",
            parts=naive_parts(found.naive, error),
            notes=(
                "In standard deviations of the real channels, so that forecasting zero errs by about 1; tested on real "
                "series that nothing was learned from.",
            ),
        )

    return measure


METRICS = tuple(
    Metric(
        name=f"pets.forecast_{error}",
        title=f"Trained on these, tested on real: {error.upper()} of the last quarter",
        direction="lower",
        range=(0.0, float("inf")),
        reference="PETS, section 4: TSTR with a perceptron of three layers",
        measure=_measure(error),
        trained=True,
    )
    for error in ERRORS
)
