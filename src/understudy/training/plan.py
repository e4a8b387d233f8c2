"""Sampler, clip, noise and event of a DP-SGD run, tied together once."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from understudy.errors import InputError
from understudy.privacy.budget import Guarantee
from understudy.privacy.events import Event, Gaussian, MixtureOfGaussians, SubsampledGaussian
from understudy.privacy.noise import PoissonSampler
from understudy.privacy.plan import PlanEntry, SpendingPlan, noise_multipliers, smallest_noise_multiplier

TRAINING = "training"  # label under which gradients are charged
MOSTLY_NOISE = 3.0  # `noise_ratio` above which a network learns mostly noise
SMALLEST_CLIP = 0.1  # below, products of tiny and huge float32 could slip under the norm


def _at_least_one(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1 or int(number) != number:
            raise InputError(f"Expected {name} to be a whole number of at least 1, got {number}.")


def _check_clip(clip_norm: float) -> None:
    if not SMALLEST_CLIP <= clip_norm <= 1e6:
        raise InputError(f"Expected clip_norm between {SMALLEST_CLIP} and 1e6, got {clip_norm}. Rescale the loss.")


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


@dataclass(frozen=True, kw_only=True)
class DPSGDConfig:
    """DP-SGD over privacy units. Every number is a public constant, chosen before data is read.

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
        _check_clip(self.clip_norm)
        _at_least_one(iterations=self.iterations)

    @classmethod
    def for_population(
        cls, population: int, *, expected_batch: float, iterations: int, clip_norm: float = 1.0
    ) -> "DPSGDConfig":
        """Returns a configuration whose batches hold `expected_batch` of a declared population on average."""
        return cls(
            sampling_rate=min(1.0, expected_batch / population),
            iterations=iterations,
            expected_batch=min(float(expected_batch), float(population)),
            clip_norm=clip_norm,
        )

    def calibrated(self, guarantee: Guarantee, *, others: Iterable[Event] = ()) -> "DPSGDConfig":
        """Returns a copy with the least noise, rounded up, that meets `guarantee` in composition with `others`."""
        noise = smallest_noise_multiplier(lambda multiplier: self._event(multiplier), guarantee, others)
        return replace(self, noise_multiplier=noise)

    def plan(self) -> "MechanismPlan":
        """Returns the frozen mechanism; needs a noise multiplier."""
        if self.noise_multiplier is None:
            raise InputError("Expected a noise_multiplier, got none. Call calibrated(guarantee) first.")
        return MechanismPlan(
            sampler=PoissonSampler(self.sampling_rate, self.iterations),
            batches=self.batches,
            clip_norm=self.clip_norm,
            noise_multiplier=self.noise_multiplier,
            expected_batch=self.expected_batch,
            event=self._event(self.noise_multiplier),
        )

    def _event(self, noise_multiplier: float) -> SubsampledGaussian | MixtureOfGaussians:
        return _event(PoissonSampler(self.sampling_rate, self.iterations), self.batches, noise_multiplier)


@dataclass(frozen=True, kw_only=True)
class MechanismPlan:
    """What every iteration does to private data, and the event that prices all of them. Made by `DPSGDConfig.plan`.

    Privacy:
        Neighbours differ by one added or removed unit. An iteration samples units (or windows) at `sampler.rate`,
        clips each of them to `clip_norm`, adds N(0, (noise_multiplier · clip_norm)²) to every coordinate of the sum,
        also to an empty one, and divides by `expected_batch`.
    """

    sampler: PoissonSampler
    batches: UnitBatches | WindowBatches
    clip_norm: float
    noise_multiplier: float
    expected_batch: float
    event: SubsampledGaussian | MixtureOfGaussians

    def __post_init__(self) -> None:
        _check_clip(self.clip_norm)
        if self.event != _event(self.sampler, self.batches, self.noise_multiplier):
            raise InputError("Expected the event of this sampler and noise, got another. Use DPSGDConfig.plan().")

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the noise on every coordinate of the clipped sum."""
        return self.noise_multiplier * self.clip_norm


@dataclass(frozen=True, kw_only=True)
class Performance:
    """Speed and memory. Nothing here can change a guarantee.

    Attributes:
        max_units_in_memory: units whose gradients are held at once; None lets the number of parameters decide.
        threads: torch threads; None leaves torch's setting.
        device: where the model and the batches live.
    """

    max_units_in_memory: int | None = None
    threads: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("max_units_in_memory", "threads"):
            value = getattr(self, name)
            if value is not None:
                _at_least_one(**{name: value})


def _event(
    sampler: PoissonSampler, batches: UnitBatches | WindowBatches, noise_multiplier: float
) -> SubsampledGaussian | MixtureOfGaussians:
    if isinstance(batches, UnitBatches):
        return SubsampledGaussian(sampler.rate, noise_multiplier, sampler.iterations)
    return MixtureOfGaussians(sampler.rate, noise_multiplier, batches.max_windows, sampler.iterations)


def training_plan(config: DPSGDConfig, shares: Mapping[str, float], guarantee: Guarantee) -> SpendingPlan:
    """Returns Gaussian releases that take shares of mu², then DP-SGD with all that they leave of the guarantee."""
    multipliers = noise_multipliers(guarantee, shares) if shares else {}
    releases = tuple(PlanEntry(label, Gaussian(noise)) for label, noise in multipliers.items())
    training = config.calibrated(guarantee, others=[entry.event for entry in releases]).plan().event
    return SpendingPlan((*releases, PlanEntry(TRAINING, training)), guarantee)


def planned_noise(plan: SpendingPlan) -> float:
    """Returns the noise multiplier of the gradients of a plan."""
    event = plan.event(TRAINING)
    assert isinstance(event, SubsampledGaussian | MixtureOfGaussians)
    return event.noise_multiplier


def charged_config(
    event: Event, population: int, clip_norm: float, batches: UnitBatches | WindowBatches
) -> DPSGDConfig:
    """Returns the configuration of a charged event, for a declared population."""
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
    """Returns the ratio of the gradient noise to the largest possible sum of `batch` clipped gradients.

    Privacy:
        Public: a function of the plan and the size of the network.
    """
    return noise_multiplier * math.sqrt(num_parameters) / batch


def split_plan(plan: MechanismPlan, num_blocks: int, influence: int = 1) -> MechanismPlan:
    """Returns the plan of each of `num_blocks` owners of parameters, who together execute `plan`.

    Privacy:
        Every owner clips a row to C / (influence · √blocks) and adds N(0, (z·C)²) to each of its coordinates. One row
        moves the blocks together by at most C / influence, and a unit that changes up to `influence` rows' worth
        (an event: twice the windows it touches) moves them by at most C. No norms are exchanged. Where that clip would
        be too small for float32, clip and noise are larger by the same factor.
    """
    assert isinstance(plan.event, SubsampledGaussian)
    assert isinstance(plan.batches, UnitBatches)
    share = 1 / (influence * math.sqrt(num_blocks))
    noise_multiplier = plan.noise_multiplier / share
    return MechanismPlan(
        sampler=plan.sampler,
        batches=plan.batches,
        clip_norm=max(SMALLEST_CLIP, plan.clip_norm * share),
        noise_multiplier=noise_multiplier,
        expected_batch=plan.expected_batch,
        event=SubsampledGaussian(plan.sampler.rate, noise_multiplier, plan.sampler.iterations),
    )
