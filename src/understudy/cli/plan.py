"""`understudy plan`: what a budget buys, before it is spent. Reads the schema and no private data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from understudy.cli.console import Output, bold, table
from understudy.cli.options import (
    ContextFile,
    Delta,
    Method,
    NotPrivate,
    Options,
    Pack,
    PlannedEpsilon,
    Preset,
    Task,
    WindowSteps,
    WindowStride,
)

if TYPE_CHECKING:
    from understudy.planning import Plan


def plan(
    output: Output,
    schema: Annotated[Path, typer.Argument(help="Schema of the population. No table is read.")],
    epsilon: PlannedEpsilon = None,
    delta: Delta = None,
    not_private: NotPrivate = False,
    method: Method = "auto",
    task: Task = "series",
    window_steps: WindowSteps = None,
    window_stride: WindowStride = None,
    pack: Pack = None,
    preset: Preset = "default",
    options: Options = None,
    population: Annotated[
        int | None, typer.Option(min=1, help="Plan as if the population had this many units.")
    ] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Try several epsilons on invented series.")] = False,
    public: Annotated[
        Path | None, typer.Option(help="Try them on this public table instead. Implies --simulate.")
    ] = None,
    context: ContextFile = None,
) -> None:
    """State what a budget buys: noise, signal, epsilon, minutes, memory, and whether it buys anything."""
    from understudy import planning

    choice = planning.MethodChoice(
        name=method,
        task=task,
        window_steps=window_steps,
        window_stride=window_stride,
        pack=pack,
        preset=preset,
        options=tuple(options or ()),
    )
    with output.progress() as progress:
        made = planning.plan(
            schema,
            epsilon=epsilon,
            delta=delta,
            not_private=not_private,
            method=choice,
            population=population,
            simulated=simulate,
            public=public,
            context=context,
            progress=progress,
        )
    output.result(made.as_dict(), *shown(made))


def shown(plan: "Plan") -> list[RenderableType]:
    """Returns a plan for a person."""
    from understudy.privacy.budget import at_most

    releases = table("release", "mechanism", ">noise multiplier", ">signal to noise")
    for release in plan.releases:
        figures = (_figure(release.noise_multiplier), _figure(release.signal_to_noise))
        releases.add_row(release.label, release.mechanism, *figures)
    left = (
        "no ledger yet: the first run makes it" if plan.ledger is None else f"epsilon {plan.ledger['epsilon']:.4g} left"
    )
    lines: list[RenderableType] = [
        bold(f"Plan for '{plan.population}': {plan.units} units, method {plan.method}"),
        *plan.why,
        plan.unit,
        f"epsilon {at_most(plan.epsilon, 4)} at delta {at_most(plan.delta)} per unit {plan.relation}; "
        f"{at_most(plan.replace_one_epsilon, 4)} per unit replaced",
        f"Ledger: {left}. {plan.cost.sentence()}",
    ]
    if plan.releases:
        lines.append(releases)
    lines += plan.outlook
    if plan.simulation is not None:
        lines += _shown_simulation(plan.simulation.as_dict())
    return [*lines, bold(plan.verdict)]


def _shown_simulation(simulation: dict[str, Any]) -> list[RenderableType]:
    rows = table(">epsilon", ">marginal distance", ">autocorrelation error", "better than the control on")
    for row in simulation["rows"]:
        gains = row["better_than_control"]
        gains = "nothing: this epsilon buys nothing" if gains == "nothing" else gains
        rows.add_row(f"{row['epsilon']:g}", *_errors(row), gains)
    rows.add_row("0", *_errors(simulation["control"]), "(the control: reads no data)")
    scaled = ", with noise scaled to the population" if simulation["noise_scaled"] else ""
    return [f"Tried on {simulation['units_tried']} {simulation['data']}{scaled}; 0 is perfect:", rows]


def _errors(row: dict[str, Any]) -> tuple[str, str]:
    return f"{row['marginal_distance']:.3f}", f"{row['autocorrelation_error']:.3f}"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
