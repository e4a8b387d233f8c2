"""Pub2Priv as published: a diffusion over whole series, conditioned on z = θ_T(c), trained by DP-SGD.

Reference: Pub2Priv, section 5.2 (conditional diffusion) and Algorithm 1 (DP-SGD), with the hyper-parameters of Table 3.
Its departures are about privacy: the unit is the schema's, one window of a unit per iteration; series are scaled by
released distributions, not by their own minimum and maximum; conditions are the caller's.

Notation: x series, c context, z = θ_T(c) [step, condition], t diffusion time, ε noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data import Panel, Schema
from understudy.data.channels import num_codes
from understudy.nn.diffusion import Diffusion
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import classes_of, num_labels, static_values
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import Progress, SampleRequest
from understudy.synthesizers.pub2priv.context import Context
from understudy.synthesizers.pub2priv.knowledge import Knowledge
from understudy.synthesizers.pub2priv.networks import ConditionalDenoiser
from understudy.synthesizers.pub2priv.recipe import Recipe
from understudy.training import DPSGDConfig, Optimisation, Task, UnitBatches, UnitWindows, WindowBatches, adam, train
from understudy.training.batches import Batch
from understudy.training.networks import load_arrays, meta_device, num_parameters, to_arrays
from understudy.training.plan import MOSTLY_NOISE, TRAINING, charged_config, noise_ratio

NETWORK, LINEAR = "network.", "linear"  # prefix of the released parameters; which channels are scaled linearly
_PAPER_STEPS = 400  # of Table 3, whose total noise is kept when there are fewer steps
_CHUNK_ENTRIES = 1 << 13  # more leave the cache: at width 64 half as slow again


def schedule(steps: int) -> Diffusion:
    """Returns the schedule of Table 3, squeezed to another number of steps: the total noise stays."""
    pace = _PAPER_STEPS / steps
    return Diffusion(steps=steps, first_beta=min(1e-4 * pace, 0.5), last_beta=min(0.2 * pace, 0.999))


def denoising_loss(diffusion: Diffusion) -> Callable[[nn.Module, Batch, torch.Generator], Tensor]:
    """Returns ‖ε − θ_DM(x_t, t | z)‖² of each window, the mean over entries that were observed (Eq. 7)."""

    def loss(model: nn.Module, batch: Batch, generator: torch.Generator) -> Tensor:
        x, known, z = batch["x"], batch["known"], batch["condition"].to(batch["x"].dtype)
        time = diffusion.draw_times(len(x), generator)
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        predicted = model(diffusion.noised(x, noise, time), time, z)  # x_t of Eq. 2
        error = torch.where(known, (noise - predicted).square(), 0.0).flatten(1)
        return error.sum(1) / known.flatten(1).sum(1).clamp(min=1)

    return loss


@torch.no_grad()
def denoise(
    model: nn.Module, diffusion: Diffusion, condition: np.ndarray, shape: tuple[int, ...], num_steps: int, seed: int
) -> np.ndarray:
    """Samples x [window, *shape], one for each condition (Eq. 6), in float64.

    Args:
        num_steps: Of DDIM; at least those of the schedule means DDPM.
    """
    generator = torch.Generator().manual_seed(seed)
    size = max(1, _CHUNK_ENTRIES // max(1, int(np.prod(shape))))
    parts = [np.zeros((0, *shape))]
    for first in range(0, len(condition), size):
        given = torch.from_numpy(np.array(condition[first : first + size])).float()
        start = torch.randn((len(given), *shape), generator=generator)

        def predict(x: Tensor, time: Tensor, given: Tensor = given) -> Tensor:
            noise: Tensor = model(x, time, given)
            return noise

        if num_steps >= diffusion.steps:
            sampled = diffusion.ancestral(predict, start, generator)
        else:
            sampled = diffusion.implicit(predict, start, num_steps)
        parts.append(sampled.double().numpy())
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class PublishedDiffusion:
    """θ_DM over working series [step, channel], with categories as groups of one-hot channels."""

    context: Context
    theta: Knowledge | None  # None takes context as it is
    recipe: Recipe
    seed: int

    @property
    def schema(self) -> Schema:
        """The contract of what is learned from."""
        return self.context.schema

    def encoding(self, arrays: Mapping[str, np.ndarray]) -> Encoding:
        """Returns how series are scaled, by released distributions."""
        return Encoding.of(self.schema, Facts.from_arrays(arrays).marginals, arrays[LINEAR])

    def network(self) -> nn.Module:
        """Returns θ_DM before training, the same for the same seed; it starts by predicting no noise."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return ConditionalDenoiser(
                condition=self._num_conditions(), width=self.recipe.width, depth=self.recipe.layers,
                num_heads=self.recipe.heads,
            )  # fmt: skip

    def num_parameters(self) -> int:
        """Returns the number of parameters of θ_DM, from public facts."""
        with meta_device():
            return num_parameters(self.network())

    def noise_ratio(self, guarantee: Guarantee) -> float:
        """Returns the noise on a summed gradient over the largest possible sum, from public facts."""
        config = calibrated(self.schema, self.recipe, guarantee)
        return noise_ratio(config.noise_multiplier or 0.0, self.num_parameters(), config.expected_batch)

    def outlook(self, guarantee: Guarantee) -> str:
        """Says how the noise on a gradient compares with what a batch can say."""
        ratio, expected = self.noise_ratio(guarantee), sgd_config(self.schema, self.recipe).expected_batch
        return (
            f"{self.num_parameters()} parameters learn in {self.recipe.iterations} iterations of {expected:.0f} units; "
            f"the noise on a summed gradient is {ratio:.2g} times the largest possible sum"
            + (", so mostly noise is learned." if ratio > MOSTLY_NOISE else ".")
        )

    def examples(self, panel: Panel, classes: np.ndarray, encoding: Encoding) -> dict[str, np.ndarray]:
        """Returns what the network is trained on: series, which entries were observed, and conditions.

        Privacy: private if the panel is; a row follows from its own series, its own context and released arrays.
        """
        widths = [num_codes(channel) or 1 for channel in self.schema.channels]
        return {
            "x": encoding.series(panel, slice(None)),
            "known": np.repeat(~np.isnan(panel.values), widths, axis=2),
            "condition": self.conditions(panel.context, classes),
        }

    def conditions(self, context: np.ndarray | None, classes: np.ndarray) -> np.ndarray:
        """Returns z at every step [series, step, condition], and the class where there are several."""
        if context is None or self.context.ignored:
            z = np.zeros((len(classes), self.schema.num_steps, 0), dtype=np.float32)
        elif context.strides[0] == 0:  # one for all series
            z = self._embedded(context[:1])
            z = np.broadcast_to(z, (len(classes), *z.shape[1:]))
        else:
            z = self._embedded(context)
        number = num_labels(self.schema)
        if number == 1:
            return z
        own = np.broadcast_to(np.eye(number, dtype=np.float32)[classes][:, None], (*z.shape[:2], number))
        return np.concatenate([z, own], axis=2)

    def _embedded(self, context: np.ndarray) -> np.ndarray:
        windows = self.context.windows(context)
        return np.nan_to_num(windows) if self.theta is None else self.theta.embed(windows)

    def _num_conditions(self) -> int:
        labels, columns = num_labels(self.schema), len(self.context.columns())
        own = columns if self.theta is None else self.theta.transformer.shape["width"]
        return own * (columns > 0 and not self.context.ignored) + labels * (labels > 1)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Releases the distributions that series are scaled by, runs Algorithm 1, and returns both."""
        bare, schema, recipe, model = private.without_context(), self.schema, self.recipe, self.network()
        linear = linear_scales(bare.schema, None)
        bought = facts.buy(bare, grant, linear)
        released = {**bought.to_arrays(), LINEAR: linear}
        charged = grant.plan.event(TRAINING)
        config = charged_config(charged, private.population, recipe.clipping_norm, unit_sampling(schema))
        windows = UnitWindows(
            self.examples(private.panel, classes_of(private.panel), self.encoding(released)),
            None if schema.unit.kind == "event" else private.panel.unit,
            config.batches,
            np.random.default_rng(),  # secret: with a known stream one unit more shows other windows of all others
        )
        train(
            Task(model=model, loss=denoising_loss(schedule(recipe.diffusion_steps)), windows=windows),
            config,
            grant,
            label=TRAINING,
            optimisation=Optimisation(make=adam(recipe.learning_rate), average_decay=recipe.ema or None),
            progress=lambda done, planned: progress("private training", 0.5 + 0.5 * done / planned),
        )
        return {**released, **to_arrays(model, NETWORK)}

    def panel(self, arrays: Mapping[str, np.ndarray], request: SampleRequest) -> Panel:
        """Samples whole series; static columns are independent of them given the class."""
        released, encoding = Facts.from_arrays(arrays), self.encoding(arrays)
        schema, rng, number = self.schema, request.rng, request.num_series
        classes = np.full(number, request.label if request.label is not None else 0)
        if request.label is None:
            share = released.label_share
            classes = rng.choice(len(share), size=number, p=share / share.sum())
        model, recipe = self.network(), self.recipe
        load_arrays(model, arrays, NETWORK)
        series = denoise(
            model.train(False), schedule(recipe.diffusion_steps), self.conditions(request.context, classes),
            (schema.num_steps, encoding.num_channels), recipe.sampling_steps, int(rng.integers(2**62)),
        )  # fmt: skip
        lengths = released.sample_lengths(schema, number, rng)
        values = encoding.values(series)
        values[released.sample_missing(schema, encoding.ranked(series), lengths, rng)] = np.nan
        single = released.marginals[schema.num_channels :]
        ranks = rng.random((number, len(single)))
        static = static_values(schema, classes, ranks, single, released.static_missing, rng)
        return request.panel(schema, values, lengths, static)


def plan(schema: Schema, recipe: Recipe, guarantee: Guarantee) -> SpendingPlan:
    """Returns the distributions and DP-SGD with all that is left of the guarantee."""
    training = PlanEntry(TRAINING, calibrated(schema, recipe, guarantee).event)
    return SpendingPlan((*fact_entries(schema, guarantee), training), guarantee)


def fact_entries(schema: Schema, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
    """Returns the distributions that are released before training."""
    shares = facts.shares_of(schema, marginals=True)
    return tuple(PlanEntry(label, Gaussian(noise)) for label, noise in noise_multipliers(guarantee, shares).items())


def calibrated(schema: Schema, recipe: Recipe, guarantee: Guarantee) -> DPSGDConfig:
    """Returns DP-SGD with the noise that all of the guarantee but the distributions leaves."""
    others = [entry.event for entry in fact_entries(schema, guarantee)]
    return sgd_config(schema, recipe).calibrated(guarantee, others=others)


def sgd_config(schema: Schema, recipe: Recipe) -> DPSGDConfig:
    """Returns DP-SGD without its noise; every unit is in every batch where sampling can't amplify."""
    size = schema.population.size
    if size is None or schema.unit.kind == "event":
        rate, expected = 1.0, float(size or 1)
    else:
        rate, expected = min(1.0, recipe.batch / size), float(min(recipe.batch, size))
    return DPSGDConfig(
        sampling_rate=rate, iterations=recipe.iterations, expected_batch=expected, clip_norm=recipe.clipping_norm,
        batches=unit_sampling(schema),
    )  # fmt: skip


def unit_sampling(schema: Schema) -> UnitBatches | WindowBatches:
    """Returns the batch sampling: one window of each unit. An event changes windows, twice as far as removing them."""
    return WindowBatches(2 * schema.unit.max_series) if schema.unit.kind == "event" else UnitBatches()
