"""Rule-based series: trend, season, local changes and noise (Eq. 2, after ChatTS, Xie et al., arXiv:2412.03104).

Nothing here looks at private data. Parts have amplitude about 1; level and scale are set at the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator

WAVES = ("none", "sine", "square", "triangle")
TRENDS = ("fall", "rise", "steady", "turns")
MAX_HARMONICS, MAX_CHANGES = 10, 3
_DECLARED_SEASON = 0.5  # share of series with the season of the declared calendar, where there is one
_MIN_SEASON_STEPS, _MIN_NOISE_STEPS, _MIN_CHANGE_STEPS = 24, 33, 16  # shorter series have no such part
# Means, deviations and bounds of series in working scale with levels "spread".
MAX_MEAN, DEVIATIONS, BOUND = 2.0, (0.1, 1.5), 4.0
GENERAL_STEPS = 128  # of the series that the general pack is trained on


class Change(NamedTuple):
    """One kind of local change; its height is sign · (0.8 + |N(0, spread²)|), its weight how often it occurs."""

    course: str
    sign: int
    weight: int
    spread: float = 2.0


CHANGES: Mapping[str, Change] = {
    "spike up": Change("spike", 1, 12, 6.0),
    "spike down": Change("spike", -1, 10, 6.0),
    "step up": Change("step", 1, 10),
    "step down": Change("step", -1, 10),
    "spikes up": Change("spikes", 1, 3, 6.0),
    "spikes down": Change("spikes", -1, 3, 6.0),
    "shake": Change("shake", 1, 2),
    "hump up": Change("hump", 1, 2),
    "hump down": Change("hump", -1, 2),
    "fast rise, slow fall": Change("fast, slow", 1, 2),
    "slow rise, fast fall": Change("slow, fast", 1, 2),
    "fast fall, slow rise": Change("fast, slow", -1, 2),
    "slow fall, fast rise": Change("slow, fast", -1, 2),
    "spike up, then higher": Change("spike, same side", 1, 1),
    "spike up, then lower": Change("spike, other side", 1, 1),
    "spike down, then lower": Change("spike, same side", -1, 1),
    "spike down, then higher": Change("spike, other side", -1, 1),
    "wide spike up": Change("wide spike", 1, 2, 6.0),
    "wide spike down": Change("wide spike", -1, 2, 6.0),
}


@dataclass(frozen=True)
class Rules:
    """How often each kind of part occurs."""

    waves: tuple[float, ...]  # probabilities of `WAVES`
    trends: tuple[float, ...]  # of `TRENDS`
    bends: tuple[str, ...]  # curves that a rising or falling trend may follow
    noisy: float  # probability of visible noise
    plain_noise: bool  # whether it is always independent from step to step
    changes: Mapping[str, float]  # weights of local changes


Preset = Literal["rich", "pets"]
PRESETS: Mapping[Preset, Rules] = {
    "rich": Rules(
        waves=(0.7, 0.25, 0.02, 0.03),
        trends=(0.3, 0.3, 0.3, 0.1),
        bends=("square", "quarter-sine", "linear", "late"),
        noisy=0.2,
        plain_noise=False,
        changes={name: change.weight for name, change in CHANGES.items()},
    ),
    "pets": Rules(
        waves=(0.25, 0.25, 0.25, 0.25),
        trends=(0.3, 0.3, 0.4, 0.0),
        bends=("linear", "exponential"),
        noisy=1.0,
        plain_noise=True,
        changes={"spike up": 1, "spike down": 1, "step up": 1, "step down": 1},
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleBased:
    """Generates series as trend + season + local changes + noise (Eq. 2).

    Attributes:
        preset: "rich" draws from the whole pool of ChatTS, "pets" from the paper's simpler one.
        levels: "standard" leaves every channel at mean 0 and deviation 1; "spread" draws both from wide ranges; an
            array [row, channel, 2] of means and deviations of public series has rows drawn from it.
        season: Steps of the calendar's own season, such as 24 for hours; None as published.
        one_hot: First and last-plus-one channel of each group that holds the codes of a categorical channel.
    """

    num_steps: int
    num_channels: int = 1
    preset: Preset = "rich"
    levels: np.ndarray | Literal["standard", "spread"] = "standard"
    season: int | None = None
    one_hot: tuple[tuple[int, int], ...] = ()

    def __call__(self, num_series: int, rng: np.random.Generator) -> np.ndarray:
        own = self._standard_series(num_series * self.num_channels, rng)
        series = own.reshape(num_series, self.num_channels, self.num_steps).transpose(0, 2, 1)
        if self.num_channels > 1:  # channels share a component, with signs and strengths at random
            shared = self._standard_series(num_series, rng)[:, :, None]
            loading = rng.uniform(-1, 1, (num_series, 1, self.num_channels))
            series = loading * shared + np.sqrt(1 - loading**2) * series
        if isinstance(self.levels, np.ndarray):
            drawn = self.levels[rng.integers(len(self.levels), size=num_series)]
            series = drawn[:, None, :, 0] + drawn[:, None, :, 1] * series
        elif self.levels == "spread":
            series = spread(series, rng)
        for begin, end in self.one_hot:
            series[:, :, begin:end] = np.eye(end - begin)[series[:, :, begin:end].argmax(axis=2)]
        return series.astype(np.float32)

    def _standard_series(self, num_series: int, rng: np.random.Generator) -> np.ndarray:
        rules = PRESETS[self.preset]
        waves = draw_waves(num_series, self.num_steps, rules, rng, self.season)
        series = draw_trends(num_series, self.num_steps, rules, rng) + waves  # Eq. 2
        add_changes(series, rules.changes, rng)
        series += draw_noise((waves == 0).all(axis=1), self.num_steps, rules, rng)
        return standardised(series)


def general_rules(num_series: int, rng: np.random.Generator) -> np.ndarray:
    """Generate series of both presets of rules and irregular ones, in equal parts."""
    numbers = [(num_series + place) // 3 for place in range(3)]
    parts = [
        RuleBased(num_steps=GENERAL_STEPS, preset=preset, levels="spread")(number, rng)
        for preset, number in zip(PRESETS, numbers, strict=False)
    ]
    irregular = standardised(coloured_noise(numbers[2], GENERAL_STEPS, rng))[:, :, None]
    parts.append(spread(irregular, rng).astype(np.float32))
    return np.concatenate(parts)[rng.permutation(num_series)]


def draw_waves(
    num_series: int, num_steps: int, rules: Rules, rng: np.random.Generator, season: int | None = None
) -> np.ndarray:
    """Return seasonal parts, zero where there is none; with a `season` half of the series have that period."""
    if num_steps < _MIN_SEASON_STEPS:
        return np.zeros((num_series, num_steps))
    period = draw_periods(num_series, num_steps, rng)
    kind = rng.choice(len(WAVES), num_series, p=rules.waves)
    if season is not None:
        shapes = np.array(rules.waves) * (np.arange(len(WAVES)) > 0)
        declared = rng.random(num_series) < _DECLARED_SEASON
        period = np.where(declared, float(season), period)
        kind = np.where(declared, rng.choice(len(WAVES), num_series, p=shapes / shapes.sum()), kind)
    parts = np.zeros((num_series, num_steps))
    for code, name in enumerate(WAVES):
        chosen = np.flatnonzero(kind == code)
        if name != "none" and len(chosen):
            parts[chosen] = wave(name, period[chosen], num_steps, rng)
    height = np.ptp(parts, axis=1, keepdims=True)
    parts *= rng.uniform(1, 2, (num_series, 1)) / np.where(height > 0, height, 1.0)
    return parts - parts.mean(axis=1, keepdims=True)


def draw_periods(num_series: int, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Return periods in steps: half of them short, half long; all long where series are short."""
    short = rng.uniform(max(num_steps / 16, 6), max(num_steps / 8, 6), num_series)
    long = rng.uniform(max(num_steps / 8, 6), num_steps / 3, num_series)
    return np.where((rng.random(num_series) < 0.5) & (num_steps > 64), short, long)


