"""Energies against generators: what each minimises, and what may be private about it.

The loss of an energy is split in two. Real rows and the Lipschitz penalty between real and generated rows are a number
for each unit, clipped and noised. Generated rows and the obfuscation penalty read generators and the sketch alone, so
their gradient is added afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from understudy.synthesizers.ppem import margin
from understudy.synthesizers.ppem.attributes import Partition
from understudy.synthesizers.ppem.networks import Energy, RowGenerator, TemporalEnergy, TemporalGenerator
from understudy.synthesizers.ppem.recipe import LATENT, Recipe
from understudy.training.batches import Batch
from understudy.training.networks import ExponentialMovingAverage

BETAS = (0.5, 0.9)  # of Adam
_BLUR = 0.01  # deviation that makes codes look continuous (paper 002, section 5.2)
_SHARP = 10.0  # of the softmax that stands for a category while a generator learns
_APART_ROWS = 512  # on which a generator measures how far it is from the sketch
_APART_WEIGHT = 100.0

Apart = Callable[[Tensor, Tensor], Tensor]  # generated and reference x′ to how much is lacking of the asked effect


class Energies(nn.Module):
    """The marginal and the conditional energy as one network, so that one clip covers both; either may be left out."""

    def __init__(self, partition: Partition, recipe: Recipe, *, marginal: bool, conditional: bool) -> None:
        super().__init__()
        given, width = partition.num_sensitive, recipe.width
        self.marginal = Energy(given, 0, width) if marginal else None
        self.conditional: Energy | TemporalEnergy | None = None
        if conditional and recipe.network == "temporal":
            self.conditional = TemporalEnergy(partition.series_shape, partition.num_single, given, width)
        elif conditional:
            self.conditional = Energy(partition.num_rest, given, width)


class Generators(nn.Module):
    """The marginal and the conditional generator; either may be left out where x′ or x* come from elsewhere."""

    def __init__(self, partition: Partition, recipe: Recipe, *, marginal: bool, conditional: bool = True) -> None:
        super().__init__()
        given, width = partition.num_sensitive, recipe.width
        self.marginal = RowGenerator(LATENT, 0, given, width) if marginal else None
        self.conditional: RowGenerator | TemporalGenerator | None = None
        if conditional and recipe.network == "temporal":
            self.conditional = TemporalGenerator(LATENT, given, partition.series_shape, partition.num_single, width)
        elif conditional:
            self.conditional = RowGenerator(LATENT, given, partition.num_rest, width)


def made(partition: Partition, recipe: Recipe, seed: int, *, marginal: bool, conditional: bool = True) -> Generators:
    """Returns new generators, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Generators(partition, recipe, marginal=marginal, conditional=conditional)


