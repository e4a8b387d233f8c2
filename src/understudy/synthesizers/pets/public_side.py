"""The public side of a run: everything the evolution needs, from public facts and from what was released.

Both `PETS.learn` and `understudy pets evolve`, which never sees private data, begin here.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from understudy.data import Panel, Schema, read_panel
from understudy.data.timegrid import season_steps
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import num_labels
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.pets.modules import ModulePack, Modules
from understudy.synthesizers.pets.published import Environment, Population
from understudy.synthesizers.pets.rules import RuleBased, levels_of
from understudy.synthesizers.pets.voting import Lattice

if TYPE_CHECKING:
    from understudy.synthesizers.pets.method import PETS


GENERAL = "general"  # name of the pack that comes with the package
_FEWEST_STEPS = 4  # that modules can be made to fit
# What the course of a series counts in a vote where series share a calendar. Series made by rules know no calendar: if
# it counted much, everybody's nearest candidate would be the flattest one.
_COURSE_WEIGHT = {"rules": 0.3, "public": 1.0}
_ENOUGH = 512  # candidates that the lattice is measured by


def by_rules(
    encoding: Encoding, group: np.ndarray, public: Panel | None, rng: np.random.Generator, *, preset: str = "rich"
) -> Population:
    """Return rule-based series (Eq. 2).

    Their levels are those of public series if there are any; their season is the calendar's if they share one.
    """
    levels = None if public is None else levels_of(encoding.series(public, slice(None)))
    time, num_steps = encoding.schema.time, encoding.schema.num_steps
    generate = RuleBased(
        num_steps=num_steps,
        num_channels=encoding.num_channels,
        preset=preset,
        rescale="spread" if levels is None else "public",
        public_levels=levels,
        season=season_steps(time, num_steps) if time.align == "calendar" else None,
        one_hot=encoding.channel_codes,
    )
    return Population.first(generate(len(group), rng), _any_static(encoding, len(group), rng), group)


def from_public(encoding: Encoding, group: np.ndarray, public: Panel, rng: np.random.Generator) -> Population:
    """Return public series; those of a class where the public panel has that label, any where it has not."""
    rows = np.empty(len(group), dtype=np.int64)
    for own in np.unique(group):
        fitting = np.flatnonzero(public.label == own) if public.label is not None else np.empty(0, dtype=np.int64)
        pool = fitting if len(fitting) else np.arange(public.num_series)
        number = int((group == own).sum())
        rounds = [rng.permutation(pool) for _ in range(-(-number // len(pool)))]
        rows[group == own] = np.concatenate(rounds)[:number]
    whole = slice(None)
    return Population.first(encoding.series(public, whole)[rows], encoding.static(public, whole)[rows], group)


def read_public(path: Path, schema: Schema) -> Panel:
    """Return a public table of series as long as those that are learned from, with the same columns."""
    bare = replace(schema, context=(), constraints=())
    return replace(read_panel(path, bare, allow_few_units=True), private=False, unit_ids=None)


def _any_static(encoding: Encoding, number: int, rng: np.random.Generator) -> np.ndarray:
    """Return static columns of which nothing is known: normal numbers, even codes."""
    width = encoding.num_static
    static = rng.standard_normal((number, width), dtype=np.float32)
    for begin, end in encoding.static_codes:
        static[:, begin:end] = np.eye(end - begin, dtype=np.float32)[rng.integers(0, end - begin, number)]
    return static


@dataclass(frozen=True, eq=False, kw_only=True)
class Setup:
    """A schema's encoding, the modules that fit it, the first population and the lattice laid over it."""

    encoding: Encoding
    environment: Environment
    population: Population
    lattice: Lattice


