"""PPEM as published: two energies against two generators (Algorithm 1), one pair for x′ and one for x* given x′.

The penalty keeps the kernel Stein discrepancy between x′ and the density p ∝ exp(−E) of the marginal energy above what
chance explains (Liu, Lee and Jordan 2016, arXiv:1602.03253). The kernel is k(x, y) = exp(−‖x − y‖²/h); the paper prints
it without the square, with which its formulas would not follow.

Departures, in the certificate's favour or for speed: LayerNorm takes the place of batch normalisation in generators,
which are released as a running average unless `ema` is 0, and the slope of an energy is computed by running its layers
backwards instead of by second derivatives.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from understudy.synthesizers.ppem.attributes import Partition
from understudy.synthesizers.ppem.networks import Energy, RowGenerator
from understudy.synthesizers.ppem.recipe import LATENT, Recipe
from understudy.training.networks import ExponentialMovingAverage

MARGIN, LIPSCHITZ_WEIGHT = 10.0, 1.0  # m and λ_L, section 5
CRITICAL_VALUE = 3.8414588206941236  # 95 % of χ² with one degree of freedom
_BETAS = (0.5, 0.9)  # of Adam
_BLUR = 0.01  # standard deviation of the noise that makes codes look continuous, section 5.2
_SHARPNESS = 10.0  # inverse temperature of the softmax that represents a category while a generator learns
_LACKING_ROWS, _LACKING_WEIGHT = 512, 100.0
_CHUNK = 4096

Lacking = Callable[[Tensor, Tensor], Tensor]  # (generated x′, reference x′) → what is missing of the asked effect size
Reached = Callable[[float], None]  # hears the share of the iterations that are done


class Energies(nn.Module):
    """E_ξ(x′) and E_γ(x* | x′); either may be absent."""

    def __init__(self, partition: Partition, width: int, *, marginal: bool, conditional: bool) -> None:
        super().__init__()
        given = partition.num_sensitive
        self.marginal = Energy(given, 0, width) if marginal else None
        self.conditional = Energy(partition.num_rest, given, width) if conditional else None


class Generators(nn.Module):
    """G_ω(z) of x′ and G_υ(z | x′) of x*; either is absent where x′ or x* come from elsewhere."""

    def __init__(self, partition: Partition, width: int, seed: int, *, marginal: bool, conditional: bool) -> None:
        super().__init__()
        given = partition.num_sensitive
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.marginal = RowGenerator(LATENT, 0, given, width) if marginal else None
            self.conditional = RowGenerator(LATENT, given, partition.num_rest, width) if conditional else None

    def sample_sensitive(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Return x′ [row, number]."""
        assert self.marginal is not None
        return _sampled(self.marginal, number, None, rng)

    def sample_rest(self, sensitive: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return x* for x′ [row, number]."""
        assert self.conditional is not None
        return _sampled(self.conditional, len(sensitive), sensitive, rng)


@torch.no_grad()
def _sampled(network: nn.Module, number: int, given: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    latent = torch.from_numpy(rng.standard_normal((number, LATENT)).astype(np.float32)).split(_CHUNK)
    conditions = [None] * len(latent) if given is None else torch.from_numpy(given).split(_CHUNK)
    return np.concatenate([network(z, own).numpy() for z, own in zip(latent, conditions, strict=True)])


@dataclass(eq=False)
class AdversarialTraining:
    """One run of Algorithm 1.

    Attributes:
        rows: "sensitive" (x′) and "rest" (x*) [row, number], at least one row.
        codes: First and last-plus-one place of each group of codes in x′.
        lacking: What the marginal generator lacks of an asked effect size; None without one.

    Privacy: none of its own. Rows are synthetic, or the mode protects no unit and says so.
    """

    energies: Energies
    generators: Generators
    rows: Mapping[str, np.ndarray]
    codes: tuple[tuple[int, int], ...]
    recipe: Recipe
    seed: int
    lacking: Lacking | None = None

    def __post_init__(self) -> None:
        self._optimiser = torch.optim.Adam(self.generators.parameters(), self.recipe.generator_rate, _BETAS)
        self._coins = torch.Generator().manual_seed(self.seed)
        self._average = ExponentialMovingAverage(parameters_to_vector(self.generators.parameters()), self.recipe.ema)

    def run(self, reached: Reached) -> None:
        """Train both energies, and the generators once per `rounds` updates of them."""
        recipe, rng = self.recipe, np.random.default_rng(self.seed)
        coins = torch.Generator().manual_seed(self.seed + 1)
        optimiser = torch.optim.Adam(self.energies.parameters(), recipe.energy_rate, _BETAS)
        for done in range(1, recipe.iterations + 1):
            optimiser.zero_grad()
            self.energy_loss(*self._batch(recipe.batch, rng), coins).backward()
            optimiser.step()
            if done % recipe.rounds == 0:
                self._update_generators(rng)
            reached(done / recipe.iterations)
        vector_to_parameters(self._average.values, self.generators.parameters())

    def energy_loss(self, sensitive: Tensor, rest: Tensor, coins: torch.Generator) -> Tensor:
        """Return the loss of both energies on a batch; generators are constants here."""
        given, rest = (real + _BLUR * _normal(real.shape, coins) for real in (sensitive, rest))
        total = torch.zeros(())
        if self.energies.marginal is not None:
            fake = self.generated_sensitive(len(given), coins).detach()
            total = total + _adversarial(self.energies.marginal, given, fake, None, coins)  # Eq. 6
            if self.recipe.penalty > 0:
                total = total + self.recipe.penalty * obfuscation_penalty(self.energies.marginal, given)  # Eq. 18
        if self.energies.conditional is not None:
            fake = self._generated_rest(given, coins).detach()
            total = total + _adversarial(self.energies.conditional, rest, fake, given, coins)  # Eq. 7
        return total

    def _update_generators(self, rng: np.random.Generator) -> None:
        """Update the generators (Algorithm 1, outer loop)."""
        loss = torch.zeros(())
        if self.energies.marginal is not None:
            drawn = self.generated_sensitive(self.recipe.batch, self._coins)
            loss = loss + self.energies.marginal(drawn).mean()  # Eq. 6
        if self.lacking is not None and self.generators.marginal is not None:
            far = self._with_decided_codes(self.generated_sensitive(_LACKING_ROWS, self._coins))
            loss = loss + _LACKING_WEIGHT * self.lacking(far, self._batch(_LACKING_ROWS, rng)[0])
        if self.energies.conditional is not None:
            given = self._batch(self.recipe.batch, rng)[0]
            loss = loss + self.energies.conditional(self._generated_rest(given, self._coins), given).mean()  # Eq. 7
        self._optimiser.zero_grad()
        loss.backward(inputs=[*self.generators.parameters()])
        self._optimiser.step()
        self._average.update(parameters_to_vector(self.generators.parameters()))

    def _batch(self, number: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        chosen = rng.integers(0, len(self.rows["rest"]), number)
        return torch.from_numpy(self.rows["sensitive"][chosen]), torch.from_numpy(self.rows["rest"][chosen])

    def generated_sensitive(self, number: int, coins: torch.Generator) -> Tensor:
        """Return x′ [row, number]."""
        assert self.generators.marginal is not None
        return self.generators.marginal(_normal((number, LATENT), coins))

    def _generated_rest(self, given: Tensor, coins: torch.Generator) -> Tensor:
        assert self.generators.conditional is not None
        return self.generators.conditional(_normal((len(given), LATENT), coins), given)

    def _with_decided_codes(self, generated: Tensor) -> Tensor:
        """Return x′ with categories decided, as it will be released, and a gradient as if they were shares."""
        for begin, end in self.codes:
            soft = functional.softmax(_SHARPNESS * generated[:, begin:end], 1)
            hard = functional.one_hot(soft.argmax(1), end - begin).float()
            generated = torch.cat([generated[:, :begin], hard + soft - soft.detach(), generated[:, end:]], 1)
        return generated


def _adversarial(energy: Energy, real: Tensor, fake: Tensor, given: Tensor | None, coins: torch.Generator) -> Tensor:
    """Return E(real) + [m − E(fake)]⁺ and the Lipschitz penalty between them, a mean over rows."""
    penalty = lipschitz_penalty(energy, between(real, fake, coins), given)  # Eq. 2
    return (energy(real, given) + raised(energy(fake, given), MARGIN) + LIPSCHITZ_WEIGHT * penalty).mean()


def raised(energy: Tensor, margin: float) -> Tensor:
    """Return [m − E]⁺: generated rows are pushed up to the margin and no further."""
    return (margin - energy).clamp_min(0)  # Eq. 6 and 7, second term


def between(real: Tensor, generated: Tensor, generator: torch.Generator) -> Tensor:
    """Return points u · real + (1 − u) · generated, each row with a u of its own."""
    share = torch.rand(len(real), 1, generator=generator, device=real.device)
    return share * real + (1 - share) * generated


def lipschitz_penalty(energy: Energy, at: Tensor, condition: Tensor | None = None) -> Tensor:
    """Return (‖∇E‖ − 1)² at every row; for a conditional energy the slope is along x and not along its condition."""
    slope = energy.slope(at, condition)
    return ((slope.square().sum(1) + 1e-12).sqrt() - 1).square()  # Eq. 2


def obfuscation_penalty(energy: Energy, points: Tensor) -> Tensor:
    """Return [critical value − statistic]⁺ of the test that the energy's density made the points: one number.

    Zero exactly where the test rejects.
    """
    u = stein_pairs(points, -energy.slope(points), median_bandwidth(points))  # Eq. 15
    return (CRITICAL_VALUE - normalised_discrepancy(u)).clamp_min(0)  # Eq. 17 and 18


def median_bandwidth(points: Tensor) -> Tensor:
    """Return h [...]: the median squared distance between points [..., point, dimension], outside any gradient.

    The mean takes its place where the median is 0, as between rows that are mostly equal.
    """
    points = points.detach()
    first, second = torch.triu_indices(points.shape[-2], points.shape[-2], offset=1)
    squared = ((points[..., first, :] - points[..., second, :]) ** 2).sum(-1)
    median, mean = squared.median(-1).values, squared.mean(-1)
    bandwidth = torch.where(median > 0, median, mean)
    return torch.where(bandwidth > 0, bandwidth, torch.ones_like(bandwidth))


def stein_kernel(x: Tensor, y: Tensor, score_x: Tensor, score_y: Tensor, bandwidth: Tensor | float) -> Tensor:
    """Return u(x, y) [...] of points [..., dimension] with their scores; its mean is 0 where p made the points."""
    r = x - y
    squared, dimension = (r**2).sum(-1), x.shape[-1]
    kernel = torch.exp(-squared / bandwidth)
    products = (score_x * score_y).sum(-1) + 2 / bandwidth * ((score_x - score_y) * r).sum(-1)
    return kernel * (products + 2 * dimension / bandwidth - 4 * squared / bandwidth**2)  # Eq. 15


def stein_pairs(points: Tensor, scores: Tensor, bandwidth: Tensor | float) -> Tensor:
    """Return u [..., pair] of consecutive points: the first with the second, the third with the fourth.

    Shuffle points that have an order.
    """
    even = points.shape[-2] // 2 * 2
    width = bandwidth[..., None] if isinstance(bandwidth, Tensor) else bandwidth
    return stein_kernel(
        points[..., 0:even:2, :], points[..., 1:even:2, :], scores[..., 0:even:2, :], scores[..., 1:even:2, :], width
    )


def normalised_discrepancy(pairs: Tensor) -> Tensor:
    """Return the squared linear discrepancy over its variance [...], about χ² with one degree of freedom under p.

    It lies between 0 and m − 1 for m pairs, does not change when u is scaled, and counts both signs: a negative linear
    discrepancy rejects as well. 0 where u vanishes at every pair.
    """
    number, squares = pairs.shape[-1], (pairs**2).sum(-1)
    total = pairs.sum(-1) ** 2
    ratio = torch.where(squares > 0, total / torch.where(squares > 0, squares, torch.ones_like(squares)), squares)
    return (number - 1) / number * ratio  # Eq. 17


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator)
