"""Sampling, clipping, noise and event of a DP-SGD run, stated once."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Event, Gaussian, MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers, smallest_noise_multiplier

TRAINING = "training"  # label under which gradients are charged
SMALLEST_CLIP = 0.1  # below, products of tiny and huge float32 could slip under the norm


@dataclass(frozen=True)
class UnitBatches:
    """Batches of units: a sampled unit shows `windows` of its windows, averaged *before* the clip."""

    windows: int = 1

    def __post_init__(self) -> None:
        _at_least_one(windows=self.windows)


@dataclass(frozen=True)
class WindowBatches:
    """Batches of windows, each clipped on its own; a unit owns at most `max_windows` of them."""

    max_windows: int

    def __post_init__(self) -> None:
        _at_least_one(max_windows=self.max_windows)


def _at_least_one(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1 or int(number) != number:
            raise InputError(f"Expected {name} to be a whole number of at least 1, got {number}.")


@dataclass(frozen=True, kw_only=True)
class DPSGDConfig:
    """DP-SGD over privacy units. Every number is a public constant, chosen before data is read.

    Privacy:
        Neighbours differ by one added or removed unit. An iteration samples units (or windows) at `sampling_rate`,
        clips each of them to `clip_norm`, adds N(0, (noise_multiplier · clip_norm)²) to every coordinate of the sum,
        also to an empty one, and divides by `expected_batch`. `event` prices all iterations.

    Attributes:
        sampling_rate: probability with which each unit (or window) takes part in one iteration.
        iterations: optimiser updates; not epochs, which would depend on the private number of units.
        expected_batch: what the noisy sum is divided by: rate · declared population.
        clip_norm: clipping norm of one unit's (or window's) gradient.
        noise_multiplier: noise standard deviation ÷ clip norm; None until calibrated.
        batches: of whole units (default) or of single windows.
    """

    sampling_rate: float
    iterations: int
    expected_batch: float
    clip_norm: float = 1.0
    noise_multiplier: float | None = None
    batches: UnitBatches | WindowBatches = UnitBatches()

    def __post_init__(self) -> None:
        if not 0 < self.sampling_rate <= 1:
            raise InputError(f"Expected sampling_rate in (0, 1], got {self.sampling_rate}.")
        if not 0 < self.expected_batch < float("inf"):
            raise InputError(f"Expected a positive expected_batch, got {self.expected_batch}.")
        if not SMALLEST_CLIP <= self.clip_norm <= 1e6:
            raise InputError(
                f"Expected clip_norm between {SMALLEST_CLIP} and 1e6, got {self.clip_norm}. Rescale the loss."
            )
        _at_least_one(iterations=self.iterations)

    @property
    def event(self) -> SubsampledGaussian | MixtureOfGaussians:
        """What all iterations together cost; needs a noise multiplier."""
        if self.noise_multiplier is None:
            raise InputError("Expected a noise_multiplier, got none. Call calibrated(guarantee) first.")
        if isinstance(self.batches, UnitBatches):
            return SubsampledGaussian(self.sampling_rate, self.noise_multiplier, self.iterations)
        return MixtureOfGaussians(self.sampling_rate, self.noise_multiplier, self.batches.max_windows, self.iterations)

    @cached_property
    def noise_scale(self) -> float:
        """Standard deviation of the noise on every coordinate of the clipped sum."""
        return self.event.noise_multiplier * self.clip_norm

    def calibrated(self, guarantee: Guarantee, *, others: Iterable[Event] = ()) -> "DPSGDConfig":
        """Return a copy with the least noise, rounded up, that meets `guarantee` in composition with `others`."""
        noise = smallest_noise_multiplier(lambda tried: replace(self, noise_multiplier=tried).event, guarantee, others)
        return replace(self, noise_multiplier=noise)

    def draw(self, num_units: int, noise: NoiseSource, *, done: int = 0) -> Iterator[NDArray[np.int64]]:
        """Yield the units (or windows) of each remaining iteration, each on its own secret coin.

        Privacy:
            Batches differ in size and may be empty. An empty batch is an iteration like any other: it must be noised
            and counted, or its absence would be seen.
        """
        for _ in range(done, self.iterations):
            yield noise.poisson_selection(self.sampling_rate, num_units)

    def split(self, num_blocks: int, influence: int = 1) -> "DPSGDConfig":
        """Return what each of `num_blocks` owners of parameters does, who together execute this.

        Privacy:
            Every owner clips a row to C / (influence · √blocks) and adds N(0, (z·C)²) to each of its coordinates. One
            row moves the blocks together by at most C / influence, and a unit that changes up to `influence` rows'
            worth (an event: twice the windows it touches) moves them by at most C. No norms are exchanged. Where that
            clip would be too small for float32, clip and noise are larger by the same factor.
        """
        assert isinstance(self.batches, UnitBatches)
        share = 1 / (influence * math.sqrt(num_blocks))
        noise_multiplier = self.event.noise_multiplier / share
        return replace(self, clip_norm=max(SMALLEST_CLIP, self.clip_norm * share), noise_multiplier=noise_multiplier)


def training_plan(config: DPSGDConfig, shares: Mapping[str, float], guarantee: Guarantee) -> SpendingPlan:
    """Returns Gaussian releases that take shares of mu², then DP-SGD with all that they leave of the guarantee."""
    multipliers = noise_multipliers(guarantee, shares) if shares else {}
    releases = tuple(PlanEntry(label, Gaussian(noise)) for label, noise in multipliers.items())
    training = config.calibrated(guarantee, others=[entry.event for entry in releases]).event
    return SpendingPlan((*releases, PlanEntry(TRAINING, training)), guarantee)


def charged_config(
    event: Event, population: int, clip_norm: float, batches: UnitBatches | WindowBatches
) -> DPSGDConfig:
    """Return the configuration of a charged event, for a declared population."""
    assert isinstance(event, SubsampledGaussian | MixtureOfGaussians)
    return DPSGDConfig(
        sampling_rate=event.sampling_rate,
        iterations=event.iterations,
        expected_batch=event.sampling_rate * population,
        clip_norm=clip_norm,
        noise_multiplier=event.noise_multiplier,
        batches=batches,
    )


def noise_ratio(noise_multiplier: float, num_parameters: int, batch: float) -> float:
    """Return the ratio of the gradient noise to the largest possible sum of `batch` clipped gradients; public."""
    return noise_multiplier * math.sqrt(num_parameters) / batch
