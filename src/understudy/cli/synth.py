"""`understudy synth`: a private table becomes a release."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from understudy.api.synthesis import prepared
from understudy.cli.console import Output
from understudy.cli.ledger import left_in
from understudy.cli.options import (
    ClusterAddress,
    ContextFile,
    Delta,
    Epsilon,
    FewUnits,
    MethodOptions,
    NotPrivate,
    Processes,
    TableFile,
)
from understudy.synthesizers.release import DATA_FILE


@dataclass(frozen=True, kw_only=True)
class Request:
    """One run as it is asked for, but for its method; the fields are arguments of `synthesize`."""

    data: TableFile
    schema: Annotated[Path, "Schema of the table; the population's ledger is in the same folder."]
    epsilon: Epsilon
    save_to: Annotated[Path, typer.Option("--out", help="Release directory to make; it must not exist yet.")]
    delta: Delta = None
    not_private: NotPrivate = False
    context: ContextFile = None
    holdout: Annotated[float | None, "Share of units to hold out of the run, chosen at random, such as 0.2."] = None
    holdout_list: Annotated[
        Path | None,
        "List of units to hold out, such as that of an earlier release. With --holdout: file for the list of the "
        "chosen units; default OUT.holdout.csv.",
    ] = None
    num_series: Annotated[int | None, typer.Option("--n", min=1, help="Synthetic series. Default: the population.")] = (
        None
    )
    allow_few_units: FewUnits = None
    seed: Annotated[
        int | None, typer.Option(min=0, help="Reproducible noise, for tests: the certificate says not private.")
    ] = None
    key: Annotated[str, "Name of the signing key; made on first use."] = "default"
    workers: Processes = 1
    cluster: ClusterAddress = None


def synth(output: Output, request: Request, method: MethodOptions) -> None:
    """Charge the ledger, learn, and write synthetic series with their certificate."""
    with output.cautions() as cautions, output.progress() as progress:
        run = prepared(**vars(request), **vars(method))
        release, ledger = run.carry_out(progress)
    certificate, out, held_out = release.certificate, request.save_to, run.kept_out.file
    left, left_words = left_in(ledger)
    findings = (*release.synthesizer.findings(release.schema, release.arrays), *certificate.findings)
    shipped = DATA_FILE in certificate.files
    facts = {
        "release": str(out),
        "status": certificate.status,
        "method": certificate.method,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "ledger": left,
        "holdout_list": None if held_out is None else str(held_out),
        "series_shipped": shipped,
        "findings": findings,
        "cautions": cautions,
    }
    lines = [f"Wrote {out}.", certificate.sentence(), left_words]
    lines += [f"Of the release: {sentence}" for sentence in findings]
    if held_out is not None:
        lines.append(f"Held-out units, private: {held_out}")
    if not shipped:
        make = f"`understudy sample {out} --context FILE` generates them."
        lines.append(f"No series yet: they follow a public context. {make}")
    output.result(facts, *lines)
