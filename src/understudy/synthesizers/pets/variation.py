"""Relatives of a series by way of an autoencoder's latent space (Eq. 4).

Notation: α degree, s posterior noise scale, κ direction noise scale, ρ share of the prior, γ share of the input.
"""

from dataclasses import dataclass

import numpy as np
import torch
from einops import rearrange
from torch import Tensor

from understudy.errors import InputError
from understudy.synthesizers.pets.networks import ConvVAE
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
        distinct, which = _runs(x)
        mean, deviation = distinct.mean(1, keepdim=True), distinct.std(1, keepdim=True, correction=0).clamp(min=_FLAT)
        standard = (distinct - mean) / deviation
        mu, spread, unexpressed = self._encoded(standard)
        together = _joint_factor(standard) if mu.shape[1] > 1 else torch.ones(len(mu), 1, 1)
        decoded = self._decoded(_moved(mu[which], spread[which], together[which], by, rng), x.shape[1])
        decoded = decoded + self._kept(standard)[which] * _drifted(unexpressed[which], by.prior, rng)
        shape = (2, len(x), 1, x.shape[2])
        wobble = self.jitter * by.posterior * torch.as_tensor(rng.standard_normal(shape, dtype=np.float32))
        decoded = decoded * (deviation[which] * torch.exp(wobble[0])) + (mean[which] + wobble[1])
        return (1 - by.blend) * decoded + by.blend * x  # Eq. 4

    def _encoded(self, standard: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns mean and deviation [series, group, latent] of each posterior, and what the network can't express."""
        groups = standard.shape[2] // self.network.channels
        rows = rearrange(standard, "n step (group channel) -> (n group) step channel", group=groups)
        encoded = self.network.encode(resampled(rows, self.network.steps))
        mu, log_variance = (part.unflatten(0, (-1, groups)) for part in encoded)
        return mu, torch.exp(0.5 * log_variance), standard - self._decoded(mu, standard.shape[1])

    def _decoded(self, z: Tensor, num_steps: int) -> Tensor:
        rows = resampled(self.network.decode(z.flatten(0, 1)), num_steps)
        return rearrange(rows, "(n group) step channel -> n step (group channel)", group=z.shape[1])

    def _kept(self, standard: Tensor) -> Tensor:
        """Share of the residual kept at each step."""
        if self.spike_preservation <= self.residual:
            return torch.full((len(standard), 1, 1), self.residual)
        return torch.where(peaks(standard), self.spike_preservation, self.residual)


def _runs(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the series without those that equal the one before, and which of them each series is.

    Relatives of one series are asked for together, so that what they share is encoded once.
    """
    new = torch.ones(len(x), dtype=torch.bool)
    new[1:] = (x[1:] != x[:-1]).flatten(1).any(dim=1)
    return x[new], new.cumsum(0) - 1


def _joint_factor(standard: Tensor) -> Tensor:
    """Returns a Cholesky factor [series, channel, channel] of each series' correlation between channels."""
    products = standard.transpose(1, 2) @ standard / standard.shape[1]
    products = products + 1e-2 * torch.eye(standard.shape[2])
    size = products.diagonal(dim1=1, dim2=2).sqrt()
    return torch.linalg.cholesky(products / size.unsqueeze(1) / size.unsqueeze(2))


def _moved(mu: Tensor, spread: Tensor, together: Tensor, by: Strengths, rng: np.random.Generator) -> Tensor:
    """Returns latents [series, group, latent] near those of the series; `together` correlates noise of groups."""
    drawn = torch.as_tensor(rng.standard_normal((3, *mu.shape), dtype=np.float32))
    post, direct, prior = together @ drawn if mu.shape[1] > 1 else drawn
    z = mu + by.posterior * (spread * post + by.direction * direct)  # Eq. 4
    return (1 - by.prior) * z + by.prior * prior  # Eq. 4


def _drifted(residual: Tensor, rho: float, rng: np.random.Generator) -> Tensor:
    """Lets the prior's share ρ of the residual come from elsewhere in the series: same texture, another place."""
    num_series, num_steps = residual.shape[:2]
    rotations = torch.cat([residual, residual], dim=1).unfold(1, num_steps, 1)  # [series, offset, channel, step]
    offset = torch.as_tensor(rng.integers(num_steps, size=num_series))
    elsewhere = rotations[torch.arange(num_series), offset].transpose(1, 2)
    return (1 - rho) * residual + (1 - (1 - rho) ** 2) ** 0.5 * elsewhere
