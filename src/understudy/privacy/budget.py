"""Epsilon and delta, and how large delta may be for a population of a given size."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from understudy.data import MIN_UNITS
from understudy.data.type_checks import require_argument
from understudy.errors import InputError

MAX_PRIVATE_EPSILON = 20.0  # e²⁰ is a likelihood ratio of half a billion: nothing a person would call private

SMALLEST_DELTA = 1e-300  # what is computed from smaller ones rounds to 0


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy, with one unit added to or removed from the population.

    Epsilon may be infinite: a ledger for a run that is published as *not private* needs room for it.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            require_argument(getattr(self, name), float, f"Guarantee.{name}", "Write Guarantee(1.0, 1e-6).")
        if not self.epsilon > 0:
            raise InputError(
                f"epsilon must be above 0, got {self.epsilon:g}. Choose how much one unit may be exposed; "
                "1 is strict, 10 is weak."
            )
        if not SMALLEST_DELTA <= self.delta < 1:
            raise InputError(
                f"delta must lie between {SMALLEST_DELTA:g} and 1, got {self.delta:g}. "
                "Leave it out to get 1/(100·population)."
            )


def default_delta(population: int) -> float:
    """1/(100·population): the chance of a total failure, summed over everybody, stays below one percent."""
    _check_population(population)
    return 1.0 / (100.0 * population)


def check_delta(delta: float, population: int | None, *, reproduction: str | None = None) -> None:
    """Refuses a delta at which a mechanism could publish a whole unit.

    Args:
        population: Declared number of units; None, if it is not known yet, counts as the fewest a table may hold.
        reproduction: Paper whose own delta is wanted, which lifts the refusal; the certificate says *not private*.
    """
    if not 0 < delta < 1:
        raise InputError(f"delta must lie between 0 and 1, got {delta:g}. Leave it out to get 1/(100·population).")
    if reproduction is not None:
        return
    told = "" if population is not None else " or more"
    population = MIN_UNITS if population is None else population
    _check_population(population)
    if delta > (1 + 1e-9) / (10.0 * population):
        raise InputError(
            f"delta = {delta:g} is too large for a population of {population}{told}: above 1/(10·population) = "
            f"{1 / (10 * population):.3g} a mechanism may publish whole units and still comply. "
            f"Use {default_delta(population):.3g} or less."
        )


def _check_population(population: int) -> None:
    if population < 1 or not math.isfinite(population):
        raise InputError(f"population must be a positive whole number, got {population}. Declare it in the schema.")


def at_most(value: float, digits: int = 3) -> str:
    """Returns a figure in a few digits, rounded up: a promise must not look smaller than it is.

    Example:
        >>> at_most(1.2341), at_most(1e-6, 2), at_most(float("inf"))
        ('1.24', '1e-06', 'infinite')
    """
    return _rounded(value, digits, lambda units: math.ceil(units - 1e-6))


def at_least(value: float, digits: int = 4) -> str:
    """Returns a figure in a few digits, rounded down: what is left must not look larger than it is.

    Example:
        >>> at_least(1 / 3), at_least(2 / 3), at_least(2.0)
        ('0.3333', '0.6666', '2')
    """
    return _rounded(value, digits, lambda units: math.floor(units + 1e-6))


def _rounded(value: float, digits: int, whole: Callable[[float], int]) -> str:
    if math.isinf(value):
        return "infinite"
    if not value > 0:
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return f"{whole(value / unit) * unit:.{digits}g}"
