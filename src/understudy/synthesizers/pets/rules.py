"""Parts of rule-based series: trend, season and noise (Eq. 2, after ChatTS, Xie et al., arXiv:2412.03104).

Every function returns [series, step] for parts of amplitude about 1; absolute scale is a matter of the rescale policy.
"""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator

WAVES = ("none", "sine", "square", "triangle")
TRENDS = ("fall", "rise", "steady", "turns")
BENDS = ("square", "quarter-sine", "linear", "late", "exponential")
MAX_HARMONICS = 10
_DECLARED_SEASON = 0.5  # share of series with the season of the declared calendar, where there is one
MIN_SEASON_STEPS, MIN_NOISE_STEPS = 24, 33  # shorter series have no season, no noise


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How often each kind of part occurs.

    Attributes:
        waves: Probabilities of `WAVES`.
        trends: Probabilities of `TRENDS`.
        bends: Names from `BENDS` that a rising or falling trend may follow.
        noisy: Probability of visible noise.
        plain_noise: Whether visible noise is always independent from step to step.
        changes: Weights of local changes by name; see `local_changes`.
    """

    waves: tuple[float, ...]
    trends: tuple[float, ...]
    bends: tuple[str, ...]
    noisy: float
    plain_noise: bool
    changes: tuple[tuple[str, float], ...]


def draw_waves(
    num_series: int, num_steps: int, rules: Rules, rng: np.random.Generator, season: int | None = None
) -> np.ndarray:
    """Returns seasonal parts, zero where there is none; with a `season` half of the series have that period."""
    if num_steps < MIN_SEASON_STEPS:
        return np.zeros((num_series, num_steps))
    period = draw_periods(num_series, num_steps, rng)
    kind = rng.choice(len(WAVES), num_series, p=rules.waves)
    if season is not None:
        shapes = np.array(rules.waves) * (np.arange(len(WAVES)) > 0)
        declared = rng.random(num_series) < _DECLARED_SEASON
        period = np.where(declared, float(season), period)
        kind = np.where(declared, rng.choice(len(WAVES), num_series, p=shapes / shapes.sum()), kind)
    parts = np.zeros((num_series, num_steps))
    for code, shape in enumerate((None, sine_wave, square_wave, triangle_wave)):
        chosen = np.flatnonzero(kind == code)
        if shape is not None and len(chosen):
            parts[chosen] = shape(period[chosen], num_steps, rng)
    height = np.ptp(parts, axis=1, keepdims=True)
    parts *= rng.uniform(1, 2, (num_series, 1)) / np.where(height > 0, height, 1.0)
    return parts - parts.mean(axis=1, keepdims=True)


def draw_periods(num_series: int, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Returns periods in steps: half of them short, half long; all long where series are short."""
    short = rng.uniform(max(num_steps / 16, 6), max(num_steps / 8, 6), num_series)
    long = rng.uniform(max(num_steps / 8, 6), num_steps / 3, num_series)
    return np.where((rng.random(num_series) < 0.5) & (num_steps > 64), short, long)


