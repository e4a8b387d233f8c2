"""How well hidden values were filled: functions of (truth, draws, hidden).

Truth has any shape, draws one axis more in front, hidden the shape of truth. Values count where they were hidden and
are known. The mean of the draws stands for them where errors are squared, the median where they are not: these are what
a filling that knew its own distribution would say.
"""

import numpy as np


def squared_error(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns the mean squared error of the mean draw."""
    known, drawn = _counted(truth, draws, hidden)
    return float(((drawn.mean(axis=0) - known) ** 2).mean())


def absolute_error(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns the mean absolute error of the median draw."""
    known, drawn = _counted(truth, draws, hidden)
    return float(np.abs(np.median(drawn, axis=0) - known).mean())


def percentage_error(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns the mean absolute error of the median draw in percent of the truth.

    A truth nearer to 0 than a thousandth of its standard deviation counts as that far: otherwise one value that
    happens to be 0 would decide the figure.
    """
    known, drawn = _counted(truth, draws, hidden)
    size = np.maximum(np.abs(known), max(1e-3 * float(known.std()), 1e-12))
    return float((np.abs(np.median(drawn, axis=0) - known) / size).mean() * 100)


def determination(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns R² of the mean draw, pooled over all values; NaN where the truth does not vary."""
    known, drawn = _counted(truth, draws, hidden)
    variance = float(known.var())
    return 1 - float(((drawn.mean(axis=0) - known) ** 2).mean()) / variance if variance > 0 else float("nan")


def ranked_probability_score(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> float:
    """Returns the mean CRPS, E|X − y| − E|X − X'|/2, unbiased in the number of draws (Ferro 2014, Eq. 8).

    With one draw it is the mean absolute error.
    """
    known, drawn = _counted(truth, draws, hidden)
    number = len(drawn)
    error = float(np.abs(drawn - known).mean())
    if number == 1:
        return error
    ranks = 2 * np.arange(1, number + 1) - number - 1  # Σ_{i<j} |x_i − x_j| = Σ (2i − n − 1) x_(i)
    spread = (ranks @ np.sort(drawn, axis=0)).mean() / (number * (number - 1))
    return error - float(spread)


def interval_coverage(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray, level: float = 0.9) -> float:
    """Returns the share of values within the central interval of the draws; `level` if they are distributed alike.

    Ends lie at the ranks that another draw would fall between with that probability, so few draws are not blamed.
    """
    known, drawn = _counted(truth, draws, hidden)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return float(((low <= known) & (known <= high)).mean())


def _counted(truth: np.ndarray, draws: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if draws.shape[1:] != truth.shape or hidden.shape != truth.shape:
        raise ValueError("Expected draws [draw, *truth] and hidden of the truth's shape.")
    counted = hidden & ~np.isnan(truth)
    return truth[counted].astype(np.float64), draws[:, counted].astype(np.float64)
