"""What one run is going to be like, from public facts: noise, signal against noise, cost, and a verdict."""

import html
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

from rich.console import RenderableType
from rich.text import Text

from understudy import display
from understudy.data import Schema, windows
from understudy.errors import InputError
from understudy.planning import simulation
from understudy.planning.choices import MethodOptions, chosen, contract_of, doubts, guarantee_for, spending_plan
from understudy.planning.cost import Expected, expected_cost
from understudy.planning.schedule import Schedule, divided
from understudy.planning.simulation import Simulation, sized
from understudy.privacy import accounting
from understudy.privacy.budget import at_least, at_most
from understudy.privacy.events import Event, NonPrivate, PureDP, relation
from understudy.privacy.ledger import Ledger
from understudy.privacy.plan import SpendingPlan
from understudy.synthesizers import Progress, Synthesizer

# Signal-to-noise of the best release below which, on invented data of several shapes, no method beat the
# control that reads no data, and below which only the distribution of values got better.
BUYS_NOTHING, BUYS_LITTLE = 20.0, 150.0
COLUMNS = ("release", "mechanism", ">noise multiplier", ">signal to noise")


@dataclass(frozen=True)
class PlannedRelease:
    """One noisy release of a run.

    Attributes:
        signal_to_noise: How far a fact that all units share is above the noise. A fact that a share 1/signal_to_noise
            of the population has in common is as large as the noise: what is rarer drowns.
    """

    label: str
    mechanism: str
    noise_multiplier: float | None = None
    signal_to_noise: float | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a budget buys."""

    population: str
    units: int
    unit: str  # who is protected, in words
    relation: str  # how neighbouring tables differ, in words
    method: str
    why: tuple[str, ...]  # reasons for a method that was chosen from public facts
    epsilon: float
    delta: float
    replace_one_epsilon: float
    releases: tuple[PlannedRelease, ...]
    outlook: tuple[str, ...]  # what public facts foretell about the method's series
    ledger: dict[str, Any] | None  # what is left in the population's ledger; None where there is none yet
    cost: Expected | None  # minutes and memory; None where they were not asked for
    verdict: str
    simulation: Simulation | None
    schedule: Schedule | None  # how a budget is divided over releases; the other figures are those of each

    def __repr__(self) -> str:
        cost = f"epsilon = {at_most(self.epsilon)} at delta = {at_most(self.delta)}"
        return f"Plan({self.method} on {self.units} units, {cost}: {self.verdict})"

    @property
    def cost_words(self) -> str:
        """How long a run takes and how much memory it needs; nothing where that was not asked for."""
        return "" if self.cost is None else self.cost.sentence()

    def rows(self) -> list[tuple[str, ...]]:
        """Returns each release with its mechanism, noise multiplier and signal to noise, as text."""
        figures = ((one, one.noise_multiplier, one.signal_to_noise) for one in self.releases)
        return [(one.label, one.mechanism, *("" if f is None else f"{f:.4g}" for f in two)) for one, *two in figures]

    def _head(self) -> list[str]:
        shared = () if self.schedule is None else (self.schedule.sentence(),)
        title = f"Plan for '{self.population}': {self.units} units, method {self.method}"
        return [title, *self.why, self.unit, *shared]

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{html.escape(line)}</p>" for line in (*self._head(), self.cost_words, *self.outlook))
        return f"{told}{display.html_table(COLUMNS, self.rows())}<p><strong>{html.escape(self.verdict)}</strong></p>"

    def parts(self) -> list[RenderableType]:
        """Returns the plan for a person at a terminal."""
        title, *lines = self._head()
        left = "no ledger yet: the first run makes it"
        if self.ledger is not None:
            left = f"epsilon {at_least(self.ledger['epsilon'])} left"
        return [
            Text(title, style="bold"),
            *lines,
            f"epsilon {at_most(self.epsilon, 4)} at delta {at_most(self.delta)} per unit {self.relation}; "
            f"{at_most(self.replace_one_epsilon, 4)} per unit replaced",
            f"Ledger: {left}. {self.cost_words}",
            *([display.table(*COLUMNS, rows=self.rows())] if self.releases else []),
            *self.outlook,
            *(() if self.simulation is None else self.simulation.parts()),
            Text(self.verdict, style="bold"),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Returns every figure as plain values."""
        facts, cost = asdict(self) | {"cost": self.cost_words}, self.cost
        if cost is not None:
            facts |= {"seconds": cost.seconds, "peak_mib": cost.peak_bytes / 2**20, "fits": cost.fits}
        return facts


