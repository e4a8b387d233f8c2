"""What one run is going to be like, from public facts: noise, signal against noise, cost, and a verdict."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from understudy.data import Schema, windows
from understudy.errors import InputError
from understudy.planning.choices import MethodChoice, doubts, guarantee_for, spending_plan
from understudy.planning.cost import Expected, expected_cost
from understudy.planning.simulation import Simulation, simulate, sized
from understudy.privacy import accounting
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import file_name
from understudy.privacy.events import (
    DiscreteGaussian,
    Event,
    Gaussian,
    MixtureOfGaussians,
    NonPrivate,
    PureDP,
    SubsampledGaussian,
    relation,
)
from understudy.privacy.ledger import Ledger
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers import Progress, Synthesizer

# Signal-to-noise of the best release below which, on invented data of several shapes, no method beat the
# control that reads no data, and below which only the distribution of values got better.
BUYS_NOTHING, BUYS_LITTLE = 20.0, 150.0


@dataclass(frozen=True, kw_only=True)
class PlannedRelease:
    """One noisy release of a run; noise and signal are None where the mechanism has no noise multiplier."""

    label: str
    mechanism: str
    noise_multiplier: float | None
    signal_to_noise: float | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a budget buys.

    Attributes:
        unit: Who is protected, in words.
        relation: How neighbouring tables differ, in words.
        why: Reasons for a method that was chosen from public facts.
        outlook: What public facts foretell about the method's series.
        ledger: What is left in the population's ledger; None where there is none yet.
    """

    population: str
    units: int
    unit: str
    relation: str
    method: str
    why: tuple[str, ...]
    epsilon: float
    delta: float
    replace_one_epsilon: float
    releases: tuple[PlannedRelease, ...]
    outlook: tuple[str, ...]
    ledger: dict[str, Any] | None
    cost: Expected
    verdict: str
    simulation: Simulation | None

    def as_dict(self) -> dict[str, Any]:
        """Returns every figure as plain values."""
        cost = self.cost
        return asdict(self) | {
            "seconds": cost.seconds,
            "peak_mib": cost.peak_bytes / 2**20,
            "fits": cost.fits,
            "cost": cost.sentence(),
            "simulation": None if self.simulation is None else self.simulation.as_dict(),
        }


def plan(
    schema: Schema | Path | str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    not_private: bool = False,
    method: str | MethodChoice | Synthesizer = "auto",
    population: int | None = None,
    simulated: bool = False,
    public: Path | None = None,
    context: Path | None = None,
    progress: Progress = lambda stage, share: None,
) -> Plan:
    """Returns what a budget buys.

    Args:
        schema: The schema, or its file; the population's ledger is in the same folder.
        epsilon, delta: Cost of the run; None takes a run's share of the declared budget.
        not_private: Whether to plan a published form that protects no unit, with epsilon = inf.
        population: Number of units to plan with, in place of the declared one.
        simulated: Whether several epsilons are tried on invented series.
        public: A public table to try them on instead, with its `context`.
    """
    declared, file = (schema, None) if isinstance(schema, Schema) else (Schema.load(schema), Path(schema))
    declared.require_declared()
    assumed = _assumed(declared, population)
    guarantee = guarantee_for(assumed, epsilon, delta, not_private=not_private)
    choice = MethodChoice(name=method) if isinstance(method, str) else method
    own, why = (choice, ()) if isinstance(choice, Synthesizer) else choice.configured(assumed, guarantee)
    task = "series" if isinstance(choice, Synthesizer) else choice.task
    size, ledger = assumed.population.size or 1, None if file is None else _ledger(file, declared)
    progress("timing", 0.0)
    with expected_cost(own, assumed, guarantee, size) as finish:
        spending = spending_plan(own, declared if population is None else assumed, guarantee)
        outlook = (*own.outlook(assumed, guarantee), *doubts(own, assumed, guarantee, task))
        events, delta = spending.events, guarantee.delta
        paid = accounting.epsilon(events, delta), accounting.replace_one_epsilon(events, delta)
        cost = finish(spending)
    foreseen = verdict(spending, assumed, own.window_steps)
    trial = None
    if simulated or public is not None:
        if not_private:
            raise InputError("--simulate: several epsilons are tried, and this run has none. Omit --simulate.")
        trial = simulate(own, assumed, guarantee, public=public, context=context, progress=progress)
    return Plan(
        population=declared.name,
        units=size,
        unit=declared.unit.sentence(),
        relation="whose values are taken away" if relation(spending.events) == "values" else "added or removed",
        method=own.name,
        why=why,
        epsilon=paid[0],
        delta=guarantee.delta,
        replace_one_epsilon=paid[1],
        releases=tuple(_release(entry.label, entry.event, assumed, own.window_steps) for entry in spending.entries),
        outlook=outlook,
        ledger=ledger,
        cost=cost,
        verdict=foreseen if trial is None or not spending.entries else _tried_verdict(trial, guarantee, foreseen),
        simulation=trial,
    )


