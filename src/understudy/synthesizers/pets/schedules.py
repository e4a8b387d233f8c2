"""Variation degrees by iteration: as printed in the paper (Appendices C and D), and one of our own."""

from collections.abc import Mapping

from understudy.errors import InputError

SCHEDULES: Mapping[str, tuple[float, ...]] = {
    "traffic": (40, 35, 30, 25, 20, 15, 15, 10, 10, 10, *[5] * 51),
    "activity": (25, 20, 20, 15, 15, 15, 10, 10, 10, 10, *[5] * 11),
    "S1": (20, 20, 20, 15, 15, 15, 10, 10, 5, 5, 5),
    "S2": (25, 25, 20, 20, 15, 15, 10, 10, 8, 6, 5),
    "S3": (40, 35, 30, 25, 20, 15, 10, 5, 5, 5, 5),
    "S4": (45, 40, 35, 30, 25, 20, 15, 10, 10, 5, 5),
    "S5": (50, 45, 40, 35, 30, 25, 20, 15, 10, 5, 5),
    "S6": (60, 55, 50, 45, 40, 35, 30, 25, 20, 15, 10),
    "S7": (95, 85, 75, 65, 55, 45, 35, 25, 20, 15, 10),
}
# Fewer and smaller moves, for starts that resemble what is protected already.
OURS: Mapping[str, tuple[float, ...]] = {"near": (10, 5)}


def schedule(name: str, iterations: int | None = None) -> tuple[float, ...]:
    """Returns the degrees of iterations 1, 2, …; another number of iterations walks the same curve.

    A printed list of n degrees has n entries here; the public Private Evolution library reads its first entry as that
    of the initial population, so its runs have n − 1 iterations.
    """
    known = {**SCHEDULES, **OURS}
    if name not in known:
        raise InputError(f"schedule: one of {', '.join(known)} is expected, got '{name}'.")
    degrees = known[name]
    if iterations is None or iterations == len(degrees):
        return degrees
    if iterations < 1:
        raise InputError(f"iterations: at least 1 is expected, got {iterations}.")
    last = len(degrees) - 1
    places = [last * k / max(iterations - 1, 1) for k in range(iterations)]
    return tuple(_between(degrees, place) for place in places)


def _between(degrees: tuple[float, ...], place: float) -> float:
    left = min(int(place), len(degrees) - 2)
    share = place - left
    return (1 - share) * degrees[left] + share * degrees[left + 1]
