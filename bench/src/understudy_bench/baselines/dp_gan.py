"""`dp-gan`: a Wasserstein GAN whose critic is trained with private gradients.

Idea. A critic tells real series from generated ones and learns by DP-SGD; the generator learns from the critic alone,
which is post-processing (Xie et al.). Its weights are kept small, as in the first Wasserstein GAN.

Private data is touched by the small releases of `frame.facts` and by clipped sums of gradients of the critic: one
unit's loss is D(generated) − D(own series), a pair, so that both sides share one clip.
Cost: a minute. Choose it to compare with.
Not to be confused with public codes of DP-GAN, of which one noises gradients of whole batches that nobody clipped,
and another clips averages of eight rows and accounts for them as if one row could not move such an average twice as
far.

References: Xie et al., arXiv:1802.06739 (DP-GAN); Arjovsky et al., arXiv:1701.07875 (WGAN); Abadi et al.,
arXiv:1607.00133 (DP-SGD).
"""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from understudy.data import Panel, Schema
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.facts import Facts, facts_of
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import require_above_zero
from understudy.training import DPSGDConfig, Optimisation, Task, UnitWindows, adam, train
from understudy.training.batches import Batch
from understudy.training.networks import meta_device, num_parameters
from understudy.training.plan import TRAINING, charged_config, noise_ratio
from understudy_bench.baselines import ads_gan, rows
from understudy_bench.baselines.rows import Layout, generated, scored

