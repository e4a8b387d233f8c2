"""Networks: as arrays, their size, their moving average, and training on public data."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

Network = TypeVar("Network", bound=nn.Module)


def meta_device() -> torch.device:
    """Returns a context in which networks have shapes and take no memory, to count their parameters."""
    return torch.device("meta")


def num_parameters(network: nn.Module) -> int:
    """Returns the number of parameters that are trained."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)


def to_arrays(network: nn.Module, prefix: str) -> dict[str, np.ndarray]:
    """Returns the parameters of a network by name."""
    return {f"{prefix}{name}": weight.detach().cpu().numpy().copy() for name, weight in network.state_dict().items()}


def load_arrays(network: nn.Module, arrays: Mapping[str, np.ndarray], prefix: str) -> None:
    """Puts parameters that `to_arrays` returned into a network of the same shape."""
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    single = {n for n, value in network.state_dict().items() if value.ndim == 0}  # a file gives them one dimension
    network.load_state_dict({name: torch.tensor(a.reshape(()) if name in single else a) for name, a in own.items()})


def train_on_public_data(
    network: Network,
    loss: Callable[[int], Tensor],
    *,
    iterations: int,
    learning_rate: float,
    last_rate: float | None = None,
    averaged: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Network:
    """Trains with ordinary gradients and returns the network, or with AdamW the mean of its iterates (`averaged`).

    The rate falls along a cosine to `last_rate`; `loss` receives the iteration, `progress` iterations done and planned.

    Privacy: none. No example may be private.
    """
    mean = AveragedModel(network) if averaged else None
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    optimiser = (torch.optim.AdamW if averaged else torch.optim.Adam)(weights, lr=learning_rate)
    lowest = learning_rate if last_rate is None else last_rate
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations, lowest)
    for iteration in range(iterations):
        optimiser.zero_grad()
        loss(iteration).backward()
        optimiser.step()
        decay.step()
        if mean is not None:
            mean.update_parameters(network)
        if progress is not None:
            progress(iteration + 1, iterations)
    return network if mean is None else mean.module  # type: ignore[return-value]


class ExponentialMovingAverage:
    """Exponential moving average of a flat parameter vector; early on it averages over what there is.

    Privacy:
        Post-processing of noisy iterates: free of charge.
    """

    def __init__(self, values: Tensor, decay: float) -> None:
        self.decay = decay
        self.values = values.detach().clone()
        self.updates = 0

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Takes in the next iterate; the weight of the past grows to `decay`, so the start is soon forgotten."""
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 10))
        self.values.lerp_(values, 1 - decay)
