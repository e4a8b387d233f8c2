"""What private series say about candidates: a vote each (Algorithm 2), or one noisy mean of what they look like.

*Votes.* One vote vector per privacy unit, of Euclidean length at most one, for the candidates nearest to it.

*Mean embedding.* Every unit adds random Fourier features of its series' embeddings (Rahimi and Recht, 2007), a vector
of length one. Their mean, a smoothed density, is released once. Of all weights of a public pool whose own mean is near
the noisy one, those of maximum entropy are taken, so that where the release says nothing the pool stays as it is.

What a unit adds depends on that unit and on public candidates alone, to the last bit: embeddings are laid on a public
lattice of whole numbers, on which distances and angles are exact. Otherwise one more unit could change how a library
rounds the others', and thereby their votes.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int16, Int64
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from scipy.special import logsumexp, softmax

from understudy.data import Panel
from understudy.errors import InputError
from understudy.nn.nearest import nearest
from understudy.privacy.border import Given, Statistic
from understudy.privacy.contributions import Cells, Rows
from understudy.privacy.events import DiscreteGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.columns import classes_of, num_labels
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.pets.modules import in_equal_batches
from understudy.synthesizers.pets.published import Environment, Vote

VOTES, MEAN = "votes", "mean embedding"  # under which releases are charged
_BATCH = 256  # series embedded at a time, a constant: libraries round batches of different size differently
_ENCODED_TOGETHER = 4096  # series
_REACH = 4.0  # deviations of the first candidates that the lattice covers; what lies beyond is moved to its edge
FEATURES = 600
_WIDTHS = (0.5, 1.0, 2.0)  # of kernels, in median distances of candidates
_COMPARED = 1000  # candidates whose distances are measured
_SMALLEST_SHARE, _FEWEST, _SHARE_OF_FEW = 0.05, 250, 0.2  # of the pool, that weights are worth as an effective sample
_TURN, _TABLE, _STEEPEST = 32, 16, 2.0**26  # bits of a turn, bits of the table, and the largest frequency
_COSINE = np.cos(2 * np.pi * np.arange(2**_TABLE) / 2**_TABLE).astype(np.float32)


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
    event = plan.event(VOTES)
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
        statistic = Statistic(label=VOTES, shape=group.shape, bound=1.0, step=step)
        return grant.release(statistic, Given(counted, float(influence)))

    return vote


@dataclass(frozen=True, eq=False)
class Features:
    """Random Fourier features of embeddings, fixed by public candidates and a seed.

    On a public lattice with frequencies in whole parts of a turn, angles are exact and sines come from a table: a
    library's order of summation, which follows from a vector's place among the others, can change no bit.
    """

    lattice: Lattice
    frequency: Float64[np.ndarray, "dimension pair"]  # whole numbers of 2⁻³² turns per step of the lattice

    @classmethod
    def around(cls, embeddings: np.ndarray, rng: np.random.Generator) -> "Features":
        """Return features for Gaussian kernels whose widths suit the candidates' distances."""
        lattice, some = Lattice.around(embeddings), embeddings[rng.permutation(len(embeddings))[:_COMPARED]]
        median = float(np.median(pdist(some))) if len(some) > 1 else 1.0
        widths = (median or 1.0) * np.resize(_WIDTHS, FEATURES // 2)
        wave = rng.standard_normal((embeddings.shape[1], FEATURES // 2)) / widths
        turns = np.rint(wave * lattice.step[:, None].astype(np.float64) / (2 * np.pi) * 2**_TURN)
        return cls(lattice, turns.clip(-_STEEPEST, _STEEPEST))

    def __call__(self, embeddings: np.ndarray) -> Float32[np.ndarray, "row feature"]:
        """Return vectors of length one."""
        angle = (self.lattice.coordinates(embeddings).astype(np.float64) @ self.frequency).astype(np.int64)
        place = angle >> (_TURN - _TABLE)
        both = np.concatenate([place, place - 2**_TABLE // 4], axis=1) % 2**_TABLE
        return _COSINE[both] / np.float32(math.sqrt(FEATURES / 2))


def mean_embedding(encoding: Encoding, environment: Environment, features: Features) -> Statistic:
    """Return the statistic whose sum over units, class by class, is the mean embedding times their number.

    Privacy: a series' vector has length one and follows from that series and public facts alone; a unit adds the mean
    of its series' vectors.
    """
    num_classes = num_labels(encoding.schema)

    def contributions(panel: Panel) -> Rows:
        shown = (part(panel, slice(None)) for part in (encoding.series, encoding.static))
        vectors = in_equal_batches(lambda *own: features(environment.embed(*own)), _BATCH, *shown)
        return Rows(vectors, classes_of(panel), num_classes)

    return Statistic(label=MEAN, shape=(num_classes, FEATURES), bound=1.0, contributions=contributions)


def maximum_entropy(
    features: Float32[np.ndarray, "candidate feature"], mean: Float64[np.ndarray, " feature"], noise: float
) -> Float64[np.ndarray, " candidate"]:
    """Return weights w that minimise KL(w ‖ uniform) + ‖Σ w φ − mean‖² / (2 noise²), by their dual.

    Args:
        noise: Standard deviation of a coordinate of `mean`. It is doubled until the weights are worth, as an effective
            sample 1/Σ w², a twentieth of the pool, and 250 candidates or a fifth of a small pool: no candidate may
            stand for many private series.
    """
    dual, least = np.zeros(len(mean)), max(_SMALLEST_SHARE * len(features), min(_FEWEST, _SHARE_OF_FEW * len(features)))
    while True:

        def objective(dual: np.ndarray, penalty: float = noise**2) -> tuple[float, np.ndarray]:
            logits = features @ dual.astype(np.float32)
            slope = softmax(logits) @ features - mean + penalty * dual
            return float(logsumexp(logits.astype(np.float64))) - dual @ mean + penalty / 2 * dual @ dual, slope

        dual = minimize(objective, dual, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
        weights = softmax((features @ dual.astype(np.float32)).astype(np.float64))
        if 1 / (weights**2).sum() >= least:
            return np.asarray(weights)
        noise *= math.sqrt(2)
