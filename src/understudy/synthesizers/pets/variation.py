"""Relatives of a series by way of an autoencoder's latent space (Eq. 4).

Notation: α degree, s posterior noise scale, κ direction noise scale, ρ share of the prior, γ share of the input.
"""

from dataclasses import dataclass

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from understudy.errors import InputError
from understudy.nn.conv_vae import ConvVAE
from understudy.synthesizers.pets.waveforms import peaks, resampled

POSTERIOR_MAX, DIRECTION, PRIOR_MAX, BLEND_MAX = 4.0, 0.5, 1.0, 0.25
_FLAT = 0.05  # deviation given to a channel that does not move, so that it can start to
_CHUNK = 256


@dataclass(frozen=True, kw_only=True)
class Strengths:
    """The four numbers of Eq. 4."""

    posterior: float
    direction: float
    prior: float
    blend: float


def strengths(degree: float) -> Strengths:
    """Returns s, κ, ρ, γ: s and ρ grow with the degree, γ falls; at 100 nothing of the input's shape is left."""
    if not 0 <= degree <= 100:
        raise InputError(f"degree: a number from 0 to 100 is expected, got {degree:g}.")
    a = degree / 100
    return Strengths(
        posterior=POSTERIOR_MAX * a, direction=DIRECTION, prior=PRIOR_MAX * a**2, blend=BLEND_MAX * (1 - a)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class VAEVariation:
    """Perturbs series in the latent space of an autoencoder; final, implements `Variation`.

    A network of one channel is applied to each channel by itself. Noise is then drawn with the correlation of the
    series' own channels, so that what moves together is moved together. Series of another length are resampled to
    the network's, and back.

    Attributes:
        network: Trained on public series, each standardised.
        residual: Share of what the network can't express that is kept. 0, as published, draws the population
            towards what the network can express, a little more in every iteration.
        spike_preservation: The same share at the steps furthest from the mean only.
        jitter: How far the mean and the deviation of a series move, as a share of s. As published: 0.
    """

    network: ConvVAE
    residual: float = 1.0
    spike_preservation: float = 0.0
    jitter: float = 0.25

    def __call__(self, series: np.ndarray, degree: float, rng: np.random.Generator) -> np.ndarray:
        return self.vary(series, strengths(degree), rng)

    @torch.no_grad()
    def vary(self, series: np.ndarray, by: Strengths, rng: np.random.Generator) -> np.ndarray:
        """Returns a relative of each series [series, step, channel]."""
        varied = np.empty(series.shape, dtype=np.float32)
        for start in range(0, len(series), _CHUNK):
            chunk = torch.as_tensor(np.asarray(series[start : start + _CHUNK], dtype=np.float32))
            varied[start : start + _CHUNK] = self._vary(chunk, by, rng).numpy()
        return varied

    def _vary(self, x: Tensor, by: Strengths, rng: np.random.Generator) -> Tensor:
        mean, deviation = x.mean(1, keepdim=True), x.std(1, keepdim=True, correction=0).clamp(min=_FLAT)
        standard = (x - mean) / deviation
        groups = x.shape[2] // self.network.channels
        mu, log_variance = self.network.encode(resampled(_rows(standard, groups), self.network.steps))
        together = _joint_factor(standard) if groups > 1 else None
        post, direct, prior = (_noise(len(x), groups, self.network.latent, together, rng) for _ in range(3))
        s, rho, gamma = by.posterior, by.prior, by.blend
        z = mu + s * torch.exp(0.5 * log_variance) * post + by.direction * s * direct  # Eq. 4
        z = (1 - rho) * z + rho * prior  # Eq. 4
        decoded, expressed = (_series(resampled(self.network.decode(v), x.shape[1]), groups) for v in (z, mu))
        decoded = decoded + self._kept(standard) * _drifted(standard - expressed, rho, rng)
        wobble = self.jitter * s * torch.as_tensor(rng.standard_normal((2, len(x), 1, x.shape[2]), dtype=np.float32))
        decoded = decoded * deviation * torch.exp(wobble[0]) + mean + wobble[1]
        return (1 - gamma) * decoded + gamma * x  # Eq. 4

    def _kept(self, standard: Tensor) -> Tensor:
        """Share of the residual kept at each step."""
        return torch.where(peaks(standard), max(self.residual, self.spike_preservation), self.residual)


def _rows(x: Tensor, groups: int) -> Tensor:
    return rearrange(x, "n step (group channel) -> (n group) step channel", group=groups)


def _series(rows: Tensor, groups: int) -> Tensor:
    return rearrange(rows, "(n group) step channel -> n step (group channel)", group=groups)


def _joint_factor(standard: Tensor) -> Tensor:
    """Returns a Cholesky factor [series, channel, channel] of each series' correlation between channels."""
    products = standard.transpose(1, 2) @ standard / standard.shape[1]
    products = products + 1e-2 * torch.eye(standard.shape[2])
    size = products.diagonal(dim1=1, dim2=2).sqrt()
    return torch.linalg.cholesky(products / size.unsqueeze(1) / size.unsqueeze(2))


def _noise(num_series: int, groups: int, latent: int, factor: Tensor | None, rng: np.random.Generator) -> Tensor:
    """Returns standard normal rows [series × group, latent], correlated within a series by `factor`."""
    drawn = torch.as_tensor(rng.standard_normal((num_series, groups, latent), dtype=np.float32))
    return (drawn if factor is None else factor @ drawn).flatten(0, 1)


def _drifted(residual: Tensor, rho: float, rng: np.random.Generator) -> Tensor:
    """Lets the prior's share ρ of the residual come from elsewhere in the series: same texture, another place."""
    num_series, num_steps, num_channels = residual.shape
    offset = torch.as_tensor(rng.integers(num_steps, size=(num_series, 1)))
    steps = (torch.arange(num_steps) + offset) % num_steps
    elsewhere = residual.gather(1, steps.unsqueeze(2).expand(-1, -1, num_channels))
    return (1 - rho) * residual + (1 - (1 - rho) ** 2) ** 0.5 * elsewhere
