"""PPEM as published: two energies against two generators (Algorithm 1), one pair for x′ and one for x* given x′.

The loss of an energy is split in two. Real rows, and the Lipschitz penalty between real and generated rows, are one
number per unit, which `marginal-dp` clips and noises. Generated rows and the obfuscation penalty are one number that
reads the generators and `references` alone; its gradient is added afterwards.

The penalty keeps the kernel Stein discrepancy between x′ and the density p ∝ exp(−E) of the marginal energy above what
chance explains (Liu, Lee and Jordan 2016, arXiv:1602.03253). The kernel is k(x, y) = exp(−‖x − y‖²/h); the paper prints
it without the square, with which its formulas would not follow.

Departures, in the certificate's favour or for speed: LayerNorm takes the place of batch normalisation in generators,
which are released as a running average unless `ema` is 0, and the slope of an energy is computed by running its layers
backwards instead of by second derivatives.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from understudy.privacy.grant import Grant
from understudy.synthesizers.ppem.attributes import Partition
from understudy.synthesizers.ppem.networks import Energy, RowGenerator
from understudy.synthesizers.ppem.recipe import LATENT, Recipe
from understudy.training import DPSGDConfig, Optimisation, Task, UnitWindows, train
from understudy.training.batches import Batch
from understudy.training.networks import ExponentialMovingAverage

MARGIN, LIPSCHITZ_WEIGHT = 10.0, 1.0  # m and λ_L, section 5
CLIP_NORM = 1.0  # not given in the paper
CRITICAL_VALUE = 3.8414588206941236  # 95 % of χ² with one degree of freedom
_BETAS = (0.5, 0.9)  # of Adam
_BLUR = 0.01  # standard deviation of the noise that makes codes look continuous, section 5.2
_SHARPNESS = 10.0  # inverse temperature of the softmax that represents a category while a generator learns
_LACKING_ROWS, _LACKING_WEIGHT = 512, 100.0
_CHUNK = 4096

Lacking = Callable[[Tensor, Tensor], Tensor]  # (generated x′, reference x′) → what is missing of the asked effect size
Reached = Callable[[float], None]  # hears the share of the iterations that are done


class Energies(nn.Module):
    """E_ξ(x′) and E_γ(x* | x′) as one network, so that one clipping norm covers both; either may be absent."""

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
    latent = torch.from_numpy(rng.standard_normal((number, LATENT)).astype(np.float32))
    parts = []
    for begin in range(0, number, _CHUNK):
        condition = None if given is None else torch.from_numpy(given[begin : begin + _CHUNK])
        parts.append(network(latent[begin : begin + _CHUNK], condition).numpy())
    return np.concatenate(parts)


@dataclass(eq=False)
class AdversarialTraining:
    """One run of Algorithm 1.

    Attributes:
        references: x′ [row, number] that the conditional generator is trained with and the penalty is computed on.
        codes: First and last-plus-one place of each group of codes in x′.
        penalised: Whether the marginal energy is kept from fitting the references (Eq. 18).
        lacking: What the marginal generator lacks of an asked effect size; None without one.
    """

    energies: Energies
    generators: Generators
    references: Tensor
    codes: tuple[tuple[int, int], ...]
    recipe: Recipe
    seed: int
    penalised: bool = False
    lacking: Lacking | None = None

    def __post_init__(self) -> None:
        self._optimiser = adam(self.generators.parameters(), self.recipe.generator_rate)
        self._generator = torch.Generator().manual_seed(self.seed)
        self._average = ExponentialMovingAverage(parameters_to_vector(self.generators.parameters()), self.recipe.ema)

    def private_loss(self, model: nn.Module, batch: Batch, generator: torch.Generator) -> Tensor:
        """Return one number per row: energies of what is real, and their slopes on the way to what is generated.

        Privacy: a row's loss depends on that row and on random numbers; generators are constants here.
        """
        assert isinstance(model, Energies)
        given = batch["sensitive"] + _BLUR * _normal(batch["sensitive"].shape, generator)
        rest = batch["rest"] + _BLUR * _normal(batch["rest"].shape, generator)
        losses = torch.zeros(len(given))
        if model.marginal is not None:
            fake = self._generated_sensitive(len(given), generator)
            losses = losses + _real_loss(model.marginal, given, fake, None, generator)  # Eq. 6
        if model.conditional is not None:
            fake = self._generated_rest(given, generator)
            losses = losses + _real_loss(model.conditional, rest, fake, given, generator)  # Eq. 7
        return losses

    def public_loss(self, model: nn.Module, generator: torch.Generator) -> Tensor:
        """Return the rest of both losses, one number that reads no row of the batch."""
        assert isinstance(model, Energies)
        number, total = self.recipe.batch, torch.zeros(())
        given = self._some_references(number, generator)
        if model.marginal is not None:
            fake = self._generated_sensitive(number, generator)
            total = total + raised(model.marginal(fake), MARGIN).mean()  # Eq. 6
            if self.penalised and self.recipe.penalty > 0:
                total = total + self.recipe.penalty * obfuscation_penalty(model.marginal, given)  # Eq. 18
        if model.conditional is not None:
            fake = self._generated_rest(given, generator)
            total = total + raised(model.conditional(fake, given), MARGIN).mean()  # Eq. 7
        return total

    def after_iteration(self, iteration: int) -> None:
        """Update the generators once per `rounds` updates of the energies (Algorithm 1, outer loop)."""
        if iteration % self.recipe.rounds:
            return
        number, loss = self.recipe.batch, torch.zeros(())
        if self.energies.marginal is not None:
            loss = loss + self.energies.marginal(self._marginal(number, self._generator)).mean()  # Eq. 6
        if self.lacking is not None and self.generators.marginal is not None:
            far = self._with_decided_codes(self._marginal(_LACKING_ROWS, self._generator))
            loss = loss + _LACKING_WEIGHT * self.lacking(far, self._some_references(_LACKING_ROWS, self._generator))
        if self.energies.conditional is not None:
            given = self._some_references(number, self._generator)
            assert self.generators.conditional is not None
            rest = self.generators.conditional(_normal((number, LATENT), self._generator), given)
            loss = loss + self.energies.conditional(rest, given).mean()  # Eq. 7
        gradients = torch.autograd.grad(loss, [*self.generators.parameters()], allow_unused=True)
        for parameter, gradient in zip(self.generators.parameters(), gradients, strict=True):
            parameter.grad = gradient
        self._optimiser.step()
        self._average.update(parameters_to_vector(self.generators.parameters()))

    def take_average(self) -> None:
        """Replace the generators by their running average."""
        vector_to_parameters(self._average.values, self.generators.parameters())

    def _some_references(self, number: int, generator: torch.Generator) -> Tensor:
        rows = torch.randint(0, len(self.references), (number,), generator=generator)
        return self.references[rows] + _BLUR * _normal((number, self.references.shape[1]), generator)

    def _marginal(self, number: int, generator: torch.Generator) -> Tensor:
        assert self.generators.marginal is not None
        generated: Tensor = self.generators.marginal(_normal((number, LATENT), generator))
        return generated

    @torch.no_grad()
    def _generated_sensitive(self, number: int, generator: torch.Generator) -> Tensor:
        return self._marginal(number, generator)

    @torch.no_grad()
    def _generated_rest(self, given: Tensor, generator: torch.Generator) -> Tensor:
        assert self.generators.conditional is not None
        generated: Tensor = self.generators.conditional(_normal((len(given), LATENT), generator), given)
        return generated

    def _with_decided_codes(self, generated: Tensor) -> Tensor:
        """Return x′ with categories decided, as it will be released, and a gradient as if they were shares."""
        for begin, end in self.codes:
            soft = functional.softmax(_SHARPNESS * generated[:, begin:end], 1)
            hard = functional.one_hot(soft.argmax(1), end - begin).float()
            generated = torch.cat([generated[:, :begin], hard + soft - soft.detach(), generated[:, end:]], 1)
        return generated


def train_without_noise(training: AdversarialTraining, rows: Mapping[str, np.ndarray], reached: Reached) -> None:
    """Run Algorithm 1 on `rows` ("sensitive" and "rest").

    Privacy: none of its own. Rows are synthetic, or the mode protects no unit and says so.
    """
    recipe, model = training.recipe, training.energies
    rng, generator = np.random.default_rng(training.seed), torch.Generator().manual_seed(training.seed + 1)
    optimiser = adam(model.parameters(), recipe.energy_rate)
    number = len(rows["rest"])
    for done in range(1, recipe.iterations + 1):
        loss = training.public_loss(model, generator)
        if number:
            chosen = rng.integers(0, number, recipe.batch)
            batch = {name: torch.from_numpy(np.array(array[chosen])) for name, array in rows.items()}
            loss = loss + training.private_loss(model, batch, generator).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        training.after_iteration(done)
        reached(done / recipe.iterations)
    training.take_average()


def train_with_noise(
    training: AdversarialTraining, windows: UnitWindows, plan: DPSGDConfig, grant: Grant, label: str, reached: Reached
) -> None:
    """Run Algorithm 1 with noise on the energies' gradients (appendix D.4); generators follow between iterations.

    Privacy: that of `train`, for one clipping norm over all parameters of `training.energies`.
    """
    task = Task(
        model=training.energies,
        loss=training.private_loss,
        windows=windows,
        public_loss=training.public_loss,
        after_iteration=training.after_iteration,
    )
    rate = training.recipe.energy_rate
    optimisation = Optimisation(make=lambda parameters: adam(parameters, rate))
    report = lambda done, planned: reached(done / planned)  # noqa: E731
    train(task, plan, grant, label=label, optimisation=optimisation, progress=report)
    training.take_average()


def adam(parameters: Iterable[Tensor], rate: float) -> torch.optim.Optimizer:
    """Return the optimiser of energies and generators."""
    return torch.optim.Adam(parameters, lr=rate, betas=_BETAS)


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

    Privacy: couples all points, so it may never see private rows inside a private gradient.
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


def _real_loss(
    energy: Energy, real: Tensor, fake: Tensor, given: Tensor | None, generator: torch.Generator
) -> Tensor:  # fmt: skip
    penalty = lipschitz_penalty(energy, between(real, fake, generator), given)
    return energy(real, given) + LIPSCHITZ_WEIGHT * penalty  # Eq. 6 and 7, first term, and Eq. 2


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator)
