"""`understudy evaluate`: scores of synthetic series, each compared with those of other real series and of a control."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from understudy.cli.console import LINE_SECONDS, Output, Progress, bold, duration, table
from understudy.cli.options import (
    Budget,
    ContextFile,
    EvaluationSeed,
    Holdout,
    RealSchema,
    Suites,
    Thorough,
    Work,
)
from understudy.cli.panels import Candidate, RealTables, read_candidate, read_real
from understudy.cli.places import named, outside, unused, whole_file
from understudy.errors import Stopped
from understudy.extras import require_extra

if TYPE_CHECKING:
    from understudy.evaluate.metric import Effort, Metric
    from understudy.evaluate.panels import Panels
    from understudy.evaluate.scorecard import Figure, Scorecard

INTERNAL = "Internal: these figures were computed from real series and are covered by no guarantee."

MAX_UNITS = 20_000  # of a table in partitions; no metric looks at more
_LEAST_SECONDS, _WRITING_SECONDS = 20.0, 30.0


def evaluate(
    output: Output,
    candidate: Annotated[Path, typer.Argument(metavar="RELEASE|FILE", help="Release directory, or a synthetic table.")],
    real: Annotated[str, typer.Option(help="Real table: a file, a folder of tables or a URL.")],
    holdout: Holdout = None,
    schema: RealSchema = None,
    context: ContextFile = None,
    suite: Suites = None,
    budget: Work = Budget.quick,
    thorough: Thorough = False,
    report: Annotated[Path | None, typer.Option(help="HTML report to write.")] = None,
    record: Annotated[Path | None, typer.Option(help="JSON record to write, for `report`.")] = None,
    seed: EvaluationSeed = 0,
) -> None:
    """Score synthetic series: marginals, dynamics, dependence, usefulness and copying."""
    from understudy.evaluate.metric import metrics_of

    require_extra("sklearn", by="evaluate")
    for package in ("matplotlib", "jinja2") if report is not None else ():
        require_extra(package, by="evaluate --report")
    since = time.monotonic()
    tables = RealTables(
        real=named(real), holdout=holdout, schema=schema, context=context, max_units=MAX_UNITS, seed=seed
    )
    metrics, effort = metrics_of(suite or ()), effort_of(budget, thorough)
    for path, name in ((report, "--report"), (record, "--record")):
        if path is not None:
            unused(outside(path, candidate, name), name)
    with output.progress(lines=True) as progress:
        progress("reading", 0.0)
        judged = read_candidate(candidate, tables, seed, progress)
        if effort.seconds is not None and (report is not None or record is not None):
            effort = replace(effort, seconds=effort.seconds - _WRITING_SECONDS)
        panels, card = judge(judged, tables, metrics, effort, seed=seed, since=since, output=output, progress=progress)
        if report is not None or record is not None:
            progress("writing", 0.0)
            _write(report, record, judged, panels, card)
    written = {name: str(path) for name, path in (("report", report), ("record", record)) if path is not None}
    _say(output, card, written)
    if card.stopped:
        raise typer.Exit(2)


def effort_of(budget: Budget, thorough: bool) -> "Effort":
    """Returns how much work is done: two minutes' worth unless all of it was asked for."""
    from understudy.evaluate.metric import BRIEF, EFFORTS

    return EFFORTS[budget] if thorough or budget == Budget.paper else BRIEF


def judge(
    judged: Candidate,
    tables: RealTables,
    metrics: "Sequence[Metric]",
    effort: "Effort",
    *,
    seed: int,
    since: float,
    output: Output,
    progress: Progress,
) -> "tuple[Panels, Scorecard]":
    """Returns the panels and their scores; Ctrl-C ends the work and keeps what was measured.

    Args:
        since: When the command began, by the monotonic clock; the time allowed counts from there.

    Privacy: internal.
    """
    from understudy.evaluate.fillings import with_completions
    from understudy.evaluate.panels import subsampled
    from understudy.evaluate.scorecard import FILLINGS
    from understudy.evaluate.scorecard import evaluate as score

    real, held_out = read_real(tables, judged)
    panels = subsampled(real, judged.panel, held_out, effort, seed=seed)
    if (sampled := tables.remark()) is not None:
        panels = replace(panels, notes=(sampled, *panels.notes))
    if panels.real.schema != real.schema and judged.release is not None and judged.release.completes:
        metrics = [metric for metric in metrics if metric.suite != FILLINGS]
        panels = replace(panels, notes=(*panels.notes, "Fillings need whole series: `--thorough` judges them."))
    if effort.seconds is not None:
        effort = replace(effort, seconds=max(_LEAST_SECONDS, effort.seconds - (time.monotonic() - since)))
    _remark(output, panels, metrics, effort)
    return panels, score(
        panels,
        metrics,
        effort,
        seed=seed,
        progress=progress,
        complete=lambda made: with_completions(made, judged.release, seed=seed),
        stopping=(KeyboardInterrupt, Stopped),
    )


def _remark(output: Output, panels: "Panels", metrics: "Sequence[Metric]", effort: "Effort") -> None:
    """Prints the expected time, where that is long enough to be worth a line."""
    from understudy.evaluate.scorecard import expected_seconds

    seconds = sum(expected_seconds(metric, panels.real.values.size) for metric in metrics)
    if seconds < LINE_SECONDS:
        return
    limit = "" if effort.seconds is None else f"; {duration(effort.seconds)} are allowed, `--thorough` allows all"
    output.caution(f"Estimate for all {len(metrics)} rows: {duration(seconds)}{limit}.")


def _say(output: Output, card: "Scorecard", written: dict[str, str]) -> None:
    from understudy.report.words import with_verdicts

    facts = with_verdicts(card.as_dict())
    missing = [f"Not measured: {', '.join(card.missing)}."] if card.missing else []
    measured = (score.suite for score in card.scores if score.name not in card.missing)
    suites = [shown(card, name) for name in dict.fromkeys(measured)]
    ends = [f"Wrote {path}." for path in written.values()]
    head = bold(facts["headline"]["sentence"])
    output.result(facts | written, bold(INTERNAL), head, *card.notes, _numbers(card), *suites, *missing, *ends)


def _numbers(card: "Scorecard") -> Table:
    """Returns mean and extremes of real and synthetic values, side by side."""
    lines = table("", ">mean", ">least", ">1 %", ">99 %", ">greatest", title="numbers")
    for name, sides in card.numbers.items():
        for side, found in sides.items():
            lines.add_row(f"{name}: {side}", *(f"{value:.4g}" for value in found.values()))
    return lines


def shown(card: "Scorecard", suite: str) -> Table:
    """Returns one suite's figures for a person, with the verdicts of the report."""
    from understudy.report.words import verdict

    lines = table("", ">synthetic", ">other real series", ">no private data", "verdict", title=suite)
    for score, line in zip(card.scores, card.as_dict()["scores"], strict=True):
        if score.suite == suite and score.name not in card.missing:
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