@dataclass(eq=False)
class Contest:
    """One training.

    Attributes:
        references: x′ [row, number] that generators are taught with: points of the sketch, or real ones where nobody is
            protected.
        codes: Groups of codes in x′.
        penalised: Whether the marginal energy is kept from fitting the references (Eq. 18).
        apart: What the marginal generator lacks of the asked effect; None if none was asked for.
    """

    energies: Energies
    generators: Generators
    references: Tensor
    codes: tuple[tuple[int, int], ...]
    recipe: Recipe
    seed: int
    penalised: bool = False
    apart: Apart | None = None

    def __post_init__(self) -> None:
        rate = self.recipe.generator_rate
        self._optimiser = torch.optim.Adam(self.generators.parameters(), lr=rate, betas=BETAS)
        self._generator = torch.Generator().manual_seed(self.seed)
        self._average = ExponentialMovingAverage(parameters_to_vector(self.generators.parameters()), self.recipe.ema)

    def private_loss(self, model: nn.Module, batch: Batch, generator: torch.Generator) -> Tensor:
        """Returns one number per row: energies of what is real, and their slopes on the way to what is generated.

        Privacy: a row's loss follows from that row and random numbers; generators are constants here.
        """
        assert isinstance(model, Energies)
        given = batch["sensitive"] + _BLUR * _noise(batch["sensitive"].shape, generator)
        rest = batch["rest"] + _BLUR * _noise(batch["rest"].shape, generator)
        losses = torch.zeros(len(given))
        if model.marginal is not None:
            fake = self._drawn_marginal(len(given), generator)
            losses = losses + self._real(model.marginal, given, fake, None, generator)  # Eq. 6
        if model.conditional is not None:
            fake = self._drawn_rest(given, generator)
            losses = losses + self._real(model.conditional, rest, fake, given, generator)  # Eq. 7
        return losses

    def public_loss(self, model: nn.Module, generator: torch.Generator) -> Tensor:
        """Returns the rest of both losses, one number that reads no private row."""
        assert isinstance(model, Energies)
        number, total = self.recipe.batch, torch.zeros(())
        given = self._some_references(number, generator)
        if model.marginal is not None:
            fake = self._drawn_marginal(number, generator)
            total = total + margin.raised(model.marginal(fake), self.recipe.margin).mean()
            if self.penalised and self.recipe.penalty > 0:
                total = total + self.recipe.penalty * self._penalty(model.marginal, given)  # Eq. 18
        if model.conditional is not None:
            fake = self._drawn_rest(given, generator)
            total = total + margin.raised(model.conditional(fake, given), self.recipe.margin).mean()
        return total

    def after_iteration(self, iteration: int) -> None:
        """Updates the generators once in a few updates of the energies, whose parameters may be seen by now."""
        if iteration % self.recipe.rounds:
            return
        number, loss = self.recipe.batch, torch.zeros(())
        if self.energies.marginal is not None:
            drawn = self._marginal(_noise((number, LATENT), self._generator))
            loss = loss + self.energies.marginal(drawn).mean()  # Eq. 6
        if self.apart is not None and self.generators.marginal is not None:
            far = self._settled(self._marginal(_noise((_APART_ROWS, LATENT), self._generator)))
            loss = loss + _APART_WEIGHT * self.apart(far, self._some_references(_APART_ROWS, self._generator))
        if self.energies.conditional is not None:
            given = self._some_references(number, self._generator)
            assert self.generators.conditional is not None
            rest = self.generators.conditional(_noise((number, LATENT), self._generator), given)
            loss = loss + self.energies.conditional(rest, given).mean()  # Eq. 7
        gradients = torch.autograd.grad(loss, [*self.generators.parameters()], allow_unused=True)
        for parameter, gradient in zip(self.generators.parameters(), gradients, strict=True):
            parameter.grad = gradient
        self._optimiser.step()
        self._average.update(parameters_to_vector(self.generators.parameters()))

    def take_average(self) -> None:
        """Puts the running average in the place of the generators, which circle around what they look for."""
        vector_to_parameters(self._average.values, self.generators.parameters())

    def _real(
        self, energy: margin.Sloped, real: Tensor, fake: Tensor, given: Tensor | None, generator: torch.Generator
    ) -> Tensor:
        losses = energy(real, given)
        if self.recipe.lipschitz > 0:
            at = margin.between(real, fake, generator)
            losses = losses + self.recipe.lipschitz * margin.lipschitz_penalty(energy, at, given)
        return losses

    def _penalty(self, energy: Energy, points: Tensor) -> Tensor:
        pairs = margin.finite_pairs if self.recipe.statistic == "fssd" else margin.kernel_pairs
        return margin.obfuscation_penalty(energy, points, pairs, one_sided=self.recipe.statistic == "studentised")

    def _some_references(self, number: int, generator: torch.Generator) -> Tensor:
        rows = torch.randint(0, len(self.references), (number,), generator=generator)
        return self.references[rows] + _BLUR * _noise((number, self.references.shape[1]), generator)

    def _marginal(self, latent: Tensor) -> Tensor:
        assert self.generators.marginal is not None
        drawn: Tensor = self.generators.marginal(latent)
        return drawn

    @torch.no_grad()
    def _drawn_marginal(self, number: int, generator: torch.Generator) -> Tensor:
        return self._marginal(_noise((number, LATENT), generator))

    @torch.no_grad()
    def _drawn_rest(self, given: Tensor, generator: torch.Generator) -> Tensor:
        assert self.generators.conditional is not None
        drawn: Tensor = self.generators.conditional(_noise((len(given), LATENT), generator), given)
        return drawn

    def _settled(self, drawn: Tensor) -> Tensor:
        """Returns x′ with categories decided, as it will be released, and a gradient as if they were shares."""
        for begin, end in self.codes:
            soft = functional.softmax(_SHARP * drawn[:, begin:end], 1)
            hard = functional.one_hot(soft.argmax(1), end - begin).float()
            drawn = torch.cat([drawn[:, :begin], hard + soft - soft.detach(), drawn[:, end:]], 1)
        return drawn


def _noise(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator)
