"""`pub2priv`: private series from public context.

Idea. A transformer θ_T, trained on public signals and frozen, says what public context knows about every step; what is
learned privately is how series follow it (paper 000). Samples are drawn for public contexts that the caller brings,
never for those of the training series.

Private data is touched by the releases of `spectral` and by one more noisy sum, of products of shapes and contexts
(networks "moments" and "followed"); or by clipped sums of gradients over units: one window of each drawn unit, several
times and noises of it averaged before the clip (networks "projected" and "paper", the diffusion models).

Cost: seconds with the default; the published network takes a second or more per iteration.
Choose it when series follow a public signal (weather, prices, an index) and every series, or window, meets another
stretch of it. Where all series share one stretch, `spectral` already knows what there is to know.
Not to be confused with conditions taken from training rows, as in the paper's own experiments: they would tell who is
in the data.

References: paper 000 (Pub2Priv); Tashiro et al., arXiv:2107.03502 (CSDI); Dockhorn et al., arXiv:2210.09929 (several
noises per series); Abadi et al., arXiv:1607.00133 (DP-SGD).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import nn

from understudy.data import Panel, Schema
from understudy.data.datasets import file_sha256
from understudy.errors import InputError, MissingData
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Event, MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import classes_of
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import require_above_zero, require_one_of
from understudy.synthesizers.pub2priv import drawing, purchases
from understudy.synthesizers.pub2priv.conditions import Conditions
from understudy.synthesizers.pub2priv.denoising import denoising_loss, schedule, train_on_public_data, weights_of
from understudy.synthesizers.pub2priv.followed import FOLLOWED, HOLDS, Followed
from understudy.synthesizers.pub2priv.knowledge import GENERAL, Knowledge, load_pack, pack_from_bytes
from understudy.synthesizers.pub2priv.projected import Projected, denoiser_of
from understudy.synthesizers.pub2priv.published import Published
from understudy.synthesizers.pub2priv.sketched import MOMENTS, Sketched
from understudy.training import DPSGDConfig, Optimisation, Task, UnitBatches, UnitWindows, WindowBatches, adam, train
from understudy.training.networks import meta_device, num_parameters
from understudy.training.plan import MOSTLY_NOISE, noise_ratio
from understudy.training.private_gradient import Loss

TRAINING = "training"  # label under which the gradients are charged
_PUBLIC_RATE = 1e-3  # learning rate where no noise is in the way
_SUMMED = (purchases.AUTO, MOMENTS, FOLLOWED)  # networks that need one noisy sum and no gradients
_CHOICES = {"network": (*_SUMMED, "projected", "paper"), "knowledge": ("pack", "direct", "none")}
_POSITIVE = (
    "iterations", "batch", "draws", "diffusion_steps", "sampling_steps", "width", "heads", "learning_rate", "clip",
    "signals",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Pub2Priv(Synthesizer):
    """Private series from public context.

    Attributes:
        network: "moments" buys a `spectral` release and a regression of shapes on context; "followed" a few numbers
            instead, which say how closely series follow it; "auto" is the second where units are so few that noise
            would drown the first, by public facts. "projected" learns by gradients how series lie along public
            signals, beside such a release; "paper" diffuses whole series by the published network, which wants far
            more units and hours. Options about gradients and diffusion are theirs.
        knowledge: "pack" for θ_T, "direct" for context as it is, "none" for the ablation without context.
        iterations: Private updates.
        batch: Units expected in an iteration; at most the population, and all units where the population is bought.
        draws: Pairs of diffusion time and noise that each drawn window is shown with, averaged before the clip.
        diffusion_steps: Steps of the noise schedule; the paper's 400 in Table 3.
        sampling_steps: Steps of sampling (DDIM); as many as `diffusion_steps` or more means DDPM.
        width, layers: Of the network; "projected" takes 0 layers for a Gaussian alone.
        heads: Of attention along time and channels ("paper"); Table 3 has 8.
        learning_rate: Of Adam; None takes one that suits the noise, which is public.
        ema: Weight of the past in the running average of parameters that is released.
        clip: Most a unit may weigh.
        signals: What each factor is measured along ("projected").
        pack: "general" for the θ_T that comes with the package, or the file of a pack of your own.
        public_context: File of public context over many steps, columns in the order of the schema's: its windows show
            which features of context differ at all, which otherwise has to be bought ("moments").
        public: File of a public table with the same columns and the context beside them, on which the denoiser is
            trained first.
        public_iterations: Updates on the public table.
        seed: Of everything but privacy noise and which windows are drawn.
    """

    name: ClassVar[str] = "pub2priv"
    rehearsed: ClassVar[str] = "iterations"
    network: Literal["auto", "moments", "followed", "projected", "paper"] = "auto"
    knowledge: Literal["pack", "direct", "none"] = "pack"
    iterations: int = 150
    batch: int = 1024
    draws: int = 4
    diffusion_steps: int = 100
    sampling_steps: int = 25
    width: int = 64
    layers: int = 0
    heads: int = 8
    learning_rate: float | None = None
    clip: float = 1.0
    ema: float = 0.9
    signals: int = 3
    pack: str = GENERAL
    public_context: str | None = None
    public: str | None = None
    public_iterations: int = 300
    seed: int = 0

    def __post_init__(self) -> None:
        require_one_of(self, **_CHOICES)
        require_above_zero(self, *_POSITIVE)
        if self.layers < (self.network == "paper") or not 0 <= self.ema < 1:
            raise InputError("layers: at least 1 for the paper's network, else 0; ema: from 0 to below 1.")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """What is bought, then DP-SGD with all that is left if there is any; refuses what public facts rule out."""
        self._check_public_facts(schema)
        bought = purchases.entries(self.network, self.conditions(schema), guarantee)
        if self.network in _SUMMED:
            return SpendingPlan(bought, guarantee)
        config = self._config(schema).calibrated(guarantee, others=[entry.event for entry in bought])
        return SpendingPlan((*bought, PlanEntry(TRAINING, config.plan().event)), guarantee)

    def check_context(self, schema: Schema, context: np.ndarray) -> None:
        """Refuses a public context that is at rest."""
        self.conditions(schema).check_at_rest(context)

    def needs_context(self, schema: Schema) -> bool:
        """Where series of the fit had contexts of their own, which are private, none of them can be a default."""
        return schema.own_contexts and self.knowledge != "none"

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys a regression, or what stands beside gradients and trains; returns what may be public.

        Privacy: unit and neighbours as the schema says. `purchases` and `Sketched.buy` look at private series through
        the grant, and so does `train`, whose clipped sums a unit moves by at most `clip`; for events see `_draw`.
        """
        bought = purchases.buy(self.network, private, grant, lambda stage, share: progress(stage, 0.5 * share))
        schema = private.panel.schema
        core = self.core(schema, bought, followed=any(entry.label == FOLLOWED for entry in grant.plan.entries))
        if isinstance(core, Sketched | Followed):
            public = purchases.public_windows(self.public_context, schema)
            return {**bought, **core.buy(private, grant, public), **drawing.carried(self)}
        config = _charged(grant.plan.event(TRAINING), private.population, self.clip, self._draw(schema))
        model = self._publicly_trained(core, schema)
        windows = UnitWindows(
            core.examples(private.panel, classes_of(private.panel)),
            None if schema.unit.kind == "event" else private.panel.unit,
            config.batches,
            np.random.default_rng(),  # nobody knows it: one unit more would show other windows of all others
        )
        train(
            Task(model=model, loss=self._loss(core), windows=windows),
            config.plan(),
            grant,
            label=TRAINING,
            optimisation=Optimisation(
                make=adam(self._learning_rate(config)), cool_down=self.iterations, average_decay=self.ema or None
            ),
            progress=lambda done, planned: progress("private training", 0.5 + 0.5 * done / planned),
        )
        return {**bought, **weights_of(model, drawing.NETWORK), **drawing.carried(self)}

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Returns a series for each context that the caller brings."""
        return drawing.draw(self, arrays, schema, request)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Says how the gradients' noise compares with what a batch can say, and what is learned from context."""
        learned = self.learned_schema(schema)
        series = self.num_contributions(schema, schema.population.size or 1) / self.influence(schema)
        told = [self._noise_outlook(learned, guarantee, series)]
        if self.knowledge != "none" and not learned.own_contexts:
            told.append(
                "All series share one context, so nothing tells its effect from that of the calendar. Cut windows "
                "(window_steps) to learn how series follow it."
            )
        return tuple(told)

    def _noise_outlook(self, schema: Schema, guarantee: Guarantee, series: float) -> str:
        """Says how loud the noise is beside so many series, as many as one unit moves counting as one."""
        bought = purchases.entries(self.network, self.conditions(schema), guarantee)
        if self.network in _SUMMED:
            error = purchases.mean_error(self.conditions(schema), bought[-1], series)
            what = "every mean product of a shape with its context"
            if bought[-1].label == FOLLOWED:
                what = "how closely a series follows its context, a number for each band of frequencies,"
            return f"Noise moves {what} by about {error:.2g}, where 0.5 is much" + (
                ", so little will be learned from context." if error > 0.25 else "."
            )
        ratio = self._ratio(schema, guarantee)
        return (
            f"{self._num_parameters(schema)} parameters learn in {self.iterations} iterations of "
            f"{self._config(schema).expected_batch:.0f} units; the noise on a summed gradient is {ratio:.2g} times the "
            "largest possible sum" + (", so most of what is learned is noise." if ratio > MOSTLY_NOISE else ".")
        )

    def gradient_noise(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """That of a denoiser; none where products are summed."""
        return None if self.network in _SUMMED else self._ratio(self.learned_schema(schema), guarantee)

    def _ratio(self, learned: Schema, guarantee: Guarantee) -> float:
        config, bought = self._config(learned), purchases.entries(self.network, self.conditions(learned), guarantee)
        noise = config.calibrated(guarantee, others=[entry.event for entry in bought]).noise_multiplier or 0.0
        return noise_ratio(noise, self._num_parameters(learned), config.expected_batch)

    def own_inputs(self) -> Mapping[str, str]:
        """The pack of θ_T and the public tables."""
        inputs = {"pub2priv pack": load_pack(self.pack).sha256} if self.knowledge == "pack" else {}
        tables = {"pub2priv public table": self.public, "pub2priv public context": self.public_context}
        return {**inputs, **{name: file_sha256(file) for name, file in tables.items() if file is not None}}

    def conditions(self, schema: Schema, pack: bytes | None = None) -> Conditions:
        """Returns how context is read; `pack` is the one that a release carries."""
        theta = None
        if self.knowledge == "pack":
            held = load_pack(self.pack) if pack is None else pack_from_bytes(pack)
            theta = Knowledge.of(held)
        return Conditions(schema, theta, self.knowledge == "none")

    def core(
        self, schema: Schema, bought: Mapping[str, np.ndarray], pack: bytes | None = None, *, followed: bool = False
    ) -> Sketched | Followed | Projected | Published:
        """Returns what is summed or diffused, given what was bought; `followed` where that is planned and not yet."""
        conditions = self.conditions(schema, pack)
        if self.network == "paper":
            return Published(conditions, purchases.encoding_of(schema, bought), self.heads)
        if self.network in _SUMMED:
            way = Followed if followed or HOLDS in bought else Sketched
            return way(conditions, purchases.coordinates_of(schema, bought))
        return Projected(conditions, purchases.coordinates_of(schema, bought), self.signals)

    def empty_network(self, core: Projected | Published) -> nn.Module:
        """Returns the network before it learned anything, the same for the same seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return core.network(schedule(self.diffusion_steps), self.width, self.layers)

    def _publicly_trained(self, core: Projected | Published, schema: Schema) -> nn.Module:
        model = self.empty_network(core)
        if self.public is not None:
            panel = purchases.public_panel(self.public, schema)
            train_on_public_data(
                model,
                self._loss(core),
                core.examples(panel, classes_of(panel)),
                iterations=self.public_iterations,
                learning_rate=self.learning_rate or _PUBLIC_RATE,
                seed=self.seed,
            )
        return model

    def _num_parameters(self, schema: Schema) -> int:
        """Returns how many numbers the gradients teach, from public facts."""
        conditions, diffusion = self.conditions(schema), schedule(self.diffusion_steps)
        if self.network != "paper":
            return num_parameters(denoiser_of(conditions, self.signals, diffusion, self.width, self.layers))
        published = Published(conditions, Encoding.of(schema, (), linear_scales(schema, None)), self.heads)
        with meta_device():
            return num_parameters(self.empty_network(published))

    def _loss(self, core: Projected | Published) -> Loss:
        return denoising_loss(schedule(self.diffusion_steps), self.draws, core.loss_weight)

    def _check_public_facts(self, schema: Schema) -> None:
        if not schema.context and self.knowledge != "none":
            raise InputError(
                "knowledge: this schema declares no context, and pub2priv learns how series follow one. Declare "
                "[[context]], use another method, or say knowledge='none' for the ablation without."
            )
        if self.public is not None:
            if not Path(self.public).is_file():
                raise MissingData(f"public: '{self.public}' is not there.")
            purchases.public_panel(self.public, schema)  # what can't be read is told before anything is charged
        windows = purchases.public_windows(self.public_context, schema)
        self.conditions(schema).check_at_rest(windows, "public_context")  # which loads the pack, if there is one

    def _config(self, schema: Schema) -> DPSGDConfig:
        """DP-SGD before its noise is known. Every unit takes part in every iteration where nothing can be amplified."""
        size = schema.population.size
        if size is None or schema.unit.kind == "event":
            rate, expected = 1.0, float(size or 1)
        else:
            rate, expected = min(1.0, self.batch / size), float(min(self.batch, size))
        return DPSGDConfig(
            sampling_rate=rate, iterations=self.iterations, expected_batch=expected, clip_norm=self.clip,
            batches=self._draw(schema),
        )  # fmt: skip

    def _learning_rate(self, config: DPSGDConfig) -> float:
        """Slower where noise is louder: a step that noise decides should be short. Measured on simulated portfolios."""
        if self.learning_rate is not None:
            return self.learning_rate
        noise = (config.noise_multiplier or 0.0) / config.expected_batch
        return _PUBLIC_RATE if self.network == "paper" else float(np.clip(0.0022 / noise, 0.02, 0.1))

    def _draw(self, schema: Schema) -> UnitBatches | WindowBatches:
        """One window of each drawn unit. An event changes windows instead of taking them away, twice as far each."""
        return WindowBatches(2 * schema.unit.max_series) if schema.unit.kind == "event" else UnitBatches()


def _charged(event: Event, population: int, clip: float, draw: UnitBatches | WindowBatches) -> DPSGDConfig:
    """Returns DP-SGD as it was charged, for a population that is known by now."""
    assert isinstance(event, SubsampledGaussian | MixtureOfGaussians)
    return DPSGDConfig(
        sampling_rate=event.sampling_rate, iterations=event.iterations, clip_norm=clip,
        expected_batch=event.sampling_rate * population, noise_multiplier=event.noise_multiplier, batches=draw,
    )  # fmt: skip
