"""`understudy audit`: tries to contradict a release's certificate, and says what was found. Internal."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from understudy.cli.console import Json, Output, Quiet, bold, table
from understudy.cli.panels import RealTables, read_real_uncut, read_release
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.audit.release import Findings
    from understudy.audit.shadow.attacks import ShadowAudit

INTERNAL = "Internal: real series were read without a charge. An attack that fails proves nothing."


def audit(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release.")],
    real: Annotated[Path, typer.Option(help="The real table of the run.")],
    holdout: Annotated[
        Path, typer.Option(help="Real series the run never saw: a table, or the list `synth --holdout` wrote.")
    ],
    schema: Annotated[Path | None, typer.Option(help="Schema of the real table. Default: the release's.")] = None,
    context: Annotated[Path | None, typer.Option(help="Table of public context by time.")] = None,
    attempts: Annotated[int, typer.Option(min=20, help="Attempts per question.")] = 500,
    shadows: Annotated[int, typer.Option(min=0, help="Make the release so many times with and without a target.")] = 0,
    attack: Annotated[str, typer.Option(help="Which targets: assd (as first published) or assd+.")] = "assd+",
    work: Annotated[Path | None, typer.Option(help="Folder for shadows; a run that was killed goes on there.")] = None,
    workers: Annotated[str, typer.Option(help="Processes, or dask://host:port.")] = "1",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the attacks' own choices.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack a release: membership, singling out, linkability, inference; with --shadows, by making it again."""
    from understudy.audit import release as audits

    output = Output(json=json, quiet=quiet)
    if shadows and work is None:
        raise InputError("--work: shadows need a folder to be kept in. Name one; it is internal.")
    tables = RealTables(real=real, holdout=holdout, schema=schema, context=context)
    with output.progress() as progress:
        progress("reading", 0.0)
        candidate = read_release(release, seed, progress)
        members, others = read_real_uncut(tables, candidate)
        if others is None or candidate.release is None:
            raise InputError("--holdout: series that the run never saw are expected.")
        audited = audits.Audited(release=candidate.release, members=members, others=others, synthetic=candidate.panel)
        progress("attacks", 0.1)
        findings = audits.examine(audited, attempts=attempts, seed=seed)
        made: dict[str, ShadowAudit] = {}
        if shadows and work is not None:
            made = audits.shadow_audits(
                audited, attack, work, per_arm=shadows, workers=_workers(workers), progress=progress
            )
    broken = audits.contradicted(candidate.release.certificate, made)
    said = [audit.result.sentence() for audit in made.values()]
    verdict = "Without --shadows no attack can contradict a certificate." if not made else _verdict(broken)
    facts = _facts(findings, made) | {"contradicted_by": broken}
    output.result(facts, bold(INTERNAL), *_tables(findings, made), *said, bold(verdict))
    if broken:
        raise typer.Exit(1)


def _verdict(broken: list[str]) -> str:
    return f"CONTRADICTED by: {', '.join(broken)}." if broken else "The certificate was not contradicted."


def _workers(text: str) -> int | str:
    if text.startswith("dask://"):
        return text
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"--workers: a number of at least 1 or dask://host:port is expected, got '{text}'.")
    return int(text)


def _tables(findings: "Findings", made: "dict[str, ShadowAudit]") -> list[Table]:
    areas = table("attack", ">area under the curve", ">guessing", title="membership")
    for name, area in findings.membership.items():
        areas.add_row(name, str(area), "0.5")
    for target, audit in made.items():
        for name, area in audit.areas.items():
            areas.add_row(f"shadows, {target}, {name}", str(area), "0.5")
    asked = table("", ">of the run", ">never seen", ">without the release", ">added risk", title="three questions")
    for name, answer in findings.questions.items():
        shown = (answer.attacked, answer.control, answer.guessing, answer.risk)
        asked.add_row(name, *(str(interval) for interval in shown))
    return [areas, asked]


def _facts(findings: "Findings", made: "dict[str, ShadowAudit]") -> dict[str, Any]:
    questions = {name: asdict(answer) | {"risk": asdict(answer.risk)} for name, answer in findings.questions.items()}
    shadows = {
        target: {
            "areas": {name: asdict(area) for name, area in audit.areas.items()},
            "attack": audit.result.attack,
            "epsilon": audit.result.epsilon,
            "ceiling": audit.result.ceiling,
            "runs": audit.result.runs,
        }
        for target, audit in made.items()
    }
    membership = {name: asdict(area) for name, area in findings.membership.items()}
    return {"internal": True, "membership": membership, "questions": questions, "shadows": shadows}
