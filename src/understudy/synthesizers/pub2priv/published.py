"""Pub2Priv as published: a diffusion over whole series, conditioned on z = θ_T(c), trained by DP-SGD.

Reference: Pub2Priv, section 5.2 (conditional diffusion) and Algorithm 1 (DP-SGD), with the hyper-parameters of Table 3.
Its departures are about privacy: the unit is the schema's, one window of a unit per iteration; series are scaled by
released distributions, not by their own minimum and maximum; conditions are the caller's.

θ_DM is in the manner of CSDI (Tashiro et al., arXiv:2107.03502v2, Appendix E).

Notation: x series, c context, z = θ_T(c) [step, condition], t diffusion time, ε noise.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from understudy.data import Panel
from understudy.data.channels import num_codes
from understudy.nn.attention import TimeEmbedding
from understudy.nn.diffusion import Diffusion, Prediction
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import classes_of, num_labels
from understudy.statistics.encoding import WORKING_BOUND, Encoding
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import Progress, SampleRequest
from understudy.synthesizers.pub2priv.context import Context
from understudy.synthesizers.pub2priv.knowledge import Knowledge, TwoAxisLayer, plane_positions
from understudy.synthesizers.pub2priv.recipe import Recipe
from understudy.synthesizers.sampling import sample_classes
from understudy.training import DPSGDConfig, Optimisation, adam
from understudy.training.batches import Batch
from understudy.training.loop import fit_network, foretold
from understudy.training.networks import load_arrays, to_arrays
from understudy.training.plan import TRAINING, charged_config, training_plan
from understudy.training.private_gradient import Loss

NETWORK = "network."  # prefix of the released parameters
_PAPER_STEPS = 400  # of Table 3, whose total noise is kept when there are fewer steps
_CHUNK_ENTRIES = 1 << 13  # more leave the cache: at width 64 half as slow again


class ConditionalBlock(nn.Module):
    """Returns the next residual stream and a skip contribution, both [unit, step, channel, width]."""

    def __init__(self, width: int, side: int, num_heads: int, feed_forward: int) -> None:
        super().__init__()
        self.time = nn.Linear(width, width)
        self.mix = TwoAxisLayer(width, num_heads, feed_forward)
        self.widen = nn.Linear(width, 2 * width)
        self.condition = nn.Linear(side, 2 * width)
        self.project_out = nn.Linear(width, 2 * width)

    def forward(self, x: Tensor, side: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        """Args: `side` [unit, step, channel, side] and the embedded `time` [unit, width]."""
        hidden = self.mix(x + self.time(time)[:, None, None])
        gate, value = (self.widen(hidden) + self.condition(side)).chunk(2, 3)
        residual, skip = self.project_out(torch.sigmoid(gate) * torch.tanh(value)).chunk(2, 3)
        return (x + residual) / math.sqrt(2), skip


class ConditionalDenoiser(nn.Module):
    """Predicts the noise in x [unit, step, channel] at diffusion time [unit], given z [unit, step, condition].

    Starts by predicting zero, so that the first losses are one. Table 3 of the paper: four layers, width 256.
    """

    def __init__(
        self, *, condition: int, width: int = 256, depth: int = 4, num_heads: int = 8, feed_forward: int = 64
    ) -> None:
        super().__init__()
        self.codes = 64  # width of the code of step and channel
        self.embed = nn.Linear(1, width)
        self.time = TimeEmbedding(width)
        side = condition + self.codes
        self.blocks = nn.ModuleList(ConditionalBlock(width, side, num_heads, feed_forward) for _ in range(depth))
        self.skip = nn.Linear(width, width)
        self.predict = nn.Linear(width, 1)
        nn.init.zeros_(self.predict.weight)
        nn.init.zeros_(self.predict.bias)

    def forward(self, x: Tensor, time: Tensor, z: Tensor) -> Tensor:
        """Returns the noise [unit, step, channel]."""
        hidden = functional.relu(self.embed(x.unsqueeze(3)))
        shape = (*z.shape[:2], x.shape[2], -1)
        codes = plane_positions(z.shape[1], x.shape[2], self.codes).to(z)
        side = torch.cat([z.unsqueeze(2).expand(shape), codes.expand(shape)], dim=3)  # of every entry
        embedded, skips = functional.silu(self.time(time)), torch.zeros_like(hidden)
        for block in self.blocks:
            hidden, skip = block(hidden, side, embedded)
            skips = skips + skip
        hidden = functional.relu(self.skip(skips / math.sqrt(len(self.blocks))))
        output: Tensor = self.predict(hidden).squeeze(3)
        return output


def schedule(steps: int) -> Diffusion:
    """Returns the schedule of Table 3, squeezed to another number of steps: the total noise stays."""
    pace = _PAPER_STEPS / steps
    return Diffusion(steps=steps, first_beta=min(1e-4 * pace, 0.5), last_beta=min(0.2 * pace, 0.999))


def denoising_loss(diffusion: Diffusion, predicts: Prediction = "noise") -> Loss:
    """Returns ‖ε − θ_DM(x_t, t | z)‖² of each window, the mean over entries that were observed (Eq. 7)."""

    def loss(model: nn.Module, batch: Batch, generator: torch.Generator) -> Tensor:
        x, known, z = batch["x"], batch["known"], batch["condition"].to(batch["x"].dtype)
        time = diffusion.draw_times(len(x), generator)
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        predicted = model(diffusion.noised(x, noise, time), time, z)  # x_t of Eq. 2
        error = torch.where(known, (diffusion.target(predicts, x, noise, time) - predicted).square(), 0.0).flatten(1)
        return error.sum(1) / known.flatten(1).sum(1).clamp(min=1)

    return loss


@torch.no_grad()
def denoise(model: nn.Module, recipe: Recipe, condition: np.ndarray, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Samples x [window, *shape], one for each condition (Eq. 6); by DDPM from as many steps as in the schedule."""
    generator, diffusion = torch.Generator().manual_seed(seed), schedule(recipe.diffusion_steps)
    limit = WORKING_BOUND if recipe.clipped else math.inf
    size, parts = max(1, _CHUNK_ENTRIES // max(1, int(np.prod(shape)))), [np.zeros((0, *shape))]
    for first in range(0, len(condition), size):
        given = torch.from_numpy(np.array(condition[first : first + size])).float()
        start = torch.randn((len(given), *shape), generator=generator)

        def predict(noisy: Tensor, time: Tensor, z: Tensor = given) -> Tensor:
            return diffusion.noise_of(recipe.predicts, model(noisy, time, z), noisy, time)

        if recipe.sampling_steps >= diffusion.steps:
            sampled = diffusion.ancestral(predict, start, generator, limit)
        else:
            sampled = diffusion.implicit(predict, start, recipe.sampling_steps, limit)
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
        """Returns the distributions, then DP-SGD with the rest."""
        return training_plan(self._config, facts.shares_of(self.context.schema, marginals=True), guarantee)

    @property
    def _config(self) -> DPSGDConfig:
        """DP-SGD before its noise is known; on all units where sampling can't amplify.

        An event changes windows, which moves a sum twice as far as taking them away.
        """
        recipe, schema, rate = self.recipe, self.context.schema, 1.0
        size = schema.population.size
        if size is not None and schema.unit.kind != "event":
            rate = min(1.0, recipe.batch / size)
        return DPSGDConfig(
            sampling_rate=rate, iterations=recipe.iterations, expected_batch=rate * (size or 1),
            clipping_norm=recipe.clipping_norm,
            max_windows=2 * schema.unit.max_series if schema.unit.kind == "event" else None,
        )  # fmt: skip

    def foretold(self, guarantee: Guarantee) -> tuple[float, str]:
        """Returns the ratio of the gradients' noise to the largest possible sum, and words for it."""
        return foretold(self.plan(guarantee), self._config.expected_batch, self.network)

    def network(self) -> nn.Module:
        """Returns θ_DM before training, the same for the same seed; it starts by predicting no noise."""
        labels, columns = num_labels(self.context.schema), len(self.context.columns())
        own = columns if self.theta is None else self.theta.transformer.shape["width"]
        condition = own * (columns > 0 and not self.context.ignored) + labels * (labels > 1)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            shape = {"width": self.recipe.width, "depth": self.recipe.layers, "num_heads": self.recipe.heads}
            return ConditionalDenoiser(condition=condition, **shape)

    def encoding(self, arrays: Mapping[str, np.ndarray]) -> Encoding:
        """Returns how series are scaled, by released distributions."""
        return Encoding.of(self.context.schema, Facts.from_arrays(arrays).marginals, np.zeros((0, 2)))

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
        bare, recipe, model = private.without_context(), self.recipe, self.network()
        released = facts.buy(bare, grant).to_arrays()
        charged = grant.plan.event(TRAINING)
        fit_network(
            model,
            denoising_loss(schedule(recipe.diffusion_steps), recipe.predicts),
            self.examples(private.panel, self.encoding(released)),
            private,
            charged_config(charged, private.population, recipe.clipping_norm),
            grant,
            optimisation=Optimisation(make=adam(recipe.learning_rate), average_decay=recipe.ema or None),
            progress=progress,
        )
        return {**released, **to_arrays(model, NETWORK)}

    def panel(self, arrays: Mapping[str, np.ndarray], request: SampleRequest) -> Panel:
        """Samples whole series; static columns are independent of them given the class."""
        schema, recipe, released = self.context.schema, self.recipe, Facts.from_arrays(arrays)
        encoding, classes, model = self.encoding(arrays), sample_classes(released, request), self.network()
        load_arrays(model, arrays, NETWORK)
        z, shape = self.conditions(request.context, classes), (schema.num_steps, encoding.num_channels)
        series = denoise(model.train(False), recipe, z, shape, int(request.rng.integers(2**62)))
        values, scores = encoding.values(series), encoding.ranked(series)
        return request.panel(schema, *released.completed(schema, values, scores, classes, None, request.rng))
