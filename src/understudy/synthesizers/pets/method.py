"""`pets`: private evolution. Synthetic series are proposed by public modules and selected by noisy private votes.

Idea. Start from series made by rules (or public ones), let every privacy unit vote for the candidates nearest to it in
a public embedding, add noise to the counts, keep what was voted for, vary it, repeat (PETS, after Lin et al. 2024). No
network ever sees private data; modules are trained on public series.

Private data is read by one histogram per iteration, in which a unit's votes have Euclidean length at most one, and
by the small releases of `facts`: distributions of the columns, shares of the classes, gaps and lengths.

Cost: encoder passes over the private series once and over the candidates in every iteration; a minute or two.
Choose it when public series of the same kind exist, or when dynamics matter that second moments do not show.
Not to be confused with training a model with private gradients: here private data only chooses.

References: Luo et al. (PETS); Lin et al., arXiv:2305.15560 (Private Evolution); Canonne, Kamath and Steinke,
arXiv:2004.00010 (discrete Gaussian).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from understudy.data import Panel, Schema
from understudy.errors import InputError, MissingData
from understudy.privacy.budget import Guarantee
from understudy.privacy.canonical import file_sha256
from understudy.privacy.events import DiscreteGaussian, Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers, smallest_noise_multiplier
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import num_labels
from understudy.statistics.facts import shares_of
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import recipe_of, require_one_of
from understudy.synthesizers.packs import GENERAL
from understudy.synthesizers.pets import public_side
from understudy.synthesizers.pets.published import Vote
from understudy.synthesizers.pets.recipe import BY_START, PAPER, Recipe
from understudy.synthesizers.pets.voting import LABEL, private_vote, voters_of

_ROUNDED = 1e-3  # by how much declared shares may miss 1
_PUBLISHED = (
    "Population and scale as published: the number of candidates is tied to the private number of series, and series "
    "were scaled by private figures (their sensor's own mean and deviation) before this run. Neither is protected."
)


@dataclass(frozen=True, kw_only=True)
class PETS(Synthesizer):
    """Private evolution for time series.

    Attributes:
        pack: "general" for the modules that come with the package, or the file of a pack of your own.
        start: Where the first population comes from: "rules", or "public" for the public table.
        scale: What working scale is made from: "bought" distributions, declared "bounds", or the "public" table.
        public: File of a public table with the same columns; for `start` and `scale`, and for the levels of rules.
        class_shares: Declared shares of the classes, in the order of the label's categories; None buys them.
        recipe: Numbers of the loop; None takes those that suit the start.
        seed: Seed of everything but privacy noise.
    """

    name: ClassVar[str] = "pets"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"default": {}, "paper": {"recipe": PAPER}}
    pack: str = GENERAL
    start: Literal["rules", "public"] = "rules"
    scale: Literal["bought", "bounds", "public"] = "bought"
    public: str | None = None
    class_shares: tuple[float, ...] | None = None
    recipe: Recipe | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        require_one_of(self, start=("rules", "public"), scale=("bought", "bounds", "public"))
        object.__setattr__(self, "recipe", self.settings)
        if "public" in (self.start, self.scale) and self.public is None:
            raise InputError("public: a file is expected, because the start or the scale is to come from it.")
        if self.class_shares is not None:
            object.__setattr__(self, "class_shares", tuple(map(float, self.class_shares)))
            if min(self.class_shares) < 0 or abs(sum(self.class_shares) - 1) > _ROUNDED:
                raise InputError("class_shares: shares of at least 0 that add up to 1 are expected.")

    @property
    def settings(self) -> Recipe:
        """The recipe, of the start unless another is given."""
        return BY_START[self.start] if self.recipe is None else recipe_of(self.recipe, Recipe)

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Return the facts, then one histogram per iteration; refuse what the modules can't fit."""
        self._check_public_facts(schema)
        votes = PlanEntry(LABEL, self._votes_event(schema, guarantee))
        return SpendingPlan((*self._fact_entries(schema, guarantee), votes), guarantee)

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Release the facts, evolve a population, and return both.

        Privacy: unit and neighbours as the schema says. Private series are read by `release_facts` and by one histogram
        per iteration, all through the grant; candidates, sizes and thresholds are public.
        """
        bought = public_side.release_facts(self, private, grant)
        progress("facts", public_side.BOUGHT)
        event = grant.plan.event(LABEL)
        assert isinstance(event, DiscreteGaussian)
        noise = event.noise_multiplier * private.influence
        size, stages = self._size(private, noise), self.settings.stages(noise)
        vote_of = partial(self._vote, private, grant)
        return public_side.evolved(self, private.panel.schema, bought, size, stages, vote_of, self.seed, progress)

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Return members of the last population, and relatives of them when more are asked for."""
        return public_side.sample(self, arrays, schema, request)

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Say how votes compare with noise, and how the modules were made to fit."""
        adaptation = public_side.modules_of(self, self.learned_schema(schema)).adaptation
        return (*self.settings.outlook(*self._voters_and_noise(schema, guarantee), num_labels(schema)), adaptation)

    def rehearsal(self, schema: Schema, guarantee: Guarantee) -> "PETS":
        """Return the method with as many candidates as the whole population votes on."""
        size = self.settings.num_candidates(*self._voters_and_noise(schema, guarantee), num_labels(schema))
        return replace(self, recipe=replace(self.settings, population=max(2, size)))

    def own_inputs(self) -> Mapping[str, str]:
        """Return the hashes of the pack and of the public table."""
        inputs = {"pets pack": public_side.load_pack(self.pack, self.name).sha256}
        return inputs if self.public is None else {**inputs, "pets public table": file_sha256(self.public)}

    def trust(self, schema: Schema, plan: SpendingPlan) -> tuple[str, ...]:
        """Return what the paper's own recipe leaves unprotected."""
        unprotected = (_PUBLISHED,) if self.settings.as_published else ()
        return (*super().trust(schema, plan), *unprotected)

    def _check_public_facts(self, schema: Schema) -> None:
        """Refuse, before anything is charged, modules and public tables that do not fit."""
        if self.settings.as_published and schema.unit.protects_a_person:
            raise InputError(
                "recipe: the paper's recipe makes the number of series public, so it runs only for windows that share "
                "series, which promises nothing to a person. Set unit.kind = 'overlapping-window' in the schema and "
                "give --window-steps and --window-stride, or use the default recipe."
            )
        if self.public is not None and not Path(self.public).is_file():
            raise MissingData(f"public: '{self.public}' does not exist.")
        if self.class_shares is not None and len(self.class_shares) != num_labels(schema):
            raise InputError(f"class_shares: one share for each of {num_labels(schema)} classes is expected.")
        public_side.modules_of(self, schema)
        public_side.public_panel(self, schema)

    def _fact_entries(self, schema: Schema, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
        """Return the facts that are released before the votes."""
        shares = shares_of(schema, marginals=self.scale == "bought")
        if self.class_shares is not None:
            shares.pop("labels", None)
        multipliers = noise_multipliers(guarantee, shares) if shares else {}
        return tuple(PlanEntry(label, Gaussian(multiplier)) for label, multiplier in multipliers.items())

    def _votes_event(self, schema: Schema, guarantee: Guarantee) -> DiscreteGaussian:
        """Return the histograms with the least noise that `guarantee` allows after the facts."""
        one_vote = schema.unit.kind != "event" and schema.unit.max_series == 1 and self.settings.neighbours == 1
        others = [entry.event for entry in self._fact_entries(schema, guarantee)]

        def histograms(noise_multiplier: float) -> DiscreteGaussian:
            return DiscreteGaussian(noise_multiplier, self.settings.iterations, one_vote)

        return histograms(smallest_noise_multiplier(histograms, guarantee, others))

    def _voters_and_noise(self, schema: Schema, guarantee: Guarantee) -> tuple[int, float]:
        """Return how many vote vectors are expected, and the standard deviation of one count."""
        noise = self._votes_event(self.learned_schema(schema), guarantee).noise_multiplier * self.influence(schema)
        return self.num_contributions(schema, schema.population.size or 1), noise

    def _vote(self, private: PrivateSeries, grant: Grant, here: public_side.Setup) -> Vote:
        """Return the function that counts one charged histogram per call."""
        voters = voters_of([private], here.encoding, here.environment, here.lattice)
        return private_vote(voters, grant, here.lattice, self.settings.neighbours, private.influence)

    def _size(self, private: PrivateSeries, noise: float) -> int:
        """Return the number of candidates, which is public except as published, where `trust` says so."""
        classes = num_labels(private.panel.schema)
        if self.settings.as_published and self.settings.population is None:
            return classes * max(1, round(private.panel.num_series / classes))
        return self.settings.num_candidates(private.population, noise, classes)
