"""`understudy compare`: releases side by side, which no guarantee covers, or a charged choice among them."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from understudy.cli.console import Output, Progress, bold, table
from understudy.cli.evaluate import judge, record_of
from understudy.cli.ledger import charging, record_uncovered
from understudy.cli.options import Measures, RealTables
from understudy.cli.panels import Candidate, read_candidate, read_list, read_real, require_unseen
from understudy.cli.places import existing, existing_table, named, outside, unused, whole_file, write
from understudy.data import Schema
from understudy.errors import InputError, Stopped
from understudy.evaluate.choosing import LABEL, PrivateChoice
from understudy.extras import require_extra
from understudy.planning.choices import guarantee_for, require_budget
from understudy.privacy import keys, registry
from understudy.privacy.canonical import file_sha256
from understudy.privacy.certificate import FILE_NAME, Certificate, issue, sign
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.report.words import UNKNOWN, figure, with_verdicts

UNCOVERED = "Choosing by these figures is covered by no guarantee: real series were read for them without a charge."


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
                part = _part(progress, place, len(candidates))
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
            folders = [folder for candidate in candidates for folder in candidate.folders]
            require_unseen(listed, folders, schema, strict=True)


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
    path = registry.lookup(candidates[0].panel.schema.name)
    if path is None or not path.exists():
        return "No ledger of this population is on this computer, so only this page records that they were compared."
    ledger, names = Ledger.open(path), ", ".join(candidate.name for candidate in candidates)
    record_uncovered(ledger, f"compared with real data, not covered: {names}")
    return f"The ledger of '{ledger.name}' says that they were compared."


def _part(progress: Progress, place: int, parts: int) -> Progress:
    return lambda what, share: progress(what, (place + share) / parts)
