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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from understudy.data import Panel, Schema, read_panel
from understudy.data.timegrid import season_steps
from understudy.errors import InputError, MissingData
from understudy.privacy.budget import Guarantee
from understudy.privacy.canonical import file_sha256
from understudy.privacy.events import DiscreteGaussian, Gaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers, smallest_noise_multiplier
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import num_labels
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.facts import Facts
from understudy.statistics.marginals import bounded_scores
from understudy.synthesizers.base import Progress, SampleRequest, Synthesizer
from understudy.synthesizers.options import recipe_of, require_one_of
from understudy.synthesizers.packs import GENERAL, Pack, load_pack
from understudy.synthesizers.pets.modules import Modules, fitted
from understudy.synthesizers.pets.published import Environment, Population, Vote, evolve
from understudy.synthesizers.pets.recipe import BY_START, PAPER, Recipe
from understudy.synthesizers.pets.rules import RuleBased, in_turn, levels_of
from understudy.synthesizers.pets.voting import LABEL, Lattice, private_vote, voters_of, votes_event
from understudy.synthesizers.sampling import NODES, panel_of, sample_classes

_ROUNDED = 1e-3  # by how much declared shares may miss 1
_PUBLISHED = (
    "Population and scale as published: the number of candidates is tied to the private number of series, and series "
    "were scaled by private figures (their sensor's own mean and deviation) before this run. Neither is protected."
)
# What the course of a series counts in a vote where series share a calendar. Series made by rules know no calendar: if
# it counted much, everybody's nearest candidate would be the flattest one.
_COURSE_WEIGHT = {"rules": 0.3, "public": 1.0}
_ENOUGH = 512  # candidates that the lattice is measured by
_FACTS_SHARE = 0.3  # of the progress
_POPULATION, _PACK = "population.", "pack"  # arrays of a release


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """A schema's encoding, the modules that fit it, the first population and the lattice laid over it."""

    encoding: Encoding
    environment: Environment
    population: Population
    lattice: Lattice


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
    needs: ClassVar[str] = "the extra neural; a pack of modules for its length, or public series"
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
        """Return the facts, then one histogram per iteration with the least noise that is allowed after them.

        Refuses, before anything is charged, modules and public tables that do not fit.
        """
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
        self.modules_for(schema)
        self._public_panel(schema)
        entries = self._fact_entries(schema, guarantee)
        one_vote = schema.unit.kind != "event" and schema.unit.max_series == 1 and self.settings.neighbours == 1
        histograms = partial(DiscreteGaussian, count=self.settings.iterations, one_vote=one_vote)
        noise = smallest_noise_multiplier(histograms, guarantee, [entry.event for entry in entries])
        return SpendingPlan((*entries, PlanEntry(LABEL, histograms(noise))), guarantee)

    def _fact_entries(self, schema: Schema, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
        """Return the facts that are released before the votes."""
        shares = facts.shares_of(schema, marginals=self.scale == "bought")
        if self.class_shares is not None:
            shares.pop("labels", None)
        multipliers = noise_multipliers(guarantee, shares) if shares else {}
        return tuple(PlanEntry(label, Gaussian(multiplier)) for label, multiplier in multipliers.items())

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Release the facts, evolve a population, and return both.

        Privacy: unit and neighbours as the schema says. Private series are read by `release_facts` and by one histogram
        per iteration, all through the grant; candidates, sizes and thresholds are public.
        """
        bought = self.release_facts(private, grant)
        progress("facts", _FACTS_SHARE)
        noise = votes_event(grant.plan).noise_multiplier * private.influence
        stages = self.settings.stages(noise)
        vote_of = partial(self._vote, private, grant)
        return self.evolved(private.panel.schema, bought, self._size(private, noise), stages, vote_of, progress)

    def release_facts(self, private: PrivateSeries, grant: Grant) -> dict[str, np.ndarray]:
        """Return everything that is released before the votes, as public arrays.

        Privacy: the releases of `facts.buy`; nothing else is looked at.
        """
        schema = private.panel.schema
        linear = linear_scales(schema, self._public_panel(schema) if self.scale == "public" else None)
        declared = {} if self.class_shares is None else {"label_share": np.array(self.class_shares)}
        return {**facts.buy(private, grant).to_arrays(), **declared, "linear": linear}

    def _vote(self, private: PrivateSeries, grant: Grant, here: Setup) -> Vote:
        """Return the function that counts one charged histogram per call."""
        voters = voters_of([private], here.encoding, here.environment, here.lattice)
        return private_vote(voters, grant, here.lattice, self.settings.neighbours, private.influence)

    def _size(self, private: PrivateSeries, noise: float) -> int:
        """Return the number of candidates, which is public except as published, where `trust` says so."""
        classes = num_labels(private.panel.schema)
        if self.settings.as_published and self.settings.population is None:
            return classes * max(1, round(private.panel.num_series / classes))
        return self.settings.num_candidates(private.population, noise, classes)

    def evolved(
        self,
        schema: Schema,
        bought: dict[str, np.ndarray],
        size: int,
        stages: Sequence[tuple[float, float]],
        vote_of: Callable[[Setup], Vote],
        progress: Progress,
    ) -> dict[str, np.ndarray]:
        """Return what a release holds: the last population, the facts, and the pack if it is not the package's own.

        Reads nothing private but what `vote_of` releases, so it also runs where no private series are.

        Args:
            schema: The contract of what is learned from.
            bought: What `release_facts` returned.
            size: Candidates in all, a multiple of the classes.
            stages: Degree and threshold of each iteration.
            vote_of: Returns the function that counts one histogram per call.
        """
        rng, ancestors = np.random.default_rng(self.seed), list[int]()
        here = self.prepared(schema, bought, size, rng)
        population = here.population
        for population in evolve(here.population, here.environment, vote_of(here), stages, rng):
            ancestors.append(population.num_ancestors)
            progress("evolution", _FACTS_SHARE + (1 - _FACTS_SHARE) * len(ancestors) / len(stages))
        arrays = prefixed(_POPULATION, population.arrays()) | bought
        arrays["nodes"] = _nodes(population, Facts.from_arrays(bought))
        arrays["ancestors"] = np.array(ancestors, dtype=np.int64)
        if self.pack != GENERAL:
            arrays[_PACK] = np.frombuffer(load_pack(self.pack, self.name).to_bytes(), dtype=np.uint8).copy()
        return arrays

    def prepared(self, schema: Schema, bought: dict[str, np.ndarray], size: int, rng: np.random.Generator) -> Setup:
        """Return the public side of a run before its first vote."""
        encoding = encoding_of(schema, bought)
        environment = self.environment_for(encoding)
        group = np.repeat(np.arange(num_labels(schema)), size // num_labels(schema))
        population = self.first_population(encoding, group, rng)
        some = rng.permutation(population.size)[:_ENOUGH]
        lattice = Lattice.around(environment.embed(population.series[some], population.static[some]))
        return Setup(encoding=encoding, environment=environment, population=population, lattice=lattice)

    def first_population(self, encoding: Encoding, group: np.ndarray, rng: np.random.Generator) -> Population:
        """Return S_0: public series, of their own class where they have that label, or rule-based ones (Eq. 2).

        Levels of rules are those of public series if there are any; their season is the calendar's if they share one.
        Of their static columns nothing is known: normal numbers, even codes.
        """
        schema, whole = encoding.schema, slice(None)
        public = self._public_panel(schema)
        if public is not None and self.start == "public":
            rows = np.empty(len(group), dtype=np.int64)
            for own in np.unique(group):
                fitting = np.flatnonzero(public.label == own) if public.label is not None else np.empty(0, np.int64)
                pool = fitting if len(fitting) else np.arange(public.num_series)
                rows[group == own] = in_turn(pool, int((group == own).sum()), rng)
            return Population.first(encoding.series(public, whole)[rows], encoding.static(public, whole)[rows], group)
        generate = RuleBased(
            num_steps=schema.num_steps,
            num_channels=encoding.num_channels,
            preset="pets" if self.settings.as_published else "rich",
            levels="spread" if public is None else levels_of(encoding.series(public, whole)),
            season=season_steps(schema.time, schema.num_steps) if schema.time.align == "calendar" else None,
            one_hot=encoding.channel_codes,
        )
        series = generate(len(group), rng)
        static = rng.standard_normal((len(group), encoding.num_static), dtype=np.float32)
        for begin, end in encoding.static_codes:
            static[:, begin:end] = np.eye(end - begin, dtype=np.float32)[rng.integers(0, end - begin, len(group))]
        return Population.first(series, static, group)

    def environment_for(self, encoding: Encoding, pack: Pack | None = None) -> Environment:
        """Return the modules, of the method's pack unless another is given, and how candidates are judged."""
        modules = self.modules_for(encoding.schema, pack)
        return Environment(
            variation=modules.variation,
            similarity=modules.similarity,
            lookahead=self.settings.lookahead,
            static_codes=encoding.static_codes,
            course_weight=_COURSE_WEIGHT[self.start] if encoding.schema.time.align == "calendar" else 0.0,
            by_chance=self.settings.as_published,
        )

    def modules_for(self, schema: Schema, pack: Pack | None = None) -> Modules:
        """Return a pack's modules made to fit a schema, or refuse and say why."""
        num_channels = Encoding.of(schema, (), linear_scales(schema, None)).num_channels
        pack = pack or load_pack(self.pack, self.name)
        return fitted(pack, schema.num_steps, num_channels, as_published=self.settings.as_published)

    def _public_panel(self, schema: Schema) -> Panel | None:
        """Return the public table in the shape of what is learned from, None without one."""
        if self.public is None:
            return None
        path = Path(self.public)
        return read_public(path, schema, path.stat().st_mtime_ns)

    def sample(self, arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
        """Return members in their classes' released proportions: all of a class, then relatives of them."""
        rng, known, encoding = request.rng, Facts.from_arrays(arrays), encoding_of(schema, arrays)
        population = Population(**below(arrays, _POPULATION))
        classes = sample_classes(known, request)
        members = np.empty(request.num_series, dtype=np.int64)
        for own in np.unique(classes):
            pool = np.flatnonzero(population.group == own)
            members[classes == own] = in_turn(pool, int((classes == own).sum()), rng)
        drawn = population.take(members)
        again = np.setdiff1d(np.arange(len(members)), np.unique(members, return_index=True)[1])
        if len(again):
            carried = arrays.get(_PACK)
            pack = None if carried is None else Pack.from_bytes(carried.tobytes(), self.name, "The release's pack")
            degree = self.settings.stages(0.0)[-1][0]
            relatives = self.environment_for(encoding, pack).relatives(drawn.take(again), degree, rng)
            drawn.series[again], drawn.static[again] = relatives.series, relatives.static
        series = _calibrated(drawn.series, arrays["nodes"], known)
        return panel_of(schema, request, encoding, known, drawn.group, (series, drawn.static))

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Say how votes compare with noise, and how the modules were made to fit."""
        adaptation = self.modules_for(self.learned_schema(schema)).adaptation
        return (*self.settings.outlook(*self._expected(schema, guarantee)), adaptation)

    def rehearsal(self, schema: Schema, guarantee: Guarantee) -> "PETS":
        """Return the method with as many candidates as the whole population votes on."""
        size = self.settings.num_candidates(*self._expected(schema, guarantee))
        return replace(self, recipe=replace(self.settings, population=max(2, size)))

    def _expected(self, schema: Schema, guarantee: Guarantee) -> tuple[int, float, int]:
        """Return how many vote vectors are expected, the standard deviation of one count, and the number of classes."""
        noise = votes_event(self.planned(schema, guarantee)).noise_multiplier * self.influence(schema)
        return self.num_contributions(schema, schema.population.size or 1), noise, num_labels(schema)

    def own_inputs(self) -> Mapping[str, str]:
        """Return the hashes of the pack and of the public table."""
        inputs = {"pets pack": load_pack(self.pack, self.name).sha256}
        return inputs if self.public is None else {**inputs, "pets public table": file_sha256(self.public)}

    def trust(self, schema: Schema, plan: SpendingPlan) -> tuple[str, ...]:
        """Return what the paper's own recipe leaves unprotected."""
        unprotected = (_PUBLISHED,) if self.settings.as_published else ()
        return (*super().trust(schema, plan), *unprotected)


def encoding_of(schema: Schema, bought: dict[str, np.ndarray]) -> Encoding:
    """Return the encoding that released facts define."""
    return Encoding.of(schema, Facts.from_arrays(bought).marginals, bought["linear"])


def prefixed(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays with a prefix before their names."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def below(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


@lru_cache(maxsize=2)
def read_public(path: Path, schema: Schema, modified: int = 0) -> Panel:
    """Return a public table of series as long as those that are learned from, with the same columns."""
    bare = replace(schema, context=(), constraints=())
    return replace(read_panel(path, bare, allow_few_units=True), private=False, unit_ids=None)


def _nodes(population: Population, known: Facts) -> np.ndarray:
    """Return quantiles [number, node] of the population's scores between atoms, each class with its released share.

    Empty if no distributions were bought: then working scale is what it is.
    """
    weight = (known.label_share / np.bincount(population.group, minlength=len(known.label_share)))[population.group]
    repeated = np.repeat(weight, population.series.shape[1])
    ranks, nodes = np.linspace(0, 1, NODES), [np.zeros((0, NODES))]
    for channel, low, high in _between_atoms(known, population.series.shape[2]):
        scores = population.series[:, :, channel].ravel()
        kept = np.flatnonzero((scores > low) & (scores < high) & (repeated > 0))
        order = kept[np.argsort(scores[kept], kind="stable")]
        reached = np.cumsum(repeated[order])
        quantiles = np.interp(ranks * reached[-1], reached, scores[order]) if len(order) else np.zeros(NODES)
        nodes.append(quantiles[None])
    return np.concatenate(nodes)


def _calibrated(series: np.ndarray, nodes: np.ndarray, known: Facts) -> np.ndarray:
    """Return scores whose distribution over the population is the bought one between the atoms.

    What selection left slightly too high or too wide is corrected for all series alike. Scores inside an atom (a bound
    that is often taken, such as no sun) stay there, and codes stay.
    """
    calibrated = series.astype(np.float64)
    for own, (channel, low, high) in zip(nodes, _between_atoms(known, series.shape[2]), strict=True):
        scores = series[:, :, channel]
        ranks = np.interp(scores, own, np.linspace(ndtr(low), ndtr(high), NODES))
        calibrated[:, :, channel] = np.where((scores > low) & (scores < high), bounded_scores(ranks), scores)
    return calibrated


def _between_atoms(known: Facts, num_channels: int) -> list[tuple[int, float, float]]:
    """Return (working channel, scores between which its values have no mass of their own) of channels of numbers."""
    found, place = [], 0
    for marginal in known.marginals:
        if place < num_channels and not marginal.grid.is_codes:
            low, high = ndtri(marginal.cumulative[[1, -2]])  # the first and the last cell are the bounds themselves
            found.append((place, float(low), float(high)))
        place += marginal.grid.num_cells if marginal.grid.is_codes else 1
    return found
