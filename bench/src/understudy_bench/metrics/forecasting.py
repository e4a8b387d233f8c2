"""Train on one panel's series, test on another's: how well a forecaster does that never saw the real ones."""

import numpy as np
import torch
from torch import Tensor, nn

from understudy_bench.metrics.networks import Checkpoint, Recurrent, Schedule, seeded, tensor, train_epochs

PUBLISHED_EPOCHS, BATCH, HIDDEN = 100, 64, 64  # as the code released with VFLGAN-TS does for Stock


def forecast_error(
    train: np.ndarray,
    test: np.ndarray,
    *,
    epochs: int,
    seed: int,
    hidden: int = HIDDEN,
    batch: int = BATCH,
    checkpoint: Checkpoint = "best",
) -> float:
    """Returns the mean absolute error of forecasting the last step from the steps before it.

    LSTM(64), squared loss, Adam 1e-3, batches of 64; a fifth of `train` is put aside and the epoch that does best on
    it is kept (VFLGAN-TS, section 5; its released code keeps the worst: `worst_val`).

    Args:
        train, test: Values [series, step, channel], scaled alike.
    """
    with seeded(seed):
        series = tensor(train)[torch.randperm(len(train))]
        watched, kept = series[: len(series) // 5], series[len(series) // 5 :]
        schedule = Schedule(epochs=epochs, batch=batch, checkpoint=checkpoint)
        return last_step_error(train_forecaster(kept, watched, schedule, hidden=hidden), tensor(test))


def train_forecaster(series: Tensor, watched: Tensor, schedule: Schedule, *, hidden: int = HIDDEN) -> nn.Module:
    """Returns a network that forecasts all channels of the last step; draws from torch's generator."""
    model = Recurrent("lstm", inputs=series.shape[2], hidden=hidden, outputs=series.shape[2])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss(rows: Tensor) -> Tensor:
        return _loss(model, series[rows])

    train_epochs(model, optimiser, loss, lambda: _loss(model, watched).item(), len(series), schedule)
    return model


@torch.no_grad()
def last_step_error(model: nn.Module, series: Tensor) -> float:
    """Returns the forecaster's mean absolute error at the last step."""
    return float((model(series[:, :-1]) - series[:, -1]).abs().mean())


def persistence_error(test: np.ndarray) -> float:
    """Returns the mean absolute error of saying that the last step repeats the one before."""
    return float(np.abs(test[:, -1] - test[:, -2]).mean())


def _loss(model: nn.Module, series: Tensor) -> Tensor:
    return torch.mean((model(series[:, :-1]) - series[:, -1]) ** 2)
