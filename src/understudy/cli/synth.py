"""`understudy synth`: a private table becomes a release.

Order: everything that can be checked without the table, then the table, then room on the disk and the signing
key, then the charge. Whatever can fail should fail before it costs something.
"""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from understudy.cli.console import Output
from understudy.cli.ledger import Left, charging, check_budget, left_in, without_limit
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
from understudy.cli.panels import check_share, check_split, list_beside, split_table
from understudy.cli.places import existing, existing_table, named, outside, require_room, unused, write
from understudy.cli.sample import sample_in_pieces, usual_number
from understudy.data import Panel, Schema
from understudy.data.dtypes import require_fit
from understudy.data.table import table_of
from understudy.errors import InputError
from understudy.planning.choices import chosen, doubts, guarantee_for, require_budget, spending_plan
from understudy.privacy import keys
from understudy.privacy.canonical import file_sha256
from understudy.privacy.noise import NoiseSource
from understudy.synthesizers import Release
from understudy.workers import require_workers, workers_of

_MODEL_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True)
class Request:
    """One run as it is asked for, but for its method."""

    file: TableFile
    schema: Annotated[Path, "Schema of the table; the population's ledger is in the same folder."]
    epsilon: Epsilon
    out: Annotated[Path, "Release directory to make; it must not exist yet."]
    delta: Delta = None
    not_private: NotPrivate = False
    context: ContextFile = None
    holdout: Annotated[float | None, "Share of units to hold out of the run, chosen at random, such as 0.2."] = None
    holdout_list: Annotated[
        Path | None,
        "List of units to hold out, such as that of an earlier release. With --holdout: file for the list of the "
        "chosen units; default OUT.holdout.csv.",
    ] = None
    n: Annotated[int | None, typer.Option("--n", min=1, help="Synthetic series. Default: the population.")] = None
    allow_few_units: FewUnits = None
    seed: Annotated[
        int | None, typer.Option(min=0, help="Reproducible noise, for tests: the certificate says not private.")
    ] = None
    key: Annotated[str, "Name of the signing key; made on first use."] = "default"
    workers: Processes = 1
    cluster: ClusterAddress = None

    @property
    def given_list(self) -> Path | None:
        """The list of units to keep out, where one was given; a sampled one is written instead."""
        return self.holdout_list if self.holdout is None else None

    @property
    def written_list(self) -> Path | None:
        """The list of held-out units that is written, by default next to the release, where `evaluate` looks."""
        if self.holdout is None:
            return None if self.holdout_list is None else list_beside(self.out)
        return self.holdout_list or list_beside(self.out)


def synth(output: Output, request: Request, method: MethodOptions) -> None:
    """Charge the ledger, learn, and write synthetic series with their certificate."""
    release, (left, left_words), cautions = run(request, method, output)
    certificate = release.certificate
    held_out = None if request.written_list is None else str(request.written_list)
    findings = (*release.synthesizer.findings(release.schema, release.arrays), *certificate.findings)
    shipped = _ships(release, request)
    facts = {
        "release": str(request.out),
        "status": certificate.status,
        "method": certificate.method,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "ledger": left,
        "holdout_list": held_out,
        "series_shipped": shipped,
        "findings": findings,
        "cautions": cautions,
    }
    lines = [
        f"Wrote {request.out}.",
        certificate.sentence(),
        left_words,
        *(f"Of the release: {sentence}" for sentence in findings),
    ]
    if held_out:
        lines.append(f"Held-out units, private: {held_out}")
    if not shipped:
        make = f"`understudy sample {request.out} --context FILE` generates them."
        lines.append(f"No series yet: they follow a public context. {make}")
    output.result(facts, *lines)


