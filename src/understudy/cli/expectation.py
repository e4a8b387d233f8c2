"""What a run is going to be like, from public facts: noise, and signal against noise. `cost` has time and memory."""

import math

from understudy.data import Schema, windows
from understudy.privacy.events import (
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    PureDP,
    SubsampledGaussian,
)
from understudy.privacy.plan import SpendingPlan

# Signal-to-noise of the best release below which, on invented data of several shapes, no method beat the
# control that reads no data, and below which only the distribution of values got better.
BUYS_NOTHING, BUYS_LITTLE = 20.0, 150.0


def noise_multiplier(event: Event) -> float | None:
    """Returns the noise's standard deviation over one unit's influence, where the event has one."""
    if isinstance(event, Gaussian | DiscreteGaussian | SubsampledGaussian | MixtureOfGaussians):
        return event.noise_multiplier
    return math.sqrt(2) / event.epsilon if isinstance(event, PureDP) else None


def signal_to_noise(event: Event, schema: Schema, population: int, window_steps: int | None) -> float | None:
    """Returns how far a fact that all units share stands above the noise of one release.

    A fact that a share 1/signal_to_noise of the population has in common is as large as the noise: what is
    rarer drowns.
    """
    multiplier = noise_multiplier(event)
    if multiplier is None:
        return None
    contributions = population * _influence_share(schema, window_steps)
    rate = event.sampling_rate if isinstance(event, SubsampledGaussian | MixtureOfGaussians) else 1.0
    return contributions * rate / multiplier


def verdict(plan: SpendingPlan, schema: Schema, population: int, window_steps: int | None) -> str:
    """Says in one line what the budget buys."""
    found = [signal_to_noise(event, schema, population, window_steps) for event in plan.events]
    best = max((ratio for ratio in found if ratio is not None), default=None)
    if best is None:
        return "No private data is read: epsilon is 0 and nothing is learned."
    if best < BUYS_NOTHING:
        return (
            "This budget buys nothing: the noise drowns what this population has in common. Ask for a larger "
            "epsilon, or bring more units."
        )
    if best < BUYS_LITTLE:
        return (
            "This budget buys little: expect the distribution of values, and only traces of how they move. "
            "--simulate shows more."
        )
    return "This budget buys something: expect values and how they move. --simulate shows how well."


def _influence_share(schema: Schema, window_steps: int | None) -> float:
    """Returns contributions per unit over the most that one protected unit can touch; 1 for entities."""
    steps = window_steps or schema.num_steps
    if schema.unit.kind != "event":
        return 1.0
    return (schema.num_steps // steps) / (2 * windows.stability(schema, steps, steps))
