"""From a released population to synthetic series. Nothing here has ever seen private data."""

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from understudy.data import Panel, Schema
from understudy.statistics.encoding import Encoding
from understudy.statistics.facts import Facts
from understudy.statistics.marginals import bounded_scores
from understudy.synthesizers.base import SampleRequest
from understudy.synthesizers.pets import public_side
from understudy.synthesizers.pets.modules import ModulePack
from understudy.synthesizers.pets.published import Population

if TYPE_CHECKING:
    from understudy.synthesizers.pets.method import PETS

_PREFIX, _PACK = "population.", "pack"
_NODES = 513
_PARTS = ("series", "static", "group", "ancestor")


def to_arrays(
    method: "PETS", population: Population, bought: dict[str, np.ndarray], ancestors: list[int]
) -> dict[str, np.ndarray]:
    """Return what a release holds: the last population, the facts, and the pack if it is not the package's own.

    `ancestors` says how many members of the first population had descendants after each vote.
    """
    arrays = population_arrays(_PREFIX, population)
    facts = Facts.from_arrays(bought)
    arrays |= {**facts.to_arrays(), "linear": bought["linear"], "nodes": _nodes(population, facts)}
    if method.pack != public_side.GENERAL:
        arrays[_PACK] = np.frombuffer(public_side.load_pack(method.pack).to_bytes(), dtype=np.uint8).copy()
    return {**arrays, "ancestors": np.array(ancestors, dtype=np.int64)}


def population_arrays(prefix: str, population: Population) -> dict[str, np.ndarray]:
    """Return a population's arrays under a prefix."""
    return {f"{prefix}{name}": getattr(population, name) for name in _PARTS}


def population_of(arrays: dict[str, np.ndarray]) -> Population:
    """Return the population that `to_arrays` stored."""
    return Population(**{name: arrays[f"{_PREFIX}{name}"] for name in _PARTS})


def sample(method: "PETS", arrays: dict[str, np.ndarray], schema: Schema, request: SampleRequest) -> Panel:
    """Return members in their classes' released proportions; who is drawn again is drawn as a relative."""
    rng, facts = request.rng, Facts.from_arrays(arrays)
    encoding = public_side.encoding_of(schema, arrays)
    members = _members(population_of(arrays), facts, request)
    drawn = _with_relatives(method, arrays, members, encoding, rng)
    lengths = facts.sample_lengths(schema, request.num_series, rng)
    series = _calibrated(drawn.series, arrays["nodes"], facts)
    values = encoding.values(series)
    missing = facts.sample_missing(schema, encoding.ranked(series), lengths, rng)
    values[missing] = np.nan
    return request.panel(schema, values, lengths, _static(encoding, facts, drawn, rng))


def _nodes(population: Population, facts: Facts) -> np.ndarray:
    """Return quantiles [number, node] of the population's scores between atoms, each class with its released share.

    Empty if no distributions were bought: then working scale is what it is.
    """
    weight = (facts.label_share / np.bincount(population.group, minlength=len(facts.label_share)))[population.group]
    repeated = np.repeat(weight, population.series.shape[1])
    ranks, nodes = np.linspace(0, 1, _NODES), [np.zeros((0, _NODES))]
    for channel, low, high in _between_atoms(facts, population.series.shape[2]):
        scores = population.series[:, :, channel].ravel()
        kept = np.flatnonzero((scores > low) & (scores < high) & (repeated > 0))
        order = kept[np.argsort(scores[kept], kind="stable")]
        reached = np.cumsum(repeated[order])
        known = np.interp(ranks * reached[-1], reached, scores[order]) if len(order) else np.zeros(_NODES)
        nodes.append(known[None])
    return np.concatenate(nodes)


def _calibrated(series: np.ndarray, nodes: np.ndarray, facts: Facts) -> np.ndarray:
    """Return scores whose distribution over the population is the bought one between the atoms.

    What selection left slightly too high or too wide is corrected for all series alike. Scores inside an atom (a bound
    that is often taken, such as no sun) stay there, and codes stay.
    """
    calibrated = series.astype(np.float64)
    for own, (channel, low, high) in zip(nodes, _between_atoms(facts, series.shape[2]), strict=True):
        scores = series[:, :, channel]
        ranks = np.interp(scores, own, np.linspace(ndtr(low), ndtr(high), _NODES))
        calibrated[:, :, channel] = np.where((scores > low) & (scores < high), bounded_scores(ranks), scores)
    return calibrated


def _between_atoms(facts: Facts, num_channels: int) -> list[tuple[int, float, float]]:
    """Return (working channel, scores between which its values have no mass of their own) of channels of numbers."""
    found, place = [], 0
    for marginal in facts.marginals:
        if place < num_channels and not marginal.grid.is_codes:
            low, high = ndtri(marginal.cumulative[[1, -2]])  # the first and the last cell are the bounds themselves
            found.append((place, float(low), float(high)))
        place += marginal.grid.num_cells if marginal.grid.is_codes else 1
    return found


def _members(population: Population, facts: Facts, request: SampleRequest) -> np.ndarray:
    """Return which member each series is: all of a class before any of them again."""
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
    method: "PETS", arrays: dict[str, np.ndarray], members: np.ndarray, encoding: Encoding, rng: np.random.Generator
) -> Population:
    """Return the members; every one after its first time as a relative of the last degree."""
    drawn = population_of(arrays).take(members)
    _, first = np.unique(members, return_index=True)
    again = np.setdiff1d(np.arange(len(members)), first)
    if not len(again):
        return drawn
    carried = arrays.get(_PACK)
    pack = None if carried is None else ModulePack.from_bytes(carried.tobytes())
    environment = public_side.environment_of(method, encoding, pack)
    relatives = environment.relatives(drawn.take(again), method.settings.stages(0.0)[-1][0], rng)
    drawn.series[again], drawn.static[again] = relatives.series, relatives.static
    return drawn


def _static(encoding: Encoding, facts: Facts, drawn: Population, rng: np.random.Generator) -> np.ndarray:
    """Return [series, static] in the user's units: the label from the class, the others as they evolved."""
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
