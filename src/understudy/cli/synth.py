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
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.budget import charge_stays_known, doubts, guarantee_for, method_for, refuse_early, require_budget
from understudy.cli.console import Json, Output, Progress, Quiet
from understudy.cli.holdouts import check_share, check_split, list_beside, split_table
from understudy.cli.options import TASK_HELP, Options
from understudy.cli.places import existing, outside, require_room, unused, whole_file
from understudy.cli.sample import draw
from understudy.cli.tables import TABLE_HELP, existing_table, named, open_table_argument
from understudy.errors import InputError
from understudy.workers import Workers, cluster_of

if TYPE_CHECKING:
    import numpy as np

    from understudy.data import Panel, Schema
    from understudy.privacy.budget import Guarantee
    from understudy.privacy.charges import Remaining
    from understudy.privacy.keys import SigningKey
    from understudy.privacy.ledger import Ledger
    from understudy.synthesizers import Release, Synthesizer

_MODEL_BYTES = 64 * 2**20
LIST_HELP = (
    "List of units to keep out, such as that of an earlier release. With --holdout: where the drawn units are listed; "
    "default OUT.holdout.csv."
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """One run as it was asked for."""

    file: Path | str
    schema: Path
    out: Path
    epsilon: float
    delta: float | None = None
    method: str = "auto"
    task: str = "series"
    window_steps: int | None = None
    window_stride: int | None = None
    pack: Path | None = None
    options: tuple[str, ...] = ()
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
        """The list of units to keep out, where one was given; a drawn one is written instead."""
        return self.holdout_list if self.holdout is None else None


def synth(
    file: Annotated[str, typer.Argument(help=f"The private table: {TABLE_HELP}")],
    schema: Annotated[Path, typer.Option(help="Its schema; the population's ledger lies beside it.")],
    epsilon: Annotated[float, typer.Option(help="What this run may cost. 1 is strict, 10 is weak.")],
    out: Annotated[Path, typer.Option(help="Release directory to make; it must not exist yet.")],
    delta: Annotated[float | None, typer.Option(help="Default: the ledger's delta divided by max_runs.")] = None,
    method: Annotated[str, typer.Option(help="auto, or a method's name.")] = "auto",
    task: Annotated[str, typer.Option(help=TASK_HELP)] = "series",
    context: Annotated[Path | None, typer.Option(help="Table of public context by time.")] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Share of units to keep out of the run, drawn at random, such as 0.2.")
    ] = None,
    holdout_list: Annotated[Path | None, typer.Option(help=LIST_HELP)] = None,
    n: Annotated[int | None, typer.Option("--n", min=1, help="Synthetic series. Default: the population.")] = None,
    window_steps: Annotated[int | None, typer.Option(min=1, help="Cut series into windows of so many steps.")] = None,
    window_stride: Annotated[
        int | None, typer.Option(min=1, help="Steps from one window to the next. Default: side by side.")
    ] = None,
    pack: Annotated[Path | None, typer.Option(help="Pack of `understudy pretrain` to start from.")] = None,
    options: Options = None,
    allow_few_units: Annotated[
        str | None,
        typer.Option(metavar="REASON", help="Let fewer than 100 units pass; the certificate says why."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Reproducible noise, for tests: the certificate says not private."),
    ] = None,
    key: Annotated[str, typer.Option(help="Name of the key that signs; made on first use.")] = "default",
    workers: Annotated[int, typer.Option(min=1, help="Processes that read and add up partitions of the table.")] = 1,
    cluster: Annotated[
        str | None, typer.Option(help="A Dask scheduler instead, tcp://host:port, whose workers see the table.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Charge the ledger, learn, and write synthetic series with their certificate."""
    output = Output(json=json, quiet=quiet)
    request = Request(
        file=named(file), schema=schema, out=out, epsilon=epsilon, delta=delta, method=method, task=task,
        context=context, window_steps=window_steps, window_stride=window_stride, pack=pack,
        options=tuple(options or ()), holdout=holdout, holdout_list=holdout_list, num_series=n,
        few_units=allow_few_units, seed=seed, key=key,
        workers=workers if cluster is None else cluster_of(cluster),
    )  # fmt: skip
    cautions = foreseen(request)
    output.caution(*cautions)
    with output.progress() as progress:
        release, ledger, left = run(request, progress)
    certificate = release.certificate
    held_out = None if holdout is None and holdout_list is None else str(_holdout_list(request))
    findings = release.synthesizer.findings(release.schema, release.arrays)
    facts = {
        "release": str(out),
        "status": certificate.status,
        "method": certificate.method,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "ledger": {"file": str(ledger.path), "epsilon_left": left.epsilon, "runs_left": left.runs},
        "holdout_list": held_out,
        "series_shipped": _ships(release, request),
        "findings": findings,
        "cautions": cautions,
    }
    lines = [
        f"Wrote {out}.",
        certificate.sentence(),
        f"Left in the ledger of '{ledger.name}': {left.epsilon:.4g}.",
        *(f"Of the release: {sentence}" for sentence in findings),
    ]
    if held_out:
        lines.append(f"Kept-out units, private: {held_out}")
    if not facts["series_shipped"]:
        lines.append(
            f"No series yet: they follow a public context. `understudy sample {out} --context FILE` draws them."
        )
    output.result(facts, *lines)


def foreseen(request: Request) -> list[str]:
    """Returns what public facts say against this run, before anything is read or charged."""
    schema, guarantee, method = _configured(request)
    return doubts(method, schema, guarantee, request.task)


def run(request: Request, progress: Progress) -> tuple["Release", "Ledger", "Remaining"]:
    """Returns the saved release, the ledger it was charged to, and what is left there.

    Privacy: reads the private table; all that leaves went through `Synthesizer.fit`, which charges first.
    """
    import numpy as np

    from understudy.privacy.ledger import Ledger
    from understudy.privacy.noise import NoiseSource

    schema, guarantee, method = _configured(request)
    refuse_early(request.schema, schema, method.spending_plan(schema, guarantee), method.name)
    progress("reading", 0.0)
    few = request.few_units is not None
    table = open_table_argument(request.file, schema, context=request.context, allow_few_units=few)
    table, held_out = split_table(table, request.holdout, request.given_list, np.random.default_rng(request.seed))
    check_split(table, held_out, schema, allow_few_units=few)
    key = _prepared(request, schema)
    ledger = Ledger.open_for(request.schema)
    with charge_stays_known(ledger):
        release = method.fit(
            table,
            ledger,
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
        left = ledger.remaining()
    return release, ledger, left


def _configured(request: Request) -> tuple["Schema", "Guarantee", "Synthesizer"]:
    """Returns schema, guarantee and method after every check that needs no table."""
    from understudy.data import Schema

    _check_places(request)
    schema = Schema.load(request.schema)
    schema.require_declared()
    require_budget(schema)
    check_share(request.holdout, schema, allow_few_units=request.few_units is not None)
    guarantee = guarantee_for(schema, request.epsilon, request.delta)
    method = method_for(
        request.method,
        request.window_steps,
        schema,
        guarantee=guarantee,
        task=request.task,
        window_stride=request.window_stride,
        pack=request.pack,
        options=request.options,
    )
    return schema, guarantee, method


def _samples(release: "Release", request: Request, rng: "np.random.Generator", progress: Progress) -> "Panel | None":
    """Returns the series that are shipped; none where they need a public context and no table of it was given."""
    from understudy.data.io import read_context_windows

    if not _ships(release, request):
        return None
    number = request.num_series or release.schema.population.size or 1
    context = ticks = None
    if request.context is not None and release.synthesizer.needs_context(release.schema):
        context, ticks = read_context_windows(request.context, release.schema, number, rng)
    return draw(release, number, rng, context=context, ticks=ticks, progress=progress)


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
    if request.holdout is not None or request.given_list is not None:
        unused(outside(_holdout_list(request), request.out, "--holdout-list"), "--holdout-list")
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


def _holdout_list(request: Request) -> Path:
    """Returns where the list is written: beside the release, where `evaluate` and `compare` look for it."""
    drawn = request.holdout_list if request.holdout is not None else None
    return drawn or list_beside(request.out)


@contextmanager
def _listed(held_out: "Panel | None", request: Request, schema: "Schema") -> Iterator[None]:
    """Writes the list of kept-out units, for its owner only; it goes again if the release is not written.

    Privacy: the list holds identifiers. It is private, lies outside the release and is never printed.
    """
    if held_out is None:
        yield
        return
    target = _holdout_list(request)
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
