"""The public side of a run: what comes before the votes and after them, from public facts and from what was released.

Both `PETS.learn` and `understudy pets evolve`, which never sees private data, begin and end here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from understudy.data import Panel, Schema, read_panel
from understudy.data.timegrid import season_steps
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import num_labels
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.facts import Facts
from understudy.statistics.marginals import bounded_scores
from understudy.synthesizers.base import Progress, SampleRequest
from understudy.synthesizers.packs import GENERAL, Pack, load_pack
from understudy.synthesizers.pets.modules import Modules, fitted
from understudy.synthesizers.pets.published import Environment, Population, Vote, evolve
from understudy.synthesizers.pets.rules import RuleBased, in_turn, levels_of
from understudy.synthesizers.pets.voting import Lattice
from understudy.synthesizers.sampling import panel_of, sample_classes

if TYPE_CHECKING:
    from understudy.synthesizers.pets.method import PETS

# What the course of a series counts in a vote where series share a calendar. Series made by rules know no calendar: if
# it counted much, everybody's nearest candidate would be the flattest one.
_COURSE_WEIGHT = {"rules": 0.3, "public": 1.0}
_ENOUGH = 512  # candidates that the lattice is measured by
_NODES = 513
_POPULATION, _PACK = "population.", "pack"  # arrays of a release
BOUGHT = 0.3  # share of the progress that facts take


def release_facts(method: "PETS", private: PrivateSeries, grant: Grant) -> dict[str, np.ndarray]:
    """Return everything that is released before the votes, as public arrays.

    Privacy: the releases of `facts.buy`; nothing else is looked at.
    """
    schema = private.panel.schema
    linear = linear_scales(schema, public_panel(method, schema) if method.scale == "public" else None)
    declared = {} if method.class_shares is None else {"label_share": np.array(method.class_shares)}
    return {**facts.buy(private, grant).to_arrays(), **declared, "linear": linear}


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """A schema's encoding, the modules that fit it, the first population and the lattice laid over it."""

    encoding: Encoding
    environment: Environment
    population: Population
    lattice: Lattice


def evolved(
    method: "PETS",
    schema: Schema,
    bought: dict[str, np.ndarray],
    size: int,
    stages: Sequence[tuple[float, float]],
    vote_of: Callable[[Setup], Vote],
    seed: int,
    progress: Progress,
) -> dict[str, np.ndarray]:
    """Return what a release holds: the last population, the facts, and the pack if it is not the package's own.

    Args:
        schema: The contract of what is learned from.
        bought: What `release_facts` returned.
        size: Candidates in all, a multiple of the classes.
        stages: Degree and threshold of each iteration.
        vote_of: Returns the function that counts one histogram per call.
    """
    rng, ancestors = np.random.default_rng(seed), list[int]()
    here = prepare(method, schema, bought, size, rng)

    def watch(done: int, population: Population) -> None:
        ancestors.append(population.num_ancestors)
        progress("evolution", BOUGHT + (1 - BOUGHT) * done / len(stages))

    population = evolve(here.population, here.environment, vote_of(here), stages, rng, watch)
    arrays = {**population.arrays(_POPULATION), **bought, "nodes": _nodes(population, Facts.from_arrays(bought))}
    if method.pack != GENERAL:
        arrays[_PACK] = np.frombuffer(load_pack(method.pack, method.name).to_bytes(), dtype=np.uint8).copy()
    return {**arrays, "ancestors": np.array(ancestors, dtype=np.int64)}


