"""From a released population to synthetic series. Nothing here has ever seen private data."""

from typing import TYPE_CHECKING

import numpy as np

from understudy.data import Panel, Schema
from understudy.synthesizers.base import Draw
from understudy.synthesizers.pets import world
from understudy.synthesizers.pets.encoding import Encoding
from understudy.synthesizers.pets.facts import Facts
from understudy.synthesizers.pets.population import Population

if TYPE_CHECKING:
    from understudy.synthesizers.pets.method import Pets

_PREFIX, _PACK = "population.", "pack"
_PARTS = ("series", "static", "group", "ancestor")


def to_arrays(
    method: "Pets", population: Population, bought: dict[str, np.ndarray], ancestors: list[int]
) -> dict[str, np.ndarray]:
    """Returns what a release holds: the last population, the facts, and the pack if it is not the package's own.

    `ancestors` says how many members of the first population had descendants after each vote.
    """
    arrays = population_arrays(_PREFIX, population)
    arrays |= {**Facts.from_arrays(bought).to_arrays(), "linear": bought["linear"]}
    if method.pack != world.GENERAL:
        arrays[_PACK] = np.frombuffer(world.load_pack(method.pack).to_bytes(), dtype=np.uint8).copy()
    return {**arrays, "ancestors": np.array(ancestors, dtype=np.int64)}


def population_arrays(prefix: str, population: Population) -> dict[str, np.ndarray]:
    """Returns a population's arrays under a prefix."""
    return {f"{prefix}{name}": getattr(population, name) for name in _PARTS}


def population_of(arrays: dict[str, np.ndarray]) -> Population:
    """Returns the population that `to_arrays` stored."""
    return Population(**{name: arrays[f"{_PREFIX}{name}"] for name in _PARTS})


def draw(method: "Pets", arrays: dict[str, np.ndarray], schema: Schema, request: Draw) -> Panel:
    """Returns members in their classes' released proportions; who is drawn again is drawn as a relative."""
    rng, facts = request.rng, Facts.from_arrays(arrays)
    encoding = world.encoding_of(schema, arrays)
    members = _members(population_of(arrays), facts, request)
    drawn = _with_relatives(method, arrays, members, encoding, rng)
    lengths = facts.draw_lengths(schema, request.num_series, rng)
    values = encoding.values(drawn.series)
    missing = facts.draw_missing(schema, encoding.ranked(drawn.series), lengths, rng)
    values[missing] = np.nan
    return request.panel(schema, values, lengths, _static(encoding, facts, drawn, rng))


def _members(population: Population, facts: Facts, request: Draw) -> np.ndarray:
    """Returns which member each series is: all of a class before any of them again."""
    rng, number = request.rng, request.num_series
    if request.label is None:
        classes = rng.choice(len(facts.label_share), size=number, p=facts.label_share / facts.label_share.sum())
    else:
        classes = np.full(number, request.label)
    members = np.empty(number, dtype=np.int64)
    for own in np.unique(classes):
        pool, wanted = np.flatnonzero(population.group == own), np.flatnonzero(classes == own)
        rounds = [rng.permutation(pool) for _ in range(-(-len(wanted) // len(pool)))]
        members[wanted] = np.concatenate(rounds)[: len(wanted)]
    return members


def _with_relatives(
    method: "Pets", arrays: dict[str, np.ndarray], members: np.ndarray, encoding: Encoding, rng: np.random.Generator
) -> Population:
    """Returns the members; every one after its first time as a relative of the last degree."""
    drawn = population_of(arrays).take(members)
    _, first = np.unique(members, return_index=True)
    again = np.setdiff1d(np.arange(len(members)), first)
    if not len(again):
        return drawn
    schema, carried = encoding.schema, arrays.get(_PACK)
    pack = world.load_pack(method.pack) if carried is None else world.pack_from_bytes(carried.tobytes())
    modules = world.modules_of(pack, schema)
    degree = method.recipe.stages(0.0)[-1][0]
    relatives = world.environment_of(method, encoding, modules).relatives(drawn.take(again), degree, rng)
    drawn.series[again], drawn.static[again] = relatives.series, relatives.static
    return drawn


def _static(encoding: Encoding, facts: Facts, drawn: Population, rng: np.random.Generator) -> np.ndarray:
    """Returns [series, static] in the user's units: the label from the class, the others as they evolved."""
    schema = encoding.schema
    static = np.empty((drawn.size, len(schema.static)))
    own = encoding.static_values(drawn.static)
    own[rng.random(own.shape) < facts.static_missing] = np.nan
    kept = [place for place, column in enumerate(schema.static) if column.name != schema.label]
    static[:, kept] = own
    if schema.label_column is not None:
        place = [column.name for column in schema.static].index(schema.label_column.name)
        static[:, place] = np.where(drawn.group < len(schema.label_column.categories), drawn.group, np.nan)
    return static
