"""`pets`: private evolution. Synthetic series are proposed by public modules and selected by noisy private votes.

Idea. Start from series made by rules (or public ones), let every privacy unit vote for the candidates nearest to it in
a public embedding, add noise to the counts, keep what was voted for, vary it, repeat (PETS, after Lin et al. 2024).

Private data is read by one histogram per iteration, in which a unit's votes have Euclidean length at most one, and
by the small releases of `facts`.

Cost: encoder passes over the private series once and over the candidates in every iteration; a minute or two.
Choose it when public series of the same kind exist, or when dynamics matter that second moments do not show.
Not to be confused with training a model with private gradients: here private data only chooses.

References: Luo et al. (PETS); Lin et al., arXiv:2305.15560 (Private Evolution); Canonne, Kamath and Steinke,
arXiv:2004.00010 (discrete Gaussian).
"""

import math
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
from understudy.privacy.border import Statistic
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
from understudy.synthesizers.pets import pretraining
from understudy.synthesizers.pets.modules import Modules, fitted
from understudy.synthesizers.pets.published import Environment, Population, Vote, by_share, evolve
from understudy.synthesizers.pets.recipe import BY_START, PAPER, Recipe
from understudy.synthesizers.pets.rules import RuleBased, in_turn, levels_of
from understudy.synthesizers.pets.selection import (
    FEATURES,
    MEAN,
    VOTES,
    Features,
    Lattice,
    maximum_entropy,
    mean_embedding,
    private_vote,
    voters_of,
    votes_event,
)
from understudy.synthesizers.sampling import NODES, panel_of, sample_classes

DOMAIN = "domain"  # the pack that is trained on the public table
_ROUNDED = 1e-3  # by how much declared shares may miss 1
_PUBLISHED = (
    "Population and scale as published: the number of candidates is tied to the private number of series, and series "
    "were scaled by private figures (their sensor's own mean and deviation) before this run. Neither is protected."
)
# What the course of a series counts in a vote where series share a calendar. Series made by rules know no calendar: if
# it counted much, everybody's nearest candidate would be the flattest one.
_COURSE_WEIGHT = {"rules": 0.3, "public": 1.0}
# Candidates of a pool, all classes together, and numbers in it; the first copy of a public series stays as it is.
_POOL, _POOLED_VALUES, _POOLED_PER_UNIT, _FEWEST_POOLED, _POOL_DEGREE = 20_000, 2**25, 3, 100, 10.0
_MEMBERS = 4000  # of a pool that a release keeps
_ENOUGH = 512  # candidates that the lattice is measured by
_FACTS_SHARE = 0.3  # of the progress
_POPULATION, _PACK = "population.", "pack"  # arrays of a release


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """The public side of a run: a schema's encoding, its modules, the first population and the lattice over it."""

    encoding: Encoding
    environment: Environment
    population: Population
    lattice: Lattice