def plan(
    schema: Schema | Path | str,
    epsilon: float | None = None,
    *,
    delta: float | None = None,
    not_private: bool = False,
    method: str | Synthesizer = "auto",
    population: int | None = None,
    schedule: str | None = None,
    simulate: bool = False,
    public: Path | None = None,
    context: Path | None = None,
    timed: bool = True,
    progress: Progress = lambda stage, share: None,
    **options: Unpack[MethodOptions],
) -> Plan:
    """Returns what a budget buys.

    Args:
        schema: The schema, or its file; the population's ledger is in the same folder.
        epsilon, delta: Cost of the run; None takes a run's share of the declared budget.
        not_private: Whether to plan a published form that protects no unit, with epsilon = inf.
        population: Number of units to plan with, in place of the declared one.
        schedule: Releases of the same people that share epsilon and delta, such as "monthly:12"; the plan is that of
            each. None plans one release.
        simulate: Whether several epsilons are tried on invented series.
        public: A public table to try them on instead, with its `context`.
        method: A name in `METHODS`, "auto" to choose from public facts, or a method that has its options.
        timed: Whether minutes and memory are found, by trials on invented series that take seconds.
        options: How a method is configured that is called by its name; see `MethodOptions`.
    """
    declared, file = contract_of(schema)
    declared.require_declared()
    if population is None and declared.population.size is None:
        raise InputError(
            "population: a guess is expected, because this schema buys its number of units. Give the number to plan "
            "with."
        )
    tried = simulate or public is not None
    if tried and not_private:
        raise InputError("simulate: several epsilons are tried, and this run has none. Omit `simulate`.")
    assumed = declared if population is None else sized(declared, population)
    own, why = chosen(assumed, method=method, **options)
    series = None if schedule is None else divided(schedule, own, assumed, epsilon, delta)
    if series is not None:
        epsilon, delta = series.epsilon, series.delta
    guarantee = guarantee_for(assumed, epsilon, delta, not_private=not_private)
    size, delta = assumed.population.size or 1, guarantee.delta
    ledger = None if file is None else Ledger.find_for(declared, file.absolute().parent)
    progress("timing", 0.0)
    with expected_cost(own, assumed, guarantee, size) if timed else nullcontext() as finish:
        spending = spending_plan(own, assumed, guarantee)
        outlook = (*own.outlook(assumed, guarantee), *doubts(own, assumed, guarantee, options.get("task", "series")))
        paid = accounting.epsilon(spending.events, delta), accounting.replace_one_epsilon(spending.events, delta)
        cost = None if finish is None else finish(spending)
    releases = tuple(_release(entry.label, entry.event, assumed, own.window_steps) for entry in spending.entries)
    trial = None
    if tried:
        trial = simulation.simulate(own, assumed, guarantee, public=public, context=context, progress=progress)
    return Plan(
        population=declared.name,
        units=size,
        unit=declared.unit.sentence(),
        relation="whose values are taken away" if relation(spending.events) == "values" else "added or removed",
        method=own.name,
        why=why,
        epsilon=paid[0],
        delta=delta,
        replace_one_epsilon=paid[1],
        releases=releases,
        outlook=outlook,
        ledger=None if ledger is None else {"file": str(ledger.path), **asdict(ledger.remaining())},
        cost=cost,
        verdict=verdict(spending, releases, trial, guarantee.epsilon),
        simulation=trial,
        schedule=series,
    )


def verdict(
    spending: SpendingPlan, releases: Sequence[PlannedRelease], trial: Simulation | None = None, epsilon: float = 0.0
) -> str:
    """Returns in one sentence what the budget buys, as `epsilon` did in a trial if there was one.

    One lucky trial does not outweigh noise that drowns all.
    """
    if any(isinstance(event, NonPrivate) for event in spending.events):
        return "This run is not private: no guarantee covers what it releases."
    best = max((one.signal_to_noise for one in releases if one.signal_to_noise is not None), default=None)
    if best is None and not (releases and trial):
        return "No private data is read: epsilon is 0 and nothing is learned."
    if best is not None and best < BUYS_NOTHING:
        return (
            "This budget buys nothing: the noise drowns what this population has in common. Ask for a larger "
            "epsilon, or bring more units."
        )
    if trial is not None:
        gains = next(row.better_than_control for row in trial.rows if row.epsilon == epsilon)
        if gains != "nothing":
            return f"This budget buys {gains}: closer to the truth, on these series, than without reading any data."
        return (
            "This budget buys nothing: on these series it is no better than reading no data at all. Ask for "
            "a larger epsilon, or bring more units."
        )
    if best is not None and best < BUYS_LITTLE:
        return (
            "This budget buys little: expect the distribution of values, and only traces of how they move. "
            "`simulate` shows more."
        )
    return "This budget buys something: expect values and how they move. `simulate` shows how well."


def _release(label: str, event: Event, schema: Schema, window_steps: int | None) -> PlannedRelease:
    """Returns one release with its noise: the standard deviation over one unit's influence, where the event has one."""
    own = math.sqrt(2) / event.epsilon if isinstance(event, PureDP) else None
    multiplier = getattr(event, "noise_multiplier", own)
    if multiplier is None:
        return PlannedRelease(label, type(event).__name__)
    contributions, steps = float(schema.population.size or 1), window_steps or schema.num_steps
    if schema.unit.kind == "event":  # its windows over the most that one event can touch
        contributions *= (schema.num_steps // steps) / (2 * windows.stability(schema, steps, steps))
    signal = contributions * getattr(event, "sampling_rate", 1.0) / multiplier
    return PlannedRelease(label, type(event).__name__, multiplier, signal)
