"""What both networks share: the loss of a diffusion model, its training with and without privacy, and sampling.

A batch holds `x` [window, …], what is `known` of it, and the `condition` that its window was seen under.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from understudy.nn.diffusion import Diffusion
from understudy.training.batches import Batch
from understudy.training.private_gradient import Loss

Examples = dict[str, np.ndarray]
_PAPER_STEPS = 400  # of Table 3, whose noise in all is kept when there are fewer steps
_PUBLIC_BATCH = 64
_CHUNK_ENTRIES = 1 << 13  # more leave the cache: at width 64 half as slow again


class Denoiser(Protocol):
    """Predicts the noise in x [window, …] at diffusion time [window], given a condition."""

    def __call__(self, x: Tensor, time: Tensor, condition: Tensor) -> Tensor: ...


def schedule(steps: int) -> Diffusion:
    """Returns the paper's schedule stretched or squeezed to another number of steps: the noise in all stays."""
    pace = _PAPER_STEPS / steps
    return Diffusion(steps=steps, first_beta=min(1e-4 * pace, 0.5), last_beta=min(0.2 * pace, 0.999))


def denoising_loss(diffusion: Diffusion, draws: int, weight: float = 1.0) -> Loss:
    """Returns the loss of section 5.3: mean squared error of the noise, at `draws` times and noises per window.

    The draws of a window are rows of its unit, which the engine averages before it clips; so they cost no privacy.

    Args:
        weight: Factor that brings gradients to the size of the clip.
    """

    def loss(model: nn.Module, batch: Batch, generator: torch.Generator) -> Tensor:
        x, known, condition = (batch[name].repeat_interleave(draws, 0) for name in ("x", "known", "condition"))
        time = diffusion.draw_times(len(x), generator)
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        predicted = model(diffusion.noised(x, noise, time), time, condition.to(x.dtype))
        error = torch.where(known, (noise - predicted).square(), 0.0).flatten(1)
        return weight * error.sum(1) / known.flatten(1).sum(1).clamp(min=1)

    return loss


def train_on_public_data(
    model: nn.Module,
    loss: Loss,
    examples: Examples,
    *,
    iterations: int,
    learning_rate: float,
    seed: int,
) -> None:
    """Trains on public windows with ordinary gradients."""
    rng, generator = np.random.default_rng([seed, 11]), torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for _ in range(iterations):
        rows = rng.integers(0, len(examples["x"]), _PUBLIC_BATCH)
        shown = {name: torch.from_numpy(np.array(array[rows])) for name, array in examples.items()}
        optimiser.zero_grad()
        loss(model, shown, generator).mean().backward()
        optimiser.step()


@torch.no_grad()
def sample(
    model: nn.Module, diffusion: Diffusion, condition: np.ndarray, shape: tuple[int, ...], num_steps: int, seed: int
) -> np.ndarray:
    """Returns x [window, *shape], one for each condition, in float64.

    Args:
        num_steps: Of DDIM; as many as the schedule has, or more, means DDPM.
    """
    generator = torch.Generator().manual_seed(seed)
    size = max(1, _CHUNK_ENTRIES // max(1, int(np.prod(shape))))
    parts = [np.zeros((0, *shape))]
    for first in range(0, len(condition), size):
        given = torch.from_numpy(np.array(condition[first : first + size])).float()
        start = torch.randn((len(given), *shape), generator=generator)

        def predict(x: Tensor, time: Tensor, given: Tensor = given) -> Tensor:
            noise: Tensor = model(x, time, given)
            return noise

        if num_steps >= diffusion.steps:
            drawn = diffusion.ancestral(predict, start, generator)
        else:
            drawn = diffusion.implicit(predict, start, num_steps)
        parts.append(drawn.double().numpy())
    return np.concatenate(parts)


def weights_of(model: nn.Module, prefix: str) -> dict[str, np.ndarray]:
    """Returns a network's parameters as arrays."""
    return {f"{prefix}{name}": weight.detach().numpy().copy() for name, weight in model.state_dict().items()}


def load_weights(model: nn.Module, arrays: Mapping[str, np.ndarray], prefix: str) -> nn.Module:
    """Returns the network with parameters that `weights_of` stored."""
    own = {
        name.removeprefix(prefix): torch.from_numpy(array) for name, array in arrays.items() if name.startswith(prefix)
    }
    model.load_state_dict(own)
    return model.train(False)
