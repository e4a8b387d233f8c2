"""`understudy evaluate`, `compare`, `report` and `audit`: releases judged by real series, on a page, and attacked.

Every score is compared with those of other real series and of a control. A comparison is covered by no guarantee; a
choice among releases is, and is charged.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from understudy.api import scoring
from understudy.api.arguments import existing, existing_table, unused, write
from understudy.api.checking import verify as checked
from understudy.api.progress import Progress
from understudy.cli.console import Output, bold
from understudy.cli.ledger import facts_of_payer
from understudy.cli.options import ClusterAddress, Measures, Processes, RealTables
from understudy.errors import InputError
from understudy.evaluation.judging import UNCOVERED
from understudy.evaluation.scorecard import Scorecard
from understudy.evaluation.words import with_verdicts
from understudy.extras import require_extra
from understudy.files import whole_folder
from understudy.privacy.certificate import Certificate
from understudy.report.record import RunRecord, make_record, public_record, with_audit
from understudy.workers import workers_of

CONTRADICTED = 6  # exit code of an audit whose attacks contradict the certificate
_KINDS = {
    "public": "Nothing in it was computed from real series: it may be published with the release.",
    "internal": "It shows real series, and no guarantee covers it: keep it internal. --public writes one to publish.",
}
Page = Annotated[Path | None, "HTML page to write."]


def evaluate(
    output: Output,
    tables: RealTables,
    measures: Measures,
    release: Annotated[Path, typer.Argument(metavar="RELEASE|FILE", help="Release directory, or a synthetic table.")],
    report: Annotated[Path | None, "HTML report to write."] = None,
    record: Annotated[Path | None, "JSON record to write, for `report`."] = None,
) -> None:
    """Score synthetic series: marginals, dynamics, dependence, usefulness and copying."""
    _require_extras("evaluate --report", report)
    written = {name: path for name, path in (("report", report), ("record", record)) if path is not None}
    for name, path in written.items():
        unused(path, f"--{name}", release=release)
    with output.progress(lines=True) as progress:
        card = scoring.evaluate(release, **vars(tables), **vars(measures), progress=progress, tell=output.caution)
        if written:
            progress("writing", 0.0)
            made = record_of(card)
            if report is not None:
                from understudy.report.page import render

                write(report, render(made), private=True)  # they show real series
            if record is not None:
                write(record, made.dumps(), private=True)
    facts = with_verdicts(card.as_dict()) | {name: str(path) for name, path in written.items()}
    output.result(facts, *card.parts(), *(f"Wrote {path}." for path in written.values()))
    if card.stopped:
        raise typer.Exit(2)


def _require_extras(by: str, page: Path | None) -> None:
    for package in ("sklearn", "matplotlib", "jinja2") if page is not None else ():
        require_extra(package, by=by)


def record_of(card: Scorecard) -> RunRecord:
    """Returns the record of an evaluation, with the ledger that paid for the release where this computer has it."""
    release = None if card.judged is None else card.judged.release
    return make_record(card, ledger=None if release is None else facts_of_payer(release.certificate))


def compare(
    output: Output,
    tables: RealTables,
    measures: Measures,
    releases: Annotated[
        list[Path],
        typer.Argument(metavar="RELEASE|FILE ...", help="Two to six release directories or synthetic tables."),
    ],
    report: Page = None,
    select: Annotated[bool, "Choose one release with differential privacy; charges the ledger."] = False,
    epsilon: Annotated[float | None, "Epsilon of --select."] = None,
    out: Annotated[Path | None, "File for the certificate of --select."] = None,
) -> None:
    """Compare releases on one page, or choose one of them with a charge to the ledger."""
    _require_extras("compare --report", report)
    existing_table(tables.real, "--real")
    for path, name in ((path, name) for path, name in ((report, "--report"), (out, "--out")) if path is not None):
        for release in releases:
            unused(path, name, release=existing(release, "RELEASE"))
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
    options: Any = {name: value for name, value in vars(tables).items() if name != "real"} | vars(measures)
    with output.progress(lines=True) as progress:
        chosen = None
        if epsilon is not None and out is not None:
            certificate = scoring.choose(releases, tables.real, epsilon, out, progress, options)
            chosen = f"{certificate.method}. {certificate.sentence()}"
            facts |= {"choice": certificate.method, "epsilon": certificate.epsilon, "certificate": str(out)}
            lines += [bold(chosen), f"Wrote {out}."]
        if report is not None:
            found = scoring.compare(releases, tables.real, **options, progress=progress)
            found.report(report, chosen=chosen)
            facts |= {"report": str(report), "recorded": found.recorded, "warning": UNCOVERED}
            facts["scorecards"] = found.as_dict()
            lines += [*found.parts(), f"Wrote {report}."]
    output.result(facts, *lines)


def report(
    output: Output,
    source: Annotated[
        Path,
        typer.Argument(metavar="RECORD|RELEASE", help="Record that `evaluate --record` wrote, or a release directory."),
    ],
    out: Annotated[Path, "HTML file to write; it is self-contained."],
    context: Annotated[
        str | None, "Table of public context by time, or its URL, for a release whose series follow one."
    ] = None,
    public: Annotated[bool, "Drop everything that was computed from real series."] = False,
    interactive: Annotated[
        bool, "Embed a script by which figures zoom; the page still asks nothing of a network."
    ] = False,
    figures: Annotated[Path | None, "Folder to make for the figures, as SVG and PNG."] = None,
) -> None:
    """Write the page of a release or of its evaluation."""
    from understudy.report.page import drawings, render

    for path, name in ((out, "--out"), (figures, "--figures")):
        if path is not None:
            unused(path, name, release=existing(source, "RECORD"))
    with output.progress() as progress:
        made = _read_record(source, progress, context)
        if public and made.public["certificate"] is None:
            raise InputError(
                "--public: a release with a certificate is expected. Nothing vouches for a table without one, which "
                "may be real series. Omit --public, and keep the page internal."
            )
        shown = made.without_internal() if public else made
        progress("drawing", 0.5)
        write(out, render(shown, interactive=interactive), private=shown.internal is not None)  # it shows real series
        written = []
        if figures is not None:
            with whole_folder(figures, mode=0o755 if shown.internal is None else 0o700) as draft:
                written = [path for drawing in drawings(shown) for path in drawing.save(draft)]
    kind = "public" if shown.internal is None else "internal"
    facts = {"file": str(out), "kind": kind, "figures": [path.name for path in written]}
    lines = [f"Wrote {out}. {_KINDS[kind]}", *([f"Wrote {len(written)} figures to {figures}."] if written else [])]
    output.result(facts, *lines)


def _read_record(source: Path, progress: Progress, context: str | None) -> RunRecord:
    """Returns the record in a file, or one made of a release alone; refuses a certificate that does not hold."""
    if source.is_dir():
        found = scoring.candidate(source, {"context": context}, progress)
        assert found.release is not None
        checked(found.release, source).require_holding(source)
        return public_record(found.release, found.panel, ledger=facts_of_payer(found.release.certificate))
    made = RunRecord.load(source)
    if made.public["certificate"] is not None:
        checked(Certificate.from_json(made.public["certificate"])).require_holding(source)
    return made


@dataclass(frozen=True, kw_only=True)
class Refits:
    """How a release is refitted with and without a target."""

    shadows: Annotated[int, typer.Option(min=0, help="Shadow fits with and without a target, each.")] = 0
    minutes: Annotated[
        float | None,
        typer.Option("--budget-minutes", min=0.0, help="Minutes to spend on shadow fits; replaces --shadows."),
    ] = None
    attack: Annotated[
        str, "Targets: assd (as first published) or assd+; asif+ inverts the features that parties send."
    ] = "assd+"
    work: Annotated[Path | None, "Folder for shadow fits; a killed audit resumes from it."] = None
    attempts: Annotated[int, typer.Option(min=20, help="Attempts per question.")] = 500
    seed: Annotated[int, typer.Option(min=0, help="Seed for the choices of the attacks.")] = 0


def audit(
    output: Output,
    tables: RealTables,
    refits: Refits,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Release directory to attack.")],
    record: Annotated[Path | None, "Record of `evaluate --record` that receives the findings."] = None,
    workers: Processes = 1,
    cluster: ClusterAddress = None,
) -> None:
    """Attack a release: membership, singling out, linkability, inference; with --shadows, by refitting it."""
    if refits.shadows and refits.minutes is not None:
        raise InputError("--shadows, --budget-minutes: one of them is expected, got both.")
    if (refits.shadows or refits.minutes is not None) and refits.work is None:
        raise InputError("--work: shadows need a folder to be kept in. Name one; it is internal.")
    known = None if record is None else RunRecord.load(existing(record, "--record"))
    with output.progress() as progress:
        found = scoring.audit(
            release,
            **vars(tables),
            **vars(refits),
            workers=workers_of(workers, cluster),
            progress=progress,
            tell=output.say,
        )
    if known is not None and record is not None:
        write(record, with_audit(known, found.certificate, found.findings()).dumps(), private=True)
    output.result(found.as_dict(), *found.parts())
    if found.contradicted_by:
        raise typer.Exit(CONTRADICTED)
