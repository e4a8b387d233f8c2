"""`understudy evaluate`: scores of synthetic series, each compared with those of other real series and of a control."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from understudy.cli.console import LINE_SECONDS, Output, Progress, bold, duration, table
from understudy.cli.ledger import facts_of_payer
from understudy.cli.options import Measures, RealTables
from understudy.cli.panels import Candidate, read_candidate, read_real
from understudy.cli.places import named, outside, unused, write
from understudy.data.table import in_partitions
from understudy.errors import Stopped
from understudy.evaluate.fillings import with_completions
from understudy.evaluate.metric import Metric
from understudy.evaluate.panels import Panels, subsampled
from understudy.evaluate.scorecard import FILLINGS, Figure, Scorecard, expected_seconds
from understudy.evaluate.scorecard import evaluate as measure
from understudy.extras import require_extra
from understudy.report.record import RunRecord, make_record
from understudy.report.words import verdict, with_verdicts

INTERNAL = "Internal: these figures were computed from real series and are covered by no guarantee."

MAX_UNITS = 20_000  # of a table in partitions; no metric looks at more
_LEAST_SECONDS = 20.0


def evaluate(
    output: Output,
    tables: RealTables,
    measures: Measures,
    candidate: Annotated[Path, typer.Argument(metavar="RELEASE|FILE", help="Release directory, or a synthetic table.")],
    report: Annotated[Path | None, "HTML report to write."] = None,
    record: Annotated[Path | None, "JSON record to write, for `report`."] = None,
) -> None:
    """Score synthetic series: marginals, dynamics, dependence, usefulness and copying."""
    require_extra("sklearn", by="evaluate")
    for package in ("matplotlib", "jinja2") if report is not None else ():
        require_extra(package, by="evaluate --report")
    since, metrics = time.monotonic(), measures.metrics
    written = {name: path for name, path in (("report", report), ("record", record)) if path is not None}
    for name, path in written.items():
        unused(outside(path, candidate, f"--{name}"), f"--{name}")
    with output.progress(lines=True) as progress:
        progress("reading", 0.0)
        judged = read_candidate(candidate, tables, measures.seed, progress, MAX_UNITS)
        panels, card = judge(judged, tables, metrics, measures, since=since, output=output, progress=progress)
        if written:
            progress("writing", 0.0)
            made = record_of(judged, panels, card)
            if report is not None:
                from understudy.report.page import render

                write(report, render(made), private=True)  # they show real series
            if record is not None:
                write(record, made.dumps(), private=True)
    _say(output, card, {name: str(path) for name, path in written.items()})
    if card.stopped:
        raise typer.Exit(2)


def judge(
    judged: Candidate,
    tables: RealTables,
    metrics: tuple[Metric, ...],
    measures: Measures,
    *,
    since: float,
    output: Output,
    progress: Progress,
) -> tuple[Panels, Scorecard]:
    """Returns the panels and their scores; Ctrl-C ends the work and keeps what was measured.

    Args:
        since: When the command began, by the monotonic clock; the time allowed counts from there.

    Privacy: internal.
    """
    effort, seed = measures.effort, measures.seed
    own, others = read_real(tables, judged, max_units=MAX_UNITS, seed=seed)
    real, held_out = judged.cut(own), None if others is None else judged.cut(others)
    panels = subsampled(real, judged.panel, held_out, effort, seed=seed)
    if in_partitions(named(tables.real)):
        told = f"The real table is in partitions: at most {MAX_UNITS:,} of its units, drawn at random, were read."
        panels = replace(panels, notes=(told, *panels.notes))
    if panels.real.schema != real.schema and judged.release is not None and judged.release.completes:
        metrics = tuple(metric for metric in metrics if metric.suite != FILLINGS)
        panels = replace(panels, notes=(*panels.notes, "Fillings need whole series: `--thorough` judges them."))
    limit = ""
    if effort.seconds is not None:
        left = max(_LEAST_SECONDS, effort.seconds - (time.monotonic() - since))
        effort, limit = replace(effort, seconds=left), f"; {duration(left)} are allowed, `--thorough` allows all"
    seconds = sum(expected_seconds(metric, panels.real.values.size) for metric in metrics)
    if seconds >= LINE_SECONDS:
        output.caution(f"Estimate for all {len(metrics)} rows: {duration(seconds)}{limit}.")
    return panels, measure(
        panels,
        metrics,
        effort,
        seed=seed,
        progress=progress,
        complete=lambda made: with_completions(made, judged.release, seed=seed),
        stopping=(KeyboardInterrupt, Stopped),
    )


def record_of(judged: Candidate, panels: Panels, card: Scorecard) -> RunRecord:
    """Returns the record of an evaluation, with the ledger that paid for the release where this computer has it."""
    payer = None if judged.release is None else facts_of_payer(judged.release.certificate)
    return make_record(judged.release, judged.panel, panels, card, ledger=payer)


def _say(output: Output, card: Scorecard, written: dict[str, str]) -> None:
    facts = with_verdicts(card.as_dict())
    missing = [f"Not measured: {', '.join(card.missing)}."] if card.missing else []
    numbers = (
        (f"{name}: {side}", *(f"{value:.4g}" for value in found.values()))
        for name, sides in card.numbers.items()
        for side, found in sides.items()
    )
    extremes = table("", ">mean", ">minimum", ">1 %", ">99 %", ">maximum", title="numbers", rows=numbers)
    ends = [f"Wrote {path}." for path in written.values()]
    head = bold(facts["headline"]["sentence"])
    output.result(facts | written, bold(INTERNAL), head, *card.notes, extremes, *_suites(card), *missing, *ends)


def _suites(card: Scorecard) -> list[Table]:
    """Returns the figures of each suite for a person, with the verdicts of the report."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    for score, line in zip(card.scores, card.as_dict()["scores"], strict=True):
        if score.name not in card.missing:
            figures = (_figure(one) for one in (score.synthetic, score.holdout, score.independent))
            rows.setdefault(score.suite, []).append((score.title, *figures, score.synthetic.problem or verdict(line)))
    columns = ("", ">synthetic", ">other real series", ">no private data", "verdict")
    return [table(*columns, rows=own, title=suite) for suite, own in rows.items()]


def _figure(figure: Figure) -> str:
    if figure.value is None:
        return "–"
    interval = "" if figure.low is None or figure.high is None else f" [{figure.low:.3g}, {figure.high:.3g}]"
    return f"{figure.value:.3g}{interval}"
