"""Algorithm 2: private series vote for the candidates nearest to them, and noise goes on the counts.

One vote vector per privacy unit, of Euclidean length at most one. What a unit votes for depends on that unit and on
public candidates alone, to the last bit: embeddings are laid on a public lattice of whole numbers, on which distances
are exact. Otherwise one more unit could change how a library rounds the others' distances, and thereby their votes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int16, Int64

from understudy.data import Panel
from understudy.errors import InputError
from understudy.nn.nearest import nearest
from understudy.privacy.border import Given, Statistic
from understudy.privacy.contributions import Cells
from understudy.privacy.events import DiscreteGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import classes_of
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.pets.published import Environment, Vote

LABEL = "votes"  # under which histograms are charged
_BATCH = 256  # series encoded at a time, a constant: libraries round batches of different size differently
_BLOCK_SERIES = 4096
_REACH = 4.0  # deviations of the first candidates that the lattice covers; what lies beyond is moved to its edge


@dataclass(frozen=True, eq=False)
class Lattice:
    """Whole-number coordinates for embeddings, fixed by the first candidates and never by private series.

    Attributes:
        centre: Mean embedding of the first candidates.
        step: Length of one unit of the lattice.
    """

    centre: Float32[np.ndarray, " dimension"]
    step: Float32[np.ndarray, " dimension"]

    @classmethod
    def around(cls, embeddings: np.ndarray) -> "Lattice":
        """Return the lattice that covers public embeddings [candidate, dimension]."""
        deviation = embeddings.std(axis=0, dtype=np.float64)
        typical = float(np.sqrt((deviation**2).mean())) or 1.0
        step = np.full(embeddings.shape[1], _REACH * typical / _limit(embeddings.shape[1]))
        return cls(embeddings.mean(axis=0, dtype=np.float64).astype(np.float32), step.astype(np.float32))

    def coordinates(self, embeddings: np.ndarray) -> np.ndarray:
        """Return int16 coordinates [row, dimension]; each row follows from its own embedding alone.

        Privacy: distances are exact for the dimensions of the lattice, so embeddings must have the same number.
        """
        if not self.centre.shape == self.step.shape == embeddings.shape[1:]:
            raise InputError("lattice: as many dimensions as embeddings have are expected. Ask for the proposal again.")
        limit = _limit(len(self.centre))
        places = np.rint((embeddings.astype(np.float64) - self.centre) / self.step)
        return np.nan_to_num(places, nan=0.0, posinf=limit, neginf=-limit).clip(-limit, limit).astype(np.int16)


@dataclass(frozen=True, eq=False)
class Voters:
    """Private series as the lattice shows them, encoded once per run.

    Privacy: private, like the panel; used by `votes` and nowhere else. Blocks hold whole units.
    """

    blocks: tuple["Block", ...]
    num_units: int

    def __repr__(self) -> str:
        return "Voters(<private>)"


@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """Some units' series: coordinates, whose they are, and the class each votes in."""

    coordinates: Int16[np.ndarray, "series dimension"]
    unit: Int64[np.ndarray, " series"]
    group: Int64[np.ndarray, " series"]


def blocks_of(unit: Int64[np.ndarray, " series"], size: int = _BLOCK_SERIES) -> Iterator[slice]:
    """Cuts series grouped by unit into slices of whole units, about `size` series each."""
    begin = 0
    while begin < len(unit):
        end = min(begin + size, len(unit))
        end = int(np.searchsorted(unit, unit[end - 1], side="right"))
        yield slice(begin, end)
        begin = end