def wave(name: str, period: np.ndarray, num_steps: int, rng: np.random.Generator) -> np.ndarray:
    """Return waves [series, step] of the given periods [series]."""
    size, cycles = (len(period), 1), np.arange(num_steps) / period[:, None]
    if name == "sine":  # with overtones of falling strength, slowly modulated by up to 5 %
        overtones = rng.integers(1, np.clip(period / 6, 1, MAX_HARMONICS).astype(int) + 1)
        waves = np.zeros((len(period), num_steps))
        for n in range(1, MAX_HARMONICS + 1):
            waves += (overtones >= n)[:, None] / n * np.sin(2 * np.pi * n * cycles + rng.uniform(0, 2 * np.pi, size))
        slow = rng.uniform(0.2, 1.0, size) * np.linspace(0, 2 * np.pi, num_steps)
        return waves * (1 + rng.uniform(0, 0.05, size) * np.sin(slow + rng.uniform(0, 2 * np.pi, size)))
    if name == "square":  # high for 10 to 30 % of each period
        duty = rng.uniform(0.1, 0.3, size)
        return ((cycles + rng.random(size)) % 1.0 < duty).astype(float)
    peak = rng.uniform(0.1, 0.6, size)  # a triangle rises for 10 to 60 % of each period
    place = (cycles + rng.random(size)) % 1.0
    return np.where(place < peak, place / peak, (1 - place) / (1 - peak))


