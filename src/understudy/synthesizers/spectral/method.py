"""`spectral`: a Gaussian copula over frequencies, learned from a handful of noisy sums.

Idea. Turn values into normal scores by released marginals, take out each step's mean and spread, go to frequencies
with the DCT, score every coefficient by a released tail, and release how the scores move together. Sampling walks
the same road back. Series that come in several kinds (a label, or two modes of the level) get a model per kind.

Private data is touched by sums over units of bounded vectors only; every bound follows from public facts (bounds,
number of steps and channels) because scores have mean 0 and variance 1 by construction. No clip radius is tuned.

Where several organisations hold columns, each counts and noises its own, and an aggregator that all of them trust does
the rest: its vertical form (`recipe.held_columns`).

Cost: a few passes over the panel, linear in series; seconds for a hundred thousand series. It models second-order
dependence; what only higher orders show (the order of two spikes) it leaves out.
References: Nelsen (2006) on copulas; Nikolov, Talwar and Zhang (2013) and Biswas et al. (2020) on private covariance;
Hay et al. (2009) and Duchi et al. (2008) on repairing noisy counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from understudy.data import Panel, Schema
from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import copula, rules
from understudy.statistics.basis import seasons_of
from understudy.statistics.columns import num_labels, static_values
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.sampling import inside_bounds
from understudy.synthesizers.spectral import outlook, prior
from understudy.synthesizers.spectral.learning import Learning
from understudy.synthesizers.spectral.recipe import DEFAULT, budget_shares, vertical_trust


@dataclass(frozen=True, kw_only=True)
class Spectral(Synthesizer):
    """The spectral method.

    Attributes:
        max_splits: How often the population may be divided by level, beyond its labels.
        prior: A public table with the same columns, or the folder of an earlier release of the same population; noisy
            answers are drawn towards what it says.
    """

    name: ClassVar[str] = "spectral"
    continues: ClassVar[bool] = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": DEFAULT}  # no paper describes it
    max_splits: int = 2
    prior: str | None = None

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Nine Gaussian releases at most, one more for each further holder of columns, at the price of `guarantee`."""
        if self.prior is not None:
            prior.prior_series(self.prior, schema)  # what does not fit is refused before the charge
        multipliers = noise_multipliers(guarantee, budget_shares(rules.learned_schema(schema), guarantee))
        entries = tuple(PlanEntry(label, Gaussian(multiplier)) for label, multiplier in multipliers.items())
        return SpendingPlan(entries, guarantee)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Returns the expected share of signal of each component, and whether seasons survive."""
        if schema.population.size is None:
            return ()
        learned = rules.learned_schema(self.learned_schema(schema))
        series = self.num_contributions(schema, schema.population.size) / self.influence(schema)
        return outlook.sentences(learned, outlook.expected_shares(learned, guarantee, series), self.prior)

    def trust(self, schema: Schema, plan: SpendingPlan) -> tuple[str, ...]:
        """Who is trusted where several organisations hold columns, and what a continued release tells as well."""
        earlier = self.prior is not None and prior.is_release(self.prior)
        return (*vertical_trust(schema), *((prior.continued(str(self.prior)),) if earlier else ()))

    def own_inputs(self) -> Mapping[str, str]:
        """Returns the hash of the prior."""
        return {} if self.prior is None else {"spectral prior": prior.hash_of(self.prior)}

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Makes the releases and fits the model to them.

        Privacy: unit and neighbours as the schema says; each `grant.release` call releases a sum over units of
        vectors no longer than its bound. Everything else works on what was released.
        """
        learned = rules.learned_schema(private.schema)
        seen = private if learned is private.schema else private.seen_as(learned, rules.to_learned)
        public = None if self.prior is None else prior.prior_series(self.prior, private.schema)
        return Learning(seen, grant, self.max_splits, progress, public).run().to_arrays()

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Samples series from a released model."""
        model, rng, steps = copula.Model.from_arrays(arrays), request.rng, request.steps or schema.num_steps
        declared, schema = schema, rules.learned_schema(schema)
        if steps > schema.num_steps and not seasons_of(schema):
            raise InputError(
                f"steps: at most the {schema.num_steps} steps that were learned are expected, got {steps}: the schema "
                "has no season that fits twice and could continue. Sample shorter series."
            )
        kinds = copula.sample_kinds(model, schema, request.num_series, request.label, rng)
        own = request.context if schema.own_contexts else None
        scores, singles = copula.sample_scores(model, schema, kinds, rng, own, steps)
        if request.context is not None and request.fit_context is not None:
            scores = copula.respond(scores, schema, request.fit_context, request.context)
        once = copula.ranks_of(model.score_nodes[schema.num_channels :], singles)
        lengths, missing = copula.sample_absence(model, schema, scores, once, rng)
        ranks, marginals = copula.ranks_of(model.score_nodes[: schema.num_channels], scores), model.marginals
        values = np.stack([marginals[c].values_of(ranks[:, :, c]) for c in range(schema.num_channels)], axis=2)
        labels = kinds // (len(model.kind_share) // num_labels(schema))
        single = marginals[schema.num_channels :]
        static = static_values(schema, labels, once, single, model.facts.static_missing, rng)
        values, static = rules.from_learned(inside_bounds(schema.channels, values), static, declared)
        if steps != declared.num_steps:
            declared = replace(declared, time=replace(declared.time, steps=steps), columns=())
        return request.panel(declared, np.where(missing, np.nan, values), lengths, static)
