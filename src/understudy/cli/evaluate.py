"""`understudy evaluate`, `compare` and `report`: releases judged by real series, side by side, and on a page.

Every score is compared with those of other real series and of a control. A comparison is covered by no guarantee; a
choice among releases is, and is charged.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table

from understudy.cli.console import LINE_SECONDS, Output, Progress, bold, duration, table
from understudy.cli.ledger import charging, facts_of_payer, known, record_uncovered
from understudy.cli.options import Measures, RealTables
from understudy.cli.panels import Candidate, read_candidate, read_list, read_real, read_release, require_unseen
from understudy.cli.places import existing, existing_table, named, outside, unused, whole_file, write
from understudy.cli.verify import require_holding
from understudy.data import Schema
from understudy.data.table import in_partitions
from understudy.errors import InputError, Stopped
from understudy.evaluation.choosing import LABEL, PrivateChoice
from understudy.evaluation.fillings import with_completions
from understudy.evaluation.metric import Metric
from understudy.evaluation.panels import Panels, subsampled
from understudy.evaluation.scorecard import FILLINGS, Figure, Scorecard, expected_seconds
from understudy.evaluation.scorecard import evaluate as measure
from understudy.extras import require_extra
from understudy.files import whole_folder
from understudy.planning.choices import guarantee_for, require_budget
from understudy.privacy import keys
from understudy.privacy.canonical import file_sha256
from understudy.privacy.certificate import FILE_NAME, Certificate, issue, sign, verify
from understudy.privacy.noise import NoiseSource
from understudy.report.record import RunRecord, make_record, public_record
from understudy.report.words import UNKNOWN, figure, verdict, with_verdicts

INTERNAL = "Internal: these figures were computed from real series and are covered by no guarantee."
UNCOVERED = "Choosing by these figures is covered by no guarantee: real series were read for them without a charge."
KINDS = {
    "public": "Nothing in it was computed from real series: it may be published with the release.",
    "internal": "It shows real series, and no guarantee covers it: keep it internal. --public writes one to publish.",
}
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


def compare(
    output: Output,
    tables: RealTables,
    measures: Measures,
    releases: Annotated[
        list[Path],
        typer.Argument(metavar="RELEASE|FILE ...", help="Two to six release directories or synthetic tables."),
    ],
    report: Annotated[Path | None, "HTML page to write."] = None,
    select: Annotated[bool, "Choose one release with differential privacy; charges the ledger."] = False,
    epsilon: Annotated[float | None, "Epsilon of --select."] = None,
    out: Annotated[Path | None, "File for the certificate of --select."] = None,
) -> None:
    """Compare releases on one page, or choose one of them with a charge to the ledger."""
    for package in ("sklearn", "matplotlib", "jinja2") if report is not None else ():
        require_extra(package, by="compare --report")
    existing_table(named(tables.real), "--real")
    metrics = replace(measures, suite=measures.suite or ["general"]).metrics
    _check_places(releases, {"--report": report, "--out": out})
    if select and (epsilon is None or tables.schema is None or out is None):
        raise InputError(
            "--select: --epsilon (its price), --schema (its ledger pays) and --out (its certificate) are expected."
        )
    if not select and (epsilon is not None or out is not None):
        raise InputError("--epsilon, --out: they apply only with --select. Omit them, or add --select.")
    if report is None and not select:
        raise InputError(
            "--report or --select: one of them is expected. Name a page to write, or ask for a charged choice."
        )
    facts: dict[str, Any] = {"releases": [path.name for path in releases]}
    lines: list[RenderableType] = []
    with output.progress(lines=True) as progress:
        candidates = [read_candidate(path, tables, measures.seed, progress) for path in releases]
        _check_holdout(candidates, tables)
        chosen = None
        if epsilon is not None and tables.schema is not None and out is not None:
            certificate = _choose(candidates, releases, tables, epsilon, existing(tables.schema, "--schema"), out)
            chosen = f"{certificate.method}. {certificate.sentence()}"
            facts |= {"choice": certificate.method, "epsilon": certificate.epsilon, "certificate": str(out)}
            lines += [bold(chosen), f"Wrote {out}."]
        if report is not None:  # that the comparison was made is recorded before its figures exist
            from understudy.report.page import render_comparison

            recorded, records, cards = _record(candidates), {}, {}
            for place, candidate in enumerate(candidates):

                def part(what: str, share: float, place: int = place) -> None:
                    progress(what, (place + share) / len(candidates))

                since = time.monotonic()
                panels, card = judge(candidate, tables, metrics, measures, since=since, output=output, progress=part)
                if card.stopped:
                    raise Stopped
                cards[candidate.name] = with_verdicts(card.as_dict())
                records[candidate.name] = record_of(candidate, panels, card)
            write(report, render_comparison(records, recorded=recorded, chosen=chosen), private=True)
            facts |= {"report": str(report), "recorded": recorded, "warning": UNCOVERED, "scorecards": cards}
            lines += [bold(UNCOVERED), *side_by_side(cards), recorded, f"Wrote {report}."]
    output.result(facts, *lines)


def _check_places(releases: list[Path], written: dict[str, Path | None]) -> None:
    from understudy.report.page import MAX_RELEASES

    if not 2 <= len(releases) <= MAX_RELEASES:
        raise InputError(f"Two to {MAX_RELEASES} releases are expected, got {len(releases)}.")
    if len({path.name for path in releases}) < len(releases):
        raise InputError("Releases with names of their own are expected: the page calls them by the folder's name.")
    for name, path in written.items():
        for release in releases:
            if path is not None:
                unused(outside(path, existing(release, "RELEASE"), name), name)


def _check_holdout(candidates: list[Candidate], tables: RealTables) -> None:
    """Refuses a list of units that trained one of the releases, before anything is charged or recorded."""
    if tables.holdout is not None:
        schema = candidates[0].panel.schema if tables.schema is None else Schema.load(tables.schema)
        listed = read_list(existing(tables.holdout, "--holdout"), schema)
        if listed is not None:
            require_unseen(listed, candidates, schema, strict=True)


def _choose(
    candidates: list[Candidate], releases: list[Path], tables: RealTables, epsilon: float, schema_file: Path, out: Path
) -> Certificate:
    """Returns the certificate of a choice, written where it was asked for.

    Privacy: everything is checked and the ledger is charged before a rating is computed; only a name comes out.
    """
    schema = Schema.load(schema_file)
    require_budget(schema)
    choice = PrivateChoice(candidates=tuple(candidate.panel for candidate in candidates))
    choice.check(schema)
    plan = choice.plan(guarantee_for(schema, epsilon, None))
    private = candidates[0].cut(read_real(replace(tables, holdout=None), candidates[0])[0])
    key = keys.load_or_create()
    # What was chosen among, by hash: a release's certificate, which names its files, or a table.
    digests = {path.name: file_sha256(path / FILE_NAME if path.is_dir() else path) for path in releases}
    with charging(schema_file, schema) as ledger, whole_file(out) as draft:
        grant = ledger.charge(plan, label=LABEL, noise=NoiseSource.secure())
        name = candidates[choice.run(grant, private)].name
        method = f"Chosen: {name}, among {', '.join(candidate.name for candidate in candidates)}"
        certificate = sign(issue(grant, schema, method=method, public_inputs=digests), key)
        draft.write_text(certificate.dumps(), encoding="utf-8")
    return certificate


def side_by_side(cards: Mapping[str, Any]) -> list[RenderableType]:
    """Returns the headline of each release, and its score and verdict in every row that can tell something."""
    heads = [f"{name}: {card['headline']['sentence']}" for name, card in cards.items()]
    rows = (
        (
            scores[0]["title"],
            *(f"{figure(score['synthetic']['value'])} {score['verdict']}" for score in scores),
            figure(scores[0]["holdout"]["value"]),
        )
        for scores in zip(*(card["scores"] for card in cards.values()), strict=True)
        if any(score["verdict"] != UNKNOWN for score in scores)
    )
    return [*heads, table("", *(f">{name}" for name in cards), ">other real series", rows=rows)]


def _record(candidates: list[Candidate]) -> str:
    """Writes into the population's ledger that releases were compared with real data, as a charge of nothing."""
    ledger, names = known(candidates[0].panel.schema.name), ", ".join(candidate.name for candidate in candidates)
    if ledger is None:
        return "No ledger of this population is on this computer, so only this page records that they were compared."
    record_uncovered(ledger, f"compared with real data, not covered: {names}")
    return f"The ledger of '{ledger.name}' says that they were compared."


