"""`understudy evaluate`, `compare` and `report`: releases judged by real series, side by side, and on a page.

Every score is compared with those of other real series and of a control. A comparison is covered by no guarantee; a
choice among releases is, and is charged.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from understudy.api.charging import charging
from understudy.api.panels import Candidate, read_candidate, read_list, read_real, read_release, require_unseen
from understudy.api.places import existing, existing_table, outside, unused, whole_file, write
from understudy.api.progress import LINE_SECONDS, Progress, duration
from understudy.cli.console import Output, bold
from understudy.cli.ledger import facts_of_payer
from understudy.cli.options import Measures, RealTables
from understudy.cli.verify import require_holding
from understudy.data import Schema
from understudy.data.table import in_partitions
from understudy.errors import InputError
from understudy.evaluation import judging
from understudy.evaluation.choosing import LABEL, PrivateChoice
from understudy.evaluation.metric import Effort
from understudy.evaluation.scorecard import Scorecard, expected_seconds
from understudy.evaluation.words import with_verdicts
from understudy.extras import require_extra
from understudy.files import whole_folder
from understudy.planning.choices import guarantee_for, require_budget
from understudy.privacy import keys
from understudy.privacy.canonical import file_sha256
from understudy.privacy.certificate import FILE_NAME, Certificate, issue, sign, verify
from understudy.privacy.noise import NoiseSource
from understudy.report.record import RunRecord, make_record, public_record

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
        real, holdout = read_real(tables, judged, max_units=MAX_UNITS, seed=measures.seed)
        effort = _effort(measures, since, real.values.size, output)
        card = judging.evaluate(
            judged.release or judged.panel,
            real,
            holdout=holdout,
            synthetic=judged.panel,
            metrics=metrics,
            effort=effort,
            seed=measures.seed,
            notes=_sampled(tables),
            progress=progress,
        )
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


def _effort(measures: Measures, since: float, num_values: int, output: Output) -> Effort:
    """Returns the effort with the time that is left since the command began; says how long all rows would take."""
    effort, limit = measures.effort, ""
    if effort.seconds is not None:
        left = max(_LEAST_SECONDS, effort.seconds - (time.monotonic() - since))
        effort, limit = replace(effort, seconds=left), f"; {duration(left)} are allowed, `--thorough` allows all"
    size = min(num_values, effort.max_values or num_values)
    seconds = sum(expected_seconds(metric, size) for metric in measures.metrics)
    if seconds >= LINE_SECONDS:
        output.caution(f"Estimate for all {len(measures.metrics)} rows: {duration(seconds)}{limit}.")
    return effort


def _sampled(tables: RealTables) -> tuple[str, ...]:
    if not in_partitions(tables.real):
        return ()
    return (f"The real table is in partitions: at most {MAX_UNITS:,} of its units, drawn at random, were read.",)


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
    report: Annotated[Path | None, "HTML page to write."] = None,
    select: Annotated[bool, "Choose one release with differential privacy; charges the ledger."] = False,
    epsilon: Annotated[float | None, "Epsilon of --select."] = None,
    out: Annotated[Path | None, "File for the certificate of --select."] = None,
) -> None:
    """Compare releases on one page, or choose one of them with a charge to the ledger."""
    for package in ("sklearn", "matplotlib", "jinja2") if report is not None else ():
        require_extra(package, by="compare --report")
    existing_table(tables.real, "--real")
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
        if report is not None:
            real, holdout = read_real(tables, candidates[0])
            found = judging.compare(
                {one.name: one.release or one.panel for one in candidates},
                real,
                holdout=holdout,
                synthetic={one.name: one.panel for one in candidates},
                metrics=metrics,
                effort=measures.effort,
                seed=measures.seed,
                progress=progress,
            )
            found.report(report, chosen=chosen)
            facts |= {"report": str(report), "recorded": found.recorded, "warning": judging.UNCOVERED}
            facts["scorecards"] = found.as_dict()
            lines += [*found.parts(), f"Wrote {report}."]
    output.result(facts, *lines)


def _check_places(releases: list[Path], written: dict[str, Path | None]) -> None:
    if not 2 <= len(releases) <= judging.MAX_RELEASES:
        raise InputError(f"Two to {judging.MAX_RELEASES} releases are expected, got {len(releases)}.")
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
    private = judging.as_released(read_real(replace(tables, holdout=None), candidates[0])[0], candidates[0].release)
    key = keys.load_or_create()
    # What was chosen among, by hash: a release's certificate, which names its files, or a table.
    digests = {path.name: file_sha256(path / FILE_NAME if path.is_dir() else path) for path in releases}
    with charging(schema_file.absolute().parent, schema) as ledger, whole_file(out) as draft:
        grant = ledger.charge(plan, label=LABEL, noise=NoiseSource.secure())
        name = candidates[choice.run(grant, private)].name
        method = f"Chosen: {name}, among {', '.join(candidate.name for candidate in candidates)}"
        certificate = sign(issue(grant, schema, method=method, public_inputs=digests), key)
        draft.write_text(certificate.dumps(), encoding="utf-8")
    return certificate


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


def read_record(source: Path, progress: Progress, context: str | None = None) -> RunRecord:
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
