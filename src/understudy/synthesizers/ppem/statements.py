"""What is said about the hidden marginal: figures that a release carries, and the sentences made from them."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from understudy.data import Schema
from understudy.data.channels import num_codes
from understudy.privacy.events import Gaussian, PureDP
from understudy.privacy.grant import Grant
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers.ppem import contest, effects, modes, probes, sketch, targets
from understudy.synthesizers.ppem.attributes import Attribute, Partition
from understudy.training import networks
from understudy.training.plan import TRAINING, noise_ratio

if TYPE_CHECKING:
    from understudy.synthesizers.ppem.method import Ppem

FIGURES = "obfuscation"  # array of a release: share of x′ never seen, then one flag per column that is a moved copy
_TOO_OFTEN = 0.05  # share of x′ never seen from which the sentence is a caution
_WIDE = 32  # columns of x′ beyond which a sketch of them is mostly noise


def figures(method: "Ppem", partition: Partition, values: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Returns what the probes found, from released x′ and points of the sketch alone."""
    copies = probes.moved_copies(partition.columns, values, points) if method.has_generator else ()
    unseen = probes.never_seen(partition.encoded(values), partition.encoded(points))
    return np.array([unseen, *(column.name in copies for column in partition.columns)], dtype=np.float64)


def sentences(method: "Ppem") -> tuple[str, ...]:
    """Returns the section of the certificate. It is the same whatever the data: what probes found is in the release."""
    return (
        f"Hidden: the distribution of {', '.join(method.sets)}. {_released(method)}",
        _checked(method),
        f"What probes found, for moved copies and for values that nobody has, is in the release (array '{FIGURES}').",
        *modes.NOTHING,
    )


def findings(attributes: tuple[Attribute, ...], arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Returns what the probes found, a sentence each; made from released figures alone."""
    unseen, flags = float(arrays[FIGURES][0]), arrays[FIGURES][1:] > 0
    columns = [column.name for attribute in attributes for column in attribute.columns]
    copies = [name for name, flag in zip(columns, flags, strict=True) if flag]
    told = []
    if copies:
        told.append(
            f"Caution: {', '.join(copies)} came out as the real distribution moved, stretched, mirrored or renamed. "
            "Whoever guesses the map has the original."
        )
    seen = f"{unseen:.0%} of the released values of x′ lie where the conditional model saw next to nobody"
    told.append(f"Caution: {seen}; what was generated for them is a guess." if unseen > _TOO_OFTEN else f"{seen}.")
    return tuple(told)


def _released(method: "Ppem") -> str:
    if method.has_generator:
        return "Released: what a generator draws that was taught to differ from it."
    if method.target == targets.UNIFORM:
        return "Released: the uniform distribution over the declared bounds."
    return "Released: a distribution that was stated from public knowledge."


def _checked(method: "Ppem") -> str:
    if method.effect is None:
        return "No effect size was asked for and none was checked: the two distributions may be as good as equal."
    return (
        f"Checked with differential privacy on units that were kept out: every set is at least {method.effect:g} away "
        f"({method.metric}), but for a chance of {effects.MISTAKE:g}. The check is among the charges."
    )


def outlook(
    method: "Ppem", schema: Schema, attributes: tuple[Attribute, ...], plan: SpendingPlan, held_out: float | None
) -> tuple[str, ...]:
    """Returns what public facts foretell about a private run."""
    told = _learned(method, schema, attributes, plan) if method.conditional == "energies" else []
    if method.effect is not None and held_out is not None:
        check = plan.event("check")
        assert isinstance(check, PureDP)
        least = effects.needed(
            any_effect(method, attributes), method.effect, held_out, check.epsilon, method.attempts, 8192
        )
        told.append(f"The check for {method.effect:g} passes, more often than not, from an effect of {least:.3g} on.")
    return tuple(told)


def _learned(method: "Ppem", schema: Schema, attributes: tuple[Attribute, ...], plan: SpendingPlan) -> list[str]:
    """Returns what noise leaves of energies and sketch."""
    number, ratio = num_parameters(method, schema, attributes), gradient_noise(method, schema, attributes, plan)
    told = [
        f"{number} parameters of two energies learn in {method.recipe.iterations} iterations; the noise on a summed "
        f"gradient is {ratio:.2g} times the largest possible sum."
    ]
    columns = sum(len(attribute.columns) for attribute in attributes)
    if columns > _WIDE:
        told.append(
            f"x′ has {columns} columns, of which a sketch knows little but noise. Name levels instead of channels."
        )
    event = plan.event(sketch.COUNTS)
    if isinstance(event, Gaussian) and schema.population.size is not None:
        error = event.noise_multiplier * math.sqrt(columns) / schema.population.size
        told.append(f"The sketch of x′ knows shares of its cells to about {error:.2g}.")
    return told


def gradient_noise(method: "Ppem", schema: Schema, attributes: tuple[Attribute, ...], plan: SpendingPlan) -> float:
    """Returns the ratio of the noise on a summed gradient of the energies to the largest possible sum."""
    noise = float(getattr(plan.event(TRAINING), "noise_multiplier", 0.0))
    return noise_ratio(noise, num_parameters(method, schema, attributes), method.recipe.batch)


def any_effect(method: "Ppem", attributes: tuple[Attribute, ...]) -> effects.Effect:
    """Returns an effect on all attributes, for its public constants."""
    columns = [column for attribute in attributes for column in attribute.columns]
    numbers = tuple(n for n, column in enumerate(columns) if num_codes(column) is None)
    codes = tuple((0, num_codes(column) or 0) for column in columns if num_codes(column) is not None)
    return effects.Effect(method.metric, numbers, codes, np.zeros((0, 0)))


def check_epsilon(grant: Grant) -> float:
    """Returns what the check was charged."""
    event = grant.plan.event("check")
    assert isinstance(event, PureDP)
    return event.epsilon


def num_parameters(method: "Ppem", schema: Schema, attributes: tuple[Attribute, ...]) -> int:
    """Returns how many parameters see real rows, from public facts."""
    from understudy.synthesizers.frame.facts import facts_of
    from understudy.synthesizers.ppem.purchases import encoding_of

    nothing = facts_of([], np.ones(1), np.zeros(0), np.zeros((0, 1)), np.zeros(0))
    partition = Partition(encoding_of(schema.without_context(), nothing, attributes), attributes)
    with networks.meta_device():
        energies = contest.Energies(partition, method.recipe, marginal=method.has_generator, conditional=True)
    return networks.num_parameters(energies)