def votes(
    voters: Iterable[Block], candidates: Int16[np.ndarray, "candidate dimension"], group: np.ndarray, neighbours: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields (unit, candidate, number of votes) of one block after another.

    Privacy: private. A unit's votes depend on its own series only; nothing is normalised yet.
    """
    for block in voters:
        units, bins = [], []
        for own in np.unique(group):
            places, rows = np.flatnonzero(group == own), np.flatnonzero(block.group == own)
            near = nearest(block.coordinates[rows], candidates[places], min(neighbours, len(places)))[0]
            units.append(np.repeat(block.unit[rows], near.shape[1]))
            bins.append(places[near].ravel())
        keys = np.concatenate(units) * len(group) + np.concatenate(bins)
        key, number = np.unique(keys, return_counts=True)
        yield key // len(group), key % len(group), number


def contributions(voters: Voters, candidates: np.ndarray, group: np.ndarray, neighbours: int) -> Cells:
    """Return the votes of all units, those of a unit scaled to length one; every candidate is a ballot of one cell."""
    none = np.zeros(0, dtype=np.int64)
    units, places, worths = [none], [none], [np.zeros(0)]
    for unit, place, number in votes(voters.blocks, candidates, group, neighbours):
        if not len(unit):
            continue
        length = np.sqrt(np.bincount(unit - unit[0], weights=number.astype(np.float64) ** 2))
        units.append(unit)
        places.append(place)
        worths.append(number / length[unit - unit[0]])
    whose, candidate, worth = np.concatenate(units), np.concatenate(places), np.concatenate(worths)
    return Cells(whose, candidate, np.zeros_like(candidate), worth, voters.num_units, np.ones_like(group))


def _limit(dimension: int) -> int:
    """Return the largest coordinate for which all sums of a distance are exact in float32."""
    return int(np.sqrt(2**24 / (3 * dimension)))


def voters_of(parts: Iterable[PrivateSeries], encoding: Encoding, environment: Environment, lattice: Lattice) -> Voters:
    """Return all private series as they vote; `parts` may come one after another from a table larger than memory.

    Privacy: private. Each series is encoded by itself, in batches of one size whatever the number of series. The
    series of a unit vote together; where events are protected every series votes by itself.
    """
    blocks: list[Block] = []
    next_unit = 0
    for private in parts:
        panel, group = private.panel, classes_of(private.panel)
        together = panel.schema.unit.kind != "event"
        unit = next_unit + (panel.unit if together else np.arange(panel.num_series, dtype=np.int64))
        next_unit += panel.num_units if together else panel.num_series
        for rows in blocks_of(unit):
            embeddings = _embedded(encoding.series(panel, rows), encoding.static(panel, rows), environment)
            blocks.append(Block(lattice.coordinates(embeddings), unit[rows], group[rows]))
    return Voters(tuple(blocks), next_unit)


def private_vote(voters: Voters, grant: Grant, lattice: Lattice, neighbours: int, influence: int) -> Vote:
    """Return the function that executes one charged histogram per call.

    Args:
        influence: How many vote vectors one protected unit can change; 1 unless events are protected.

    Privacy: adds discrete Gaussian noise of the charged multiple of one unit's influence to every count (Algorithm 2,
    line 6); without a charge left it raises. Where every unit has one series and one vote, votes stay whole.
    """
    event = grant.plan.event(LABEL)
    step = 1.0 if isinstance(event, DiscreteGaussian) and event.one_vote else None

    def vote(embeddings: np.ndarray, group: np.ndarray) -> np.ndarray:
        counted = contributions(voters, lattice.coordinates(embeddings), group, neighbours)
        statistic = Statistic(label=LABEL, shape=group.shape, bound=1.0, step=step)
        return grant.release(statistic, Given(counted, float(influence)))

    return vote


def noise_alone(noise: float, rng: np.random.Generator) -> Vote:
    """Return the control: nobody votes, and histograms are noise of the same size. Reads no private data."""
    return lambda embeddings, group: rng.normal(0.0, noise, len(group))


def blank(panel: Panel, encoding: Encoding, environment: Environment) -> np.ndarray:
    """Return the embedding of a series of zeros, as wide as those of private ones; looks at nobody."""
    shapes = (part(panel, slice(0, 0)).shape[1:] for part in (encoding.series, encoding.static))
    series, static = (np.zeros((1, *shape), dtype=np.float32) for shape in shapes)
    return _embedded(series, static, environment)


def _embedded(series: np.ndarray, static: np.ndarray, environment: Environment) -> np.ndarray:
    """Return embeddings [series, dimension], encoded in batches filled up with zeros."""
    pieces = []
    for begin in range(0, len(series), _BATCH):
        batch = [np.zeros((_BATCH, *part.shape[1:]), dtype=np.float32) for part in (series, static)]
        number = len(series[begin : begin + _BATCH])
        batch[0][:number], batch[1][:number] = series[begin : begin + _BATCH], static[begin : begin + _BATCH]
        pieces.append(environment.embed(*batch)[:number])
    return np.concatenate(pieces)
