"""Denoising diffusion: what is added, and how it is taken away again.

DDPM (Ho et al., arXiv:2006.11239v2) and DDIM (Song et al., arXiv:2010.02502v4). ᾱ_t is the share of the signal's power
that is left after t of T steps.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Predict = Callable[[Tensor, Tensor], Tensor]  # (noisy x [unit, …], time [unit]) → the noise in it
Prediction = Literal["noise", "x0", "velocity"]  # what a network says of noisy x


@dataclass(frozen=True, kw_only=True)
class Diffusion:
    """A noise schedule; the default is that of Pub2Priv (Table 3), quadratic as in CSDI (arXiv:2107.03502v2)."""

    steps: int = 400
    first_beta: float = 1e-4
    last_beta: float = 0.2
    schedule: Literal["quadratic", "linear"] = "quadratic"

    def betas(self) -> Tensor:
        """Returns the variance β_t [step] that each step adds."""
        if self.schedule == "linear":
            return torch.linspace(self.first_beta, self.last_beta, self.steps, dtype=torch.float64)
        return torch.linspace(math.sqrt(self.first_beta), math.sqrt(self.last_beta), self.steps).double().square()

    def signal(self) -> Tensor:
        """Returns ᾱ_t [step]."""
        return torch.cumprod(1 - self.betas(), 0)

    def noised(self, x: Tensor, noise: Tensor, time: Tensor) -> Tensor:
        """Returns √ᾱ_t x + √(1 − ᾱ_t) noise for each unit's own time [unit]."""
        left = self.signal()[time].to(x).reshape(-1, *(1 for _ in x.shape[1:]))
        return left.sqrt() * x + (1 - left).sqrt() * noise

    def target(self, predicts: Prediction, x: Tensor, noise: Tensor, time: Tensor) -> Tensor:
        """Returns what a network is to predict: the noise, x, or √ᾱ_t noise − √(1 − ᾱ_t) x (arXiv:2202.00512v2)."""
        if predicts == "velocity":
            return self.noised(noise, -x, time)
        return noise if predicts == "noise" else x

    def noise_of(self, predicts: Prediction, found: Tensor, noisy: Tensor, time: Tensor) -> Tensor:
        """Returns the noise that a prediction says is in `noisy`."""
        if predicts == "velocity":
            return self.noised(found, noisy, time)  # √ᾱ_t velocity + √(1 − ᾱ_t) noisy
        if predicts == "noise":
            return found
        left = self.signal()[time].to(noisy).reshape(-1, *(1 for _ in noisy.shape[1:]))
        return (noisy - left.sqrt() * found) / (1 - left).sqrt()

    def draw_times(self, num_units: int, generator: torch.Generator) -> Tensor:
        """Returns one time per unit, all equally likely."""
        return torch.randint(self.steps, (num_units,), generator=generator, device=generator.device)

    @torch.no_grad()
    def ancestral(self, predict: Predict, start: Tensor, generator: torch.Generator, limit: float = math.inf) -> Tensor:
        """Walks back from noise step by step (DDPM, Algorithm 2), with the variance of the true posterior.

        Args:
            limit: Bound on the x₀ that each step starts from. At the last time √ᾱ is tiny, so that without a bound an
                error in the predicted noise becomes an x₀ thousands of times as large.
        """
        betas, signal, x = self.betas(), self.signal(), start
        for t in range(self.steps - 1, -1, -1):
            noise = self._noise(predict, x, t, limit)
            mean = (x - float(betas[t] / (1 - signal[t]).sqrt()) * noise) / float((1 - betas[t]).sqrt())
            if t == 0:
                return mean
            variance = float(betas[t] * (1 - signal[t - 1]) / (1 - signal[t]))
            x = mean + math.sqrt(variance) * torch.randn(x.shape, generator=generator).to(x)
        return x

    @torch.no_grad()
    def implicit(self, predict: Predict, start: Tensor, num_steps: int, limit: float = math.inf) -> Tensor:
        """Walks back from noise in few steps without adding any (DDIM, Eq. 12 with η = 0); `limit` as above."""
        times, signal, x = self._times(num_steps), self.signal(), start
        for place, t in enumerate(times.tolist()):
            noise = self._noise(predict, x, t, limit)
            left = float(signal[t])
            clean = (x - math.sqrt(1 - left) * noise) / math.sqrt(left)
            before = float(signal[times[place + 1]]) if place + 1 < len(times) else 1.0
            x = math.sqrt(before) * clean + math.sqrt(1 - before) * noise
        return x

    def left_by_implicit(self, num_steps: int) -> float:
        """Returns the deviation that `implicit` leaves of standard normal numbers told the best guess (0.95 in 25)."""
        angles = self.signal()[self._times(num_steps)].sqrt().acos()
        return float(torch.cat([-angles.diff(), angles[-1:]]).cos().prod())

    def _noise(self, predict: Predict, x: Tensor, t: int, limit: float) -> Tensor:
        """Returns the predicted noise, or where it says an x₀ beyond the limit that which says the limit."""
        noise, left = predict(x, torch.full((len(x),), t, device=x.device)), float(self.signal()[t])
        if math.isinf(limit):
            return noise
        clean = ((x - math.sqrt(1 - left) * noise) / math.sqrt(left)).clamp(-limit, limit)
        return (x - math.sqrt(left) * clean) / math.sqrt(1 - left)

    def _times(self, num_steps: int) -> Tensor:
        """Returns the times that `implicit` visits, from the noisiest to the first."""
        return torch.linspace(self.steps - 1, 0, min(num_steps, self.steps)).round().long().unique().flip(0)
