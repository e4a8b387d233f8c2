"""`understudy synth`: a private table becomes a release.

Order: everything that can be checked without the table, then the table, then room on the disk and the signing
key, then the charge. Whatever can fail should fail before it costs something.
"""

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli.charging import able_to_pay, charge_stays_known, left_in, without_limit
from understudy.cli.console import Output, Progress
from understudy.cli.holdouts import check_share, check_split, list_beside, split_table
from understudy.cli.options import (
    ContextFile,
    Delta,
    Epsilon,
    FewUnits,
    Method,
    NotPrivate,
    Options,
    Pack,
    Preset,
    TableFile,
    Task,
    WindowSteps,
    WindowStride,
)
from understudy.cli.places import existing, existing_table, named, outside, require_room, unused, whole_file
from understudy.cli.sample import sample_in_pieces
from understudy.errors import InputError
from understudy.workers import Workers, cluster_of

if TYPE_CHECKING:
    import numpy as np

    from understudy.data import Panel, Schema
    from understudy.planning import MethodChoice
    from understudy.privacy.keys import SigningKey
    from understudy.synthesizers import Release

_MODEL_BYTES = 64 * 2**20


@dataclass(frozen=True, kw_only=True)
class Request:
    """One run as it was asked for."""

    file: Path | str
    schema: Path
    out: Path
    epsilon: float
    choice: "MethodChoice"
    delta: float | None = None
    not_private: bool = False
    context: Path | None = None
    holdout: float | None = None
    holdout_list: Path | None = None
    num_series: int | None = None
    few_units: str | None = None
    seed: int | None = None
    key: str = "default"
    workers: Workers = 1

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


def synth(
    output: Output,
    file: TableFile,
    schema: Annotated[Path, typer.Option(help="Schema of the table; the population's ledger is in the same folder.")],
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option(help="Release directory to make; it must not exist yet.")],
    delta: Delta = None,
    not_private: NotPrivate = False,
    method: Method = "auto",
    task: Task = "series",
    context: ContextFile = None,
    holdout: Annotated[
        float | None, typer.Option(help="Share of units to hold out of the run, chosen at random, such as 0.2.")
    ] = None,
    holdout_list: Annotated[
        Path | None,
        typer.Option(
            help="List of units to hold out, such as that of an earlier release. With --holdout: file for the list of "
            "the chosen units; default OUT.holdout.csv."
        ),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Synthetic series. Default: the population.")] = None,
    window_steps: WindowSteps = None,
    window_stride: WindowStride = None,
    pack: Pack = None,
    preset: Preset = "default",
    options: Options = None,
    allow_few_units: FewUnits = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Reproducible noise, for tests: the certificate says not private."),
    ] = None,
    key: Annotated[str, typer.Option(help="Name of the signing key; made on first use.")] = "default",
    workers: Annotated[int, typer.Option(min=1, help="Processes that read and add up partitions of the table.")] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(help="Dask scheduler to use instead, tcp://host:port; its workers must see the table."),
    ] = None,
) -> None:
    """Charge the ledger, learn, and write synthetic series with their certificate."""
    from understudy.planning import MethodChoice

    choice = MethodChoice(
        name=method, task=task, window_steps=window_steps, window_stride=window_stride, pack=pack,
        preset=preset, options=tuple(options or ()),
    )  # fmt: skip
    request = Request(
        file=named(file), schema=schema, out=out, epsilon=epsilon, delta=delta, not_private=not_private, choice=choice,
        context=context, holdout=holdout, holdout_list=holdout_list, num_series=n, few_units=allow_few_units, seed=seed,
        key=key, workers=workers if cluster is None else cluster_of(cluster),
    )  # fmt: skip
    release, left, cautions = run(request, output)
    certificate = release.certificate
    held_out = None if request.written_list is None else str(request.written_list)
    findings = release.synthesizer.findings(release.schema, release.arrays)
    facts = {
        "release": str(out),
        "status": certificate.status,
        "method": certificate.method,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "ledger": left,
        "holdout_list": held_out,
        "series_shipped": _ships(release, request),
        "findings": findings,
        "cautions": cautions,
    }
    lines = [
        f"Wrote {out}.",
        certificate.sentence(),
        f"Left in the ledger of '{certificate.population}': {left['epsilon_left']:.4g}.",
        *(f"Of the release: {sentence}" for sentence in findings),
    ]
    if held_out:
        lines.append(f"Held-out units, private: {held_out}")
    if not facts["series_shipped"]:
        lines.append(
            f"No series yet: they follow a public context. `understudy sample {out} --context FILE` generates them."
        )
    output.result(facts, *lines)


