"""PPEM as published: two energies against two generators (Algorithm 1), one pair for x′ and one for x* given x′.

The penalty keeps the kernel Stein discrepancy between x′ and the density p ∝ exp(−E) of the marginal energy above what
chance explains (Liu, Lee and Jordan 2016, arXiv:1602.03253). The kernel is k(x, y) = exp(−‖x − y‖²/h); the paper prints
it without the square, with which its formulas would not follow.

An energy is a density without its partition function: ∇ log p = −∇E does not know the factor. Its slope is computed by
running its layers backwards, and no layer mixes rows. Generators have LayerNorm where the paper has batch normalisation
(`norm="batch"`), and are released as a running average unless `ema` is 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from understudy.nn.layers import ReversibleLinear
from understudy.synthesizers.ppem.attributes import Partition, Rows
from understudy.synthesizers.ppem.recipe import LATENT, Norm, Recipe
from understudy.training.networks import ExponentialMovingAverage

MARGINAL, CONDITIONAL = "marginal", "conditional"  # the pairs E_ξ(x′), G_ω(z) and E_γ(x* | x′), G_υ(z | x′)
MARGIN, LIPSCHITZ_WEIGHT = 10.0, 1.0  # m and λ_L, section 5
CRITICAL_VALUE = 3.8414588206941236  # 95 % of χ² with one degree of freedom
_BETAS = (0.5, 0.9)  # of Adam
_BLUR = 0.01  # standard deviation of the noise that makes codes look continuous, section 5.2
_LACKING_ROWS, _LACKING_WEIGHT = 512, 100.0
_CHUNK = 4096
SLOPE, _LAYERS = 0.2, 3  # of LeakyReLU below zero; of energies and generators (appendix C)

Lacking = Callable[[Tensor, Tensor], Tensor]  # (generated x′, reference x′) → what is missing of the asked effect size


class Energy(nn.Module):
    """A perceptron E(x | condition) ≥ 0; x and the condition enter by branches of their own.

    LeakyReLU has no curvature, so the gates are constants of the slope and only the softplus at the end bends.
    """

    def __init__(self, num_inputs: int, num_conditions: int, width: int) -> None:
        super().__init__()
        self._branch = width // 2 if num_conditions else width
        self.own = ReversibleLinear(num_inputs, self._branch)
        self.given = nn.Linear(num_conditions, width - self._branch) if num_conditions else None
        self.layers = nn.ModuleList(ReversibleLinear(width, width) for _ in range(_LAYERS - 1))
        self.head = ReversibleLinear(width, 1)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return E [row] of x [row, input] given [row, condition]."""
        return functional.softplus(self._climb(x, condition)[0]).squeeze(1)

    def slope(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return ∇E along x [row, input]."""
        raw, gates = self._climb(x, condition)
        back = self.head(torch.sigmoid(raw), back=True)
        for layer, gate in zip(reversed(self.layers), reversed(gates), strict=False):
            back = layer(back * gate, back=True)
        return self.own((back * gates[0])[:, : self._branch], back=True)

    def _climb(self, x: Tensor, condition: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """Return what enters the softplus, and the slope of every LeakyReLU on the way."""
        hidden, gates = self.own(x), []
        if self.given is not None:
            hidden = torch.cat([hidden, self.given(condition)], 1)
        for layer in (*self.layers, self.head):
            gates.append(torch.where(hidden.detach() > 0, 1.0, SLOPE))
            hidden = layer(hidden * gates[-1])
        return hidden, gates


class RowGenerator(nn.Module):
    """A residual perceptron; latent and condition enter by branches of their own."""

    def __init__(
        self, num_latent: int, num_conditions: int, num_outputs: int, width: int, norm: Norm = "layer"
    ) -> None:
        super().__init__()
        kind = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}[norm]
        branch = width // 2 if num_conditions else width
        self.own = nn.Linear(num_latent, branch)
        self.given = nn.Linear(num_conditions, width - branch) if num_conditions else None
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(_LAYERS - 1))
        self.norms = nn.ModuleList(kind(width) for _ in range(_LAYERS - 1))
        self.head = nn.Linear(width, num_outputs)

    def forward(self, latent: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return rows [row, output]."""
        hidden = self.own(latent)
        if self.given is not None:
            hidden = torch.cat([hidden, self.given(condition)], 1)
        hidden = functional.leaky_relu(hidden, SLOPE)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = hidden + functional.leaky_relu(norm(layer(hidden)), SLOPE)
        return self.head(hidden)


def generators_of(pairs: Sequence[str], partition: Partition, recipe: Recipe, seed: int) -> nn.ModuleDict:
    """Return the generators of some pairs; a pair is absent where its x′ or x* come from elsewhere."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = {pair: (LATENT, *_sizes(pair, partition)[::-1], recipe.width) for pair in pairs}
        return nn.ModuleDict({pair: RowGenerator(*own, recipe.norm) for pair, own in sizes.items()}).train(False)


def _sizes(pair: str, partition: Partition) -> tuple[int, int]:
    """Return how many numbers a pair models, and how many it is given."""
    return (partition.num_sensitive, 0) if pair == MARGINAL else (partition.num_rest, partition.num_sensitive)


@torch.no_grad()
def sampled(generator: nn.Module, number: int, rng: np.random.Generator, given: np.ndarray | None = None) -> np.ndarray:
    """Return rows [row, number] of a generator, for x′ where it is conditional."""
    latent = torch.from_numpy(rng.standard_normal((number, LATENT)).astype(np.float32)).split(_CHUNK)
    conditions = [None] * len(latent) if given is None else torch.from_numpy(given).split(_CHUNK)
    return np.concatenate([generator(z, own).numpy() for z, own in zip(latent, conditions, strict=True)])


@dataclass(eq=False)
class AdversarialTraining:
    """One run of Algorithm 1 for the pairs that have a generator.

    Attributes:
        rows: At least one row of x′ and x*.
        lacking: What the marginal generator lacks of an asked effect size; None without one.

    Privacy: none of its own. Rows are synthetic, or the mode protects no unit and says so.
    """

    generators: nn.ModuleDict
    partition: Partition
    rows: Rows
    recipe: Recipe
    seed: int
    lacking: Lacking | None = None

    def __post_init__(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + 1)
            self.energies = {pair: Energy(*_sizes(pair, self.partition), self.recipe.width) for pair in self.generators}
        self._optimiser = torch.optim.Adam(self.generators.parameters(), self.recipe.generator_rate, _BETAS)
        self._coins = torch.Generator().manual_seed(self.seed)
        self._average = ExponentialMovingAverage(parameters_to_vector(self.generators.parameters()), self.recipe.ema)

    def run(self, reached: Callable[[float], None]) -> None:
        """Train the energies, and the generators once per `rounds` updates of them; `reached` hears the share done."""
        recipe, rng = self.recipe, np.random.default_rng(self.seed)
        coins = torch.Generator().manual_seed(self.seed + 1)
        parameters = chain.from_iterable(energy.parameters() for energy in self.energies.values())
        self.generators.train()
        optimiser = torch.optim.Adam(parameters, recipe.energy_rate, _BETAS)
        for done in range(1, recipe.iterations + 1):
            optimiser.zero_grad()
            self.energy_loss(*self._batch(recipe.batch, rng), coins).backward()
            optimiser.step()
            if done % recipe.rounds == 0:
                self._update_generators(rng)
            reached(done / recipe.iterations)
        vector_to_parameters(self._average.values, self.generators.train(False).parameters())

    def energy_loss(self, sensitive: Tensor, rest: Tensor, coins: torch.Generator) -> Tensor:
        """Return the loss of all energies on a batch; generators are constants here."""
        sensitive, rest = (real + _BLUR * torch.randn(real.shape, generator=coins) for real in (sensitive, rest))
        total = torch.zeros(())
        for pair, energy in self.energies.items():
            real, given = (sensitive, None) if pair == MARGINAL else (rest, sensitive)
            fake = self.generated(pair, len(real), given, coins).detach()
            total = total + _adversarial(energy, real, fake, given, coins)  # Eq. 6, 7
            if pair == MARGINAL and self.recipe.penalty > 0:
                total = total + self.recipe.penalty * obfuscation_penalty(energy, real)  # Eq. 18
        return total

    def _update_generators(self, rng: np.random.Generator) -> None:
        """Update the generators (Algorithm 1, outer loop)."""
        loss = torch.zeros(())
        for pair, energy in self.energies.items():
            given = None if pair == MARGINAL else self._batch(self.recipe.batch, rng)[0]
            drawn = self.generated(pair, self.recipe.batch, given, self._coins)
            loss = loss + energy(drawn, given).mean()  # Eq. 6, 7
            if pair == MARGINAL and self.lacking is not None:
                far = self.generated(pair, _LACKING_ROWS, None, self._coins)
                loss = loss + _LACKING_WEIGHT * self.lacking(far, self._batch(_LACKING_ROWS, rng)[0])
        self._optimiser.zero_grad()
        loss.backward(inputs=[*self.generators.parameters()])
        self._optimiser.step()
        self._average.update(parameters_to_vector(self.generators.parameters()))

    def _batch(self, number: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        chosen = rng.integers(0, len(self.rows.rest), number)
        return torch.from_numpy(self.rows.sensitive[chosen]), torch.from_numpy(self.rows.rest[chosen])

    def generated(self, pair: str, number: int, given: Tensor | None, coins: torch.Generator) -> Tensor:
        """Return rows of a generator [row, number], with a gradient."""
        return self.generators[pair](torch.randn(number, LATENT, generator=coins), given)


def _adversarial(energy: Energy, real: Tensor, fake: Tensor, given: Tensor | None, coins: torch.Generator) -> Tensor:
    """Return E(real) + [m − E(fake)]⁺ and the Lipschitz penalty between them, a mean over rows."""
    penalty = lipschitz_penalty(energy, between(real, fake, coins), given)  # Eq. 2
    return (energy(real, given) + raised(energy(fake, given), MARGIN) + LIPSCHITZ_WEIGHT * penalty).mean()


def raised(energy: Tensor, margin: float) -> Tensor:
    """Return [m − E]⁺: generated rows are pushed up to the margin and no further."""
    return (margin - energy).clamp_min(0)  # Eq. 6 and 7, second term


def between(real: Tensor, generated: Tensor, coins: torch.Generator) -> Tensor:
    """Return points u · real + (1 − u) · generated, each row with a u of its own."""
    return generated.lerp(real, torch.rand(len(real), 1, generator=coins))


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

    Between 0 and m − 1 for m pairs; a negative linear discrepancy counts as well. 0 where u vanishes at every pair.
    """
    number, squares = pairs.shape[-1], (pairs**2).sum(-1)
    total = pairs.sum(-1) ** 2
    ratio = torch.where(squares > 0, total / torch.where(squares > 0, squares, torch.ones_like(squares)), squares)
    return (number - 1) / number * ratio  # Eq. 17
