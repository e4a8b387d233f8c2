"""A small encoder that votes like a large one: it learns the large one's embeddings of public series."""

from dataclasses import dataclass

import numpy as np
import torch

from understudy.synthesizers.pets.networks import PooledConv, Report, TS2Vec, encode
from understudy.synthesizers.pets.waveforms import resampled

_HELD_OUT = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Distilled:
    """A trained encoder.

    Attributes:
        explained: Share of the variance of the large encoder's principal components that it tells right, on series
            kept out of its training.
    """

    network: PooledConv
    explained: float


def distil(
    teacher: TS2Vec,
    series: np.ndarray,
    *,
    iterations: int,
    batch: int,
    seed: int,
    num_steps: int,
    output: int = 64,
    progress: Report | None = None,
) -> Distilled:
    """Returns a small encoder of series [series, step, channel] whose distances follow the teacher's.

    Its embedding is the teacher's in `output` principal components, scaled so that the mean squared distance between
    two series is 1. It sees series resampled to `num_steps`.
    """
    rng = np.random.default_rng(seed)
    goal = torch.as_tensor(principal_components(encode(teacher, series), output))
    inputs = resampled(torch.as_tensor(np.asarray(series, dtype=np.float32)), num_steps)
    held_out = int(_HELD_OUT * len(series))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = PooledConv(channels=series.shape[2], output=output)
        optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
        for iteration in range(iterations):
            drawn = torch.as_tensor(rng.integers(held_out, len(series), batch))
            loss = (network(inputs[drawn]) - goal[drawn]).square().sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            decay.step()
            if progress is not None:
                progress(iteration + 1, iterations)
    network.train(False)
    with torch.no_grad():
        error = (network(inputs[:held_out]) - goal[:held_out]).square().sum(1).mean()
    return Distilled(network=network, explained=float(1 - error / goal.square().sum(1).mean()))


def principal_components(embeddings: np.ndarray, output: int) -> np.ndarray:
    """Returns centred embeddings in their first components [series, output]; mean squared distance 1."""
    centred = embeddings - embeddings.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    components = centred @ directions[:output].T
    components = np.pad(components, ((0, 0), (0, output - components.shape[1])))
    return np.asarray(components / np.sqrt(2 * components.var(axis=0).sum()), dtype=np.float32)