def run(request: Request, output: Output) -> tuple["Release", dict[str, Any], list[str]]:
    """Returns the saved release, what is left in the population's ledger, and what public facts say against the run.

    Privacy: reads the private table; all that leaves went through `Synthesizer.fit`, which charges first.
    """
    import numpy as np

    from understudy.data import Schema
    from understudy.data.table import table_of
    from understudy.planning.choices import doubts, guarantee_for, require_budget, spending_plan
    from understudy.privacy.ledger import Ledger
    from understudy.privacy.noise import NoiseSource

    _check_places(request)
    schema, few = Schema.load(request.schema), request.few_units is not None
    schema.require_declared()
    require_budget(schema)
    check_share(request.holdout, schema, allow_few_units=few)
    guarantee = guarantee_for(schema, request.epsilon, request.delta, not_private=request.not_private)
    method, _ = request.choice.configured(schema, guarantee)
    plan = spending_plan(method, schema, guarantee)
    cautions = doubts(method, schema, guarantee, request.choice.task)
    output.caution(*cautions)
    with output.progress() as progress:
        paying = None if request.not_private else able_to_pay(request.schema, schema, plan, method.name)
        progress("reading", 0.0)
        table = table_of(request.file, schema, context=request.context, allow_few_units=few)
        table, held_out = split_table(table, request.holdout, request.given_list, np.random.default_rng(request.seed))
        check_split(table, held_out, schema, allow_few_units=few)
        key = _prepared(request, schema)
        ledger = paying or Ledger.open_for(schema, request.schema.absolute().parent)
        with charge_stays_known(ledger):
            release = method.fit(
                table,
                without_limit(ledger, schema, guarantee, method.name) if request.not_private else ledger,
                workers=request.workers,
                guarantee=guarantee,
                noise=None if request.seed is None else NoiseSource.seeded(request.seed),
                progress=lambda stage, share: progress(stage, 0.1 + 0.5 * share),
                public_inputs=_public_inputs(request),
                overrides={"few_units": request.few_units} if request.few_units else None,
            )
            del table  # samples need the room
            fresh = np.random.default_rng(request.seed)  # never the one whose coins chose the holdout
            samples = _samples(release, request, fresh, lambda stage, share: progress(stage, 0.6 + 0.3 * share))
            progress("writing", 0.9)
            with _listed(held_out, request, schema):
                release = release.save(request.out, samples=samples, key=key)
            left = left_in(ledger)
    return release, left, cautions


def _samples(release: "Release", request: Request, rng: "np.random.Generator", progress: Progress) -> "Panel | None":
    """Returns the series that are shipped; none where they need a public context and no table of it was given."""
    from understudy.data.io import read_context_windows

    if not _ships(release, request):
        return None
    number = request.num_series or release.schema.population.size or 1
    context = ticks = None
    if request.context is not None and release.synthesizer.needs_context(release.schema):
        context, ticks = read_context_windows(request.context, release.schema, number, rng)
    return sample_in_pieces(release, number, rng, context=context, ticks=ticks, progress=progress)


def _ships(release: "Release", request: Request) -> bool:
    return request.context is not None or not release.synthesizer.needs_context(release.schema)


def _check_places(request: Request) -> None:
    """Every refusal that needs no table."""
    existing_table(request.file, "FILE")
    existing(request.schema, "--schema")
    unused(request.out, "--out")
    if request.context is not None:
        existing(request.context, "--context")
    if request.given_list is not None:
        existing(request.given_list, "--holdout-list")
    if request.holdout is not None and not 0 < request.holdout < 1:
        raise InputError(f"--holdout: a share between 0 and 1 is expected, got {request.holdout:g}.")
    if request.written_list is not None:
        unused(outside(request.written_list, request.out, "--holdout-list"), "--holdout-list")
    if request.few_units is not None and not request.few_units.strip():
        raise InputError("--allow-few-units: the reason is expected; the certificate prints it.")


def _prepared(request: Request, schema: "Schema") -> "SigningKey":
    """Room for the release and the key that signs it: last checks before the charge."""
    from understudy.data.dtypes import require_fit
    from understudy.privacy import keys

    num_series = request.num_series or schema.population.size or 1
    require_fit(schema.unit.dtype, num_series - 1, "unit.dtype")
    require_room(request.out, _MODEL_BYTES + 8 * num_series * schema.num_steps * schema.num_channels)
    return keys.load_or_create(request.key)


def _public_inputs(request: Request) -> dict[str, str]:
    from understudy.privacy.canonical import file_sha256

    named = {"schema": request.schema, "context": request.context}
    return {name: file_sha256(path) for name, path in named.items() if path is not None}


@contextmanager
def _listed(held_out: "Panel | None", request: Request, schema: "Schema") -> Iterator[None]:
    """Writes the list of held-out units, for its owner only; removes it again if the release is not written.

    Privacy: the list holds identifiers. It is private, lies outside the release and is never printed.
    """
    target = request.written_list
    if held_out is None or target is None:
        yield
        return
    with whole_file(target) as draft:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([schema.unit.column or "series"])
            rows.writerows([identifier] for identifier in held_out.unit_ids)  # type: ignore[union-attr]
    try:
        yield
    except BaseException:
        target.unlink(missing_ok=True)
        raise
