"""`understudy sample`, `impute` and `forecast`: more series of a release, gaps filled, and what comes after an end."""

import json as json_format
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from understudy.api import sampling
from understudy.api.arguments import existing, existing_table, require_room, unused, write
from understudy.cli.console import Output
from understudy.cli.options import ClusterAddress, ContextFile, Processes
from understudy.data import Panel, Schema, read_context, read_panel, write_panel
from understudy.data.channels import require_fit
from understudy.errors import InputError
from understudy.synthesizers import Release
from understudy.synthesizers.completing import QUANTILES
from understudy.workers import workers_of

_OTHERS = (
    "It holds what was observed, so it is as private as the table. Filling other people's series costs the release's "
    "units nothing. If the release was learned from these very series, the file is internal: use --training-series."
)
_OWN = (
    "Internal: the release was learned from these series, and what was observed of them is in the file. The release's "
    "guarantee does not cover it. Do not share it."
)


def sample(
    output: Output,
    release: Annotated[Path, typer.Argument(help="Release directory to sample from.")],
    out: Annotated[str, "File to write (.parquet, .csv, .arrow, .feather, .npz, .npy), or FOLDER/ of Parquet."],
    n: Annotated[int | None, typer.Option("--n", min=1, help="Number of series. Default: the population.")] = None,
    context: ContextFile = None,
    label: Annotated[str | None, "Category of the label column to sample."] = None,
    start: Annotated[str | None, "Timestamp of the first step. Default: the schema's."] = None,
    seed: Annotated[int | None, "Seed to sample the same series again. Costs no privacy."] = None,
    series_per_file: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of series per file of FOLDER/.")
    ] = None,
    processes: Processes = 1,
    cluster: ClusterAddress = None,
) -> None:
    """Sample synthetic series. The release's certificate covers whatever is made from it."""
    folder, workers = out.endswith("/"), workers_of(processes, cluster)
    target = unused(Path(out), "--out", release=existing(release, "RELEASE"))
    if not folder and (series_per_file is not None or workers != 1):
        raise InputError("--workers, --cluster, --series-per-file: a folder to write is expected. End --out with '/'.")
    opened = Release.load(release)
    schema, number = opened.schema, n or sampling.usual_number(opened.schema)
    require_fit(schema.unit.dtype, number - 1, "unit.dtype")
    require_room(target, 8 * number * schema.num_steps * schema.num_channels)
    table = None if context is None else existing_table(context, "--context")
    table = table.resolve() if isinstance(table, Path) else table  # other processes may be in another folder
    given = opened, {"context": table, "label": label, "start": start}, target, number, seed
    with output.progress() as progress:
        if folder:
            remarks = sampling.write_folder(*given, progress, series_per_file=series_per_file, workers=workers)
        else:
            remarks = sampling.write_file(*given, progress)
    facts = {"folder" if folder else "file": str(target), "series": number, "status": opened.certificate.status}
    output.result(
        facts | {"remarks": remarks},
        f"Wrote {number} synthetic series to {target}{'/' if folder else ''}.",
        *remarks,
        opened.certificate.sentence(),
    )


@dataclass(frozen=True, kw_only=True)
class Given:
    """What every filling needs."""

    release: Annotated[Path, typer.Argument(help="Release directory of a method that fills gaps, such as dit.")]
    data: Annotated[str, "Table of the series: .parquet, .csv, .arrow, .npz, .npy, a folder or a URL."]
    out: Annotated[Path, "File to write, with the table's columns and more; it must not exist yet."]
    schema: Annotated[Path | None, "Schema of the table, if its time axis is another. Default: the release's."] = None
    context: ContextFile = None
    draws: Annotated[int, typer.Option(min=1, help="Completions of each series, for the intervals.")] = 39
    training_series: Annotated[bool, "Mark the file internal: the release was learned from these series."] = False
    seed: Annotated[int | None, typer.Option(min=0, help="Seed to fill in the same way again. Costs no privacy.")] = (
        None
    )


