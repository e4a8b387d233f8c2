"""`understudy plan`: what a budget buys, before it is spent. Reads the schema and no private data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from understudy import planning
from understudy.cli.console import Output, bold, table
from understudy.cli.options import ContextFile, Delta, MethodOptions, NotPrivate, PlannedEpsilon
from understudy.planning import Plan
from understudy.planning.plans import COLUMNS
from understudy.planning.simulation import Simulation
from understudy.privacy.budget import at_least, at_most


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What is planned, but for its method, as `planning.plan` takes it."""

    schema: Annotated[Path, typer.Argument(help="Schema of the population. No table is read.")]
    epsilon: PlannedEpsilon = None
    delta: Delta = None
    not_private: NotPrivate = False
    population: Annotated[int | None, typer.Option(min=1, help="Plan as if the population had this many units.")] = None
    schedule: Annotated[
        str | None, "Releases of the same people that share --epsilon, or else the whole budget, such as monthly:12."
    ] = None
    simulate: Annotated[bool, "Fit simulated series at several epsilons."] = False
    public: Annotated[Path | None, "Public table for --simulate, in place of simulated series. Implies --simulate."] = (
        None
    )
    context: ContextFile = None


def plan(output: Output, planned: Planned, method: MethodOptions) -> None:
    """State what a budget buys: noise, signal, epsilon, minutes, memory, and whether it buys anything."""
    with output.progress() as progress:
        made = planning.plan(**vars(planned), **vars(method), progress=progress)
    output.result(made.as_dict(), *shown(made))


def shown(plan: Plan) -> list[RenderableType]:
    """Returns a plan for a person."""
    left = "no ledger yet: the first run makes it"
    if plan.ledger is not None:
        left = f"epsilon {at_least(plan.ledger['epsilon'])} left"
    lines: list[RenderableType] = [
        bold(f"Plan for '{plan.population}': {plan.units} units, method {plan.method}"),
        *plan.why,
        plan.unit,
        *plan.shared,
        f"epsilon {at_most(plan.epsilon, 4)} at delta {at_most(plan.delta)} per unit {plan.relation}; "
        f"{at_most(plan.replace_one_epsilon, 4)} per unit replaced",
        f"Ledger: {left}. {plan.cost_words}",
    ]
    if plan.releases:
        lines.append(table(*COLUMNS, rows=plan.rows()))
    lines += plan.outlook
    if plan.simulation is not None:
        lines += _shown_simulation(plan.simulation)
    return [*lines, bold(plan.verdict)]


def _shown_simulation(simulation: Simulation) -> list[RenderableType]:
    rows = [
        (
            f"{tried.epsilon:g}",
            f"{tried.marginal_distance:.3f}",
            f"{tried.autocorrelation_error:.3f}",
            tried.better_than_control,
        )
        for tried in (*simulation.rows, simulation.control)
    ]
    scaled = ", with noise scaled to the population" if simulation.noise_scaled else ""
    return [
        f"Tried on {simulation.units_tried} {simulation.data}{scaled}; 0 is perfect:",
        table(">epsilon", ">marginal distance", ">autocorrelation error", "better than the control on", rows=rows),
    ]
