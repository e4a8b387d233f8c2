"""Trains the autoencoder of the variation module on public series (Eq. 3)."""

import numpy as np
import torch
from torch import Tensor

from understudy.synthesizers.pets.modules import Generation
from understudy.synthesizers.pets.networks import ConvVAE, Report
from understudy.synthesizers.pets.waveforms import peaks

KL_WEIGHT, FREQUENCY_WEIGHT, DIFFERENCE_WEIGHT, PEAK_WEIGHT = 1e-3, 0.1, 0.5, 0.1
WARM_UP = 0.2  # share of the iterations in which the weight of the KL term grows to its full size


def vae_loss(x: Tensor, decoded: Tensor, mean: Tensor, log_variance: Tensor, kl_weight: float) -> Tensor:
    """Returns Eq. 3; x and decoded are standardised series [series, step, channel]."""
    squared = (x - decoded).square()
    kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
    strength, decoded_strength = (torch.fft.rfft(v, dim=1, norm="ortho").abs() for v in (x, decoded))
    frequency = (strength - decoded_strength).square().mean()
    difference = (x.diff(dim=1) - decoded.diff(dim=1)).square().mean()
    return (
        squared.mean()  # Eq. 3, term by term; the last two are L_aux
        + kl_weight * kl
        + FREQUENCY_WEIGHT * frequency
        + DIFFERENCE_WEIGHT * difference
        + PEAK_WEIGHT * squared[peaks(x)].mean()
    )


def train_vae(
    public: Generation,
    *,
    iterations: int,
    batch: int,
    seed: int,
    latent: int,
    progress: Report | None = None,
) -> ConvVAE:
    """Returns an autoencoder of public series, which are standardised one by one and channel by channel."""
    rng = np.random.default_rng(seed)
    _, steps, channels = public(1, np.random.default_rng(seed)).shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = ConvVAE(channels=channels, steps=steps, latent=latent)
        optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
        decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, iterations)
        for iteration in range(iterations):
            x = standardise(torch.as_tensor(public(batch, rng)))
            mean, log_variance = network.encode(x)
            z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
            warm = min(1.0, (iteration + 1) / (WARM_UP * iterations))
            loss = vae_loss(x, network.decode(z), mean, log_variance, KL_WEIGHT * warm)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            decay.step()
            if progress is not None:
                progress(iteration + 1, iterations)
    return network.train(False)


def standardise(x: Tensor) -> Tensor:
    """Returns series [series, step, channel] with mean 0 and deviation 1 in every channel; flat ones become 0."""
    centred = x - x.mean(1, keepdim=True)
    deviation = centred.square().mean(1, keepdim=True).sqrt()
    return centred / deviation.clamp(min=1e-3)


@torch.no_grad()
def explained(network: ConvVAE, series: np.ndarray) -> float:
    """Returns the share of the variance of standardised public series that survives encoding and decoding."""
    x = standardise(torch.as_tensor(np.asarray(series, dtype=np.float32)))
    error = x - network.decode(network.encode(x)[0])
    return float(1 - error.square().mean() / x.square().mean())
