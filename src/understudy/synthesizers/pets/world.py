"""The public side of a run: everything the evolution needs, from public facts and from what was released.

Both `Pets.learn` and `understudy pets evolve`, which never sees private data, begin here.
"""

import tempfile
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from understudy.data import Panel, Schema
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics import facts
from understudy.statistics.columns import num_labels
from understudy.statistics.copula import Model
from understudy.statistics.encoding import Encoding, linear_scales
from understudy.statistics.facts import Facts
from understudy.synthesizers.base import Progress
from understudy.synthesizers.pets import starts
from understudy.synthesizers.pets.evolution import Environment
from understudy.synthesizers.pets.modules import ModulePack, Modules
from understudy.synthesizers.pets.population import Population
from understudy.synthesizers.pets.voting import Lattice
from understudy.synthesizers.registry import METHODS

if TYPE_CHECKING:
    from understudy.synthesizers.pets.method import Pets

GENERAL = "general"  # name of the pack that comes with the package
SPECTRAL = "spectral."  # prefix of the arrays of a `spectral` release that the evolution starts from
_FEWEST_STEPS = 4  # that modules can be made to fit
# What the course of a series counts in a vote where series share a calendar. Series made by rules know no calendar: if
# it counted much, everybody's nearest candidate would be the flattest one.
_COURSE_WEIGHT = {"rules": 0.3, "public": 1.0, "spectral": 1.0}
_ENOUGH = 512  # candidates that the lattice is measured by


@dataclass(frozen=True, eq=False, kw_only=True)
class World:
    """A schema's encoding, the modules that fit it, the first population and the lattice laid over it."""

    encoding: Encoding
    environment: Environment
    population: Population
    lattice: Lattice


def purchases(method: "Pets", private: PrivateSeries, grant: Grant, progress: Progress) -> dict[str, np.ndarray]:
    """Returns everything that is bought beside the votes, as public arrays.

    Privacy: `spectral`'s releases, or those of `facts.buy`; nothing else is looked at.
    """
    schema = private.panel.schema
    linear = linear_scales(schema, public_panel(method, schema) if method.scale == "public" else None)
    declared = {} if method.class_shares is None else {"label_share": np.array(method.class_shares)}
    if method.class_shares is None and not grant.plan.entries:  # the control that buys nothing
        declared = {"label_share": np.full(num_labels(schema), 1 / num_labels(schema))}
    if method.start != "spectral":
        return {**facts.buy(private, grant, linear).to_arrays(), **declared, "linear": linear}
    learned = METHODS.create("spectral").learn(private, grant, progress)
    release = {f"{SPECTRAL}{name}": array for name, array in learned.items()}
    return {
        **facts.facts_of_copula(Model.from_arrays(learned), schema).to_arrays(),
        **declared,
        "linear": linear,
        **release,
    }


def prepare(
    method: "Pets", schema: Schema, bought: dict[str, np.ndarray], size: int, rng: np.random.Generator
) -> World:
    """Returns the world of a run over `schema`, the contract of what is learned from.

    Args:
        bought: What `purchases` returned.
        size: Candidates in all, a multiple of the classes.
    """
    encoding = encoding_of(schema, bought)
    environment = environment_of(method, encoding, modules_of(load_pack(method.pack), schema), bought)
    public = public_panel(method, schema)
    group = np.repeat(np.arange(num_labels(schema)), size // num_labels(schema))
    if environment.fresh is not None:
        population = environment.fresh(group, rng)
    elif method.start == "public" and public is not None:
        population = starts.from_public(encoding, group, public, rng)
    else:
        population = starts.by_rules(encoding, group, public, rng)
    some = rng.permutation(population.size)[:_ENOUGH]
    lattice = Lattice.around(environment.embed(population.series[some], population.static[some]))
    return World(encoding=encoding, environment=environment, population=population, lattice=lattice)


def encoding_of(schema: Schema, bought: dict[str, np.ndarray]) -> Encoding:
    """Returns the encoding that released facts define."""
    return Encoding.of(schema, Facts.from_arrays(bought).marginals, bought["linear"])


def environment_of(method: "Pets", encoding: Encoding, modules: Modules, bought: dict[str, np.ndarray]) -> Environment:
    """Returns what candidates live in."""
    release = spectral_release(bought)
    return Environment(
        variation=modules.variation,
        similarity=modules.similarity,
        lookahead=method.recipe.lookahead,
        static_codes=encoding.static_codes,
        course_weight=_COURSE_WEIGHT[method.start] if encoding.schema.time.align == "calendar" else 0.0,
        by_chance=method.recipe.by_chance,
        fresh=partial(starts.from_spectral, encoding, release) if method.start == "spectral" else None,
    )


def spectral_release(bought: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the arrays of the `spectral` release that a run started from; empty if there is none."""
    return {name.removeprefix(SPECTRAL): array for name, array in bought.items() if name.startswith(SPECTRAL)}


def modules_of(pack: ModulePack, schema: Schema) -> Modules:
    """Returns a pack's modules made to fit a schema, or refuses and says why."""
    encoding = Encoding.of(schema, (), linear_scales(schema, None))
    times = -(-_FEWEST_STEPS // schema.num_steps)  # series too short for any network are shown with steps repeated
    fitted = pack.fit_to(times * schema.num_steps, encoding.num_channels)
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
    """Returns the general pack, or the one in a file."""
    return ModulePack.general() if pack == GENERAL else ModulePack.load(pack)


def pack_from_bytes(content: bytes) -> ModulePack:
    """Returns a pack that a release carries along."""
    with tempfile.TemporaryDirectory(prefix="understudy-pack-") as folder:
        file = Path(folder) / "pack.safetensors"
        file.write_bytes(content)
        return ModulePack.load(file)


def public_panel(method: "Pets", schema: Schema) -> Panel | None:
    """Returns the public table in the shape of what is learned from, None without one."""
    if method.public is None:
        return None
    path = Path(method.public)
    return _read(path, path.stat().st_mtime_ns, schema)


@lru_cache(maxsize=2)
def _read(path: Path, modified: int, schema: Schema) -> Panel:
    return starts.read_public(path, schema)
