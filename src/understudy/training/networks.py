"""Networks as arrays, counting their parameters, and training on public data."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import nn

from understudy.training.step import Loss


def sizes_only() -> torch.device:
    """Returns a context in which networks have shapes and no memory, to count parameters of any number."""
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
    network.load_state_dict({name: torch.tensor(array) for name, array in own.items()})


def train_publicly(
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
    """Trains on public windows with ordinary gradients; `progress` hears of iterations done and planned."""
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
