"""PETS as published: propose variations, let private series vote, keep what was voted for, and again (Algorithm 1).

Nothing here sees private data. `vote` returns noisy histograms (Algorithm 2, `voting`): from a grant in the same
process, from a ballot of the data holder or, for the control, from noise alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64

from understudy.synthesizers.pets.modules import Similarity, Variation

_COURSE_CELLS = 48
_PASS_CHANNELS = 512  # channels that the variation module is shown at a time: its memory grows with them
Vote = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (embeddings, classes) of candidates → noisy votes


@dataclass(frozen=True, eq=False, kw_only=True)
class Population:
    """Candidates in working scale.

    Attributes:
        series: Their channels.
        static: Their static columns but the label; no columns where the schema has none.
        group: The class each one stands for; private series vote inside their own class.
        ancestor: Which member of the first population each one descends from.
    """

    series: Float32[np.ndarray, "member step channel"]
    static: Float32[np.ndarray, "member static"]
    group: Int64[np.ndarray, " member"]
    ancestor: Int64[np.ndarray, " member"]

    @classmethod
    def first(cls, series: np.ndarray, static: np.ndarray, group: np.ndarray) -> "Population":
        """Return a population whose members are their own ancestors."""
        return cls(
            series=series.astype(np.float32),
            static=static.astype(np.float32),
            group=group.astype(np.int64),
            ancestor=np.arange(len(series), dtype=np.int64),
        )

    def take(self, rows: np.ndarray) -> "Population":
        """Return the chosen members, as often as they were chosen."""
        return Population(
            series=self.series[rows], static=self.static[rows], group=self.group[rows], ancestor=self.ancestor[rows]
        )

    @property
    def size(self) -> int:
        """Number of members, a public constant."""
        return len(self.series)

    @property
    def num_ancestors(self) -> int:
        """How many members of the first population have descendants; few mean that chance has thinned it out."""
        return len(np.unique(self.ancestor))


Watch = Callable[[int, Population], None]  # (iterations done, population)


@dataclass(frozen=True, eq=False, kw_only=True)
class Environment:
    """What the population lives in: the two modules and how candidates are judged.

    Attributes:
        lookahead: A candidate is embedded as the mean of this many variations; 0 embeds the candidate itself.
        static_codes: First and last-plus-one static column of each group of codes.
        static_weight: How much a static column counts relative to the embedding of the series.
        course_weight: How much it counts at which steps a series is high or low. An embedding that is blind to time
            can't tell morning from evening, which is what series on one calendar have in common; 0 leaves it out.
        by_chance: Children are sampled at random as published; else each parent gets its share, up to rounding.
    """

    variation: Variation
    similarity: Similarity
    lookahead: int
    static_codes: tuple[tuple[int, int], ...] = ()
    static_weight: float = 1.0
    course_weight: float = 0.0
    by_chance: bool = False

    def embed(self, series: np.ndarray, static: np.ndarray) -> np.ndarray:
        """Return [series, dimension]: the embedding of the series, its course, and its static columns."""
        parts = [self.similarity(series), np.float32(self.static_weight) * static]
        if self.course_weight > 0:
            parts.append(np.float32(self.course_weight) * course(series))
        return np.concatenate(parts, axis=1)

    def relatives(
        self, population: Population, degree: float, rng: np.random.Generator, times: int = 1
    ) -> Population:  # fmt: skip
        """Return `times` variations of every member, one after the other (Eq. 4).

        What variations of one member share is computed once: they are asked for in a row.
        """
        many = np.repeat(np.arange(population.size), times)
        size = max(1, _PASS_CHANNELS // (times * population.series.shape[2]))
        pieces = (population.series[begin : begin + size] for begin in range(0, population.size, size))
        return Population(
            series=np.concatenate([self.variation(piece.repeat(times, axis=0), degree, rng) for piece in pieces]),
            static=self._moved(population.static[many], degree, rng),
            group=population.group[many],
            ancestor=population.ancestor[many],
        )

    def _moved(self, static: np.ndarray, degree: float, rng: np.random.Generator) -> np.ndarray:
        """Move static numbers a little, and resample codes with probability degree / 100."""
        moved = static + np.float32(degree / 100) * rng.standard_normal(static.shape, dtype=np.float32)
        for begin, end in self.static_codes:
            drawn = np.eye(end - begin, dtype=np.float32)[rng.integers(0, end - begin, len(static))]
            keep = rng.random((len(static), 1)) >= degree / 100
            moved[:, begin:end] = np.where(keep, static[:, begin:end], drawn)
        return moved


def course(series: np.ndarray) -> np.ndarray:
    """Return [series, cell · channel]: means over at most 48 stretches of steps, of unit length for unit series."""
    cells = min(_COURSE_CELLS, series.shape[1])
    edges = np.linspace(0, series.shape[1], cells + 1).astype(np.int64)
    means = np.add.reduceat(series, edges[:-1], axis=1) / np.diff(edges)[:, None]
    return (means / np.sqrt(cells)).reshape(len(series), -1).astype(np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class Proposal:
    """One iteration before the vote: every member's relatives, and the embeddings that are voted on."""

    parents: Population
    degree: float
    relatives: tuple[Population, ...]
    embeddings: np.ndarray


