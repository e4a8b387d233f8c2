"""`understudy evaluate`: is the stand-in good? Every figure beside those of other real series and of a control."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from understudy.cli.console import Json, Output, Quiet, bold, table
from understudy.cli.panels import Candidate, RealTables, read_candidate, read_real
from understudy.cli.places import outside, unused, whole_file

if TYPE_CHECKING:
    from understudy.evaluate.panels import Panels
    from understudy.evaluate.scorecard import Figure, Scorecard

INTERNAL = "Internal: these figures were computed from real series and are covered by no guarantee."


class Budget(StrEnum):
    """How much work the metrics may do."""

    quick = "quick"
    paper = "paper"


def evaluate(
    candidate: Annotated[Path, typer.Argument(metavar="RELEASE|FILE", help="A release, or a synthetic table.")],
    real: Annotated[Path, typer.Option(help="The real table.")],
    holdout: Annotated[
        Path | None, typer.Option(help="Real series the run never saw: a table, or the list `synth --holdout` wrote.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema of the real table. Default: the release's.")] = None,
    context: Annotated[Path | None, typer.Option(help="Table of public context by time.")] = None,
    suite: Annotated[list[str] | None, typer.Option(help="A suite's name; repeat for several. Default: all.")] = None,
    budget: Annotated[Budget, typer.Option(help="quick: 3 trainings, 500 updates each; paper: as published.")] = (
        Budget.quick
    ),
    report: Annotated[Path | None, typer.Option(help="Write an HTML report there.")] = None,
    record: Annotated[Path | None, typer.Option(help="Write all of it as JSON there, for `report`.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of splits and trainings.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score synthetic series: marginals, dynamics, dependence, usefulness and copying."""
    from understudy.evaluate.completions import with_completions
    from understudy.evaluate.metric import EFFORTS
    from understudy.evaluate.panels import Panels
    from understudy.evaluate.scorecard import evaluate as score
    from understudy.evaluate.suites import SUITES, metrics_of

    output = Output(json=json, quiet=quiet)
    tables = RealTables(real=real, holdout=holdout, schema=schema, context=context)
    metrics, effort = metrics_of(suite or tuple(SUITES)), EFFORTS[budget]
    for path, name in ((report, "--report"), (record, "--record")):
        if path is not None:
            unused(outside(path, candidate, name), name)
    with output.progress() as progress:
        progress("reading", 0.0)
        judged = read_candidate(candidate, tables, seed, progress)
        real_panel, held_out = read_real(tables, judged)
        panels = Panels.prepare(real_panel, judged.panel, held_out, max_series=effort.max_series, seed=seed)
        if any(metric.suite == "conditional" for metric in metrics):
            panels = with_completions(panels, judged.release, seed=seed)
        card = score(panels, metrics, effort, seed=seed, progress=progress)
        if report is not None or record is not None:
            _write(report, record, judged, panels, card)
    written = {name: str(path) for name, path in (("report", report), ("record", record)) if path is not None}
    suites = [shown(card, name) for name in dict.fromkeys(score.suite for score in card.scores)]
    ends = [f"Wrote {path}." for path in written.values()]
    output.result(card.as_dict() | written, bold(INTERNAL), *card.notes, *suites, *ends)


def shown(card: "Scorecard", suite: str) -> Table:
    """Returns one suite's figures for a person, with the verdicts of the report."""
    from understudy.report.words import verdict

    lines = table("", ">synthetic", ">other real series", ">no private data", "verdict", title=suite)
    for score, line in zip(card.scores, card.as_dict()["scores"], strict=True):
        if score.suite == suite:
            figures = (score.synthetic, score.holdout, score.independent)
            lines.add_row(
                score.title, *(_figure(figure) for figure in figures), score.synthetic.problem or verdict(line)
            )
    return lines


def _figure(figure: "Figure") -> str:
    if figure.value is None:
        return "–"
    interval = "" if figure.low is None or figure.high is None else f" [{figure.low:.3g}, {figure.high:.3g}]"
    return f"{figure.value:.3g}{interval}"


def _write(report: Path | None, record: Path | None, judged: Candidate, panels: "Panels", card: "Scorecard") -> None:
    from understudy.cli.ledger import facts_of_payer
    from understudy.report.page import render
    from understudy.report.record import make_record

    payer = None if judged.release is None else facts_of_payer(judged.release.certificate)
    made = make_record(judged.release, judged.panel, panels, card, ledger=payer)
    for path, text in ((report, lambda: render(made)), (record, made.dumps)):
        if path is not None:
            with whole_file(path) as draft:
                draft.touch(mode=0o600)  # they show real series
                draft.write_text(text(), encoding="utf-8")
