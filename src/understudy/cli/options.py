"""Options that several commands share, each defined once, alone or as a field of what a command takes as a whole."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer


def epsilon_of(text: str) -> float:
    """Returns the number, or infinity for "none"."""
    return math.inf if text == "none" else float(text)


TABLE_HELP = ".parquet, .csv, .arrow, .feather, .npz or .npy, a folder of such tables, or a URL such as s3://…"

TableFile = Annotated[str, typer.Argument(metavar="FILE", help=f"The private table: {TABLE_HELP}")]
_EPSILON = {"parser": epsilon_of, "metavar": "NUMBER|none"}
Epsilon = Annotated[float, typer.Option(help="Epsilon of this run. 1 is strict, 10 is weak.", **_EPSILON)]
PlannedEpsilon = Annotated[
    float | None,
    typer.Option(help="Epsilon of this run. Default: an equal share of the budget.", **_EPSILON),
]
Processes = Annotated[int, typer.Option("--workers", min=1, help="Processes of this machine that share the work.")]
ClusterAddress = Annotated[
    str | None, "Dask scheduler to use instead, tcp://host:port; its workers must see the same files."
]
ContextFile = Annotated[str | None, "Table of public context by time, or its URL."]
NotPrivate = Annotated[bool, "Run a published form that protects no unit; needs --epsilon none."]
Delta = Annotated[float | None, "Delta of this run. Default: the ledger's delta divided by max_runs."]
WindowSteps = Annotated[int | None, typer.Option(min=1, help="Cut series into windows of this many steps.")]
WindowStride = Annotated[
    int | None, typer.Option(min=1, help="Steps from one window to the next. Default: --window-steps.")
]
FewUnits = Annotated[
    str | None,
    typer.Option(metavar="REASON", help="Accept fewer than 100 units; the certificate prints the reason."),
]


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """The method of a run and its options, as `planning.choices.chosen` takes them."""

    method: Annotated[str, "auto, or the name of a method."] = "auto"
    task: Annotated[str, "Purpose that auto chooses for. series: share series. complete: fill gaps and forecast."] = (
        "series"
    )
    window_steps: WindowSteps = None
    window_stride: WindowStride = None
    pack: Annotated[Path | None, "Pack of `understudy pretrain` to start from."] = None
    prior: Annotated[
        Path | None,
        typer.Option(
            "--continue",
            metavar="RELEASE",
            help="Earlier release of the same population to start from, which costs nothing; with spectral.",
        ),
    ] = None
    preset: Annotated[str, "Options of the method: default, or paper for those that were published."] = "default"
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Option of the method, such as start=public; may be repeated."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RealTables:
    """Where the real series are that synthetic ones are compared with."""

    real: Annotated[str, "Real table: a file, a folder of tables or a URL."]
    holdout: Annotated[
        Path | None, "Real series that no run has seen: a table, or the list that `synth --holdout` wrote."
    ] = None
    schema: Annotated[Path | None, "Schema of the real table. Default: the release's."] = None
    context: ContextFile = None


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Which measures are taken, and how thoroughly, as `evaluate` takes them."""

    suites: Annotated[
        list[str] | None,
        typer.Option("--suite", help="Metric suite, such as general; may be repeated. Default: all installed suites."),
    ] = None
    trainings: Annotated[
        Literal["quick", "paper"], "Of networks that judge: quick is 3 of 500 updates each, paper is as published."
    ] = "quick"
    thorough: Annotated[
        bool, "Measure on all series and steps, without the limit of two minutes; implied by paper."
    ] = False
    seed: Annotated[int, typer.Option(min=0, help="Seed of splits and trainings.")] = 0
