"""`pets`: private evolution. Synthetic series are proposed by public modules and selected by noisy private votes.

Idea. Start from series made by rules (or public ones, or a `spectral` release), let every privacy unit vote for the
candidates nearest to it in a public embedding, add noise to the counts, keep what was voted for, vary it, repeat
(paper 001, after Lin et al. 2024). No network ever sees private data; modules are trained on public series.

Private data is touched by one histogram per iteration, in which a unit's votes have Euclidean length at most one, and
by the small releases of `facts`: distributions of the columns, shares of the classes, gaps and lengths.

Cost: encoder passes over the private series once and over the candidates in every iteration; a minute or two.
Choose it when public series of the same kind exist, or when dynamics matter that second moments do not show.
Not to be confused with training a model with private gradients: here private data only chooses.

References: paper 001 (PETS); Lin et al., arXiv:2305.15560 (Private Evolution); Canonne, Kamath and Steinke,
arXiv:2004.00010 (discrete Gaussian).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from understudy.data import Panel, Schema
from understudy.data.datasets import file_sha256
from understudy.errors import InputError, MissingData
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import DiscreteGaussian, Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers, round_up, smallest_noise_multiplier
from understudy.privacy.private_series import PrivateSeries
from understudy.synthesizers.base import Draw, Progress, Synthesizer
from understudy.synthesizers.frame.facts import shares_of
from understudy.synthesizers.options import require_one_of
from understudy.synthesizers.pets import drawing, world
from understudy.synthesizers.pets.ballot import LABEL, noise_alone, private_vote, voters_of
from understudy.synthesizers.pets.evolution import evolve
from understudy.synthesizers.pets.population import Population
from understudy.synthesizers.pets.recipe import RECIPES, Recipe
from understudy.synthesizers.spectral import Spectral
from understudy.synthesizers.spectral.sampling import num_labels

_SPECTRAL_SHARE = 0.7  # of mu², for the release that the hybrid starts from
_ROUNDED = 1e-3  # by how much declared shares may miss 1
_CHOICES = {
    "start": ("rules", "public", "spectral"),
    "scale": ("bought", "bounds", "public"),
    "votes": ("private", "none"),
}
_PUBLISHED = (
    "population and scale as published: the number of candidates is tied to the private number of series, and series "
    "were scaled by private figures (their sensor's own mean and deviation) before this run; neither is protected"
)


@dataclass(frozen=True, kw_only=True)
class Pets(Synthesizer):
    """Private evolution for time series.

    Attributes:
        pack: "general" for the modules that come with the package, or the file of a pack of your own.
        start: Where the first population comes from: "rules", "public" or "spectral" (70 % of the budget).
        scale: What working scale is made from: "bought" distributions, declared "bounds", or the "public" table. A
            `spectral` start brings the distributions with it.
        public: File of a public table with the same columns; for `start` and `scale`, and for the levels of rules.
        class_shares: Declared shares of the classes, in the order of the label's categories; None buys them.
        votes: "private", or "none" for the control in which histograms are noise alone; unless distributions or a
            `spectral` release are bought, it buys nothing at all and costs nothing.
        recipe: Options of the loop; None takes those that suit the start.
        seed: Of everything but privacy noise.
    """

    name: ClassVar[str] = "pets"
    pack: str = world.GENERAL
    start: Literal["rules", "public", "spectral"] = "rules"
    scale: Literal["bought", "bounds", "public"] = "bought"
    public: str | None = None
    class_shares: tuple[float, ...] | None = None
    votes: Literal["private", "none"] = "private"
    recipe: Recipe = None  # type: ignore[assignment]  # settled below
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.recipe, dict):  # options of a release that was loaded
            object.__setattr__(self, "recipe", Recipe(**self.recipe))
        require_one_of(self, **_CHOICES)
        if "public" in (self.start, self.scale) and self.public is None:
            raise InputError("public: a file is expected, because the start or the scale is to come from it.")
        if self.recipe is None:
            object.__setattr__(self, "recipe", RECIPES[self.start])
        if self.class_shares is not None:
            object.__setattr__(self, "class_shares", tuple(map(float, self.class_shares)))
            if min(self.class_shares) < 0 or abs(sum(self.class_shares) - 1) > _ROUNDED:
                raise InputError("class_shares: shares of at least 0 that add up to 1 are expected.")

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """One histogram per iteration, after what is bought beside the votes; refuses what the modules can't fit."""
        self._check_public_facts(schema)
        facts = self._fact_entries(schema, guarantee)
        if self.votes == "none":
            return SpendingPlan(facts, guarantee)
        return SpendingPlan((*facts, PlanEntry(LABEL, self._votes_event(schema, guarantee))), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Buys the facts, evolves a population, and returns both.

        Privacy: unit and neighbours as the schema says. Private series are looked at by `facts.purchases` and by one
        histogram per iteration, all through the grant; candidates, sizes and thresholds are public.
        """
        schema, rng = private.panel.schema, np.random.default_rng(self.seed)
        bought = world.purchases(self, private, grant, lambda stage, share: progress(stage, 0.3 * share))
        noise = self._votes_event(schema, grant.plan.guarantee, grant).noise_multiplier * private.influence
        here = world.prepare(self, schema, bought, self._size(private, noise), rng)
        vote = noise_alone(noise, rng)
        if self.votes == "private":
            voters = voters_of([private], here.encoding, here.environment, here.lattice)
            vote = private_vote(voters, grant, here.lattice, self.recipe.neighbours, private.influence)
        ancestors: list[int] = []

        def watch(done: int, population: Population) -> None:
            ancestors.append(population.num_ancestors)
            progress("evolution", 0.3 + 0.7 * done / self.recipe.iterations)

        population = evolve(here.population, here.environment, vote, self.recipe.stages(noise), rng, watch)
        return drawing.to_arrays(self, population, bought, ancestors)

    def draw(self, arrays: dict[str, np.ndarray], schema: Schema, request: Draw) -> Panel:
        """Returns members of the last population, and relatives of them when more are asked for."""
        return drawing.draw(self, arrays, schema, request)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Says how votes compare with noise, and how the modules were made to fit."""
        learned, voters = self.learned_schema(schema), self.num_contributions(schema, schema.population.size or 1)
        noise = self._votes_event(learned, guarantee).noise_multiplier * self.influence(schema)
        fitted = world.modules_of(world.load_pack(self.pack), learned)
        return (*self.recipe.outlook(voters, noise, num_labels(schema)), fitted.adaptation)

    def rehearsal(self, schema: Schema, guarantee: Guarantee) -> "Pets":
        """With as many candidates as the whole population votes on."""
        learned, voters = self.learned_schema(schema), self.num_contributions(schema, schema.population.size or 1)
        noise = self._votes_event(learned, guarantee).noise_multiplier * self.influence(schema)
        size = self.recipe.num_candidates(voters, noise, num_labels(schema))
        return replace(self, recipe=replace(self.recipe, population=max(2, size)))

    def own_inputs(self) -> Mapping[str, str]:
        """The pack and the public table."""
        inputs = {"pets pack": world.load_pack(self.pack).sha256}
        return inputs if self.public is None else {**inputs, "pets public table": file_sha256(self.public)}

    def departures(self) -> Mapping[str, str]:
        """What the paper's own recipe leaves unprotected."""
        return {} if self.recipe.private_fraction is None else {"pets as published": _PUBLISHED}

    def _check_public_facts(self, schema: Schema) -> None:
        """Refuses, before anything is charged, modules and public tables that do not fit."""
        if self.recipe.private_fraction is not None and schema.unit.protects_a_person:
            raise InputError(
                "private_fraction: the paper's recipe tells how many series there are, so it needs "
                "unit.kind = 'overlapping-window', which promises nothing to a person. Leave it out."
            )
        if self.public is not None and not Path(self.public).is_file():
            raise MissingData(f"public: '{self.public}' is not there.")
        if self.class_shares is not None and len(self.class_shares) != num_labels(schema):
            raise InputError(f"class_shares: one share for each of {num_labels(schema)} classes is expected.")
        world.modules_of(world.load_pack(self.pack), schema)
        world.public_panel(self, schema)

    def _fact_entries(self, schema: Schema, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
        """What is bought beside the votes: a `spectral` release, or single facts."""
        if self.start == "spectral":
            whole = [(entry.label, entry.event) for entry in Spectral().plan(schema, guarantee).entries]
            stretch = _SPECTRAL_SHARE**-0.5  # of every noise multiplier: the release gets its share of mu²
            return tuple(
                PlanEntry(label, Gaussian(round_up(event.noise_multiplier * stretch)))
                for label, event in whole
                if isinstance(event, Gaussian)
            )
        shares = shares_of(schema, marginals=self.scale == "bought")
        if self.class_shares is not None:
            shares.pop("labels", None)
        if not shares or (self.votes == "none" and self.scale != "bought"):
            return ()
        multipliers = noise_multipliers(guarantee, shares)
        return tuple(PlanEntry(label, Gaussian(multiplier)) for label, multiplier in multipliers.items())

    def _votes_event(self, schema: Schema, guarantee: Guarantee, grant: Grant | None = None) -> DiscreteGaussian:
        """The histograms: as charged, or with the least noise that `guarantee` allows after the facts."""
        if grant is not None and self.votes == "private":
            charged = grant.plan.event(LABEL)
            assert isinstance(charged, DiscreteGaussian)
            return charged
        one_vote = schema.unit.kind != "event" and schema.unit.max_series == 1 and self.recipe.neighbours == 1
        others = [entry.event for entry in self._fact_entries(schema, guarantee)]

        def histograms(noise_multiplier: float) -> DiscreteGaussian:
            return DiscreteGaussian(noise_multiplier, self.recipe.iterations, one_vote)

        return histograms(smallest_noise_multiplier(histograms, guarantee, others))

    def _size(self, private: PrivateSeries, noise: float) -> int:
        """Candidates: a public number, except as published, where `departures` says so."""
        classes = num_labels(private.panel.schema)
        if self.recipe.private_fraction is not None:
            published = round(self.recipe.private_fraction * private.panel.num_series)
            return classes * max(1, round(published / classes))
        return self.recipe.num_candidates(private.population, noise, classes)
