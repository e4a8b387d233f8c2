"""Privacy curves from densities alone, from below and from above; shares no code with the accountants.

Below: outputs are put into cells, which is post-processing, and losses are rounded down, so no accountant that is right
may promise less. Above: every cell takes the largest loss in it, rounded up. Composition is a product of Fourier
transforms. The two are `count · STEP` apart and a little more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr

STEP = 2e-4
_REACH = 26.2144  # losses of a whole composition (a power of two of steps); what leaves it would come round again
_CELLS = 20_000
Shares = dict[float, float]  # probability of each shift


@dataclass(frozen=True)
class Pair:
    """Output distributions of two neighbours: masses of common cells, and the largest loss log(p/q) in each."""

    p: np.ndarray
    q: np.ndarray
    most: np.ndarray

    @classmethod
    def of_points(cls, p: Sequence[float] | np.ndarray, q: Sequence[float] | np.ndarray) -> "Pair":
        """Returns a pair of distributions on points, whose losses are exact."""
        p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(p, q, np.where(p > 0, np.log(p) - np.log(q), -np.inf))


def moved_normal(shares: Shares, scale: float, other: dict[float, float] | None = None) -> tuple[Pair, Pair]:
    """Returns both directions of N(shift, scale²), shift drawn by `shares`, against shifts drawn by `other` (none)."""
    other = other or {0.0: 1.0}
    low, high = min(*shares, *other, 0.0), max(*shares, *other, 0.0)
    edges = np.linspace(low - 9 * scale, high + 9 * scale, _CELLS)
    losses = _log_density(edges, shares, scale) - _log_density(edges, other, scale)
    assert (np.diff(losses) >= -1e-12).all()  # it rises with the output, so that a cell's largest is at its end
    p, q = _cell_masses(edges, shares, scale), _cell_masses(edges, other, scale)
    above, below = np.append(losses, np.inf), np.append(np.inf, -losses)
    return Pair(p, q, above), Pair(q, p, below)


def votes(scale: float) -> tuple[Pair, Pair]:
    """Returns both directions of one integer with discrete Gaussian noise, moved by one."""
    reach = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    mass = np.exp(-(reach**2) / (2 * scale**2))
    kept = mass > 1e-300
    p, q = mass[kept][1:] / mass.sum(), mass[kept][:-1] / mass.sum()
    return Pair.of_points(p, q), Pair.of_points(q, p)


def coin(epsilon: float, delta: float = 0.0) -> tuple[Pair, Pair]:
    """Returns randomised response that tells the truth outright with probability delta: the worst (ε, δ)-DP."""
    yes = (1 - delta) / (1 + math.exp(-epsilon))
    p, q = [delta, yes, 1 - delta - yes, 0.0], [0.0, 1 - delta - yes, yes, delta]
    pair = Pair.of_points(p, q)
    return pair, pair


@dataclass(frozen=True)
class Curve:
    """Losses of a composition on a grid: masses by place, and the mass of certainty."""

    mass: np.ndarray
    sure: float

    def delta(self, epsilon: float) -> float:
        """Returns delta at an epsilon of at least 0."""
        losses = np.arange(len(self.mass)) * STEP
        beyond = losses > epsilon
        return self.sure + float((self.mass[beyond] * -np.expm1(epsilon - losses[beyond])).sum())

    def epsilon(self, delta: float) -> float:
        """Returns the least epsilon at `delta`: between two grid points delta is linear in e^epsilon."""
        losses = np.arange(len(self.mass)) * STEP
        tail = np.cumsum(self.mass[::-1])[::-1] + self.sure
        faded = np.cumsum((self.mass * np.exp(-losses))[::-1])[::-1]
        at_place = tail - np.exp(losses) * faded
        place = int(np.argmax(at_place <= delta))
        return 0.0 if place == 0 else math.log((tail[place] - delta) / faded[place])


def curves(parts: Sequence[tuple[tuple[Pair, Pair], int]], *, above: bool) -> list[Curve]:
    """Returns the curve of either direction, every pair `count` times."""
    return [_composed([(pair[side], count) for pair, count in parts], above=above) for side in (0, 1)]


def epsilons(parts: Sequence[tuple[tuple[Pair, Pair], int]], delta: float) -> tuple[float, float]:
    """Returns epsilon from below and from above, the larger of both directions."""
    below, above = (max(curve.epsilon(delta) for curve in curves(parts, above=above)) for above in (False, True))
    return below, above


def _composed(parts: list[tuple[Pair, int]], *, above: bool) -> Curve:
    size, spectrum, sure = round(2 * _REACH / STEP), None, 1.0
    for pair, count in parts:
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = pair.most if above else np.where(pair.q > 0, np.log(pair.p) - np.log(pair.q), np.inf)
        finite = (pair.p > 0) & (losses < _REACH / 2) & (losses > -_REACH / 2)
        places = np.ceil(losses[finite] / STEP - 1e-9) if above else np.floor(losses[finite] / STEP + 1e-9)
        mass = np.bincount(places.astype(np.int64) % size, pair.p[finite], size)
        sure *= (1 - float(pair.p[(pair.p > 0) & (losses >= _REACH / 2)].sum())) ** count
        transformed = np.fft.rfft(mass) ** count
        spectrum = transformed if spectrum is None else spectrum * transformed
    return Curve(np.fft.irfft(spectrum, size)[: size // 2], 1 - sure)


def _log_density(points: np.ndarray, shares: Shares, scale: float) -> np.ndarray:
    parts = [math.log(share) - (points - shift) ** 2 / (2 * scale**2) for shift, share in shares.items()]
    return logsumexp(np.stack(parts), axis=0)


def _cell_masses(edges: np.ndarray, shares: Shares, scale: float) -> np.ndarray:
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    total = np.zeros(len(ends) - 1)
    for shift, share in shares.items():
        at = (ends - shift) / scale
        total += share * np.where(at[1:] < 0, np.diff(ndtr(at)), -np.diff(ndtr(-at)))
    return total
