"""What VFLGAN-TS is compared with: CosciGAN in one place, one CosciGAN per party, and VFLGAN, all without noise.

Trained by ordinary autograd in one process, as the authors of VFLGAN-TS re-implemented them: CosciGAN has a central
discriminator over all attributes of one place beside the attributes' own; VFLGAN has one generator and one critic per
party, a shared critic, and a Wasserstein objective with a gradient penalty (Yuan et al., PETS 2024).

References: Seyfi et al. 2022 (COSCI-GAN); Gulrajani et al., arXiv:1704.00028 (the penalty).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from understudy.errors import InputError
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts as bought
from understudy.statistics.columns import classes_of
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.synthesizers.base import Progress
from understudy.synthesizers.vflgan_ts.method import VFLGANTS
from understudy.synthesizers.vflgan_ts.modes import fixed_batches
from understudy.synthesizers.vflgan_ts.network import (
    AttributeDiscriminators,
    AttributeGenerators,
    FeatureExtractor,
    SharedDiscriminator,
    kept_by_dropout,
)
from understudy.synthesizers.vflgan_ts.partition import joined, num_classes, partition, rows_of
from understudy.synthesizers.vflgan_ts.protocol import seeded
from understudy.synthesizers.vflgan_ts.published import Rows, generate
from understudy.synthesizers.vflgan_ts.recipe import BETAS, DROPOUT, LATENT, Recipe
from understudy.training.networks import load_arrays, to_arrays
from understudy.training.plan import TRAINING

Model = Literal["central-coscigan", "party-coscigan", "vflgan"]
RIVALS: tuple[Model, ...] = ("central-coscigan", "party-coscigan", "vflgan")
MODELS = ("vflgan-ts", *RIVALS)
_PENALTY, _CRITIC_ROUNDS = 10.0, 5
_CENTRAL = (128, 64)  # hidden layers of CosciGAN's central discriminator behind its first


@dataclass(frozen=True, kw_only=True)
class Rival(VFLGANTS):
    """One of the three, by `model`; needs the mode `plain`.

    Attributes:
        original: Whether CosciGAN's generators maximise the central discriminator's loss, as its own code does; else
            they want to be taken for real, as in the code released with VFLGAN-TS.
    """

    name: ClassVar[str] = "vflgan-ts-rival"
    model: Model = "central-coscigan"
    original: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode != "plain":
            raise InputError(f"model: '{self.model}' is for comparison and needs the mode 'plain', got '{self.mode}'.")

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Trains by raw gradients of real rows. Privacy: none."""
        schema = private.schema
        linear = linear_scales(schema, None)
        facts = bought.buy(private, grant)
        grant.without_privacy(TRAINING)
        encoding = Encoding.of(schema, facts.marginals, linear)
        labels, number = classes_of(private.panel), num_classes(schema)
        rows = [rows_of(own, private.panel, encoding) for own in partition(schema)]
        classes = torch.eye(number)[torch.from_numpy(labels)] if number else torch.zeros(len(labels), 0)
        with seeded(self.seed, self.model):
            if self.model == "vflgan":
                generators = _vflgan(rows, classes, self.recipe, self.seed)
            else:
                places = [_joined(rows)] if self.model == "central-coscigan" else rows
                generators = [_coscigan(place, classes, self.recipe, self.seed, self.original) for place in places]
        arrays = {**facts.to_arrays(), "linear": linear, "nodes": np.zeros((0, 1))}
        for place, module in enumerate(generators):
            arrays |= to_arrays(module, f"place{place}.")
        return arrays

    def _working_rows(
        self, arrays: Mapping[str, np.ndarray], encoding: Encoding, classes: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        schema, columns = encoding.schema, partition(encoding.schema)
        counts = [own.num_attributes for own in columns]
        number, steps = num_classes(schema), schema.num_steps
        hot = np.eye(number)[classes] if number else np.zeros((len(classes), 0))
        noise = rng.standard_normal((len(classes), LATENT))
        parts = []
        for place, size in enumerate([sum(counts)] if self.model == "central-coscigan" else counts):
            if self.model == "party-coscigan":  # nobody joins the parties' noise
                noise = rng.standard_normal((len(classes), LATENT))
            latent = torch.from_numpy(np.concatenate([noise, hot], 1).astype(np.float32))
            shape = (1, size * steps) if self.model == "vflgan" else (size, steps)
            module = AttributeGenerators(shape[0], LATENT + number, shape[1])
            load_arrays(module, arrays, f"place{place}.")
            parts.append(generate(module, latent).reshape(len(classes), size, steps).numpy())
        if self.model == "central-coscigan":
            parts = np.split(parts[0], np.cumsum(counts)[:-1], axis=1)
        return joined(columns, tuple(parts), encoding)


def _joined(rows: Sequence[Rows]) -> Rows:
    return Rows(torch.cat([own.series for own in rows], 1), torch.cat([own.label for own in rows], 1))


def _coscigan(rows: Rows, classes: Tensor, recipe: Recipe, seed: int, original: bool) -> nn.Module:
    """Attribute discriminators and a central one over all attributes of one place; β weighs the central one."""
    _, attributes, steps = rows.series.shape
    generators = AttributeGenerators(attributes, LATENT + classes.shape[1], steps)
    own = AttributeDiscriminators(attributes, steps, recipe.widths)
    first = FeatureExtractor(attributes * steps + rows.label.shape[1], recipe.features)
    central = SharedDiscriminator(recipe.features, _CENTRAL)
    randomness = torch.Generator().manual_seed(torch.initial_seed())
    tells = _adam(((own, 1.0), (first, 0.5), (central, 0.5)), recipe)
    makes = _adam(((generators, 1.0),), recipe)

    def judged(series: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        widths = (recipe.features, sum(recipe.widths), sum(_CENTRAL))
        kept = kept_by_dropout((len(series), sum(widths)), DROPOUT, randomness)
        assert kept is not None
        of_first, of_own, of_central = kept.split(widths, dim=1)
        features = first(torch.cat([series.flatten(1), label], 1), of_first)
        return own(series, of_own), central(features, of_central)

    batches = fixed_batches(recipe.batch, seed)(len(rows.series))
    width = rows.label.shape[1]
    for _ in range(recipe.iterations):
        drawn = next(batches)
        latent, label = _latent(classes, recipe.batch, randomness)
        alone, together = judged(rows.series[drawn], rows.label[drawn])
        fake_alone, fake_together = judged(generators(latent).detach(), label[:, :width])
        loss = softplus(-alone).mean(0).sum() + softplus(fake_alone).mean(0).sum()
        _step(tells, loss + softplus(-together).mean() + softplus(fake_together).mean())
        latent, label = _latent(classes, recipe.batch, randomness)
        alone, together = judged(generators(latent), label[:, :width])
        central_loss = -softplus(together) if original else softplus(-together)
        _step(makes, softplus(-alone).mean(0).sum() + recipe.coupling * central_loss.mean())
    return generators


def _vflgan(rows: Sequence[Rows], classes: Tensor, recipe: Recipe, seed: int) -> list[nn.Module]:
    """A generator, a critic and an extractor per party, and a shared critic; Wasserstein with gradient penalty."""
    sizes = [own.series[0].numel() for own in rows]
    num_latent = LATENT + classes.shape[1]
    generators: list[nn.Module] = [AttributeGenerators(1, num_latent, size) for size in sizes]
    critics = [AttributeDiscriminators(1, size, recipe.widths) for size in sizes]
    extractors = [
        FeatureExtractor(size + own.label.shape[1], recipe.features) for size, own in zip(sizes, rows, strict=True)
    ]
    shared = SharedDiscriminator(len(rows) * recipe.features, recipe.shared_widths)
    randomness = torch.Generator().manual_seed(torch.initial_seed())
    fast = tuple((module, 1.0) for module in critics)
    slow = tuple((module, 0.5) for module in (*extractors, shared))
    tells, makes = _adam((*fast, *slow), recipe), _adam(tuple((module, 1.0) for module in generators), recipe)

    def kept(number: int, widths: tuple[int, ...]) -> Tensor | None:
        return kept_by_dropout((number, sum(widths)), DROPOUT, randomness)

    def alone(place: int, series: Tensor) -> Tensor:
        return critics[place](series.unsqueeze(1), kept(len(series), recipe.widths)).sum(1)

    def features(place: int, series: Tensor, label: Tensor) -> Tensor:
        return extractors[place](torch.cat([series, label], 1), kept(len(series), (recipe.features,)))

    def together(shown: Tensor) -> Tensor:
        return shared(shown, kept(len(shown), recipe.shared_widths))

    batches = fixed_batches(recipe.batch, seed)(len(rows[0].series))
    for _ in range(recipe.iterations):
        for _ in range(_CRITIC_ROUNDS):
            drawn = next(batches)
            latent, label = _latent(classes, recipe.batch, randomness)
            loss, real_shown, fake_shown = torch.zeros(()), [], []
            for place, own in enumerate(rows):
                real, fake = own.series[drawn].flatten(1), generators[place](latent).detach().flatten(1)
                critic = lambda series, place=place: alone(place, series)  # noqa: E731
                loss = loss + critic(fake).mean() - critic(real).mean() + _penalty(critic, real, fake, randomness)
                real_shown.append(features(place, real, own.label[drawn]))
                fake_shown.append(features(place, fake, label[:, : own.label.shape[1]]))
            both = torch.cat(real_shown, 1), torch.cat(fake_shown, 1)
            loss = loss + together(both[1]).mean() - together(both[0]).mean()
            _step(tells, loss + _penalty(together, *both, randomness))
        latent, label = _latent(classes, recipe.batch, randomness)
        made = [generator(latent).flatten(1) for generator in generators]
        shown = [features(place, own, label[:, : rows[place].label.shape[1]]) for place, own in enumerate(made)]
        loss = -recipe.coupling * together(torch.cat(shown, 1)).mean()
        _step(makes, loss - sum(alone(place, own).mean() for place, own in enumerate(made)))
    return generators


def _penalty(critic: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, randomness: torch.Generator) -> Tensor:
    """Returns the mean squared distance from 1 of the critic's slope between real and synthetic rows."""
    rows = min(len(real), len(fake))
    share = torch.rand((rows, 1), generator=randomness)
    between = (share * real[:rows] + (1 - share) * fake[:rows]).detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return _PENALTY * (slope.norm(dim=1) - 1).square().mean()


def _latent(classes: Tensor, number: int, randomness: torch.Generator) -> tuple[Tensor, Tensor]:
    """Returns noise with classes as the data has them, and these classes."""
    chosen = classes[torch.randint(len(classes), (number,), generator=randomness)]
    return torch.cat([torch.randn(number, LATENT, generator=randomness), chosen], 1), chosen


def _adam(groups: Sequence[tuple[nn.Module, float]], recipe: Recipe) -> torch.optim.Adam:
    parts = [{"params": list(module.parameters()), "lr": share * recipe.learning_rate} for module, share in groups]
    return torch.optim.Adam(parts, betas=BETAS)


def _step(optimiser: torch.optim.Adam, loss: Tensor) -> None:
    parameters = list(chain.from_iterable(group["params"] for group in optimiser.param_groups))
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    optimiser.step()