def prepare(
    method: "PETS", schema: Schema, bought: dict[str, np.ndarray], size: int, rng: np.random.Generator
) -> Setup:
    """Return the public side of a run before its first vote."""
    encoding = encoding_of(schema, bought)
    environment = environment_of(method, encoding)
    public = public_panel(method, schema)
    group = np.repeat(np.arange(num_labels(schema)), size // num_labels(schema))
    if method.start == "public" and public is not None:
        population = from_public(encoding, group, public, rng)
    else:
        population = by_rules(encoding, group, public, rng, "pets" if method.settings.as_published else "rich")
    some = rng.permutation(population.size)[:_ENOUGH]
    lattice = Lattice.around(environment.embed(population.series[some], population.static[some]))
    return Setup(encoding=encoding, environment=environment, population=population, lattice=lattice)


def by_rules(
    encoding: Encoding, group: np.ndarray, public: Panel | None, rng: np.random.Generator, preset: str = "rich"
) -> Population:
    """Return rule-based series (Eq. 2), with static columns of which nothing is known: normal numbers, even codes.

    Their levels are those of public series if there are any; their season is the calendar's if they share one.
    """
    time, num_steps, number = encoding.schema.time, encoding.schema.num_steps, len(group)
    generate = RuleBased(
        num_steps=num_steps,
        num_channels=encoding.num_channels,
        preset=preset,
        levels="spread" if public is None else levels_of(encoding.series(public, slice(None))),
        season=season_steps(time, num_steps) if time.align == "calendar" else None,
        one_hot=encoding.channel_codes,
    )
    series, static = generate(number, rng), rng.standard_normal((number, encoding.num_static), dtype=np.float32)
    for begin, end in encoding.static_codes:
        static[:, begin:end] = np.eye(end - begin, dtype=np.float32)[rng.integers(0, end - begin, number)]
    return Population.first(series, static, group)


def from_public(encoding: Encoding, group: np.ndarray, public: Panel, rng: np.random.Generator) -> Population:
    """Return public series; those of a class where the public panel has that label, any where it has not."""
    rows = np.empty(len(group), dtype=np.int64)
    for own in np.unique(group):
        fitting = np.flatnonzero(public.label == own) if public.label is not None else np.empty(0, dtype=np.int64)
        pool = fitting if len(fitting) else np.arange(public.num_series)
        rows[group == own] = in_turn(pool, int((group == own).sum()), rng)
    whole = slice(None)
    return Population.first(encoding.series(public, whole)[rows], encoding.static(public, whole)[rows], group)


def encoding_of(schema: Schema, bought: dict[str, np.ndarray]) -> Encoding:
    """Return the encoding that released facts define."""
    return Encoding.of(schema, Facts.from_arrays(bought).marginals, bought["linear"])


def environment_of(method: "PETS", encoding: Encoding, pack: Pack | None = None) -> Environment:
    """Return the modules, of the method's pack unless another is given, and how candidates are judged."""
    modules = modules_of(method, encoding.schema, pack)
    return Environment(
        variation=modules.variation,
        similarity=modules.similarity,
        lookahead=method.settings.lookahead,
        static_codes=encoding.static_codes,
        course_weight=_COURSE_WEIGHT[method.start] if encoding.schema.time.align == "calendar" else 0.0,
        by_chance=method.settings.as_published,
    )


def modules_of(method: "PETS", schema: Schema, pack: Pack | None = None) -> Modules:
    """Return a pack's modules made to fit a schema, or refuse and say why."""
    num_channels = Encoding.of(schema, (), linear_scales(schema, None)).num_channels
    pack = pack or load_pack(method.pack, method.name)
    return fitted(pack, schema.num_steps, num_channels, as_published=method.settings.as_published)


def public_panel(method: "PETS", schema: Schema) -> Panel | None:
    """Return the public table in the shape of what is learned from, None without one."""
    if method.public is None:
        return None
    path = Path(method.public)
    return read_public(path, schema, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def read_public(path: Path, schema: Schema, modified: int = 0) -> Panel:
    """Return a public table of series as long as those that are learned from, with the same columns."""
    bare = replace(schema, context=(), constraints=())
    return replace(read_panel(path, bare, allow_few_units=True), private=False, unit_ids=None)


def sample(method: "PETS", arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
    """Return members in their classes' released proportions: all of a class, then relatives of them."""
    rng, known = request.rng, Facts.from_arrays(arrays)
    encoding = encoding_of(schema, arrays)
    names = [name for name in arrays if name.startswith(_POPULATION)]
    population = Population(**{name.removeprefix(_POPULATION): arrays[name] for name in names})
    classes = sample_classes(known, request)
    members = np.empty(request.num_series, dtype=np.int64)
    for own in np.unique(classes):
        members[classes == own] = in_turn(np.flatnonzero(population.group == own), int((classes == own).sum()), rng)
    drawn = population.take(members)
    again = np.setdiff1d(np.arange(len(members)), np.unique(members, return_index=True)[1])
    if len(again):
        carried = arrays.get(_PACK)
        pack = None if carried is None else Pack.from_bytes(carried.tobytes(), method.name, "The release's pack")
        environment = environment_of(method, encoding, pack)
        relatives = environment.relatives(drawn.take(again), method.settings.stages(0.0)[-1][0], rng)
        drawn.series[again], drawn.static[again] = relatives.series, relatives.static
    series = _calibrated(drawn.series, arrays["nodes"], known)
    return panel_of(schema, request, encoding, known, drawn.group, (series, drawn.static))


def _nodes(population: Population, known: Facts) -> np.ndarray:
    """Return quantiles [number, node] of the population's scores between atoms, each class with its released share.

    Empty if no distributions were bought: then working scale is what it is.
    """
    weight = (known.label_share / np.bincount(population.group, minlength=len(known.label_share)))[population.group]
    repeated = np.repeat(weight, population.series.shape[1])
    ranks, nodes = np.linspace(0, 1, _NODES), [np.zeros((0, _NODES))]
    for channel, low, high in _between_atoms(known, population.series.shape[2]):
        scores = population.series[:, :, channel].ravel()
        kept = np.flatnonzero((scores > low) & (scores < high) & (repeated > 0))
        order = kept[np.argsort(scores[kept], kind="stable")]
        reached = np.cumsum(repeated[order])
        quantiles = np.interp(ranks * reached[-1], reached, scores[order]) if len(order) else np.zeros(_NODES)
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
        ranks = np.interp(scores, own, np.linspace(ndtr(low), ndtr(high), _NODES))
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