def noise_multiplier(event: Event) -> float | None:
    """Returns the noise's standard deviation over one unit's influence, where the event has one."""
    if isinstance(event, Gaussian | DiscreteGaussian | SubsampledGaussian | MixtureOfGaussians):
        return event.noise_multiplier
    return math.sqrt(2) / event.epsilon if isinstance(event, PureDP) else None


def signal_to_noise(event: Event, schema: Schema, window_steps: int | None) -> float | None:
    """Returns how far a fact that all units share is above the noise of one release.

    A fact that a share 1/signal_to_noise of the population has in common is as large as the noise: what is
    rarer drowns.
    """
    multiplier = noise_multiplier(event)
    if multiplier is None:
        return None
    contributions, steps = float(schema.population.size or 1), window_steps or schema.num_steps
    if schema.unit.kind == "event":  # its windows over the most that one event can touch
        contributions *= (schema.num_steps // steps) / (2 * windows.stability(schema, steps, steps))
    rate = event.sampling_rate if isinstance(event, SubsampledGaussian | MixtureOfGaussians) else 1.0
    return contributions * rate / multiplier


def verdict(spending: SpendingPlan, schema: Schema, window_steps: int | None) -> str:
    """Returns in one sentence what the budget buys."""
    if any(isinstance(event, NonPrivate) for event in spending.events):
        return "This run is not private: no guarantee covers what it releases."
    found = [signal_to_noise(event, schema, window_steps) for event in spending.events]
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


def _tried_verdict(trial: Simulation, guarantee: Guarantee, foreseen: str) -> str:
    """Returns what the asked epsilon bought in the trial; one lucky trial does not outweigh noise that drowns all."""
    if "buys nothing" in foreseen:
        return foreseen
    gains = trial.gains(guarantee.epsilon)
    if gains == "nothing":
        return (
            "This budget buys nothing: on these series it is no better than reading no data at all. Ask for "
            "a larger epsilon, or bring more units."
        )
    return f"This budget buys {gains}: closer to the truth, on these series, than without reading any data."


def _release(label: str, event: Event, schema: Schema, window_steps: int | None) -> PlannedRelease:
    return PlannedRelease(
        label=label,
        mechanism=type(event).__name__,
        noise_multiplier=noise_multiplier(event),
        signal_to_noise=signal_to_noise(event, schema, window_steps),
    )


def _assumed(schema: Schema, population: int | None) -> Schema:
    """Returns the schema with a population to compute with."""
    if population is not None:
        return sized(schema, population)
    if schema.population.size is None:
        raise InputError(
            "--population: a guess is expected, because this schema buys its number of units. Give the number to plan "
            "with."
        )
    return schema


def _ledger(file: Path, schema: Schema) -> dict[str, Any] | None:
    beside = file.absolute().parent
    if not (beside / f"{file_name(schema.name)}.ledger").exists():
        return None
    ledger = Ledger.open_for(schema, beside)
    left = ledger.remaining()
    return {"file": str(ledger.path), "epsilon": left.epsilon, "delta": left.delta, "runs": left.runs}
