"""How an evolution is run: public numbers that decide what the votes can do, none that changes a guarantee.

Each iteration costs noise and thins the population out. So a start that resembles the private series is voted on
once, by many neighbours and with small variations; rules need several rounds to get near.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from understudy.errors import InputError

# Variation degrees as printed (appendices C and D). The library of Private Evolution, which the paper uses, counts the
# first degree to the initial population: 21 printed degrees are 20 iterations.
ACTIVITY = (25.0, 20.0, 20.0, 15.0, 15.0, 15.0, 10.0, 10.0, 10.0, 10.0, *[5.0] * 11)
S3 = (40.0, 35.0, 30.0, 25.0, 20.0, 15.0, 10.0, 5.0, 5.0, 5.0, 5.0)  # of the ablation, Table 1
_FEWEST, _MOST = 60, 2000  # candidates of a class, and of all classes together
_VOTES_PER_NOISE = 1.0  # expected votes of a candidate, in standard deviations of the noise, of the default size
_SWAMPED = 0.1  # below this ratio a run is guided by the public prior only


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Numbers of the loop.

    Attributes:
        iterations: Histograms that are released; noise grows with their square root.
        schedule: Variation degrees; interpolated to `iterations` where their number differs.
        population: Candidates, all classes together; None follows from the declared population and the noise.
        lookahead: Variations by which a candidate is judged (k); 0 judges the candidate itself.
        neighbours: Candidates that one series votes for (q), with 1/√q of a vote each.
        threshold: Counts up to this many standard deviations of the noise are set to 0; as published, votes (H).
        as_published: The paper's sampling, variations and rules, and without `population` as many candidates as private
            series, a number that is then public.
    """

    shown: ClassVar = ("iterations",)  # what `--set` offers
    iterations: int = 6
    schedule: tuple[float, ...] = S3
    population: int | None = None
    lookahead: int = 2
    neighbours: int = 3
    threshold: float = 1.5
    as_published: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedule", tuple(map(float, self.schedule)))
        for name, fewest in (("iterations", 1), ("lookahead", 0), ("neighbours", 1), ("population", 2)):
            number = getattr(self, name)
            if number is not None and number < fewest:
                raise InputError(f"{name}: at least {fewest} is expected, got {number}.")
        if not self.schedule or not all(0 <= degree <= 100 for degree in self.schedule):
            raise InputError("schedule: at least one degree from 0 to 100 is expected.")

    def stages(self, noise: float) -> tuple[tuple[float, float], ...]:
        """Return degree and threshold of each iteration; `noise` is the standard deviation of one count, in votes."""
        threshold = self.threshold if self.as_published else self.threshold * noise
        places = np.linspace(0, len(self.schedule) - 1, self.iterations)
        degrees = np.interp(places, np.arange(len(self.schedule)), self.schedule)
        return tuple((degree, threshold) for degree in degrees.tolist())

    def num_candidates(self, num_units: int, noise: float, num_classes: int) -> int:
        """Return the size of the population, a multiple of the classes, from public numbers alone."""
        wanted = self.population
        if wanted is None:
            affordable = num_units * math.sqrt(self.neighbours) / (_VOTES_PER_NOISE * noise)
            wanted = min(_MOST, max(_FEWEST * num_classes, int(affordable)))
        return num_classes * max(1, round(wanted / num_classes))

    def outlook(self, num_units: int, noise: float, num_classes: int) -> tuple[str, ...]:
        """Say what the votes can do against the noise, before they are paid for."""
        size = self.num_candidates(num_units, noise, num_classes)
        votes = num_units * math.sqrt(min(self.neighbours, size // num_classes)) / size
        stated = f"{size} candidates: expected votes per bin {votes:.2g}, noise {noise:.3g}"
        if votes < _SWAMPED * noise:
            return (f"{stated}: this run would be guided by the public prior only.",)
        threshold = self.stages(noise)[0][1]
        if threshold <= num_units:
            return (f"{stated}.",)
        none = f"The threshold of {threshold:.3g} votes exceeds all votes there are: nothing would survive."
        return (f"{stated}.", none)


DEFAULT = Recipe()
PAPER = Recipe(
    iterations=20, schedule=ACTIVITY[1:], lookahead=8, neighbours=1, threshold=4.0, as_published=True
)  # appendix C, activities
BY_START: Mapping[str, Recipe] = {
    "rules": DEFAULT,
    "public": Recipe(iterations=1, schedule=(10.0, 5.0), neighbours=15, threshold=0.5),  # fewer and smaller moves
}
