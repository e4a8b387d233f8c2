"""`understudy audit`: tries to contradict a release's certificate, and says what was found. Internal."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from understudy.cli.console import Commands, Output, bold, table
from understudy.cli.options import ClusterAddress, ContextFile, Processes, RealTables, WindowSteps, WindowStride
from understudy.cli.panels import read_real, read_release
from understudy.cli.places import existing, write
from understudy.cli.pretrain import public_series
from understudy.data import simulate_households
from understudy.errors import InputError
from understudy.report.record import RunRecord, with_audit
from understudy.workers import workers_of

if TYPE_CHECKING:
    from understudy.auditing.release import Findings
    from understudy.auditing.shadows import ShadowAudit
    from understudy.auditing.transcript import Inversion


class _AttackUnlessNamed(typer.core.TyperGroup):
    """Lets `understudy audit RELEASE` mean `understudy audit attack RELEASE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the name of the usual command in front of what is not a command."""
        named = not args or args[0] in self.commands or args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if named else [_USUAL, *args])


_USUAL = "attack"
app = Commands(cls=_AttackUnlessNamed)
INTERNAL = "Internal: real series were read without a charge. An attack that fails proves nothing."
_PUBLIC = "Internal, and of public series: norms of single units' gradients have no noise on them."
TRANSCRIPT = "asif+"
_SIMULATED_HOMES = 400
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

    def folder(self) -> Path | None:
        """Returns where shadows are kept, None if none are made; refuses options that contradict each other."""
        if self.shadows and self.budget_minutes is not None:
            raise InputError("--shadows, --budget-minutes: one of them is expected, got both.")
        if not self.shadows and self.budget_minutes is None:
            return None
        if self.work is None:
            raise InputError("--work: shadows need a folder to be kept in. Name one; it is internal.")
        return self.work


@app.command(_USUAL)
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

    work = refits.folder()
    if record is not None:
        existing(record, "--record")
    with output.progress() as progress:
        progress("reading", 0.0)
        candidate = read_release(release, seed, progress, tables.context)
        members, others = read_real(tables, candidate)
        if others is None or candidate.release is None:
            raise InputError("--holdout: series that the run never saw are expected. Name a table or a list of them.")
        audited = audits.Audited(release=candidate.release, members=members, others=others, synthetic=candidate.panel)
        progress("attacks", 0.1)
        findings = audits.examine(audited, attempts=attempts, seed=seed)
        told: list[str] = []
        inverted, made = dict[str, "Inversion"](), dict[str, "ShadowAudit"]()
        if refits.attack == TRANSCRIPT:
            inverted = audits.transcript_audit(audited, seed=seed)
        elif work is not None:
            per_arm, workers = refits.shadows, workers_of(refits.workers, refits.cluster)
            if refits.budget_minutes is not None:
                progress("timing one shadow", 0.1)
                per_arm, sentence = audits.planned(audited, refits.attack, refits.budget_minutes, workers)
                told = [sentence]
                output.say(sentence)  # before the work, so that it can be stopped
            made = audits.shadow_audits(
                audited, refits.attack, work, per_arm=per_arm, workers=workers, progress=progress
            )
    broken = [name for name, own in made.items() if own.result.contradicts(candidate.release.certificate)]
    said = [audit.result.sentence() for audit in made.values()]
    said += [f"Features that '{party}' sends: {inversion.sentence()}" for party, inversion in inverted.items()]
    verdict = "Without --shadows no attack can contradict a certificate."
    if made:
        verdict = f"CONTRADICTED by: {', '.join(broken)}." if broken else "The certificate was not contradicted."
    if record is not None:
        found = [_finding(target, audit, target in broken) for target, audit in made.items()]
        write(record, with_audit(RunRecord.load(record), candidate.release.certificate, found).dumps(), private=True)
    facts = _facts(findings, made, inverted) | {"plan": told, "contradicted_by": broken}
    output.result(facts, bold(INTERNAL), *_tables(findings, made), *said, bold(verdict))
    if broken:
        raise typer.Exit(CONTRADICTED)


def _result(audit: "ShadowAudit") -> dict[str, Any]:
    names = ("attack", "epsilon", "ceiling", "confidence", "runs")
    return {name: getattr(audit.result, name) for name in names}


def _finding(target: str, audit: "ShadowAudit", contradicts: bool) -> dict[str, Any]:
    """One line of the report's table, with the scores that its pictures show."""
    shown = audit.scores[audit.result.attack]
    return _result(audit) | {
        "attack": f"shadows, {target}, {audit.result.attack}",
        "contradicts": contradicts,
        "scores": {"absent": shown.absent.tolist(), "present": shown.present.tolist()},
    }


def _tables(findings: "Findings", made: "dict[str, ShadowAudit]") -> list[Table]:
    shadows = {f"shadows, {target}, {name}": area for target, own in made.items() for name, area in own.areas.items()}
    areas = ((name, str(area), "0.5") for name, area in {**findings.membership, **shadows}.items())
    asked = (
        (name, str(answer.attacked), str(answer.control), str(answer.guessing), str(answer.risk))
        for name, answer in findings.questions.items()
    )
    columns = ("", ">members", ">non-members", ">without the release", ">added risk")
    return [
        table("attack", ">area under the curve", ">guessing", rows=areas, title="membership"),
        table(*columns, rows=asked, title="WP216 risks"),
    ]


def _facts(findings: "Findings", made: "dict[str, ShadowAudit]", inverted: "dict[str, Inversion]") -> dict[str, Any]:
    return {
        "internal": True,
        "membership": {name: asdict(area) for name, area in findings.membership.items()},
        "questions": {
            name: asdict(answer) | {"risk": asdict(answer.risk)} for name, answer in findings.questions.items()
        },
        "shadows": {
            target: {"areas": {name: asdict(area) for name, area in audit.areas.items()}} | _result(audit)
            for target, audit in made.items()
        },
        "transcript": {party: asdict(found) | {"ratio": found.ratio} for party, found in inverted.items()},
    }


@app.command("diagnose")
def diagnose(
    output: Output,
    public: Annotated[Path | None, "A table of public series. Default: simulated homes."] = None,
    schema: Annotated[Path | None, "Schema of the public table."] = None,
    context: ContextFile = None,
    window_steps: WindowSteps = None,
    window_stride: WindowStride = None,
    noise: Annotated[float, typer.Option(min=1e-6, help="Noise multiplier of the updates.")] = 1.0,
    iterations: Annotated[int, typer.Option(min=1, help="Number of iterations.")] = 100,
    tightness: Annotated[str, "Tightness of the bounds: loose, medium, tight or too-tight."] = "medium",
    operator: Annotated[str, "Operator of the bounds: tanh, hard, soft or straight-through."] = "tanh",
    pictures: Annotated[Path | None, "Folder for figures of the gradient norms."] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for weight initialisation.")] = 0,
) -> None:
    """Look at single units' gradients of dit while it trains on PUBLIC series. Never point it at private ones."""
    from understudy.auditing import diagnose as diagnostics
    from understudy.synthesizers.dit.method import DiT
    from understudy.synthesizers.dit.recipe import Network, Recipe

    network = Network(tightness=tightness, operator=operator)  # type: ignore[arg-type] # checked there
    if (public is None) != (schema is None):
        raise InputError("--public, --schema: both or none are expected.")
    if tightness == "none":
        raise InputError(
            "--tightness: loose, medium, tight or too-tight is expected; 'none' is what they are compared with."
        )
    method = DiT(recipe=Recipe(network=network, iterations=iterations), seed=seed)
    with output.progress() as progress:
        progress("reading", 0.0)
        if public is None or schema is None:
            series = replace(simulate_households(_SIMULATED_HOMES), private=False, unit_ids=None)
        else:
            series = public_series(public, schema, context, window_steps, window_stride)
        found = diagnostics.diagnose(series, method, noise_multiplier=noise, progress=progress)
    ratios = diagnostics.ratios(found["aware"], found["vanilla"])
    facts: dict[str, Any] = {name: norms.figures() for name, norms in found.items()}
    drawn: list[str] = []
    if pictures is not None:
        from understudy.report.figures import gradient_tails

        pictures.mkdir(parents=True, exist_ok=True)
        kinds = {name: {"cond": norms.conditioning, "other": norms.other} for name, norms in found.items()}
        clips = {name: norms.left_by_clip for name, norms in found.items()}
        drawn = [str(path) for path in gradient_tails(kinds, clips).save(pictures)]
    told = {"internal": True, "noise_multiplier": noise, **facts, "ratios": ratios, "pictures": drawn}
    output.result(told, bold(_PUBLIC), _shown_norms(facts, ratios), *(f"Wrote {path}." for path in drawn))


def _shown_norms(facts: dict[str, dict[str, float]], ratios: dict[str, float]) -> Table:
    names, rows = {"total": "rho_emp", "cond": "rho_cond"}, []
    for figure in facts["vanilla"]:
        part, _, level = figure.removeprefix("s_").rpartition("_")
        ratio = ratios.get(f"{names.get(part, '')}_{level}")
        rows.append((figure, *(f"{of[figure]:.3g}" for of in facts.values()), "" if ratio is None else f"{ratio:.3f}"))
    columns = ("", *(f">{name}" for name in facts), ">aware ÷ vanilla")
    return table(*columns, rows=rows, title="gradients of single units")
