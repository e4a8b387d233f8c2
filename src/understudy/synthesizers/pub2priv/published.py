"""Pub2Priv as published: a diffusion over whole series, conditioned on z = θ_T(c), trained by DP-SGD.

Reference: Pub2Priv, section 5.2 (conditional diffusion) and Algorithm 1 (DP-SGD), with the hyper-parameters of Table 3.
Its departures are about privacy: the unit is the schema's, one window of a unit per iteration; series are scaled by
released distributions, not by their own minimum and maximum; conditions are the caller's.

Notation: x series, c context, z = θ_T(c) [step, condition], t diffusion time, ε noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data import Panel
from understudy.data.channels import num_codes
from understudy.nn.diffusion import Diffusion
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
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
from understudy.synthesizers.sampling import sample_classes
from understudy.training import DPSGDConfig, Optimisation, Task, UnitWindows, adam, train
from understudy.training.batches import Batch
from understudy.training.networks import load_arrays, meta_device, num_parameters, to_arrays
from understudy.training.plan import MOSTLY_NOISE, TRAINING, charged_config, noise_ratio, planned_noise, training_plan

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
    """Samples x [window, *shape], one for each condition (Eq. 6); by DDPM from as many steps as in the schedule."""
    generator = torch.Generator().manual_seed(seed)
    size = max(1, _CHUNK_ENTRIES // max(1, int(np.prod(shape))))
    parts = [np.zeros((0, *shape))]
    for first in range(0, len(condition), size):
        given = torch.from_numpy(np.array(condition[first : first + size])).float()
        start, predict = torch.randn((len(given), *shape), generator=generator), partial(model, z=given)
        if num_steps >= diffusion.steps:
            sampled = diffusion.ancestral(predict, start, generator)
        else:
            sampled = diffusion.implicit(predict, start, num_steps)
        parts.append(sampled.double().numpy())
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class PublishedDiffusion:
    """θ_DM over working series [step, channel], with categories as groups of one-hot channels.

    `theta` is θ_T; None takes context as it is.
    """

    context: Context
    theta: Knowledge | None
    recipe: Recipe
    seed: int

    def plan(self, guarantee: Guarantee) -> SpendingPlan:
        """Returns the distributions, then DP-SGD with the rest; on all units where sampling can't amplify."""
        schema, recipe = self.context.schema, self.recipe
        size, rate = schema.population.size, 1.0
        if size is not None and schema.unit.kind != "event":
            rate = min(1.0, recipe.batch / size)
        config = DPSGDConfig(
            sampling_rate=rate, iterations=recipe.iterations, expected_batch=rate * (size or 1),
            clip_norm=recipe.clipping_norm,
            max_windows=2 * schema.unit.max_series if schema.unit.kind == "event" else None,
        )  # fmt: skip
        return training_plan(config, facts.shares_of(schema, marginals=True), guarantee)

    def network(self) -> nn.Module:
        """Returns θ_DM before training, the same for the same seed; it starts by predicting no noise."""
        labels, columns = num_labels(self.context.schema), len(self.context.columns())
        own = columns if self.theta is None else self.theta.transformer.shape["width"]
        condition = own * (columns > 0 and not self.context.ignored) + labels * (labels > 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            shape = {"width": self.recipe.width, "depth": self.recipe.layers, "num_heads": self.recipe.heads}
            return ConditionalDenoiser(condition=condition, **shape)

    def outlook(self, guarantee: Guarantee) -> str:
        """Says how the noise on a gradient compares with what a batch can say."""
        number, expected, ratio = self.size_and_noise(guarantee)
        return (
            f"{number} parameters learn in {self.recipe.iterations} iterations of {expected:.0f} units; "
            f"the noise on a summed gradient is {ratio:.2g} times the largest possible sum"
            + (", so mostly noise is learned." if ratio > MOSTLY_NOISE else ".")
        )

    def size_and_noise(self, guarantee: Guarantee) -> tuple[int, float, float]:
        """Returns the parameters, the units expected in a batch, and the noise on a sum over the largest possible."""
        plan, schema = self.plan(guarantee), self.context.schema
        config = charged_config(plan.event(TRAINING), schema.population.size or 1, 1.0)
        with meta_device():
            number = num_parameters(self.network())
        return number, config.expected_batch, noise_ratio(planned_noise(plan), number, config.expected_batch)

    def encoding(self, arrays: Mapping[str, np.ndarray]) -> Encoding:
        """Returns how series are scaled, by released distributions."""
        return Encoding.of(self.context.schema, Facts.from_arrays(arrays).marginals, arrays[LINEAR])

    def examples(self, panel: Panel, encoding: Encoding) -> dict[str, np.ndarray]:
        """Returns what the network is trained on: series, which entries were observed, and conditions.

        Privacy: private if the panel is; a row follows from its own series, its own context and released arrays.
        """
        widths = [num_codes(channel) or 1 for channel in panel.schema.channels]
        return {
            "x": encoding.series(panel, slice(None)),
            "known": np.repeat(~np.isnan(panel.values), widths, axis=2),
            "condition": self.conditions(panel.context, classes_of(panel)),
        }

    def conditions(self, context: np.ndarray | None, classes: np.ndarray) -> np.ndarray:
        """Returns z at every step [series, step, condition], and the class where there are several."""
        number, steps = num_labels(self.context.schema), self.context.schema.num_steps
        if context is None or self.context.ignored:
            z = np.zeros((len(classes), steps, 0), dtype=np.float32)
        else:
            shared = context.strides[0] == 0  # one for all series
            windows = self.context.windows(context[:1] if shared else context)
            z = np.nan_to_num(windows) if self.theta is None else self.theta.embed(windows)
            z = np.broadcast_to(z, (len(classes), *z.shape[1:])) if shared else z
        if number == 1:
            return z
        own = np.broadcast_to(np.eye(number, dtype=np.float32)[classes][:, None], (len(classes), steps, number))
        return np.concatenate([z, own], axis=2)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Releases the distributions that series are scaled by, runs Algorithm 1, and returns both."""
        bare, schema, recipe, model = private.without_context(), private.panel.schema, self.recipe, self.network()
        linear = linear_scales(bare.schema, None)
        released = {**facts.buy(bare, grant, linear).to_arrays(), LINEAR: linear}
        charged = grant.plan.event(TRAINING)
        config = charged_config(charged, private.population, recipe.clipping_norm)
        windows = UnitWindows(
            self.examples(private.panel, self.encoding(released)),
            None if schema.unit.kind == "event" else private.panel.unit,
            np.random.default_rng(),  # secret: with a known stream one unit more shows other windows of all others
            config.max_windows,
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
        schema, recipe, released, rng = self.context.schema, self.recipe, Facts.from_arrays(arrays), request.rng
        encoding, classes, model = self.encoding(arrays), sample_classes(released, request), self.network()
        load_arrays(model, arrays, NETWORK)
        series = denoise(
            model.train(False), schedule(recipe.diffusion_steps), self.conditions(request.context, classes),
            (schema.num_steps, encoding.num_channels), recipe.sampling_steps, int(rng.integers(2**62)),
        )  # fmt: skip
        lengths = released.sample_lengths(schema, request.num_series, rng)
        values = encoding.values(series)
        values[released.sample_missing(schema, encoding.ranked(series), lengths, rng)] = np.nan
        single = released.marginals[schema.num_channels :]
        ranks = rng.random((request.num_series, len(single)))
        static = static_values(schema, classes, ranks, single, released.static_missing, rng)
        return request.panel(schema, values, lengths, static)