def draw_trends(num_series: int, num_steps: int, rules: Rules, rng: np.random.Generator) -> np.ndarray:
    """Return trends: falling, rising, steady, or with up to three turning points joined by a monotone cubic."""
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
    parts = np.select([kind == 0, kind == 1], [-1.0, 1.0], 0.0)[:, None] * bends
    for row in np.flatnonzero(kind == TRENDS.index("turns")):
        turns = [0.0]
        for place in np.sort(rng.uniform(0, 1, rng.integers(0, 4))):
            if turns[-1] + 1 / 8 <= place <= 1 - 1 / 8:
                turns.append(float(place))
        parts[row] = PchipInterpolator([*turns, 1.0], rng.uniform(-1, 1, len(turns) + 1))(x)
    return parts * rng.uniform(0.8, 3, (num_series, 1))


def add_changes(series: np.ndarray, weights: Mapping[str, float], rng: np.random.Generator) -> None:
    """Add up to three local changes to each of series [series, step], in place, well apart from each other."""
    num_steps = series.shape[1]
    if num_steps < _MIN_CHANGE_STEPS:
        return
    chances = np.array(list(weights.values())) / sum(weights.values())
    counts = rng.integers(0, MAX_CHANGES + 1, len(series))
    for row, count in zip(series, counts, strict=True):
        free_from = 0
        for name in rng.choice(list(weights), count, p=chances):
            change = CHANGES[name]
            course, level = _course(change.course, num_steps, rng)
            latest = num_steps - len(course)
            if free_from >= latest:
                break
            begin = int(rng.integers(free_from, latest))
            height = change.sign * (0.8 + abs(rng.normal(0, change.spread)))
            row[begin : begin + len(course)] += height * course
            row[begin + len(course) :] += height * level
            free_from = begin + len(course) + max(num_steps // 8, len(course), 20)


def _course(kind: str, num_steps: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return the course of a local change of height 1, and the level that it leaves behind."""

    def between(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    def spike() -> np.ndarray:
        rise, fall = (1 if rng.random() < 0.96 else between(2, 3) for _ in range(2))
        return _ramp(rise, fall)

    def slow() -> int:
        return between(max(num_steps // 16, 4), max(num_steps // 6, 5))

    level = 0.0
    if kind == "spike":
        course = spike()
    elif kind == "spikes":  # two to five in a row, of different height
        single = [rng.uniform(0.5, 1) * spike() for _ in range(between(2, 5))]
        gap = np.zeros(between(1, max(num_steps // 64, 2)))
        course = np.concatenate([part for one in single for part in (one, gap)])[: num_steps // 2]
    elif kind == "wide spike":
        widest = max(num_steps // 32, 4)
        course = _ramp(between(3, widest), between(3, widest), between(0, widest - 1))
    elif kind == "step":  # a new level, reached in one to ten steps; half of them go back by up to a third
        rise = between(1, min(10, num_steps // 4))
        back = rng.uniform(0, 1 / 3) if rng.random() < 0.5 else 0.0
        ramp, level = np.arange(1, rise + 1) / rise, 1 - back
        course = np.concatenate([ramp, 1 - back * ramp])
    elif kind == "shake":
        longest = min(max(int(0.15 * num_steps), 16), num_steps // 2)
        course = rng.uniform(-1, 1, between(min(8, longest), longest))
    elif kind == "hump":
        course = np.sin(np.pi * np.linspace(0, 1, slow()))
    elif kind == "fast, slow":
        course = _ramp(between(1, 3), slow())
    elif kind == "slow, fast":
        course = _ramp(slow(), between(1, 3))
    else:  # a spike that leaves a lasting shift to its own or to the other side
        level = (1 if kind == "spike, same side" else -1) * rng.uniform(0.2, 0.6)
        course = np.array([1.0, level])
    return course, level


def _ramp(rise: int, fall: int, plateau: int = 0) -> np.ndarray:
    """0 → 1 in `rise` steps, 1 for `plateau` further steps, back to 0 in `fall` steps."""
    return np.concatenate([np.arange(1, rise + 1) / rise, np.ones(plateau), 1 - np.arange(1, fall + 1) / fall])


def draw_noise(flat: np.ndarray, num_steps: int, rules: Rules, rng: np.random.Generator) -> np.ndarray:
    """Return noise; where `flat` [series] says that a series has no season, half of it is a sum of sinusoids."""
    num_series = len(flat)
    white = rng.standard_normal((num_series, num_steps))
    if num_steps < _MIN_NOISE_STEPS:
        return np.zeros_like(white)
    noisy = rng.random(num_series) < rules.noisy
    loud = rng.uniform(0.03, 0.15, num_series) * rng.uniform(0.1, 5, num_series)
    scale = np.where(noisy, loud, rng.uniform(0, 0.001, num_series))
    rough = noisy & flat & (rng.random(num_series) < 0.5) & (not rules.plain_noise)
    noise = scale[:, None] * white
    strength = rng.random((rough.sum(), num_steps // 2 + 1))  # sinusoids of every frequency
    strength[:, 0] = 0.0
    waves = np.fft.irfft(strength * np.exp(1j * rng.uniform(0, 2 * np.pi, strength.shape)), num_steps, axis=1)
    noise[rough] = 0.2 * waves / waves.std(axis=1, keepdims=True) + 0.03 * white[rough]
    return noise


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


def standardised(series: np.ndarray) -> np.ndarray:
    """Return series [series, step] with mean 0 and deviation 1; constant ones become 0."""
    centred = series - series.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    return centred / np.where(deviation > 1e-9, deviation, 1.0)


def spread(series: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Give each channel of standardised series a mean and a deviation drawn from wide public ranges."""
    shape = (len(series), 1, series.shape[2])
    low, high = np.log(DEVIATIONS)
    wide = rng.uniform(-MAX_MEAN, MAX_MEAN, shape) + np.exp(rng.uniform(low, high, shape)) * series
    return wide.clip(-BOUND, BOUND)


def levels_of(series: np.ndarray) -> np.ndarray:
    """Return mean and deviation [series, channel, 2] of *public* series, as `RuleBased.levels` takes them."""
    return np.stack([series.mean(axis=1), series.std(axis=1)], axis=2)


def in_turn(pool: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Return `number` entries of a pool in random order, each used equally often up to one."""
    rounds = (rng.permutation(pool) for _ in range(-(-number // len(pool))))
    return np.concatenate([pool[:0], *rounds])[:number]