def run(request: Request, options: MethodOptions, output: Output) -> tuple[Release, Left, list[str]]:
    """Returns the saved release, what is left in the population's ledger, and what public facts say against the run.

    Privacy: reads the private table; all that leaves went through `Synthesizer.fit`, which charges first.
    """
    _check_places(request)
    schema, few = Schema.load(request.schema), request.allow_few_units is not None
    schema.require_declared()
    require_budget(schema)
    check_share(request.holdout, schema, allow_few_units=few)
    guarantee = guarantee_for(schema, request.epsilon, request.delta, not_private=request.not_private)
    method, _ = chosen(schema, guarantee, **vars(options))
    plan = spending_plan(method, schema, guarantee)
    cautions = doubts(method, schema, guarantee, options.task)
    output.caution(*cautions)
    with output.progress() as progress:
        if not request.not_private:
            check_budget(request.schema, schema, plan, method.name)
        progress("reading", 0.0)
        table = table_of(named(request.file), schema, context=request.context, allow_few_units=few)
        table, held_out = split_table(table, request.holdout, request.given_list, np.random.default_rng(request.seed))
        check_split(table, held_out, schema, allow_few_units=few)
        num_series = request.n or usual_number(schema)
        require_fit(schema.unit.dtype, num_series - 1, "unit.dtype")
        require_room(request.out, _MODEL_BYTES + 8 * num_series * schema.num_steps * schema.num_channels)
        key = keys.load_or_create(request.key)
        public = {"schema": request.schema} | ({} if request.context is None else {"context": request.context})
        with charging(request.schema, schema) as ledger:
            release = method.fit(
                table,
                without_limit(ledger, schema, guarantee, method.name) if request.not_private else ledger,
                workers=workers_of(request.workers, request.cluster),
                guarantee=guarantee,
                noise=None if request.seed is None else NoiseSource.seeded(request.seed),
                progress=lambda stage, share: progress(stage, 0.1 + 0.5 * share),
                public_inputs={name: file_sha256(path) for name, path in public.items()},
                overrides={"few_units": request.allow_few_units} if request.allow_few_units else None,
            )
            del table  # samples need the room
            samples = None
            if _ships(release, request):
                samples = sample_in_pieces(
                    release,
                    request.n,
                    np.random.default_rng(request.seed),  # never the one whose coins chose the holdout
                    context=request.context if release.synthesizer.needs_context(release.schema) else None,
                    progress=lambda stage, share: progress(stage, 0.6 + 0.3 * share),
                )
            progress("writing", 0.9)
            with _listed(held_out, request, schema):
                release = release.save(request.out, samples=samples, key=key)
            left = left_in(ledger)
    return release, left, cautions


def _ships(release: Release, request: Request) -> bool:
    """Returns whether series are shipped: none where they need a public context and no table of it was given."""
    return request.context is not None or not release.synthesizer.needs_context(release.schema)


def _check_places(request: Request) -> None:
    """Every refusal that needs no table."""
    existing_table(named(request.file), "FILE")
    unused(request.out, "--out")
    places = {"--schema": request.schema, "--context": request.context, "--holdout-list": request.given_list}
    for option, path in places.items():
        if path is not None:
            existing(path, option)
    require_workers(workers_of(request.workers, request.cluster))
    if request.holdout is not None and not 0 < request.holdout < 1:
        raise InputError(f"--holdout: a share between 0 and 1 is expected, got {request.holdout:g}.")
    if request.written_list is not None:
        unused(outside(request.written_list, request.out, "--holdout-list"), "--holdout-list")
    if request.allow_few_units is not None and not request.allow_few_units.strip():
        raise InputError("--allow-few-units: the reason is expected; the certificate prints it.")


@contextmanager
def _listed(held_out: Panel | None, request: Request, schema: Schema) -> Iterator[None]:
    """Writes the list of held-out units, for its owner only; removes it again if the release is not written.

    Privacy: the list holds identifiers. It is private, lies outside the release and is never printed.
    """
    target = request.written_list
    if held_out is None or target is None:
        yield
        return
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([schema.unit.column or "series"])
    rows.writerows([identifier] for identifier in held_out.unit_ids)  # type: ignore[union-attr]
    write(target, text.getvalue(), private=True)
    try:
        yield
    except BaseException:
        target.unlink(missing_ok=True)
        raise
