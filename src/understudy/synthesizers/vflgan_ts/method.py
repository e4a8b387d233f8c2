"""`vflgan-ts`: a GAN whose parts belong to several organisations, each of which holds some columns of the same units.

Idea. Every attribute has its own generator and discriminator at the party that holds it; all generators are fed by one
shared latent, and a shared discriminator at an aggregator, which sees features from every party, makes the attributes
belong together (paper 004, Algorithm 1; `party` and `aggregator` are its two columns).

Private data is touched by the discriminators and extractors of every party and by the shared discriminator. In the mode
`sound` each of these M + 1 owners clips a row's gradient to C/√(M+1) and noises all of its parameters, which is one
Poisson-subsampled Gaussian per iteration; gradients of synthetic rows are added after the noise. Working scale, shares
of the classes, gaps and lengths are bought beside it, as for other methods.

Cost: minutes. Choose it where organisations can't bring their columns together and trust one aggregator not to keep
what it sees; at a small epsilon `spectral` in the aggregator's hands is better. Public context is not modelled.
Not to be confused with training in which "raw data never leaves": features are sent, and they can be inverted.

References: paper 004 (VFLGAN-TS); Seyfi et al. 2022 (CosciGAN); Yuan et al. 2024 (VFLGAN);
Abadi et al., arXiv:1607.00133 (DP-SGD).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import nn

from understudy.data import Panel, Schema
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian, NonPrivate
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Draw, Progress, Synthesizer
from understudy.synthesizers.frame import facts as bought
from understudy.synthesizers.frame.encoding import Encoding, linear_scales
from understudy.synthesizers.frame.facts import Facts, classes_of
from understudy.synthesizers.options import require_one_of
from understudy.synthesizers.spectral.learning import Learning
from understudy.synthesizers.vflgan_ts import classes, drawing, modes
from understudy.synthesizers.vflgan_ts.agreement import Agreement
from understudy.synthesizers.vflgan_ts.claimed import claimed_noise
from understudy.synthesizers.vflgan_ts.fitting import Named, run
from understudy.synthesizers.vflgan_ts.holdings import ALONE, holdings_of, num_classes, rows_of
from understudy.synthesizers.vflgan_ts.modes import MODES, NOISY_ROWS, NOT_PRIVATE, Mode, Rule
from understudy.synthesizers.vflgan_ts.party import Rows
from understudy.synthesizers.vflgan_ts.recipe import Recipe
from understudy.training.networks import to_arrays
from understudy.training.plan import TRAINING, DPSGDConfig

_RATE_OF_UNKNOWN = 0.02  # with which units are drawn where the population is still to be counted
_FACTS_UNNOISED = 1e-3  # noise multiplier of what is bought in modes that protect nobody


@dataclass(frozen=True, kw_only=True)
class VflganTs(Synthesizer):
    """VFLGAN-TS for columns held by several parties (`party` of a column); one party where no column names any.

    Attributes:
        mode: "sound", or one of those that the certificate calls not private ("plain", "paper"), or "local".
        scale: What working scale is made from: "bought" distributions, or declared "bounds".
        checkpoint: Which generators are kept: the "last", or those of "minimum-awd", which reads real rows without
            noise and is refused where a guarantee is claimed.
        claimed_epsilon: What the formulas of paper 004 are to claim in the mode "paper".
        recipe: Options of networks and loop.
        seed: Of everything but privacy noise and draws; in the mode "sound" of initial weights and drawing alone.
    """

    name: ClassVar[str] = "vflgan-ts"
    rehearsed: ClassVar[str] = "recipe.iterations"
    mode: Mode = "sound"
    scale: Literal["bought", "bounds"] = "bought"
    checkpoint: Literal["last", "minimum-awd"] = "last"
    claimed_epsilon: float = 10.0
    recipe: Recipe = field(default_factory=Recipe)
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.recipe, dict):  # options of a release that was loaded
            object.__setattr__(self, "recipe", Recipe(**self.recipe))
        modes.check_mode(self.mode)
        require_one_of(self, mode=MODES, scale=("bought", "bounds"), checkpoint=("last", "minimum-awd"))
        if self.checkpoint != "last" and self.mode not in NOT_PRIVATE:
            raise InputError(
                f"checkpoint: 'last' is expected in the mode '{self.mode}': AWD reads real rows uncharged."
            )
        if self.recipe.model != "vflgan-ts" and self.mode != "plain":
            raise InputError(f"model: '{self.recipe.model}' is for comparison and needs the mode 'plain'.")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """What is bought beside, then all iterations as one event, or one noisy copy of the rows (`local`)."""
        holdings_of(schema)
        classes.check(self.recipe.labels, self.mode, schema)
        shares = bought.shares_of(schema, marginals=self.scale == "bought")
        if self.mode in NOT_PRIVATE:
            return self._plan_without_privacy(guarantee, tuple(shares))
        if self.mode == "local":
            modes.check_rows_stay(schema)
            shares[NOISY_ROWS] = 1 - sum(shares.values())
        multipliers = noise_multipliers(guarantee, shares) if shares else {}
        entries = tuple(
            PlanEntry(label, Gaussian(multiplier, relation="values" if label == NOISY_ROWS else "add-or-remove"))
            for label, multiplier in multipliers.items()
        )
        if self.mode == "local":
            return SpendingPlan(entries, guarantee)
        config = self._config(schema).calibrated(guarantee, others=[entry.event for entry in entries])
        return SpendingPlan((*entries, PlanEntry(TRAINING, config.plan().event)), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys the facts, trains, and returns every party's generators.

        Privacy: unit as the schema says, neighbours as the certificate does. Real rows are looked at by `facts.buy` and
        by the updates of the mode's rule, which `docs/claims/vflgan-ts.md` bounds; generators see synthetic rows only.
        """
        schema = private.schema
        linear = linear_scales(schema, None)
        facts = bought.buy(Learning(private, grant, 0, lambda stage, share: None), linear)
        encoding = Encoding.of(schema, facts.marginals, linear)
        rows = self._rows(private, encoding)
        rule = self._rule(private, grant, len(rows))
        if self.mode == "local":
            noisy = modes.noisy_rows([own for _, own in rows], grant, private)
            rows = [(name, own) for (name, _), own in zip(rows, noisy, strict=True)]
        models = []
        for one in self._models(schema, rows, rule, classes_of(private.panel)):
            models.append(self._trained(one, facts, lambda share: progress("training", share)))
        generators = classes.gathered(models) if self._apart(schema) else models[0]
        nodes = drawing.pool_nodes(generators, self.recipe, encoding, facts, num_classes(schema), self.seed)
        arrays = {**facts.to_arrays(), "linear": linear, "nodes": nodes}
        for place, module in enumerate(generators):
            arrays |= to_arrays(module, f"{drawing.PARTY}{place}.")
        return arrays

    def _models(self, schema: Schema, rows: Named, rule: Rule, labels: np.ndarray) -> list[classes.Model]:
        """Returns what is trained by itself: one model of all rows, or one of the rows of each class."""
        agreement = Agreement(schema, self.recipe, self.mode, self.seed, num_classes(schema))
        whole = classes.Model(agreement, rows, rule)
        return classes.divided(whole, labels) if self._apart(schema) else [whole]

    def _apart(self, schema: Schema) -> bool:
        return self.recipe.labels == "apart" and num_classes(schema) > 0

    def _trained(self, model: classes.Model, facts: Facts, progress: Callable[[float], None]) -> tuple[nn.Module, ...]:
        """Returns the generators of all parties, trained together or, for one of the baselines, each by itself."""
        groups = [[pair] for pair in model.rows] if self.recipe.model == "party-coscigan" else [model.rows]
        nearest = self.checkpoint == "minimum-awd"
        trained = (
            run(model.agreement, group, model.rule, facts.label_share, nearest_checkpoint=nearest, progress=progress)
            for group in groups
        )
        return tuple(module for group in trained for module in group)

    def draw(self, arrays: dict[str, np.ndarray], schema: Schema, request: Draw) -> Panel:
        """Every party's attributes from one shared latent, joined."""
        facts = Facts.from_arrays(arrays)
        encoding = Encoding.of(schema, facts.marginals, arrays["linear"])
        agreement = Agreement(schema, self.recipe, self.mode, self.seed, num_classes(schema))
        counts = [holding.num_attributes for holding in holdings_of(schema)]
        counts = [sum(counts)] if self.recipe.model == "central-coscigan" else counts
        generators = drawing.generators_of(arrays, self.recipe, counts, agreement.num_latent, schema.num_steps)
        asked = drawing.draw_classes(facts, request)
        working = drawing.working_rows(generators, self.recipe, encoding, asked, num_classes(schema), request.rng)
        series = drawing.calibrated(working[0], arrays["nodes"], encoding)
        return drawing.panel_of(schema, request, encoding, facts, asked, (series, working[1]))

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Says what noise does to gradients, what a party could learn, or what `local` costs."""
        if self.mode in NOT_PRIVATE:
            return (f"Not private: {NOT_PRIVATE[self.mode]}.",)
        learned = self.learned_schema(schema)
        return modes.outlook(self.mode, learned, self.plan(learned, guarantee), self.recipe)

    def gradient_noise(self, schema: Schema, guarantee: Guarantee) -> float | None:
        """That of discriminators and extractors in the mode `sound`."""
        learned = self.learned_schema(schema)
        return (
            modes.gradient_noise(learned, self.plan(learned, guarantee), self.recipe) if self.mode == "sound" else None
        )

    def trust(self, schema: Schema, plan: SpendingPlan) -> tuple[str, ...]:
        """Who is trusted in this mode, and what a party could learn."""
        return (*modes.trust(self.mode, plan), *((classes.KNOWN,) if self._apart(schema) else ()))

    def _plan_without_privacy(self, guarantee: Guarantee, labels: tuple[str, ...]) -> SpendingPlan:
        if guarantee.epsilon < math.inf:
            raise InputError(
                f"mode: '{self.mode}' protects nobody ({NOT_PRIVATE[self.mode]}), so it needs a ledger and a guarantee "
                "with epsilon = inf. Use 'sound' for private data."
            )
        facts = tuple(PlanEntry(label, Gaussian(_FACTS_UNNOISED)) for label in labels)
        return SpendingPlan((*facts, PlanEntry(TRAINING, NonPrivate(NOT_PRIVATE[self.mode]))), guarantee)

    def _config(self, schema: Schema) -> DPSGDConfig:
        """How units are drawn. Events change windows and do not take them away, which sampling does not amplify."""
        size, recipe = schema.population.size, self.recipe
        rate = _RATE_OF_UNKNOWN if size is None else min(1.0, recipe.batch / size)
        return DPSGDConfig(
            sampling_rate=1.0 if schema.unit.kind == "event" else rate,
            iterations=recipe.iterations,
            expected_batch=recipe.batch,
            clip_norm=recipe.clip_norm,
        )

    def _rule(self, private: PrivateSeries, grant: Grant, num_parties: int) -> Rule:
        """How gradients become parameters, after the ledger was told."""
        if self.mode == "sound":
            return modes.sound_rule(private, grant, self.recipe, num_parties)
        if self.mode == "local":
            return modes.plain_rule(self.recipe, self.seed)
        grant.without_privacy(TRAINING)
        if self.mode == "plain":
            return modes.plain_rule(self.recipe, self.seed)
        rate, delta = min(1.0, self.recipe.batch / private.population), grant.plan.guarantee.delta
        noise = claimed_noise(self.claimed_epsilon, rate, self.recipe.iterations, delta)
        return modes.paper_rule(self.recipe, noise, grant, self.seed)

    def _rows(self, private: PrivateSeries, encoding: Encoding) -> list[tuple[str, Rows]]:
        """Every party's rows by name; one pair of all rows for the central baseline."""
        panel, labels, number = private.panel, classes_of(private.panel), num_classes(private.schema)
        rows = [(own.party, rows_of(own, panel, encoding, labels, number)) for own in holdings_of(panel.schema)]
        if self.recipe.model != "central-coscigan":
            return rows
        series = torch.cat([own.series for _, own in rows], 1)
        return [(ALONE, Rows(series, torch.cat([own.label for _, own in rows], 1)))]