def impute(
    output: Output,
    given: Given,
    level: Annotated[float, "Probability level of the intervals."] = 0.9,
) -> None:
    """Fill the gaps of a table, with an interval for every number; what was observed stays as it is."""

    def fill(opened: Release, panel: Panel, **how: Any) -> Panel:
        return opened.impute(panel, level=level, **how).with_intervals()

    facts = {"level": level, "draws": given.draws, "columns": "…_low and …_high: ends of the interval"}
    _complete(output, given, fill, facts, f"Wrote {given.out}, without gaps.")


def forecast(
    output: Output,
    given: Given,
    horizon: Annotated[int, "Number of steps to forecast."],
    ahead: Annotated[str | None, "Table of public context of the forecast steps, by time."] = None,
    quantile: Annotated[list[float] | None, "Quantile to forecast; may be repeated. Default: 0.05, 0.5, 0.95."] = None,
) -> None:
    """Forecast the steps after the end of each series, as quantiles; without --ahead, for any context there."""
    wanted = tuple(quantile or QUANTILES)

    def fill(opened: Release, panel: Panel, **how: Any) -> Panel:
        known = None if ahead is None or horizon < 1 else _context_ahead(panel, ahead, horizon)
        return opened.forecast(panel, horizon, quantiles=wanted, context=known, **how).as_panel()

    facts = {"horizon": horizon, "quantiles": list(wanted), "draws": given.draws}
    _complete(output, given, fill, facts, f"Wrote {given.out}, {horizon} steps ahead.")


def _complete(output: Output, given: Given, fill: Callable[..., Panel], facts: dict[str, Any], did: str) -> None:
    """Fills the series of a table, and writes them with a note that says who may see them."""
    out = unused(given.out, "--out", release=existing(given.release, "RELEASE"))
    note = unused(out.with_name(f"{out.name}.about.json"), "--out")
    with output.progress() as progress:
        release = Release.load(given.release)
        wanted = release.schema if given.schema is None else Schema.load(existing(given.schema, "--schema"))
        table = None if given.context is None else existing_table(given.context, "--context")
        known = release.public_context if table is None and given.schema is None else table
        schema = _with_gaps(wanted, known is not None)
        panel = read_panel(existing_table(given.data, "--data"), schema, context=known, allow_few_units=True)
        panel = replace(panel, schema=replace(schema, context=wanted.context))
        require_room(out, 32 * max(1, panel.values.size))
        rng = np.random.default_rng(given.seed)
        made = fill(release, panel, num_draws=given.draws, rng=rng, progress=progress)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_panel(made, out)
    about = {
        "internal": given.training_series,
        "says": _OWN if given.training_series else _OTHERS,
        "method": release.synthesizer.name,
        "release": release.certificate.sentence(),
        **facts,
    }
    write(note, json_format.dumps(about, indent=2) + "\n")
    output.result({"file": str(out), "about": str(note), **about}, did, str(about["says"]))


def _context_ahead(panel: Panel, table: str, horizon: int) -> np.ndarray:
    """Returns the context of the steps after the end of each series."""
    schema, ends = panel.schema, panel.lengths.astype(np.int64)
    if not schema.context or schema.time.align != "calendar":
        raise InputError("--ahead: a release with public context and series on one calendar is expected.")
    first = int(ends.min(initial=schema.num_steps))
    steps = int(ends.max(initial=first)) - first + horizon
    known = read_context(existing_table(table, "--ahead"), schema, steps=steps, first_step=first)
    return np.asarray(known[(ends - first)[:, None] + np.arange(horizon)])


def _with_gaps(schema: Schema, with_context: bool) -> Schema:
    """Returns the schema that lets every channel have gaps and series be short; context only if it is given."""
    own = replace(
        schema,
        channels=tuple(replace(channel, missing=True) for channel in schema.channels),
        static=tuple(replace(column, missing=True) for column in schema.static),
        time=replace(schema.time, min_steps=1),
    )
    if with_context:
        return own
    constraints = tuple(one for one in schema.constraints if getattr(one, "context", None) is None)
    columns = () if schema.context else schema.columns
    return replace(own, context=(), constraints=constraints, columns=columns)
