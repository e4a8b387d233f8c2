"""PETS as published: propose variations, let private series vote, keep what was voted for, and repeat (Algorithm 1).

Nothing here sees private data. `vote` returns noisy histograms (Algorithm 2, lines 1 to 6, in `selection`): from a
grant in the same process or from a ballot of the data holder. Classes evolve side by side (Algorithm 1, line 2).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float32, Int64

from understudy.synthesizers.pets.modules import Similarity, Variation

_COURSE_CELLS = 48
Vote = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (embeddings, classes) of candidates → noisy votes


@dataclass(frozen=True, eq=False, kw_only=True)
class Population:
    """Candidates in working scale."""

    series: Float32[np.ndarray, "member step channel"]
    static: Float32[np.ndarray, "member static"]  # but the label
    group: Int64[np.ndarray, " member"]  # the class each one stands for; private series vote inside their own class
    ancestor: Int64[np.ndarray, " member"]  # which member of the first population each one descends from

    @classmethod
    def first(cls, series: np.ndarray, static: np.ndarray, group: np.ndarray) -> "Population":
        """Return a population whose members are their own ancestors."""
        series, static, group = series.astype(np.float32), static.astype(np.float32), group.astype(np.int64)
        return cls(series=series, static=static, group=group, ancestor=np.arange(len(series), dtype=np.int64))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def take(self, rows: np.ndarray) -> "Population":
        """Return the chosen members, as often as they were chosen."""
        return Population(**{name: array[rows] for name, array in self.arrays().items()})

    @property
    def size(self) -> int:
        """Number of members, a public constant."""
        return len(self.series)


@dataclass(frozen=True, eq=False, kw_only=True)
class Environment:
    """What the population lives in: the two modules and how candidates are judged.

    Attributes:
        lookahead: A candidate is embedded as the mean of this many variations; 0 embeds the candidate itself.
        static_codes: First and last-plus-one static column of each group of codes.
        course_weight: How much it counts at which steps a series is high or low, which tells morning from evening.
        by_chance: Children are sampled at random as published; else each parent gets its share, up to rounding.
    """

    variation: Variation
    similarity: Similarity
    lookahead: int
    static_codes: tuple[tuple[int, int], ...] = ()
    course_weight: float = 0.0
    by_chance: bool = False

    def embed(self, series: np.ndarray, static: np.ndarray) -> np.ndarray:
        """Return [series, dimension]: the embedding of the series, its static columns, and its course."""
        parts = [self.similarity(series), static]
        if self.course_weight > 0:  # means over at most 48 stretches of steps, of unit length for unit series
            cells = min(_COURSE_CELLS, series.shape[1])
            edges = np.linspace(0, series.shape[1], cells + 1).astype(np.int64)
            means = np.add.reduceat(series, edges[:-1], axis=1) / np.diff(edges)[:, None]
            parts.append(self.course_weight / np.sqrt(cells) * means.reshape(len(series), -1))
        return np.concatenate(parts, axis=1).astype(np.float32)

    def relatives(self, population: Population, degree: float, rng: np.random.Generator, times: int = 1) -> Population:
        """Return `times` variations of every member, in a row (Eq. 4).

        Static numbers move a little too, and codes are resampled with probability degree / 100.
        """
        many = population.take(np.repeat(np.arange(population.size), times))
        series = self.variation(many.series, degree, rng)
        static = many.static + np.float32(degree / 100) * rng.standard_normal(many.static.shape, dtype=np.float32)
        for begin, end in self.static_codes:
            drawn = np.eye(end - begin, dtype=np.float32)[rng.integers(0, end - begin, len(static))]
            keep = rng.random((len(static), 1)) >= degree / 100
            static[:, begin:end] = np.where(keep, many.static[:, begin:end], drawn)
        return Population(series=series, static=static, group=many.group, ancestor=many.ancestor)

    def distinct(
        self, population: Population, origin: np.ndarray, degree: float, rng: np.random.Generator
    ) -> Population:
        """Return the population with relatives in place of every member but the first of the same origin."""
        copies = np.setdiff1d(np.arange(population.size), np.unique(origin, return_index=True)[1])
        if len(copies):
            relatives = self.relatives(population.take(copies), degree, rng)
            population.series[copies], population.static[copies] = relatives.series, relatives.static
        return population


def evolve(
    population: Population,
    environment: Environment,
    vote: Vote,
    stages: Sequence[tuple[float, float]],
    rng: np.random.Generator,
) -> Iterator[Population]:
    """Yield S_1 to S_T from S_0; `stages` holds the degree α_t and the threshold H of each iteration."""
    for degree, threshold in stages:  # Algorithm 1, line 5
        relatives, embeddings = propose(population, environment, degree, rng)
        noisy = vote(embeddings, population.group)  # line 6; Algorithm 2, lines 1 to 6
        weights = np.maximum(noisy - threshold, 0)  # Algorithm 2, line 7
        population = select(population, relatives, weights, environment, degree, rng)  # lines 7 to 9
        yield population


def propose(
    population: Population, environment: Environment, degree: float, rng: np.random.Generator
) -> tuple[Population, np.ndarray]:
    """Return every member's relatives, in a row (none without lookahead), and the embeddings that are voted on."""
    times = environment.lookahead
    crowd = environment.relatives(population, degree, rng, times) if times else population
    embeddings = environment.embed(crowd.series, crowd.static).reshape(population.size, max(times, 1), -1).mean(axis=1)
    return crowd if times else population.take(np.arange(0)), embeddings


def select(
    parents: Population,
    relatives: Population,
    weights: np.ndarray,
    environment: Environment,
    degree: float,
    rng: np.random.Generator,
) -> Population:
    """Return the next population: children of the members that were voted for, as many in each class as before."""
    resample = by_chance if environment.by_chance else by_share
    classes = (np.flatnonzero(parents.group == own) for own in np.unique(parents.group))
    rows = np.concatenate([place[resample(weights[place], rng)] for place in classes])  # Algorithm 1, lines 7 and 8
    turn = np.arange(len(rows)) - np.searchsorted(rows, rows, side="left")  # 0 for a parent's first child
    times = relatives.size // parents.size
    children = [relatives.take((rows * times + turn)[turn < times])]  # line 9: variations made already, then new ones
    if (turn >= times).any():
        children.append(environment.relatives(parents.take(rows[turn >= times]), degree, rng))
    named = [child.arrays() for child in children]
    joined = Population(**{name: np.concatenate([arrays[name] for arrays in named]) for name in named[0]})
    return joined.take(np.argsort(joined.group, kind="stable"))


def by_chance(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return as many places as there are weights, in order, each drawn by itself; evenly if all weights are 0."""
    return np.sort(rng.choice(len(weights), size=len(weights), p=_distribution(weights)))


def by_share(weights: np.ndarray, rng: np.random.Generator, number: int | None = None) -> np.ndarray:
    """Return the same by systematic resampling: every place's number is within one of its expectation."""
    number = len(weights) if number is None else number
    marks = (np.arange(number) + rng.random()) / number
    places = np.searchsorted(np.cumsum(_distribution(weights)), marks, side="right")
    return np.minimum(places, len(weights) - 1)


def _distribution(weights: np.ndarray) -> np.ndarray:
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
