"""Networks: as arrays, their size, their moving average, and training on public data."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from understudy.training.private_gradient import Loss


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
    single = {
        name for name, value in network.state_dict().items() if value.ndim == 0
    }  # a file gives them one dimension
    network.load_state_dict({name: torch.tensor(a.reshape(()) if name in single else a) for name, a in own.items()})


def train_on_public_data(
    network: nn.Module,
    loss: Loss,
    examples: Mapping[str, np.ndarray],
    *,
    iterations: int,
    batch: int,
    learning_rate: float,
    seed: int,
    progress: Callable[[int, int], None],
) -> None:
    """Trains on public windows with ordinary gradients; `progress` receives iterations done and planned.

    Privacy:
        None: no example may be private.
    """
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    number = len(next(iter(examples.values())))
    optimiser = torch.optim.Adam([weight for weight in network.parameters() if weight.requires_grad], lr=learning_rate)
    for done in range(iterations):
        rows = rng.integers(0, number, batch)
        shown = {name: torch.from_numpy(np.array(array[rows])) for name, array in examples.items()}
        optimiser.zero_grad()
        loss(network, shown, generator).mean().backward()
        optimiser.step()
        progress(done + 1, iterations)


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