def report(
    output: Output,
    source: Annotated[
        Path,
        typer.Argument(metavar="RECORD|RELEASE", help="Record that `evaluate --record` wrote, or a release directory."),
    ],
    out: Annotated[Path, "HTML file to write; it is self-contained."],
    context: Annotated[Path | None, "Table of public context by time, for a release whose series follow one."] = None,
    public: Annotated[bool, "Drop everything that was computed from real series."] = False,
    figures: Annotated[Path | None, "Folder to make for the figures, as SVG and PNG."] = None,
) -> None:
    """Write the page of a release or of its evaluation."""
    from understudy.report.page import drawings, render

    for path, name in ((out, "--out"), (figures, "--figures")):
        if path is not None:
            unused(outside(path, existing(source, "RECORD"), name), name)
    with output.progress() as progress:
        made = read_record(source, progress, context)
        if public and made.public["certificate"] is None:
            raise InputError(
                "--public: a release with a certificate is expected. Nothing vouches for a table without one, which "
                "may be real series. Omit --public, and keep the page internal."
            )
        shown = made.without_internal() if public else made
        progress("drawing", 0.5)
        write(out, render(shown), private=shown.internal is not None)  # it shows real series
        written = []
        if figures is not None:
            with whole_folder(figures, mode=0o755 if shown.internal is None else 0o700) as draft:
                written = [path for drawing in drawings(shown) for path in drawing.save(draft)]
    kind = "public" if shown.internal is None else "internal"
    facts = {"file": str(out), "kind": kind, "figures": [path.name for path in written]}
    lines = [f"Wrote {out}. {KINDS[kind]}", *([f"Wrote {len(written)} figures to {figures}."] if written else [])]
    output.result(facts, *lines)


def read_record(source: Path, progress: Progress, context: Path | None = None) -> RunRecord:
    """Returns the record in a file, or one made of a release alone; refuses a certificate that does not hold."""
    if source.is_dir():
        candidate = read_release(source, 0, progress, context)
        assert candidate.release is not None
        certificate = candidate.release.certificate
        require_holding(verify(certificate, source), source)
        return public_record(candidate.release, candidate.panel, ledger=facts_of_payer(certificate))
    made = RunRecord.load(source)
    if made.public["certificate"] is not None:
        require_holding(verify(Certificate.from_json(made.public["certificate"]), None), source)
    return made
