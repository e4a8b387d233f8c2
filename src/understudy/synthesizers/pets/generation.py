"""Where the first population comes from: rules, or a public panel. Neither looks at private data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from understudy.errors import InputError
from understudy.synthesizers.pets.local_changes import CHANGES, add_changes
from understudy.synthesizers.pets.rules import Rules, draw_noise, draw_trends, draw_waves

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
        """Returns public series, each used equally often up to one."""
        rounds = [rng.permutation(len(self.series)) for _ in range(-(-num_series // len(self.series)))]
        rows = np.concatenate([np.empty(0, dtype=np.int64), *rounds])[:num_series]
        return self.series[rows].astype(np.float32)


def standardised(series: np.ndarray) -> np.ndarray:
    """Returns series [series, step] with mean 0 and deviation 1; constant ones become 0."""
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
    """Returns mean and deviation [series, channel, 2] of *public* series, for the rescale policy "public"."""
    return np.stack([series.mean(axis=1), series.std(axis=1)], axis=2)


def _mix(own: np.ndarray, shared: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Lets channels share a component: loading · shared + √(1 − loading²) · own, signs and strengths at random."""
    loading = rng.uniform(-1, 1, (len(own), 1, own.shape[2]))
    return loading * shared + np.sqrt(1 - loading**2) * own
