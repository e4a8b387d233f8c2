"""`understudy audit`: tries to contradict a release's certificate, and says what was found. Internal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from understudy.api.panels import read_real, read_release
from understudy.api.places import existing, write
from understudy.cli.console import Output
from understudy.cli.options import ClusterAddress, Processes, RealTables
from understudy.errors import InputError
from understudy.report.record import RunRecord, with_audit
from understudy.workers import workers_of

CONTRADICTED = 6  # exit code of an audit whose attacks contradict the certificate


@dataclass(frozen=True, kw_only=True)
class Refits:
    """How a release is refitted with and without a target."""

    shadows: Annotated[int, typer.Option(min=0, help="Shadow fits with and without a target, each.")] = 0
    budget_minutes: Annotated[
        float | None, typer.Option(min=0.0, help="Minutes to spend on shadow fits; replaces --shadows.")
    ] = None
    attack: Annotated[
        str, "Targets: assd (as first published) or assd+; asif+ inverts the features that parties send."
    ] = "assd+"
    work: Annotated[Path | None, "Folder for shadow fits; a killed audit resumes from it."] = None
    workers: Processes = 1
    cluster: ClusterAddress = None

    def check(self) -> None:
        """Refuses options that contradict each other."""
        if self.shadows and self.budget_minutes is not None:
            raise InputError("--shadows, --budget-minutes: one of them is expected, got both.")
        if (self.shadows or self.budget_minutes is not None) and self.work is None:
            raise InputError("--work: shadows need a folder to be kept in. Name one; it is internal.")


def audit(
    output: Output,
    tables: RealTables,
    refits: Refits,
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="Release directory to attack.")],
    attempts: Annotated[int, typer.Option(min=20, help="Attempts per question.")] = 500,
    record: Annotated[Path | None, "Record of `evaluate --record` that receives the findings."] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the choices of the attacks.")] = 0,
) -> None:
    """Attack a release: membership, singling out, linkability, inference; with --shadows, by refitting it."""
    from understudy.auditing import release as audits

    refits.check()
    if record is not None:
        existing(record, "--record")
    with output.progress() as progress:
        progress("reading", 0.0)
        candidate = read_release(release, seed, progress, tables.context)
        members, others = read_real(tables, candidate)
        if others is None or candidate.release is None:
            raise InputError("--holdout: series that the run never saw are expected. Name a table or a list of them.")
        found = audits.audit(
            candidate.release,
            members,
            holdout=others,
            synthetic=candidate.panel,
            minutes=refits.budget_minutes,
            shadows=refits.shadows,
            attack=refits.attack,
            work=refits.work,
            workers=workers_of(refits.workers, refits.cluster),
            attempts=attempts,
            seed=seed,
            progress=progress,
            tell=output.say,
        )
    if record is not None:
        made = with_audit(RunRecord.load(record), candidate.release.certificate, found.findings())
        write(record, made.dumps(), private=True)
    output.result(found.as_dict(), *found.parts())
    if found.contradicted_by:
        raise typer.Exit(CONTRADICTED)
