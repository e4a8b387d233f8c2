"""The private side of a vote: encodes private series once, and answers proposals with noisy histograms."""

from collections.abc import Iterable

import numpy as np

from understudy.data import Panel
from understudy.privacy.border import Given, Statistic
from understudy.privacy.events import DiscreteGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import classes_of
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.pets.evolution import Environment, Vote
from understudy.synthesizers.pets.voting import Block, Lattice, Voters, blocks_of, contributions

LABEL = "votes"  # under which histograms are charged
_BATCH = 256  # series encoded at a time, always so many: libraries round small batches otherwise than large ones


def voters_of(parts: Iterable[PrivateSeries], encoding: Encoding, environment: Environment, lattice: Lattice) -> Voters:
    """Returns all private series as they vote; `parts` may come one after another from a table larger than memory.

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
    """Returns the function that executes one charged histogram per call.

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
    """Returns the control: nobody votes, and histograms are noise of the same size. Reads no private data."""
    return lambda embeddings, group: rng.normal(0.0, noise, len(group))


def blank(panel: Panel, encoding: Encoding, environment: Environment) -> np.ndarray:
    """Returns the embedding of a series of zeros, as wide as those of private ones; looks at nobody."""
    shapes = (part(panel, slice(0, 0)).shape[1:] for part in (encoding.series, encoding.static))
    series, static = (np.zeros((1, *shape), dtype=np.float32) for shape in shapes)
    return _embedded(series, static, environment)


def _embedded(series: np.ndarray, static: np.ndarray, environment: Environment) -> np.ndarray:
    """Returns embeddings [series, dimension], encoded in batches filled up with zeros."""
    pieces = []
    for begin in range(0, len(series), _BATCH):
        batch = [np.zeros((_BATCH, *part.shape[1:]), dtype=np.float32) for part in (series, static)]
        number = len(series[begin : begin + _BATCH])
        batch[0][:number], batch[1][:number] = series[begin : begin + _BATCH], static[begin : begin + _BATCH]
        pieces.append(environment.embed(*batch)[:number])
    return np.concatenate(pieces)
