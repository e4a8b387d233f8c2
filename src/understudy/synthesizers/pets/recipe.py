"""How an evolution is run: public numbers that decide what the votes can do, none that changes a guarantee.

Each iteration costs noise and thins the population out. So a start that resembles the private series is voted on
once, by many neighbours and with small variations; rules need several rounds to get near (`understudy-bench run
pets-recipes` compares).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from understudy.errors import InputError
from understudy.synthesizers.pets.schedules import schedule

_FEWEST, _MOST = 60, 2000  # candidates of a class, and of all classes together
_VOTES_PER_NOISE = 1.0  # expected votes of a candidate, in deviations of the noise, that the default size aims at
_SWAMPED = 0.1  # below this ratio a run is guided by the public prior only


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Options of the loop.

    Attributes:
        iterations: Histograms that are released; noise grows with their square root.
        schedule: Name of the variation degrees, stretched to `iterations`.
        population: Candidates, all classes together; None follows from the declared population and the noise.
        lookahead: Relatives by which a candidate is judged (k); 0 judges the candidate itself.
        neighbours: Candidates that one series votes for (q), with 1/√q of a vote each.
        threshold: Votes below which a candidate counts as chosen by noise (H); None is `threshold_noise` deviations.
        threshold_noise: The same in deviations of the noise.
        by_chance: Children are drawn by chance as published; else every parent gets its share.
        private_fraction: As published: candidates per private series. Tells the private count; for reproduction only.
    """

    iterations: int = 6
    schedule: str = "S3"
    population: int | None = None
    lookahead: int = 2
    neighbours: int = 3
    threshold: float | None = None
    threshold_noise: float = 1.5
    by_chance: bool = False
    private_fraction: float | None = None

    def __post_init__(self) -> None:
        for name, fewest in (("iterations", 1), ("lookahead", 0), ("neighbours", 1)):
            if getattr(self, name) < fewest:
                raise InputError(f"{name}: at least {fewest} is expected, got {getattr(self, name)}.")
        if self.population is not None and self.population < 2:
            raise InputError(f"population: at least 2 candidates are expected, got {self.population}.")
        if self.private_fraction is not None and not self.private_fraction > 0:
            raise InputError(f"private_fraction: a number above 0 is expected, got {self.private_fraction:g}.")
        schedule(self.schedule)

    def stages(self, noise: float) -> tuple[tuple[float, float], ...]:
        """Returns degree and threshold of each iteration; `noise` is the deviation of one count, in votes."""
        threshold = self.threshold_noise * noise if self.threshold is None else self.threshold
        return tuple((degree, threshold) for degree in schedule(self.schedule, self.iterations))

    def num_candidates(self, num_units: int, noise: float, num_classes: int) -> int:
        """Returns the size of the population, a multiple of the classes, from public numbers alone.

        So few that an average candidate's votes stand out from the noise, and so many that they can differ.
        """
        wanted = self.population
        if wanted is None:
            affordable = num_units * math.sqrt(self.neighbours) / (_VOTES_PER_NOISE * noise)
            wanted = min(_MOST, max(_FEWEST * num_classes, int(affordable)))
        return num_classes * max(1, round(wanted / num_classes))

    def outlook(self, num_units: int, noise: float, num_classes: int) -> tuple[str, ...]:
        """Says what the votes can do against the noise, before they are paid for."""
        size = self.num_candidates(num_units, noise, num_classes)
        votes = num_units * math.sqrt(min(self.neighbours, size // num_classes)) / size
        told = f"{size} candidates: expected votes per bin {votes:.2g}, noise {noise:.3g}"
        if votes < _SWAMPED * noise:
            return (f"{told}: this run would be guided by the public prior only.",)
        threshold = self.stages(noise)[0][1]
        lines = [f"{told}."]
        if threshold > num_units:
            lines.append(f"The threshold of {threshold:.3g} votes exceeds all votes there are: nothing would survive.")
        return tuple(lines)


_NEAR = Recipe(iterations=1, schedule="near", neighbours=15, threshold_noise=0.5)
# A fresh draw from the cell of a candidate says nothing about another draw from there: nothing to look ahead to.
_REDRAWN = replace(_NEAR, lookahead=0)
RECIPES: Mapping[str, Recipe] = {"rules": Recipe(), "public": _NEAR, "spectral": _REDRAWN}  # by start