_BOUGHT = 0.1  # share of the progress that purchases take


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Networks and loop: public numbers, none of which changes a guarantee by itself.

    Attributes:
        width: Of hidden layers.
        iterations: Updates of the critic.
        batch: Units expected in an iteration.
        rounds: Updates of the critic for one of the generator.
        weight_bound: What every weight of the critic is kept within.
        critic_rate, generator_rate: Learning rates.
        clipping_norm: The most one unit may weigh in a sum of gradients.
    """

    width: int = 64
    iterations: int = 300
    batch: int = 512
    rounds: int = 5
    weight_bound: float = 0.1
    critic_rate: float = 1e-3
    generator_rate: float = 1e-3
    clipping_norm: float = 1.0

    def __post_init__(self) -> None:
        require_above_zero(self, *vars(self))


@dataclass(frozen=True, kw_only=True)
class DpGan(Synthesizer):
    """DP-GAN for series.

    Attributes:
        mode: "dp", or "ads-gan", which protects nobody and says so.
        recipe: Networks and loop.
        seed: Of the networks' first weights.
    """

    name: ClassVar[str] = "dp-gan"
    rehearsed: ClassVar[str] = "recipe.iterations"
    whole_windows: ClassVar[bool] = True
    mode: Literal["dp", "ads-gan"] = "dp"
    recipe: Recipe = field(default_factory=Recipe)
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.recipe, dict):  # options of a release that was loaded
            object.__setattr__(self, "recipe", Recipe(**self.recipe))
        if self.mode not in ("dp", "ads-gan"):
            raise InputError(f"mode: one of dp, ads-gan is expected, got '{self.mode}'.")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """For series that are not cut."""
        return self._plan(schema, self._config(schema), guarantee)

    def planned(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Facts, then DP-SGD with all that is left; an event is priced by the windows it can take away."""
        return self._plan(self.learned_schema(schema), self._config(schema), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys the facts, trains the critic privately and the generator on it.

        Privacy: unit and neighbours as the schema says. `rows.buy_facts` and `train` look at private series.
        """
        schema = private.panel.schema
        bought = rows.buy_facts(private, grant)
        layout = Layout.of(schema, bought)
        if self.mode == "ads-gan":
            return self._learn_without_privacy(private, grant, layout, bought, progress)
        contest = Contest(layout, bought, self.recipe, self.seed)
        config = charged_config(grant.plan.event(TRAINING), private.population, self.recipe.clipping_norm)
        unit = None if schema.unit.kind == "event" else private.panel.unit
        train(
            Task(
                model=contest.critic,
                loss=contest.private_loss,
                windows=UnitWindows(layout.rows(private), unit, np.random.default_rng(), config.max_windows),
                after_iteration=contest.after_iteration,
            ),
            config,
            grant,
            label=TRAINING,
            optimisation=Optimisation(make=adam(self.recipe.critic_rate)),
            progress=lambda done, planned: progress("private training", _BOUGHT + (1 - _BOUGHT) * done / planned),
        )
        return rows.arrays_of(bought, layout, contest.generator, self.seed)

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Returns series of the generator."""
        if self.mode == "ads-gan":
            return ads_gan.draw(arrays, schema, request)
        return rows.draw(arrays, schema, request, self.recipe.width)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Says first that nobody is protected, where that is so."""
        return (f"Not private: {ads_gan.NOT_PRIVATE}.",) if self.mode == "ads-gan" else ()

    def gradient_noise(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """That of the critic."""
        learned, config = self.learned_schema(schema), self._config(schema)
        if self.mode == "ads-gan":
            return None
        event = self._plan(learned, config, guarantee).event(TRAINING)
        layout = Layout.of(learned, facts_of([], np.ones(1), np.zeros(0), np.zeros((0, 1)), np.zeros(0)))
        with meta_device():
            number = num_parameters(layout.critic(self.recipe.width, self.seed))
        drawn = config.sampling_rate * self.num_contributions(schema, schema.population.size or 1)
        return noise_ratio(getattr(event, "noise_multiplier", 0.0), number, drawn)

    def _learn_without_privacy(
        self, private: PrivateSeries, grant: Grant, layout: Layout, bought: Facts, progress: Progress
    ) -> dict[str, np.ndarray]:
        grant.without_privacy(TRAINING)
        held, pool = layout.rows(private), private.population
        told = lambda share: progress("training", _BOUGHT + (1 - _BOUGHT) * share)  # noqa: E731
        return ads_gan.arrays_of(layout, bought, held, self.recipe, pool, self.seed, told)

    def _plan(self, learned: Schema, config: DPSGDConfig, guarantee: Guarantee) -> SpendingPlan:
        if self.mode == "ads-gan":
            return ads_gan.plan(learned, guarantee)
        entries = rows.fact_entries(learned, guarantee)
        event = config.calibrated(guarantee, others=[entry.event for entry in entries]).event
        return SpendingPlan((*entries, PlanEntry(TRAINING, event)), guarantee)

    def _config(self, schema: Schema) -> DPSGDConfig:
        """DP-SGD before its noise is known; everybody in every iteration where the population is still to be bought."""
        size = schema.population.size
        contributions = None if size is None else self.num_contributions(schema, size)
        return DPSGDConfig(
            sampling_rate=1.0 if contributions is None else min(1.0, self.recipe.batch / contributions),
            iterations=self.recipe.iterations,
            expected_batch=self.recipe.batch,
            clipping_norm=self.recipe.clipping_norm,
            max_windows=self.influence(schema) if schema.unit.kind == "event" else None,
        )


class Contest:
    """A critic against a generator."""

    def __init__(self, layout: Layout, bought: Facts, recipe: Recipe, seed: int) -> None:
        self.critic, self.generator = layout.critic(recipe.width, seed + 1), layout.generator(recipe.width, seed)
        self._layout, self._bought, self._recipe = layout, bought, recipe
        self._optimiser = torch.optim.Adam(self.generator.parameters(), lr=recipe.generator_rate, betas=(0.5, 0.9))
        self._rng, self._source = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        self._keep_small()

    def private_loss(self, model: nn.Module, batch: Batch, source: torch.Generator) -> Tensor:
        """Returns D(generated) − D(real), a number for each row.

        Privacy: a row's number follows from that row, its class and random numbers; the generator is a constant here.
        """
        with torch.no_grad():
            fake = generated(self.generator, batch["class"], source)
        return scored(model, fake, batch["class"]) - scored(model, batch["row"], batch["class"])  # Xie et al., Alg. 1

    def after_iteration(self, iteration: int) -> None:
        """Keeps the critic's weights small and, every few iterations, lets the generator learn from it."""
        self._keep_small()
        if iteration % self._recipe.rounds:
            return
        classes = rows.some_classes(self._bought, self._layout, self._recipe.batch, self._rng)
        loss = -scored(self.critic, generated(self.generator, classes, self._source), classes).mean()
        parameters = [*self.generator.parameters()]
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        self._optimiser.step()

    @torch.no_grad()
    def _keep_small(self) -> None:
        for parameter in self.critic.parameters():
            parameter.clamp_(-self._recipe.weight_bound, self._recipe.weight_bound)
