"""Train on one panel's series, test on another's: how well a forecaster does that never saw the real ones."""

from typing import Any

import numpy as np
import torch
from torch import nn


class _LastStep(nn.Module):
    """LSTM(hidden) and a linear layer that predict all channels of the last step."""

    def __init__(self, num_channels: int, hidden: int) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(num_channels, hidden, batch_first=True)
        self.output = nn.Linear(hidden, num_channels)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        """Returns [series, channel] from [series, step, channel]."""
        predicted: torch.Tensor = self.output(self.recurrent(steps)[0][:, -1])
        return predicted


def forecast_error(
    train: np.ndarray, test: np.ndarray, *, epochs: int, seed: int, hidden: int = 64, batch: int = 64
) -> float:
    """Returns the mean absolute error of forecasting the last step from the steps before it.

    LSTM(64), squared loss, Adam 1e-3, batches of 64; a fifth of `train` is put aside and the epoch that does best on
    it is kept (paper 004, section 5; its released code keeps the worst).

    Args:
        train, test: Values [series, step, channel], scaled alike.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    order = torch.randperm(len(train))
    series = torch.as_tensor(train, dtype=torch.float32)[order]
    kept, watched = series[len(series) // 5 :], series[: len(series) // 5]
    model = _LastStep(series.shape[2], hidden)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    best: tuple[float, dict[str, Any]] = (float("inf"), {})
    for _ in range(epochs):
        _one_epoch(model, optimiser, kept, batch)
        with torch.no_grad():
            loss = _loss(model, watched).item()
        if loss < best[0]:
            best = loss, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best[1])
    with torch.no_grad():
        real = torch.as_tensor(test, dtype=torch.float32)
        return float((model(real[:, :-1]) - real[:, -1]).abs().mean())


def persistence_error(test: np.ndarray) -> float:
    """Returns the mean absolute error of saying that the last step repeats the one before."""
    return float(np.abs(test[:, -1] - test[:, -2]).mean())


def _one_epoch(model: nn.Module, optimiser: torch.optim.Optimizer, series: torch.Tensor, batch: int) -> None:
    for rows in torch.randperm(len(series)).split(batch):
        optimiser.zero_grad()
        _loss(model, series[rows]).backward()
        optimiser.step()


def _loss(model: nn.Module, series: torch.Tensor) -> torch.Tensor:
    return torch.mean((model(series[:, :-1]) - series[:, -1]) ** 2)