@dataclass(frozen=True, kw_only=True)
class PETS(Synthesizer):
    """Private evolution for time series.

    Attributes:
        pack: "general" for the modules that come with the package, "domain" to train them on the public table, or the
            file of a pack of your own; None is "domain" where the paper's recipe has a public table, else "general".
        start: Where the first population comes from: "rules", or "public" for the public table.
        scale: What working scale is made from: "bought" distributions, declared "bounds", or the "public" table.
        public: File of a public table with the same columns; for `start` and `scale`, and for the levels of rules.
        class_shares: Declared shares of the classes, in the order of the label's categories; None buys them.
        selection: "mean" releases one noisy mean embedding, "votes" one histogram of votes per iteration, as published.
            None takes the mean where public series are the start and no recipe is given.
        recipe: Numbers of the voting loop; None takes those that suit the start.
        seed: Seed of everything but privacy noise.
    """

    name: ClassVar[str] = "pets"
    needs: ClassVar[str] = "the extra neural; a pack of modules for its length, or public series"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "default": {},
        "votes": {"selection": "votes"},
        "paper": {"selection": "votes", "recipe": PAPER},
    }
    pack: str | None = None
    start: Literal["rules", "public"] = "rules"
    scale: Literal["bought", "bounds", "public"] = "bought"
    public: str | None = None
    class_shares: tuple[float, ...] | None = None
    selection: Literal["mean", "votes"] | None = None
    recipe: Recipe | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        require_one_of(self, start=("rules", "public"), scale=("bought", "bounds", "public"))
        if self.selection is None:
            mean = self.recipe is None and self.start == "public"
            object.__setattr__(self, "selection", "mean" if mean else "votes")
        require_one_of(self, selection=("mean", "votes"))
        if self.selection == "votes":
            object.__setattr__(self, "recipe", self.settings)
        elif self.recipe is not None:
            raise InputError("recipe: it is for selection = 'votes'. Choose that, or leave the recipe out.")
        if self.pack is None:
            domain = self.settings.as_published and self.public is not None
            object.__setattr__(self, "pack", DOMAIN if domain else GENERAL)
        if "public" in (self.start, self.scale, *([] if self.pack != DOMAIN else ["public"])) and self.public is None:
            raise InputError("public: a file is expected, because the start, the scale or the pack is made from it.")
        if self.class_shares is not None:
            object.__setattr__(self, "class_shares", tuple(map(float, self.class_shares)))
            if min(self.class_shares) < 0 or abs(sum(self.class_shares) - 1) > _ROUNDED:
                raise InputError("class_shares: shares of at least 0 that add up to 1 are expected.")

    @property
    def settings(self) -> Recipe:
        """The recipe, of the start unless another is given."""
        return BY_START[self.start] if self.recipe is None else recipe_of(self.recipe, Recipe)

    def plan(self, schema: Schema, guarantee: Guarantee) -> SpendingPlan:
        """Return the facts, then one mean, or one histogram per iteration, with the least noise allowed after them."""
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
        public = self._public_panel(schema)
        if self.pack == DOMAIN:
            pretraining.require_enough(0 if public is None else public.num_series, schema.num_steps)
        else:
            self.modules_for(schema)
        entries = self._fact_entries(schema, guarantee)
        facts_events = [entry.event for entry in entries]
        one_vote = schema.unit.kind != "event" and schema.unit.max_series == 1 and self.settings.neighbours == 1
        histograms = partial(DiscreteGaussian, count=self.settings.iterations, one_vote=one_vote)
        label, event = (MEAN, Gaussian) if self.selection == "mean" else (VOTES, histograms)
        noise = smallest_noise_multiplier(event, guarantee, facts_events)
        return SpendingPlan((*entries, PlanEntry(label, event(noise))), guarantee)

    def _fact_entries(self, schema: Schema, guarantee: Guarantee) -> tuple[PlanEntry, ...]:
        """Return the facts that are released before the votes."""
        shares = facts.shares_of(schema, marginals=self.scale == "bought")
        if self.class_shares is not None:
            shares.pop("labels", None)
        multipliers = noise_multipliers(guarantee, shares) if shares else {}
        return tuple(PlanEntry(label, Gaussian(multiplier)) for label, multiplier in multipliers.items())

    def learn(self, private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
        """Release the facts, select a population, and return both.

        Privacy: private series are read by `release_facts` and by one mean, or one histogram per iteration, all
        through the grant; candidates, sizes and thresholds are public.
        """
        bought = self.release_facts(private, grant)
        progress("facts", _FACTS_SHARE)
        if self.selection == "mean":
            return self._reweighted(private, grant, bought)
        noise = votes_event(grant.plan).noise_multiplier * private.influence
        stages = self.settings.stages(noise)
        vote_of = partial(self._vote, private, grant)
        return self.evolved(private.panel.schema, bought, self._size(private, noise), stages, vote_of, progress)

    def _reweighted(self, private: PrivateSeries, grant: Grant, bought: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return members of a public pool, as often as the noisy mean embedding says."""
        schema, rng = private.schema, np.random.default_rng(self.seed)
        encoding, classes = encoding_of(schema, bought), num_labels(schema)
        environment = self.environment_for(encoding)
        affordable = _POOLED_VALUES // (schema.num_steps * encoding.num_channels)
        size = max(_FEWEST_POOLED, min(_POOL, _POOLED_PER_UNIT * private.population, affordable) // classes)
        pool = self.first_population(encoding, np.repeat(np.arange(classes), size), rng)
        pool = environment.distinct(pool, pool.ancestor, _POOL_DEGREE, rng)
        embedded = environment.embed(pool.series, pool.static)
        features = Features.around(embedded, rng)
        noisy = self._mean(private, grant, mean_embedding(encoding, environment, features))
        units = private.population * Facts.from_arrays(bought).label_share
        deviation, chosen = grant.deviation(MEAN, private.reach), list[np.ndarray]()
        for own, number in enumerate(units):
            place = np.flatnonzero(pool.group == own)
            weights = np.ones(len(place))
            if number > 0:  # a class that was released as empty stays as it is in the pool
                weights = maximum_entropy(features(embedded[place]), noisy[own] / number, deviation / number)
            chosen.append(place[by_share(weights, rng, min(size, _MEMBERS // classes + 1))])
        rows = np.concatenate(chosen)
        return self._released(schema, environment.distinct(pool.take(rows), rows, _POOL_DEGREE / 2, rng), bought)

    def _mean(self, private: PrivateSeries, grant: Grant, statistic: Statistic) -> np.ndarray:
        """Return the noisy mean embedding [class, feature] times the number of units."""
        return grant.release(statistic, private)

    def release_facts(self, private: PrivateSeries, grant: Grant) -> dict[str, np.ndarray]:
        """Return everything that is released before the votes: the releases of `facts.buy`, and public scales."""
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

        Reads nothing private but what `vote_of` releases, so it also runs where no private series are. `stages` are
        degree and threshold of each iteration, `size` is a multiple of the classes.
        """
        rng, ancestors = np.random.default_rng(self.seed), list[int]()
        here = self.prepared(schema, bought, size, rng)
        population = here.population
        for population in evolve(here.population, here.environment, vote_of(here), stages, rng):
            ancestors.append(len(np.unique(population.ancestor)))
            progress("evolution", _FACTS_SHARE + (1 - _FACTS_SHARE) * len(ancestors) / len(stages))
        return self._released(schema, population, bought) | {"ancestors": np.array(ancestors, dtype=np.int64)}

    def _released(self, schema: Schema, population: Population, bought: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        arrays = prefixed(_POPULATION, population.arrays()) | bought
        arrays["nodes"] = _nodes(population, Facts.from_arrays(bought))
        if self.pack != GENERAL:
            arrays[_PACK] = self.own_pack(schema).carried()
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
        """Return S_0: public series, of their own class where they have that label, or rule-based ones (Eq. 2)."""
        schema, whole = encoding.schema, slice(None)
        public = self._public_panel(schema)
        if public is not None and self.start == "public":
            label, everyone = public.label, np.arange(public.num_series)
            rows = np.empty(len(group), dtype=np.int64)
            for own in np.unique(group):
                fitting = everyone[:0] if label is None else np.flatnonzero(label == own)
                rows[group == own] = in_turn(fitting if len(fitting) else everyone, int((group == own).sum()), rng)
            first = Population.first(encoding.series(public, whole)[rows], encoding.static(public, whole)[rows], group)
            return replace(first, ancestor=rows)
        generate = RuleBased(
            num_steps=schema.num_steps,
            num_channels=encoding.num_channels,
            preset="pets" if self.settings.as_published else "rich",
            levels="spread" if public is None else levels_of(encoding.series(public, whole)),
            season=season_steps(schema.time, schema.num_steps) if schema.time.align == "calendar" else None,
            one_hot=encoding.channel_codes,
        )
        own = None if self.pack == DOMAIN else self.modules_for(schema).generation
        series = np.asarray((own or generate)(len(group), rng), dtype=np.float32)
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
        pack = pack or self.own_pack(schema)
        return fitted(pack, schema.num_steps, num_channels, as_published=self.settings.as_published)

    def own_pack(self, schema: Schema) -> Pack:
        """Return the method's pack, trained on the public table where that was asked for; takes minutes, once."""
        public = self._public_panel(schema)
        if self.pack != DOMAIN or public is None:
            return load_pack(str(self.pack), self.name)
        encoder: pretraining.Encoder = "ts2vec" if self.settings.as_published else "pooled-conv"
        return pretraining.domain_pack(public, encoder, self.seed)

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
        drawn, carried = population.take(members), arrays.get(_PACK)
        if len(np.unique(members)) < len(members):
            pack = None if carried is None else Pack.from_bytes(carried.tobytes(), self.name)
            degree = self.settings.stages(0.0)[-1][0]
            drawn = self.environment_for(encoding, pack).distinct(drawn, members, degree, rng)
        series = _calibrated(drawn.series, arrays["nodes"], known)
        return panel_of(schema, request, encoding, known, drawn.group, (series, drawn.static))

    def outlook(self, schema: Schema, guarantee: Guarantee) -> tuple[str, ...]:
        """Say how the mean or the votes compare with noise, and how the modules were made to fit."""
        adaptation = "Modules are trained on the public table first, which takes minutes."
        if self.pack != DOMAIN:
            adaptation = self.modules_for(self.learned_schema(schema)).adaptation
        if self.selection == "mean":
            units, noise = self._expected(schema, guarantee, MEAN)[:2]
            length = noise / units * math.sqrt(FEATURES)
            guided = ": this run would be guided by the public prior only" if length > 1 else ""
            return (f"The mean of vectors of length 1 gets noise of length {length:.2g}{guided}.", adaptation)
        return (*self.settings.outlook(*self._expected(schema, guarantee)), adaptation)

    def rehearsal(self, schema: Schema, guarantee: Guarantee) -> "PETS":
        """Return the method with as many candidates as the whole population votes on."""
        pack = GENERAL if self.pack == DOMAIN else self.pack
        if self.selection == "mean":
            return replace(self, pack=pack)
        size = self.settings.num_candidates(*self._expected(schema, guarantee))
        return replace(self, pack=pack, recipe=replace(self.settings, population=max(2, size)))

    def _expected(self, schema: Schema, guarantee: Guarantee, label: str = VOTES) -> tuple[int, float, int]:
        """Return how many vectors are expected, the standard deviation of a coordinate, and the number of classes."""
        event = self.planned(schema, guarantee).event(label)
        assert isinstance(event, DiscreteGaussian | Gaussian)
        noise = event.noise_multiplier * self.influence(schema)
        return self.num_contributions(schema, schema.population.size or 1), noise, num_labels(schema)

    def own_inputs(self) -> Mapping[str, str]:
        """Return the hashes of the pack and of the public table."""
        inputs = {} if self.pack == DOMAIN else {"pets pack": load_pack(str(self.pack), self.name).sha256}
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
    """Return quantiles [number, node] of the population's scores between atoms; none if none were bought."""
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

    Scores inside an atom (a bound that is often taken, such as no sun) stay there, and codes stay.
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
