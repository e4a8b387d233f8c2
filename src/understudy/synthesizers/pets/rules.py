"""Rule-based series: trend, season, local changes and noise (Eq. 2, after ChatTS, Xie et al., arXiv:2412.03104).

Nothing here looks at private data. Parts have amplitude about 1; absolute scale is a matter of the rescale policy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from scipy.interpolate import PchipInterpolator

from understudy.errors import InputError

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
    """Return seasonal parts, zero where there is none; with a `season` half of the series have that period."""
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
    """Return periods in steps: half of them short, half long; all long where series are short."""
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
    """Return trends: falling, rising, steady, or with turning points."""
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
    """Return noise; where `flat` [series] says that a series has no season, half of it is a sum of sinusoids."""
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
    """Return irregular series: spectra that fall as frequency^−β, β from 0 to 3, with up to three rhythms on top."""
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


MAX_CHANGES = 3
MIN_STEPS = 16  # shorter series have no local changes
Shape = Callable[[int, np.random.Generator], tuple[np.ndarray, float]]


@dataclass(frozen=True)
class Change:
    """One kind of local change.

    Attributes:
        shape: Gives the course of a change of height 1 and the level it leaves behind.
        sign: Up or down.
        amplitude_spread: Standard deviation of its height, which is 0.8 + |N(0, spread²)|.
    """

    shape: Shape
    sign: float
    amplitude_spread: float = 2.0


def add_changes(series: np.ndarray, weights: tuple[tuple[str, float], ...], rng: np.random.Generator) -> None:
    """Adds up to three local changes to each of series [series, step], in place, well apart from each other."""
    num_steps = series.shape[1]
    if num_steps < MIN_STEPS:
        return
    names = [name for name, _ in weights]
    chances = np.array([weight for _, weight in weights]) / sum(weight for _, weight in weights)
    counts = rng.integers(0, MAX_CHANGES + 1, len(series))
    for row, count in zip(series, counts, strict=True):
        free_from = 0
        for name in rng.choice(names, count, p=chances):
            change = CHANGES[name]
            course, level = change.shape(num_steps, rng)
            latest = num_steps - len(course)
            if free_from >= latest:
                break
            begin = int(rng.integers(free_from, latest))
            height = change.sign * (0.8 + abs(rng.normal(0, change.amplitude_spread)))
            row[begin : begin + len(course)] += height * course
            row[begin + len(course) :] += height * level
            free_from = begin + len(course) + max(num_steps // 8, len(course), 20)


def _ramp(rise: int, fall: int, plateau: int = 0) -> np.ndarray:
    """0 → 1 in `rise` steps, 1 for `plateau` further steps, back to 0 in `fall` steps."""
    up, down = np.arange(1, rise + 1) / rise, 1 - np.arange(1, fall + 1) / fall
    return np.concatenate([up, np.ones(plateau), down])


def _steepness(rng: np.random.Generator) -> int:
    return 1 if rng.random() < 0.96 else int(rng.integers(2, 4))


def _stretch(num_steps: int, rng: np.random.Generator) -> int:
    """Length of a slow change."""
    return int(rng.integers(max(num_steps // 16, 4), max(num_steps // 6, 5) + 1))


def _spike(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    return _ramp(_steepness(rng), _steepness(rng)), 0.0


def _spikes(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Two to five spikes in a row, of different height."""
    single = [rng.uniform(0.5, 1) * _spike(num_steps, rng)[0] for _ in range(rng.integers(2, 6))]
    gap = np.zeros(int(rng.integers(1, max(num_steps // 64, 2) + 1)))
    return np.concatenate([part for one in single for part in (one, gap)])[: num_steps // 2], 0.0


def _wide_spike(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    widest = max(num_steps // 32, 4)
    return _ramp(int(rng.integers(3, widest + 1)), int(rng.integers(3, widest + 1)), int(rng.integers(0, widest))), 0.0


def _step(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A new level, reached in one to ten steps; half of them go back by up to a third."""
    rise = int(rng.integers(1, min(10, num_steps // 4) + 1))
    back = rng.uniform(0, 1 / 3) if rng.random() < 0.5 else 0.0
    ramp = np.arange(1, rise + 1) / rise
    return np.concatenate([ramp, 1 - back * ramp]), 1 - back


def _shake(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    longest = min(max(int(0.15 * num_steps), 16), num_steps // 2)
    return rng.uniform(-1, 1, int(rng.integers(min(8, longest), longest + 1))), 0.0


def _hump(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    return np.sin(np.pi * np.linspace(0, 1, _stretch(num_steps, rng))), 0.0


def _fast_then_slow(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    return _ramp(int(rng.integers(1, 4)), _stretch(num_steps, rng)), 0.0


def _slow_then_fast(num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    return _ramp(_stretch(num_steps, rng), int(rng.integers(1, 4))), 0.0


def _spike_then_shift(direction: float, num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A spike that leaves a lasting shift in its own or in the other direction."""
    level = direction * rng.uniform(0.2, 0.6)
    return np.array([1.0, level]), level


CHANGES: Mapping[str, Change] = {
    "spike up": Change(_spike, 1, 6.0),
    "spike down": Change(_spike, -1, 6.0),
    "step up": Change(_step, 1),
    "step down": Change(_step, -1),
    "spikes up": Change(_spikes, 1, 6.0),
    "spikes down": Change(_spikes, -1, 6.0),
    "shake": Change(_shake, 1),
    "hump up": Change(_hump, 1),
    "hump down": Change(_hump, -1),
    "fast rise, slow fall": Change(_fast_then_slow, 1),
    "slow rise, fast fall": Change(_slow_then_fast, 1),
    "fast fall, slow rise": Change(_fast_then_slow, -1),
    "slow fall, fast rise": Change(_slow_then_fast, -1),
    "spike up, then higher": Change(partial(_spike_then_shift, 1.0), 1),
    "spike up, then lower": Change(partial(_spike_then_shift, -1.0), 1),
    "spike down, then lower": Change(partial(_spike_then_shift, 1.0), -1),
    "spike down, then higher": Change(partial(_spike_then_shift, -1.0), -1),
    "wide spike up": Change(_wide_spike, 1, 6.0),
    "wide spike down": Change(_wide_spike, -1, 6.0),
}


Rescale = Literal["standard", "spread", "public"]
# Series in working scale under the policy "spread": means, deviations, and bounds that nothing leaves.
MAX_MEAN, DEVIATIONS, BOUND = 2.0, (0.1, 1.5), 4.0

PRESETS: Mapping[str, Rules] = {
    "rich": Rules(
        waves=(0.7, 0.25, 0.02, 0.03),
        trends=(0.3, 0.3, 0.3, 0.1),
        bends=("square", "quarter-sine", "linear", "late"),
        noisy=0.2,
        plain_noise=False,
        changes=tuple(zip(CHANGES, (12, 10, 10, 10, 3, 3, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 2, 2), strict=True)),
    ),
    "pets": Rules(
        waves=(0.25, 0.25, 0.25, 0.25),
        trends=(0.3, 0.3, 0.4, 0.0),
        bends=("linear", "exponential"),
        noisy=1.0,
        plain_noise=True,
        changes=(("spike up", 1), ("spike down", 1), ("step up", 1), ("step down", 1)),
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleBased:
    """Composes series of trend, season, local changes and noise (Eq. 2); final, implements `Generation`.

    Attributes:
        num_steps, num_channels: Shape of the series.
        preset: "rich" draws from the whole pool of ChatTS, "pets" from the paper's simpler one.
        rescale: "standard" leaves every channel at mean 0 and deviation 1; "spread" gives each series a mean and a
            deviation drawn from wide public ranges; "public" those of a row of `public_levels`.
        public_levels: Mean and deviation of public series, [row, channel, 2].
        season: Steps of the calendar's own season, such as 24 for hours; None as published.
        one_hot: First and last-plus-one channel of each group that holds the codes of a categorical channel.
    """

    num_steps: int
    num_channels: int = 1
    preset: str = "rich"
    rescale: Rescale = "standard"
    public_levels: np.ndarray | None = None
    season: int | None = None
    one_hot: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise InputError(f"preset: one of {', '.join(PRESETS)} is expected, got '{self.preset}'.")
        if self.num_steps < 1 or self.num_channels < 1:
            raise InputError("Rule-based series need at least one step and one channel.")
        if (self.rescale == "public") != (self.public_levels is not None):
            raise InputError("public_levels: expected with rescale='public', and only with it.")
        if self.public_levels is not None and self.public_levels.shape[1:] != (self.num_channels, 2):
            raise InputError(f"public_levels: the shape [row, {self.num_channels}, 2] is expected.")

    def __call__(self, num_series: int, rng: np.random.Generator) -> np.ndarray:
        rules = PRESETS[self.preset]
        own = self._standard_series(num_series * self.num_channels, rules, rng)
        series = own.reshape(num_series, self.num_channels, self.num_steps).transpose(0, 2, 1)
        if self.num_channels > 1:
            shared = self._standard_series(num_series, rules, rng)[:, :, None]
            series = _mix(series, shared, rng)
        series = self._rescaled(series, rng)
        for begin, end in self.one_hot:
            series[:, :, begin:end] = np.eye(end - begin)[series[:, :, begin:end].argmax(axis=2)]
        return series.astype(np.float32)

    def _standard_series(self, num_series: int, rules: Rules, rng: np.random.Generator) -> np.ndarray:
        waves = draw_waves(num_series, self.num_steps, rules, rng, self.season)
        series = draw_trends(num_series, self.num_steps, rules, rng) + waves  # Eq. 2
        add_changes(series, rules.changes, rng)
        series += draw_noise((waves == 0).all(axis=1), self.num_steps, rules, rng)
        return standardised(series)

    def _rescaled(self, series: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Applies the rescale policy, which knows public facts alone."""
        if self.rescale == "standard":
            return series
        if self.public_levels is None:
            return spread(series, rng)
        drawn = self.public_levels[rng.integers(len(self.public_levels), size=len(series))]
        return drawn[:, None, :, 0] + drawn[:, None, :, 1] * series


@dataclass(frozen=True, eq=False)
class PublicPanel:
    """Draws from public series [series, step, channel] in working scale; final, implements `Generation`."""

    series: np.ndarray

    def __post_init__(self) -> None:
        if self.series.ndim != 3 or not len(self.series) or not np.isfinite(self.series).all():
            raise InputError("Public series: finite numbers [series, step, channel] and at least one are expected.")

    def __call__(self, num_series: int, rng: np.random.Generator) -> np.ndarray:
        """Return public series, each used equally often up to one."""
        rounds = [rng.permutation(len(self.series)) for _ in range(-(-num_series // len(self.series)))]
        rows = np.concatenate([np.empty(0, dtype=np.int64), *rounds])[:num_series]
        return self.series[rows].astype(np.float32)


def standardised(series: np.ndarray) -> np.ndarray:
    """Return series [series, step] with mean 0 and deviation 1; constant ones become 0."""
    centred = series - series.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    return centred / np.where(deviation > 1e-9, deviation, 1.0)


def spread(series: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gives each channel of standardised series a mean and a deviation drawn from wide public ranges."""
    shape = (len(series), 1, series.shape[2])
    low, high = np.log(DEVIATIONS)
    wide = rng.uniform(-MAX_MEAN, MAX_MEAN, shape) + np.exp(rng.uniform(low, high, shape)) * series
    return wide.clip(-BOUND, BOUND)


def levels_of(series: np.ndarray) -> np.ndarray:
    """Return mean and deviation [series, channel, 2] of *public* series, for the rescale policy "public"."""
    return np.stack([series.mean(axis=1), series.std(axis=1)], axis=2)


def _mix(own: np.ndarray, shared: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Lets channels share a component: loading · shared + √(1 − loading²) · own, signs and strengths at random."""
    loading = rng.uniform(-1, 1, (len(own), 1, own.shape[2]))
    return loading * shared + np.sqrt(1 - loading**2) * own