def sine_wave(period: np.ndarray, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    """A sine with overtones of falling strength, slowly modulated by up to 5 %."""
    num_series = len(period)
    cycles = np.arange(num_steps) / period[:, None]
    overtones = rng.integers(1, np.clip(period / 6, 1, MAX_HARMONICS).astype(int) + 1)
    wave = np.zeros((num_series, num_steps))
    for n in range(1, MAX_HARMONICS + 1):
        phase = rng.uniform(0, 2 * np.pi, (num_series, 1))
        wave += (overtones >= n)[:, None] / n * np.sin(2 * np.pi * n * cycles + phase)
    slow = rng.uniform(0.2, 1.0, (num_series, 1)) * np.linspace(0, 2 * np.pi, num_steps)
    depth = rng.uniform(0, 0.05, (num_series, 1))
    return wave * (1 + depth * np.sin(slow + rng.uniform(0, 2 * np.pi, (num_series, 1))))


def square_wave(period: np.ndarray, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    """High for 10 to 30 % of each period."""
    duty = rng.uniform(0.1, 0.3, (len(period), 1))
    return (_within_period(period, num_steps, rng) < duty).astype(float)


def triangle_wave(period: np.ndarray, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Rises for 10 to 60 % of each period and falls for the rest."""
    peak = rng.uniform(0.1, 0.6, (len(period), 1))
    place = _within_period(period, num_steps, rng)
    return np.where(place < peak, place / peak, (1 - place) / (1 - peak))


def _within_period(period: np.ndarray, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    return (np.arange(num_steps) / period[:, None] + rng.random((len(period), 1))) % 1.0


def draw_trends(num_series: int, num_steps: int, rules: Rules, rng: np.random.Generator) -> np.ndarray:
    """Returns trends: falling, rising, steady, or with turning points."""
    x = np.linspace(0, 1, num_steps)
    curves = {
        "square": x**2,
        "quarter-sine": np.sin(np.pi * x / 2),
        "linear": x,
        "late": 1 - (1 - x) ** 2,
        "exponential": np.expm1(3 * x) / np.expm1(3),
    }
    bends = np.stack([curves[name] for name in rules.bends])[rng.integers(len(rules.bends), size=num_series)]
    kind = rng.choice(len(TRENDS), num_series, p=rules.trends)
    sign = np.select([kind == 0, kind == 1], [-1.0, 1.0], 0.0)
    parts = sign[:, None] * bends
    for row in np.flatnonzero(kind == TRENDS.index("turns")):
        parts[row] = turning_trend(num_steps, rng)
    return parts * rng.uniform(0.8, 3, (num_series, 1))


def turning_trend(num_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Up to three turning points, an eighth of the series apart, joined by a monotone cubic."""
    wanted = np.sort(rng.uniform(0, 1, rng.integers(0, 4)))
    turns = [0.0]
    for place in wanted:
        if turns[-1] + 1 / 8 <= place <= 1 - 1 / 8:
            turns.append(float(place))
    heights = rng.uniform(-1, 1, len(turns) + 1)
    smooth = PchipInterpolator([*turns, 1.0], heights)
    return np.asarray(smooth(np.linspace(0, 1, num_steps)))


def draw_noise(flat: np.ndarray, num_steps: int, rules: Rules, rng: np.random.Generator) -> np.ndarray:
    """Returns noise; where `flat` [series] says that a series has no season, half of it is a sum of sinusoids."""
    num_series = len(flat)
    white = rng.standard_normal((num_series, num_steps))
    if num_steps < MIN_NOISE_STEPS:
        return np.zeros_like(white)
    noisy = rng.random(num_series) < rules.noisy
    loud = rng.uniform(0.03, 0.15, num_series) * rng.uniform(0.1, 5, num_series)
    scale = np.where(noisy, loud, rng.uniform(0, 0.001, num_series))
    rough = noisy & flat & (rng.random(num_series) < 0.5) & (not rules.plain_noise)
    noise = scale[:, None] * white
    noise[rough] = 0.2 * _many_sinusoids(int(rough.sum()), num_steps, rng) + 0.03 * white[rough]
    return noise


def _many_sinusoids(num_series: int, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Sum of sinusoids of every frequency with random strengths and phases, standard deviation 1."""
    num_frequencies = num_steps // 2 + 1
    strength = rng.random((num_series, num_frequencies))
    phase = rng.uniform(0, 2 * np.pi, (num_series, num_frequencies))
    strength[:, 0] = 0.0
    wave = np.fft.irfft(strength * np.exp(1j * phase), num_steps, axis=1)
    return wave / wave.std(axis=1, keepdims=True) if num_series else wave


def coloured_noise(num_series: int, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Returns irregular series: spectra that fall as frequency^−β, β from 0 to 3, with up to three rhythms on top."""
    frequency = np.arange(1, num_steps // 2 + 1)
    strength = frequency ** (-rng.uniform(0, 1.5, (num_series, 1)))
    for _ in range(3):
        centre = np.exp(rng.uniform(0, np.log(max(num_steps / 3, 2)), (num_series, 1)))
        width = centre * rng.uniform(0.02, 0.3, (num_series, 1))
        height = rng.exponential(3, (num_series, 1)) * (rng.random((num_series, 1)) < 0.5)
        at_centre = centre ** (-rng.uniform(0, 1.5, (num_series, 1)))
        strength = strength + height * at_centre * np.exp(-0.5 * ((frequency - centre) / width) ** 2)
    waves = strength * (rng.standard_normal(strength.shape) + 1j * rng.standard_normal(strength.shape))
    return np.fft.irfft(np.concatenate([np.zeros((num_series, 1)), waves], axis=1), num_steps, axis=1)
