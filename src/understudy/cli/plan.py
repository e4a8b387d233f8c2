"""`understudy plan`: what a budget buys, before it is spent. Reads the schema and no private data."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from understudy.cli.budget import guarantee_for, ledger_path, method_for
from understudy.cli.console import Json, Output, Progress, Quiet, bold, table
from understudy.cli.options import TASK_HELP, Options
from understudy.cli.places import existing
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.data import Panel, Schema
    from understudy.privacy.budget import Guarantee
    from understudy.synthesizers import Synthesizer

_TRIED = (0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a person wants to know about one run."""

    schema: Path
    epsilon: float | None = None
    delta: float | None = None
    method: str = "auto"
    task: str = "series"
    window_steps: int | None = None
    window_stride: int | None = None
    pack: Path | None = None
    options: tuple[str, ...] = ()
    population: int | None = None
    simulate: bool = False
    public: Path | None = None
    context: Path | None = None


def plan(
    schema: Annotated[Path, typer.Argument(help="The schema. No table is read.")],
    epsilon: Annotated[float | None, typer.Option(help="Default: the budget's epsilon divided by max_runs.")] = None,
    delta: Annotated[float | None, typer.Option(help="Default: the ledger's delta divided by max_runs.")] = None,
    method: Annotated[str, typer.Option(help="auto, or a method's name.")] = "auto",
    task: Annotated[str, typer.Option(help=TASK_HELP)] = "series",
    window_steps: Annotated[int | None, typer.Option(min=1, help="Cut series into windows of so many steps.")] = None,
    window_stride: Annotated[int | None, typer.Option(min=1, help="Steps from one window to the next.")] = None,
    pack: Annotated[Path | None, typer.Option(help="Pack of `understudy pretrain` to start from.")] = None,
    options: Options = None,
    population: Annotated[int | None, typer.Option(min=1, help="What if there were so many units?")] = None,
    simulate: Annotated[bool, typer.Option("--simulate", help="Try several epsilons on invented series.")] = False,
    public: Annotated[
        Path | None, typer.Option(help="Try them on this public table instead. Implies --simulate.")
    ] = None,
    context: Annotated[Path | None, typer.Option(help="Context of the public table.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a budget buys: noise, signal, epsilon, minutes, memory, and whether it buys anything."""
    output = Output(json=json, quiet=quiet)
    question = Question(
        schema=schema, epsilon=epsilon, delta=delta, method=method, task=task, window_steps=window_steps,
        window_stride=window_stride, pack=pack, options=tuple(options or ()),
        population=population, simulate=simulate or public is not None, public=public, context=context,
    )  # fmt: skip
    with output.progress() as progress:
        facts = answer(question, progress)
    output.result(facts, *shown(facts))


def answer(question: Question, progress: Progress) -> dict[str, Any]:
    """Returns every figure of the plan as plain values."""
    from understudy.cli import cost, expectation
    from understudy.data import Schema
    from understudy.privacy.events import relation

    schema = Schema.load(question.schema)
    schema.require_declared()
    assumed = _assumed(schema, question.population)
    guarantee = guarantee_for(assumed, question.epsilon, question.delta)
    method = method_for(
        question.method,
        question.window_steps,
        assumed,
        guarantee=guarantee,
        task=question.task,
        window_stride=question.window_stride,
        pack=question.pack,
        options=question.options,
    )
    size, ledger = assumed.population.size or 1, _ledger(question.schema, schema)
    progress("timing", 0.0)
    with cost.expected_cost(method, assumed, guarantee, size) as finish:
        spending = method.spending_plan(schema if question.population is None else assumed, guarantee)
        outlook = _outlook(question, method, assumed, guarantee)
        privacy = _cost_of_privacy(spending.events, guarantee)
        expected = finish(spending)
    counted = relation(spending.events) == "values"
    releases = [
        {
            "label": entry.label,
            "mechanism": type(entry.event).__name__,
            "noise_multiplier": expectation.noise_multiplier(entry.event),
            "signal_to_noise": expectation.signal_to_noise(entry.event, assumed, size, question.window_steps),
        }
        for entry in spending.entries
    ]
    trial = _simulation(question, assumed, method, guarantee, progress) if question.simulate else None
    foreseen = expectation.verdict(spending, assumed, size, question.window_steps)
    return {
        "population": schema.name,
        "units": size,
        "unit": schema.unit.sentence(),
        "relation": "whose values are taken away" if counted else "added or removed",
        "method": method.name,
        "why": _why(question, assumed, guarantee),
        **privacy,
        "releases": releases,
        "outlook": outlook,
        "ledger": ledger,
        "seconds": expected.seconds,
        "peak_mib": expected.peak_bytes / 2**20,
        "fits": expected.fits,
        "cost": expected.sentence(),
        "verdict": foreseen if trial is None or not spending.entries else _tried_verdict(trial, guarantee, foreseen),
        "simulation": trial,
    }


def shown(facts: dict[str, Any]) -> list[RenderableType]:
    """Returns the answer for a person."""
    from understudy.privacy.budget import at_most

    releases = table("release", "mechanism", ">noise multiplier", ">signal to noise")
    for release in facts["releases"]:
        figures = (_figure(release["noise_multiplier"]), _figure(release["signal_to_noise"]))
        releases.add_row(release["label"], release["mechanism"], *figures)
    ledger = facts["ledger"]
    left = "no ledger yet: the first run makes it" if ledger is None else f"epsilon {ledger['epsilon']:.4g} left"
    lines: list[RenderableType] = [
        bold(f"Plan for '{facts['population']}': {facts['units']} units, method {facts['method']}"),
        *facts["why"],
        facts["unit"],
        f"epsilon {at_most(facts['epsilon'], 4)} at delta {at_most(facts['delta'])} per unit {facts['relation']}; "
        f"{at_most(facts['replace_one_epsilon'], 4)} per unit replaced",
        f"Ledger: {left}. {facts['cost']}",
    ]
    if facts["releases"]:
        lines.append(releases)
    lines += facts["outlook"]
    if facts["simulation"] is not None:
        lines += _shown_simulation(facts["simulation"])
    return [*lines, bold(facts["verdict"])]


def _outlook(question: Question, method: "Synthesizer", schema: "Schema", guarantee: "Guarantee") -> list[str]:
    """Returns what the method foretells, and whether series that it draws would be mostly noise."""
    from understudy.cli.budget import doubts

    return [*method.outlook(schema, guarantee), *doubts(method, schema, guarantee, question.task)]


def _why(question: Question, schema: "Schema", guarantee: "Guarantee") -> list[str]:
    """Returns the reasons of a method that was chosen from public facts; none where it was named."""
    from understudy.synthesizers.auto import choose

    if question.method != "auto":
        return []
    return list(choose(schema, guarantee, window_steps=question.window_steps, task=question.task).reasons)


def _cost_of_privacy(events: Any, guarantee: "Guarantee") -> dict[str, float]:
    from understudy.privacy import accounting

    delta = guarantee.delta
    one, replaced = accounting.epsilon(events, delta), accounting.replace_one_epsilon(events, delta)
    return {"epsilon": one, "delta": delta, "replace_one_epsilon": replaced}


def _assumed(schema: "Schema", population: int | None) -> "Schema":
    """Returns the schema with a population to compute with."""
    from understudy.cli.simulation import sized

    if population is not None:
        return sized(schema, population)
    if schema.population.size is None:
        raise InputError("--population: this schema buys its count, so a guess is expected to plan with.")
    return schema


def _ledger(path: Path, schema: "Schema") -> dict[str, Any] | None:
    from understudy.privacy.ledger import Ledger

    beside = ledger_path(path, schema)
    if not beside.exists():
        return None
    left = Ledger.open_for(path).remaining()
    return {"file": str(beside), "epsilon": left.epsilon, "delta": left.delta, "runs": left.runs}


def _simulation(
    question: Question, schema: "Schema", method: "Synthesizer", guarantee: "Guarantee", progress: Progress
) -> dict[str, Any]:
    from understudy.cli.simulation import expected_utility, num_tried

    size = schema.population.size or 1
    units = num_tried(schema, size)
    panel, source = _stand_in(question, schema, units)
    guarantees = [replace(guarantee, epsilon=epsilon) for epsilon in sorted({*_TRIED, guarantee.epsilon})]
    tried, control = expected_utility(method, panel, guarantees, size, progress)
    rows = [
        {
            "method": method.name,
            "epsilon": wanted.epsilon,
            **vars(found),
            "better_than_control": found.gains_over(control),
        }
        for wanted, found in zip(guarantees, tried, strict=True)
    ]
    return {
        "data": source,
        "units_tried": units,
        "noise_scaled": units != size,
        "rows": rows,
        "control": {"method": "independent", "epsilon": 0.0, **vars(control)},
    }


def _stand_in(question: Question, schema: "Schema", units: int) -> tuple["Panel", str]:
    """Returns public series to try on, and what they are."""
    from understudy.cli.simulation import resized, simulated
    from understudy.data import read_panel

    if question.public is None:
        return simulated(schema, units), "units invented from the schema"
    file = existing(question.public, "--public")
    panel = read_panel(file, schema, context=question.context, allow_few_units=True)
    return resized(panel, units), f"units of {file.name}, drawn with replacement"


def _shown_simulation(simulation: dict[str, Any]) -> list[RenderableType]:
    rows = table(">epsilon", ">marginal distance", ">autocorrelation error", "better than the control on")
    for row in simulation["rows"]:
        figures = (row["marginal_distance"], row["autocorrelation_error"])
        gains = row["better_than_control"]
        told = "nothing: this epsilon buys nothing" if gains == "nothing" else gains
        rows.add_row(f"{row['epsilon']:g}", *(f"{figure:.3f}" for figure in figures), told)
    control = simulation["control"]
    figures = (control["marginal_distance"], control["autocorrelation_error"])
    rows.add_row("0", *(f"{figure:.3f}" for figure in figures), "(the control: reads no data)")
    scaled = ", with noise scaled to the population" if simulation["noise_scaled"] else ""
    return [f"Tried on {simulation['units_tried']} {simulation['data']}{scaled}; 0 is perfect:", rows]


def _tried_verdict(trial: dict[str, Any], guarantee: "Guarantee", foreseen: str) -> str:
    """Says what the asked epsilon bought in the trial; one lucky trial does not outweigh noise that drowns all."""
    if "buys nothing" in foreseen:
        return foreseen
    gains = next(row["better_than_control"] for row in trial["rows"] if row["epsilon"] == guarantee.epsilon)
    if gains == "nothing":
        return (
            "This budget buys nothing: on these series it is no better than reading no data at all. Ask for "
            "a larger epsilon, or bring more units."
        )
    return f"This budget buys {gains}: closer to the truth, on these series, than without reading any data."


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
