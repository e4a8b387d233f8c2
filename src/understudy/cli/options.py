"""Options that several commands share, each defined once, alone or as a field of what a command takes as a whole."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from understudy.api import panels

if TYPE_CHECKING:
    from understudy.evaluation.metric import Effort, Metric


def epsilon_of(text: str) -> float:
    """Returns the number, or infinity for "none"."""
    return math.inf if text == "none" else float(text)


TABLE_HELP = ".parquet, .csv, .arrow, .feather, .npz or .npy, a folder of such tables, or a URL such as s3://…"

TableFile = Annotated[str, typer.Argument(metavar="FILE", help=f"The private table: {TABLE_HELP}")]
_EPSILON = {"parser": epsilon_of, "metavar": "NUMBER|none"}
Epsilon = Annotated[float, typer.Option(help="Epsilon of this run. 1 is strict, 10 is weak.", **_EPSILON)]
PlannedEpsilon = Annotated[
    float | None,
    typer.Option(help="Epsilon of this run. Default: the budget's epsilon divided by max_runs.", **_EPSILON),
]
Processes = Annotated[int, typer.Option(min=1, help="Processes of this machine that share the work.")]
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
    preset: Annotated[str, "Options of the method: default, or paper for those that were published."] = "default"
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Option of the method, such as start=public; may be repeated."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RealTables(panels.RealTables):
    """Where the real series are that synthetic ones are compared with."""

    real: Annotated[str, "Real table: a file, a folder of tables or a URL."]
    holdout: Annotated[
        Path | None, "Real series that no run has seen: a table, or the list that `synth --holdout` wrote."
    ] = None
    schema: Annotated[Path | None, "Schema of the real table. Default: the release's."] = None
    context: ContextFile = None


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Which measures are taken, and how thoroughly."""

    suite: Annotated[
        list[str] | None, "Metric suite, such as general; may be repeated. Default: all installed suites."
    ] = None
    trainings: Annotated[
        Literal["quick", "paper"], "Of networks that judge: quick is 3 of 500 updates each, paper is as published."
    ] = "quick"
    thorough: Annotated[
        bool, "Measure on all series and steps, without the limit of two minutes; implied by paper."
    ] = False
    seed: Annotated[int, typer.Option(min=0, help="Seed of splits and trainings.")] = 0

    @property
    def metrics(self) -> "tuple[Metric, ...]":
        """The measures of these suites; an unknown suite is refused."""
        from understudy.evaluation.metric import metrics_of

        return metrics_of(self.suite or ())

    @property
    def effort(self) -> "Effort":
        """How much work is done: two minutes' worth unless all of it was asked for."""
        from understudy.evaluation.metric import BRIEF, EFFORTS

        return EFFORTS[self.trainings] if self.thorough or self.trainings == "paper" else BRIEF
