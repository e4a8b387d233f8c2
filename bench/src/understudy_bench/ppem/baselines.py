"""What the PPEM paper compares PPEM with, without privacy: WGAN-GP, EnergyGAN, SteinGAN and medGAN on rows of numbers.

Each takes rows [row, number] in working scale and returns as many synthetic ones. Networks are the perceptrons of PPEM,
so that a difference is one of objectives.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.synthesizers.ppem.published import SLOPE, Energy, RowGenerator, between, median_bandwidth, raised

_LATENT, _WIDTH, _BATCH, _ROUNDS, _MARGIN = 128, 128, 128, 5, 10.0
_BETAS = (0.5, 0.9)

Baseline = Callable[[np.ndarray, int, int], np.ndarray]


def wgan(rows: np.ndarray, iterations: int, seed: int) -> np.ndarray:
    """Gulrajani et al., arXiv:1704.00028: a critic with a penalty on its slope."""
    real, made, random = _start(rows, seed)
    critic = _perceptron(rows.shape[1], _WIDTH, _WIDTH, 1)
    steps = _adam(critic, 1e-3), _adam(made, 5e-4)
    for done in range(1, iterations + 1):
        x, fake = _some(real, random), made(_noise(random)).detach()
        at = between(x, fake, random).requires_grad_()
        (slope,) = torch.autograd.grad(critic(at).sum(), at, create_graph=True)
        penalty = 10 * (slope.norm(dim=1) - 1).square().mean()
        _step(steps[0], critic(fake).mean() - critic(x).mean() + penalty)
        if done % _ROUNDS == 0:
            _step(steps[1], -critic(made(_noise(random))).mean())
    return _rows_of(made, len(rows), random)


def energy_gan(rows: np.ndarray, iterations: int, seed: int) -> np.ndarray:
    """Zhao et al., arXiv:1609.03126: the energy is the error of an autoencoder, with a margin and without a penalty."""
    real, made, random = _start(rows, seed)
    code = _perceptron(rows.shape[1], _WIDTH, 32, _WIDTH, rows.shape[1])
    steps = _adam(code, 1e-3), _adam(made, 5e-4)

    def energy(x: Tensor) -> Tensor:
        return (code(x) - x).square().mean(1)

    for done in range(1, iterations + 1):
        fake = made(_noise(random)).detach()
        _step(steps[0], energy(_some(real, random)).mean() + raised(energy(fake), _MARGIN).mean())
        if done % _ROUNDS == 0:
            _step(steps[1], energy(made(_noise(random))).mean())
    return _rows_of(made, len(rows), random)


def stein_gan(rows: np.ndarray, iterations: int, seed: int) -> np.ndarray:
    """Wang & Liu, arXiv:1611.01722: the generator follows Stein variational steps along the energy's score."""
    real, made, random = _start(rows, seed)
    energy = Energy(rows.shape[1], 0, _WIDTH)
    steps = _adam(energy, 1e-3), _adam(made, 5e-4)
    for done in range(1, iterations + 1):
        fake = made(_noise(random)).detach()
        _step(steps[0], energy(_some(real, random)).mean() - energy(fake).mean())
        if done % _ROUNDS == 0:
            drawn = made(_noise(random))
            with torch.no_grad():
                target = drawn + 0.1 * _stein_step(drawn, -energy.slope(drawn))
            _step(steps[1], (drawn - target).square().sum(1).mean())
    return _rows_of(made, len(rows), random)


def med_gan(rows: np.ndarray, iterations: int, seed: int) -> np.ndarray:
    """Choi et al., arXiv:1703.06490: a generator in the codes of an autoencoder that was trained first."""
    real, _, random = _start(rows, seed)
    encode, decode = _perceptron(rows.shape[1], _WIDTH, 64), _perceptron(64, _WIDTH, rows.shape[1])
    made, judge = RowGenerator(_LATENT, 0, 64, _WIDTH), _perceptron(rows.shape[1], _WIDTH, _WIDTH, 1)
    learns = _adam(nn.ModuleList([encode, decode]), 1e-3)
    for _ in range(iterations // 2):
        x = _some(real, random)
        _step(learns, (decode(encode(x)) - x).square().mean())
    steps = _adam(judge, 1e-3), _adam(nn.ModuleList([made, decode]), 5e-4)
    for _ in range(iterations):
        fake = decode(made(_noise(random)))
        judged = functional.softplus(-judge(_some(real, random))) + functional.softplus(judge(fake.detach()))
        _step(steps[0], judged.mean())
        _step(steps[1], functional.softplus(-judge(decode(made(_noise(random))))).mean())
    return _rows_of(nn.Sequential(made, decode), len(rows), random)


BASELINES: dict[str, Baseline] = {"wgan-gp": wgan, "energygan": energy_gan, "steingan": stein_gan, "medgan": med_gan}


def _start(rows: np.ndarray, seed: int) -> tuple[Tensor, RowGenerator, torch.Generator]:
    torch.manual_seed(seed)
    made = RowGenerator(_LATENT, 0, rows.shape[1], _WIDTH)
    return torch.from_numpy(rows.astype(np.float32)), made, torch.Generator().manual_seed(seed)


def _perceptron(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for pair in pairwise(sizes):
        layers += [nn.Linear(*pair), nn.LeakyReLU(SLOPE)]
    return nn.Sequential(*layers[:-1])


def _stein_step(points: Tensor, scores: Tensor) -> Tensor:
    """Returns mean over j of k(x_j, x_i) s(x_j) + ∇ k: Liu & Wang, arXiv:1608.04471, Eq. 8."""
    width = median_bandwidth(points)
    kernel = torch.exp(-torch.cdist(points, points).square() / width)
    repelled = 2 / width * (points * kernel.sum(1, keepdim=True) - kernel @ points)
    return (kernel @ scores + repelled) / len(points)


def _noise(random: torch.Generator) -> Tensor:
    return torch.randn(_BATCH, _LATENT, generator=random)


def _some(real: Tensor, random: torch.Generator) -> Tensor:
    return real[torch.randint(0, len(real), (_BATCH,), generator=random)]


def _adam(module: nn.Module, rate: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(module.parameters(), lr=rate, betas=_BETAS)


def _step(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


@torch.no_grad()
def _rows_of(made: nn.Module, number: int, random: torch.Generator) -> np.ndarray:
    latent = torch.randn(number, _LATENT, generator=random)
    return np.concatenate([made(part).numpy() for part in latent.split(4096)])