def release_facts(method: "PETS", private: PrivateSeries, grant: Grant) -> dict[str, np.ndarray]:
    """Return everything that is released before the votes, as public arrays.

    Privacy: the releases of `facts.buy`; nothing else is looked at.
    """
    schema = private.panel.schema
    linear = linear_scales(schema, public_panel(method, schema) if method.scale == "public" else None)
    declared = {} if method.class_shares is None else {"label_share": np.array(method.class_shares)}
    if method.class_shares is None and not grant.plan.entries:  # the control that buys nothing
        declared = {"label_share": np.full(num_labels(schema), 1 / num_labels(schema))}
    return {**facts.buy(private, grant, linear).to_arrays(), **declared, "linear": linear}


def prepare(
    method: "PETS", schema: Schema, bought: dict[str, np.ndarray], size: int, rng: np.random.Generator
) -> Setup:
    """Return the public side of a run over `schema`, the contract of what is learned from.

    Args:
        bought: What `release_facts` returned.
        size: Candidates in all, a multiple of the classes.
    """
    encoding = encoding_of(schema, bought)
    environment = environment_of(method, encoding)
    public = public_panel(method, schema)
    group = np.repeat(np.arange(num_labels(schema)), size // num_labels(schema))
    if method.start == "public" and public is not None:
        population = from_public(encoding, group, public, rng)
    else:
        preset = "pets" if method.settings.as_published else "rich"
        population = by_rules(encoding, group, public, rng, preset=preset)
    some = rng.permutation(population.size)[:_ENOUGH]
    lattice = Lattice.around(environment.embed(population.series[some], population.static[some]))
    return Setup(encoding=encoding, environment=environment, population=population, lattice=lattice)


def encoding_of(schema: Schema, bought: dict[str, np.ndarray]) -> Encoding:
    """Return the encoding that released facts define."""
    return Encoding.of(schema, Facts.from_arrays(bought).marginals, bought["linear"])


def environment_of(method: "PETS", encoding: Encoding, pack: ModulePack | None = None) -> Environment:
    """Return the modules, of the method's pack unless another is given, and how candidates are judged."""
    modules = modules_of(pack or load_pack(method.pack), encoding.schema, as_published=method.settings.as_published)
    return Environment(
        variation=modules.variation,
        similarity=modules.similarity,
        lookahead=method.settings.lookahead,
        static_codes=encoding.static_codes,
        course_weight=_COURSE_WEIGHT[method.start] if encoding.schema.time.align == "calendar" else 0.0,
        by_chance=method.settings.as_published,
    )


def modules_of(pack: ModulePack, schema: Schema, *, as_published: bool = False) -> Modules:
    """Return a pack's modules made to fit a schema, or refuses and says why."""
    encoding = Encoding.of(schema, (), linear_scales(schema, None))
    times = -(-_FEWEST_STEPS // schema.num_steps)  # series too short for any network are shown with steps repeated
    fitted = pack.fit_to(times * schema.num_steps, encoding.num_channels, as_published=as_published)
    if times == 1:
        return fitted

    def vary(series: np.ndarray, degree: float, rng: np.random.Generator) -> np.ndarray:
        varied = fitted.variation(series.repeat(times, axis=1), degree, rng)
        return varied.reshape(len(series), schema.num_steps, times, -1).mean(axis=2)

    def embed(series: np.ndarray) -> np.ndarray:
        return fitted.similarity(series.repeat(times, axis=1))

    told = f"Every step is shown {times} times, because series are short: {fitted.adaptation}"
    return Modules(variation=vary, similarity=embed, adaptation=told)


def load_pack(pack: str) -> ModulePack:
    """Return the general pack, or the one in a file."""
    return ModulePack.general() if pack == GENERAL else ModulePack.load(pack)


def public_panel(method: "PETS", schema: Schema) -> Panel | None:
    """Return the public table in the shape of what is learned from, None without one."""
    if method.public is None:
        return None
    path = Path(method.public)
    return _read(path, path.stat().st_mtime_ns, schema)


@lru_cache(maxsize=2)
def _read(path: Path, modified: int, schema: Schema) -> Panel:
    return read_public(path, schema)