def evolve(
    population: Population,
    environment: Environment,
    vote: Vote,
    stages: Sequence[tuple[float, float]],
    rng: np.random.Generator,
    watch: Watch,
) -> Population:
    """Return the last population; `stages` holds the degree and the threshold of each iteration."""
    for iteration, (degree, threshold) in enumerate(stages, start=1):  # Algorithm 1, line 5
        proposal = propose(population, environment, degree, rng)
        noisy = vote(proposal.embeddings, population.group)  # line 6; Algorithm 2, lines 1 to 6
        population = select(proposal, environment, noisy, threshold, rng)
        watch(iteration, population)
    return population


def propose(population: Population, environment: Environment, degree: float, rng: np.random.Generator) -> Proposal:
    """Makes the relatives by which members are judged, and from which the next population will be taken."""
    relatives = _several(population, environment, degree, rng)
    judged = relatives or (population,)
    embeddings = environment.embed(judged[0].series, judged[0].static)
    for other in judged[1:]:
        embeddings += environment.embed(other.series, other.static)
    return Proposal(parents=population, degree=degree, relatives=relatives, embeddings=embeddings / len(judged))


def _several(
    population: Population, environment: Environment, degree: float, rng: np.random.Generator
) -> tuple[Population, ...]:
    """Return `lookahead` populations of relatives; all relatives of a member are made together."""
    if not environment.lookahead:
        return ()
    times = environment.lookahead
    crowd = environment.relatives(population, degree, rng, times)
    return tuple(crowd.take(np.arange(turn, crowd.size, times)) for turn in range(times))


def select(
    proposal: Proposal, environment: Environment, noisy: np.ndarray, threshold: float, rng: np.random.Generator
) -> Population:
    """Return the next population: children of the members that were voted for, as many in each class as before."""
    weights = np.maximum(noisy - threshold, 0)  # Algorithm 2, line 7
    resample = by_chance if environment.by_chance else by_share
    group = proposal.parents.group
    rows = np.concatenate([place[resample(weights[place], rng)] for place in _places(group)])  # lines 7 and 8
    return _children(proposal, environment, rows, rng)  # line 9


def by_chance(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return as many places as there are weights, in order, each drawn by itself; evenly if all weights are 0."""
    return np.sort(rng.choice(len(weights), size=len(weights), p=_distribution(weights)))


def by_share(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same by systematic resampling: every place's number is within one of its expectation."""
    marks = (np.arange(len(weights)) + rng.random()) / len(weights)
    places = np.searchsorted(np.cumsum(_distribution(weights)), marks, side="right")
    return np.minimum(places, len(weights) - 1)


def _distribution(weights: np.ndarray) -> np.ndarray:
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def _places(group: np.ndarray) -> list[np.ndarray]:
    return [np.flatnonzero(group == own) for own in np.unique(group)]


def _children(proposal: Proposal, environment: Environment, rows: np.ndarray, rng: np.random.Generator) -> Population:
    """Return a child for each chosen parent (`rows`, in order): relatives already made, then new ones."""
    turn = np.arange(len(rows)) - np.searchsorted(rows, rows, side="left")  # 0 for a parent's first child
    parts = [relative.take(rows[turn == place]) for place, relative in enumerate(proposal.relatives)]
    late = proposal.parents.take(rows[turn >= len(proposal.relatives)])
    parts.append(environment.relatives(late, proposal.degree, rng) if late.size else late)
    order = np.argsort(np.concatenate([part.group for part in parts]), kind="stable")
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("series", "static", "group", "ancestor")
    }
    return Population(**joined)
