"""What "alike" means: embeddings whose Euclidean distances decide whom a private series votes for."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from einops import rearrange
from torch import Tensor
from torch.nn import functional

from understudy.synthesizers.pets.networks import PooledConv, TS2Vec
from understudy.synthesizers.pets.waveforms import resampled, shape_and_level

_CHUNK = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class EncoderSimilarity:
    """Embeds series by a trained network; final, implements `Similarity`.

    A network of one channel is applied to each channel by itself and the embeddings are put side by side.

    Attributes:
        network: A `TS2Vec`, pooled by its maximum over the steps, or a network that embeds whole series.
        level_weight: If given, the network sees series without their level and scale, which are put beside its
            embedding with this weight: 1 makes a difference of 1 in working scale count as much as the distance
            between the shapes of two arbitrary public series. None, as published, shows the network series as they are.
        num_steps: Series are resampled to so many steps first, if given.
    """

    network: TS2Vec | PooledConv
    level_weight: float | None = None
    num_steps: int | None = None

    @torch.no_grad()
    def __call__(self, series: np.ndarray) -> np.ndarray:
        pieces = [self._embed(chunk)[:used] for chunk, used in equal_chunks(series)]
        return torch.cat(pieces).numpy() if pieces else self._embed(_no_series(series))[:0].numpy()

    def _embed(self, x: Tensor) -> Tensor:
        shapes, levels = (x, None) if self.level_weight is None else shape_and_level(x)
        rows = rearrange(shapes, "n step (group channel) -> (n group) step channel", channel=self.network.channels)
        embedded = self.network(rows if self.num_steps is None else resampled(rows, self.num_steps))
        if isinstance(self.network, TS2Vec):
            embedded = embedded.amax(dim=1)
        embedded = rearrange(embedded, "(n group) d -> n (group d)", n=len(x))
        if levels is None or self.level_weight is None:
            return embedded
        return torch.cat([embedded, self.level_weight * levels], dim=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomConvolutions:
    """Maximum and share of positive values of many random convolutions; final, implements `Similarity`.

    Nothing is trained, so nothing public is needed either (after ROCKET: Dempster et al., arXiv:1910.13051).
    Every kernel looks at one channel.

    Attributes:
        num_kernels: Kernels for each channel.
        seed: Fixes the kernels; private and synthetic series have to meet the same ones.
    """

    num_kernels: int = 256
    seed: int = 0
    _drawn: dict[int, list[tuple[int, Tensor, Tensor]]] = field(default_factory=dict, init=False, repr=False)

    @torch.no_grad()
    def __call__(self, series: np.ndarray) -> np.ndarray:
        kernels = self._drawn.setdefault(series.shape[1], _kernels(series.shape[1], self.num_kernels, self.seed))
        pieces = [_convolved(chunk, kernels)[:used] for chunk, used in equal_chunks(series)]
        return torch.cat(pieces).numpy() if pieces else _convolved(_no_series(series), kernels)[:0].numpy()


class Raw:
    """The series itself, step by step; final, implements `Similarity`."""

    def __call__(self, series: np.ndarray) -> np.ndarray:
        return np.asarray(series, dtype=np.float32).reshape(len(series), series.shape[1] * series.shape[2])


def equal_chunks(series: np.ndarray) -> Iterator[tuple[Tensor, int]]:
    """Yields (chunk, rows used): chunks of one size, the last one filled up.

    Libraries choose their order of summation by shape; with one shape, a series' embedding does not depend on how many
    others there are.
    """
    for start in range(0, len(series), _CHUNK):
        part = np.asarray(series[start : start + _CHUNK], dtype=np.float32)
        room = np.zeros((_CHUNK, *series.shape[1:]), dtype=np.float32)
        room[: len(part)] = part
        yield torch.as_tensor(room), len(part)


def _no_series(series: np.ndarray) -> Tensor:
    return torch.zeros((1, *series.shape[1:]))


def _kernels(num_steps: int, num_kernels: int, seed: int) -> list[tuple[int, Tensor, Tensor]]:
    """Returns (dilation, weights [kernel, 1, 9], biases [kernel, 1]) for dilations 1, 2, 4, … that fit the length."""
    rng = np.random.default_rng(seed)
    num_dilations = int(math.log2(max(num_steps - 1, 8) / 8)) + 1
    groups = []
    for place in range(num_dilations):
        weights = rng.standard_normal((-(-num_kernels // num_dilations), 1, 9))
        weights -= weights.mean(axis=2, keepdims=True)
        weights /= np.linalg.norm(weights, axis=2, keepdims=True)
        biases = rng.uniform(-0.5, 0.5, (len(weights), 1))
        groups.append((2**place, torch.as_tensor(weights).float(), torch.as_tensor(biases).float()))
    return groups


def _convolved(x: Tensor, kernels: list[tuple[int, Tensor, Tensor]]) -> Tensor:
    rows, features = rearrange(x, "n step channel -> (n channel) 1 step"), []
    for dilation, weights, biases in kernels:
        found = functional.conv1d(rows, weights, dilation=dilation, padding=4 * dilation)
        features += [found.amax(2), (found > biases).float().mean(2)]
    return rearrange(torch.cat(features, dim=1), "(n channel) d -> n (channel d)", n=len(x))
