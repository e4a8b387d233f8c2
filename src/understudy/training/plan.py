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


@dataclass(frozen=True, kw_only=True)
class DPSGDConfig:
    """DP-SGD over privacy units. Every number is a public constant, chosen before data is read.

    Privacy:
        Neighbours differ by one added or removed unit. An iteration samples units (or windows) at `sampling_rate`,
        clips each of them to C = `clipping_norm`, adds N(0, (noise_multiplier · C)²) to every coordinate of the sum,
        also to an empty one, and divides by `expected_batch`. `event` prices all iterations.

    Attributes:
        max_windows: windows that one unit owns at most, where single windows are sampled and clipped; None samples
            whole units, each of which shows one of its windows.
    """

    sampling_rate: float  # probability with which each unit (or window) takes part in one iteration
    iterations: int  # not epochs, which would depend on the private number of units
    expected_batch: float  # what the noisy sum is divided by: rate · declared population
    clipping_norm: float = 1.0
    noise_multiplier: float | None = None  # noise standard deviation ÷ clipping norm; None until calibrated
    max_windows: int | None = None

    def __post_init__(self) -> None:
        self._event(1.0)  # refuses a rate or a number that no event has
        if not 0 < self.expected_batch < float("inf"):
            raise InputError(f"Expected a positive expected_batch, got {self.expected_batch}.")
        if not SMALLEST_CLIP <= self.clipping_norm <= 1e6:
            raise InputError(
                f"Expected clipping_norm between {SMALLEST_CLIP} and 1e6, got {self.clipping_norm}. Rescale the loss."
            )

    @property
    def event(self) -> SubsampledGaussian | MixtureOfGaussians:
        """What all iterations together cost; needs a noise multiplier."""
        if self.noise_multiplier is None:
            raise InputError("Expected a noise_multiplier, got none. Call calibrated(guarantee) first.")
        return self._event(self.noise_multiplier)

    def _event(self, noise_multiplier: float) -> SubsampledGaussian | MixtureOfGaussians:
        if self.max_windows is None:
            return SubsampledGaussian(self.sampling_rate, noise_multiplier, self.iterations)
        return MixtureOfGaussians(self.sampling_rate, noise_multiplier, self.max_windows, self.iterations)

    @cached_property
    def noise_scale(self) -> float:
        """Standard deviation of the noise on every coordinate of the clipped sum."""
        return self.event.noise_multiplier * self.clipping_norm

    def calibrated(self, guarantee: Guarantee, *, others: Iterable[Event] = ()) -> "DPSGDConfig":
        """Return a copy with the least noise, rounded up, that meets `guarantee` in composition with `others`."""
        return replace(self, noise_multiplier=smallest_noise_multiplier(self._event, guarantee, others))

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
        assert self.max_windows is None
        share = 1 / (influence * math.sqrt(num_blocks))
        noise_multiplier = self.event.noise_multiplier / share
        return replace(
            self, clipping_norm=max(SMALLEST_CLIP, self.clipping_norm * share), noise_multiplier=noise_multiplier
        )


def training_plan(config: DPSGDConfig, shares: Mapping[str, float], guarantee: Guarantee) -> SpendingPlan:
    """Returns Gaussian releases that take shares of mu², then DP-SGD with all that they leave of the guarantee."""
    multipliers = noise_multipliers(guarantee, shares) if shares else {}
    releases = tuple(PlanEntry(label, Gaussian(noise)) for label, noise in multipliers.items())
    training = config.calibrated(guarantee, others=[entry.event for entry in releases]).event
    return SpendingPlan((*releases, PlanEntry(TRAINING, training)), guarantee)


def charged_config(event: Event, population: int, clipping_norm: float) -> DPSGDConfig:
    """Return the configuration of a charged event, for a declared population."""
    assert isinstance(event, SubsampledGaussian | MixtureOfGaussians)
    return DPSGDConfig(
        sampling_rate=event.sampling_rate,
        iterations=event.iterations,
        expected_batch=event.sampling_rate * population,
        clipping_norm=clipping_norm,
        noise_multiplier=event.noise_multiplier,
        max_windows=event.max_windows if isinstance(event, MixtureOfGaussians) else None,
    )


def noise_ratio(noise_multiplier: float, num_parameters: int, batch: float) -> float:
    """Return the ratio of the gradient noise to the largest possible sum of `batch` clipped gradients; public."""
    return noise_multiplier * math.sqrt(num_parameters) / batch
