"""Algorithm 2: private series vote for the candidates nearest to them, and noise goes on the counts.

One vote vector per privacy unit, of Euclidean length at most one. What a unit votes for depends on that unit and on
public candidates alone, to the last bit: embeddings are laid on a public lattice of whole numbers, on which distances
are exact. Otherwise one more unit could change how a library rounds the others' distances, and thereby their votes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int16, Int64

from understudy.errors import InputError
from understudy.nn.nearest import nearest
from understudy.privacy.border import Given, Statistic
from understudy.privacy.contributions import Cells
from understudy.privacy.events import DiscreteGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import classes_of
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.pets.modules import in_equal_batches
from understudy.synthesizers.pets.published import Environment, Vote

LABEL = "votes"  # under which histograms are charged
_BATCH = 256  # series embedded at a time, a constant: libraries round batches of different size differently
_ENCODED_TOGETHER = 4096  # series
_REACH = 4.0  # deviations of the first candidates that the lattice covers; what lies beyond is moved to its edge


@dataclass(frozen=True, eq=False)
class Lattice:
    """Whole-number coordinates for embeddings, fixed by the first candidates and never by private series."""

    centre: Float32[np.ndarray, " dimension"]  # mean embedding of the first candidates
    step: Float32[np.ndarray, " dimension"]  # length of one unit of the lattice

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


def _limit(dimension: int) -> int:
    """Return the largest coordinate for which all sums of a distance are exact in float32."""
    return int(np.sqrt(2**24 / (3 * dimension)))


@dataclass(frozen=True, eq=False, repr=False)
class Voters:
    """Private series as the lattice shows them, encoded once per run: whose they are, and the class each votes in.

    Privacy: private, like the panel; used by `contributions` and nowhere else.
    """

    coordinates: Int16[np.ndarray, "series dimension"]
    unit: Int64[np.ndarray, " series"]
    group: Int64[np.ndarray, " series"]
    num_units: int

    def __repr__(self) -> str:
        return "Voters(<private>)"


def voters_of(parts: Iterable[PrivateSeries], encoding: Encoding, environment: Environment, lattice: Lattice) -> Voters:
    """Return all private series as they vote; `parts` may come one after another from a table larger than memory.

    Privacy: private. Each series is encoded by itself, in batches of one size whatever the number of series. The
    series of a unit vote together; where events are protected every series votes by itself.
    """
    coordinates, units, groups, num_units = [], [], [], 0
    for private in parts:
        panel = private.panel
        together = panel.schema.unit.kind != "event"
        units.append(num_units + (panel.unit if together else np.arange(panel.num_series, dtype=np.int64)))
        groups.append(classes_of(panel))
        num_units += panel.num_units if together else panel.num_series
        for begin in range(0, max(panel.num_series, 1), _ENCODED_TOGETHER):
            rows = slice(begin, begin + _ENCODED_TOGETHER)
            shown = encoding.series(panel, rows), encoding.static(panel, rows)
            coordinates.append(lattice.coordinates(in_equal_batches(environment.embed, _BATCH, *shown)))
    return Voters(np.concatenate(coordinates), np.concatenate(units), np.concatenate(groups), num_units)


def contributions(voters: Voters, candidates: np.ndarray, group: np.ndarray, neighbours: int) -> Cells:
    """Return the votes of all units, each unit's scaled to length one; private, and a unit's depend on it alone."""
    keys = []
    for own in np.unique(group):
        places, rows = np.flatnonzero(group == own), np.flatnonzero(voters.group == own)
        near = nearest(voters.coordinates[rows], candidates[places], min(neighbours, len(places)))[0]  # line 3
        keys.append((voters.unit[rows][:, None] * len(group) + places[near]).ravel())
    key, number = np.unique(np.concatenate(keys), return_counts=True)  # line 4
    unit, candidate = key // len(group), key % len(group)
    length = np.sqrt(np.bincount(unit, weights=number.astype(np.float64) ** 2))
    return Cells(
        unit, candidate, np.zeros_like(candidate), number / length[unit], voters.num_units, np.ones_like(group)
    )


def votes_event(plan: SpendingPlan) -> DiscreteGaussian:
    """Return what all histograms of a run cost together."""
    event = plan.event(LABEL)
    if not isinstance(event, DiscreteGaussian):
        raise InputError("This run of the ledger was not charged for votes. Open one with `understudy pets vote`.")
    return event


def private_vote(voters: Voters, grant: Grant, lattice: Lattice, neighbours: int, influence: int) -> Vote:
    """Return the function that executes one charged histogram per call; `influence` is how many units an event moves.

    Privacy: adds discrete Gaussian noise of the charged multiple of one unit's influence to every count (Algorithm 2,
    line 6); without a charge left it raises. Where every unit has one series and one vote, votes stay whole.
    """
    step = 1.0 if votes_event(grant.plan).one_vote else None

    def vote(embeddings: np.ndarray, group: np.ndarray) -> np.ndarray:
        counted = contributions(voters, lattice.coordinates(embeddings), group, neighbours)
        statistic = Statistic(label=LABEL, shape=group.shape, bound=1.0, step=step)
        return grant.release(statistic, Given(counted, float(influence)))

    return vote
