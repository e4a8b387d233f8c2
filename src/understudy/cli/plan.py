"""`understudy plan`: what a budget buys, before it is spent; `understudy methods`: what it can be spent on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from understudy import planning
from understudy.api import checking
from understudy.cli.console import Output, table
from understudy.cli.options import ContextFile, Delta, MethodOptions, NotPrivate, PlannedEpsilon


def methods(output: Output) -> None:
    """List the methods: a line each, what they need, and their options."""
    found = checking.methods().rows
    facts = [dict(zip(checking.COLUMNS, row, strict=True)) for row in found]
    output.result({"methods": facts}, table(*checking.COLUMNS, rows=found))


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
    output.result(made.as_dict(), *made.parts())
