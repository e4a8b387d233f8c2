"""Options that several commands share, each defined once."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


def epsilon_of(text: str) -> float:
    """Returns the number, or infinity for "none"."""
    return math.inf if text == "none" else float(text)


TABLE_HELP = ".parquet, .csv, .arrow, .feather, .npz or .npy, a folder of such tables, or a URL such as s3://…"

TableFile = Annotated[str, typer.Argument(help=f"The private table: {TABLE_HELP}")]
_EPSILON = {"parser": epsilon_of, "metavar": "NUMBER|none"}
Epsilon = Annotated[float, typer.Option(help="Epsilon of this run. 1 is strict, 10 is weak.", **_EPSILON)]
PlannedEpsilon = Annotated[
    float | None, typer.Option(help="Default: the budget's epsilon divided by max_runs.", **_EPSILON)
]
ContextFile = Annotated[Path | None, typer.Option(help="Table of public context by time.")]
NotPrivate = Annotated[
    bool,
    typer.Option("--not-private", help="Run a published form that protects no unit; needs --epsilon none."),
]
Delta = Annotated[float | None, typer.Option(help="Default: the ledger's delta divided by max_runs.")]
Method = Annotated[str, typer.Option(help="auto, or the name of a method.")]
Task = Annotated[
    str, typer.Option(help="Purpose that auto chooses for. series: share series. complete: fill gaps and forecast.")
]
WindowSteps = Annotated[int | None, typer.Option(min=1, help="Cut series into windows of this many steps.")]
WindowStride = Annotated[
    int | None, typer.Option(min=1, help="Steps from one window to the next. Default: --window-steps.")
]
Pack = Annotated[Path | None, typer.Option(help="Pack of `understudy pretrain` to start from.")]
Preset = Annotated[str, typer.Option(help="Options of the method: default, or paper for those that were published.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Option of the method, such as start=public; may be repeated."),
]
FewUnits = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Accept fewer than 100 units; the certificate prints the reason."),
]
Holdout = Annotated[
    Path | None,
    typer.Option(help="Real series that no run has seen: a table, or the list that `synth --holdout` wrote."),
]
RealSchema = Annotated[Path | None, typer.Option(help="Schema of the real table. Default: the release's.")]
Suites = Annotated[list[str] | None, typer.Option("--suite", help="Suite of measures; may be repeated.")]


class Budget(StrEnum):
    """How much work the measures may do."""

    quick = "quick"
    paper = "paper"


Work = Annotated[Budget, typer.Option("--budget", help="quick: 3 trainings of 500 updates each; paper: as published.")]
Thorough = Annotated[
    bool,
    typer.Option(
        "--thorough", help="Measure on all series and steps, without the limit of two minutes; implied by paper."
    ),
]
EvaluationSeed = Annotated[int, typer.Option("--seed", min=0, help="Seed of splits and trainings.")]
