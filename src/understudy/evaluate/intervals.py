"""How far chance alone moves a figure."""

from collections.abc import Callable

import numpy as np
from scipy.stats import t as student

from understudy.data import Panel
from understudy.evaluate.metric import Measured


def bootstrap(
    statistic: Callable[[np.ndarray, np.ndarray], float], real: Panel, candidate: Panel, replicates: int, seed: int
) -> np.ndarray:
    """Returns the statistic of (rows of real, rows of candidate), units drawn again with replacement."""
    rng = np.random.default_rng(seed)
    return np.array([statistic(_rows(real, rng), _rows(candidate, rng)) for _ in range(replicates)])


def bootstrap_mean(contributions: np.ndarray, replicates: int, seed: int) -> np.ndarray:
    """Returns replicates of a mean of one contribution per series."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(len(contributions), np.full(len(contributions), 1 / len(contributions)), replicates)
    return np.asarray(counts @ contributions / len(contributions))


def confidence_interval(measured: Measured, limits: tuple[float, float]) -> tuple[float, float] | None:
    """Returns the 95 % interval of a figure, within the metric's range; None without replicates.

    Bootstrap: 1.96 standard errors. The percentiles would be off for distances, which the bootstrap pushes upwards
    where they are small. Repeats: Student's t for the mean of the trainings.
    """
    if measured.replicates is None or len(measured.replicates) < 2:
        return None
    number = len(measured.replicates)
    error = float(np.std(measured.replicates, ddof=1))
    reach = (
        1.96 * error if measured.kind == "bootstrap" else error * float(student.ppf(0.975, number - 1)) / number**0.5
    )
    return max(measured.value - reach, limits[0]), min(measured.value + reach, limits[1])


def prediction_interval(figures: np.ndarray, limits: tuple[float, float], level: float) -> tuple[float, float]:
    """Returns where one more figure of the same kind lies with probability `level`, if they are about normal."""
    number = len(figures)
    reach = float(student.ppf(0.5 + level / 2, number - 1)) * float(np.std(figures, ddof=1)) * (1 + 1 / number) ** 0.5
    middle = float(np.mean(figures))
    return max(middle - reach, limits[0]), min(middle + reach, limits[1])


def _rows(panel: Panel, rng: np.random.Generator) -> np.ndarray:
    if panel.num_units == panel.num_series:
        return rng.integers(0, panel.num_series, panel.num_series)
    units = rng.integers(0, panel.num_units, panel.num_units)
    first, last = (np.searchsorted(panel.unit, units, side=side) for side in ("left", "right"))
    return np.concatenate([np.arange(*pair) for pair in zip(first, last, strict=True)])
