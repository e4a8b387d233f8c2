"""`understudy sample`: more series from a release, free of charge."""

import warnings
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Json, Output, Progress, Quiet
from understudy.cli.places import existing, outside, require_room, unused
from understudy.errors import InputError
from understudy.files import whole_folder
from understudy.workers import Workers, pool, workers_of

if TYPE_CHECKING:
    import numpy as np

    from understudy.data import Panel
    from understudy.synthesizers import Release

    Seed = int | np.random.SeedSequence | None

_FILE_VALUES = 8_000_000  # of a file of a folder
_PIECE_VALUES = 2_000_000  # series are drawn in pieces so that working copies stay small


def sample(
    release: Annotated[Path, typer.Argument(help="A release directory.")],
    out: Annotated[
        str, typer.Option(help="File to write (.parquet, .csv, .arrow, .feather, .npz, .npy), or FOLDER/ of Parquet.")
    ],
    n: Annotated[int | None, typer.Option("--n", min=1, help="How many series. Default: the population.")] = None,
    context: Annotated[Path | None, typer.Option(help="Table of public context to respond to.")] = None,
    label: Annotated[str | None, typer.Option(help="Draw one category of the label column only.")] = None,
    start: Annotated[str | None, typer.Option(help="Timestamp of the first step, if not the schema's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Draw the same series again. Costs no privacy.")] = None,
    series_per_file: Annotated[int | None, typer.Option(min=1, help="Most series in a file of FOLDER/.")] = None,
    workers: Annotated[str, typer.Option(help="Processes that draw the files of FOLDER/.")] = "1",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw synthetic series. Whatever is made from a release is covered by its certificate."""
    from understudy.data.dtypes import require_fit
    from understudy.synthesizers import Release

    output, folder = Output(json=json, quiet=quiet), out.endswith("/")
    target = unused(outside(Path(out), existing(release, "RELEASE"), "--out"), "--out")
    if not folder and (series_per_file is not None or workers != "1"):
        raise InputError("--workers, --series-per-file: a folder to write is expected. End --out with '/'.")
    opened = Release.load(release)
    schema = opened.schema
    num_series = n or schema.population.size or 1
    require_fit(schema.unit.dtype, num_series - 1, "unit.dtype")
    require_room(target, 8 * num_series * schema.num_steps * schema.num_channels)
    wanted = Wanted(release=release, context=context, label=label, start=start)
    with output.progress() as progress:
        if folder:
            remarks = write_folder(wanted, target, num_series, seed, series_per_file, workers_of(workers), progress)
        else:
            remarks = write_file(wanted, opened, target, num_series, seed, progress)
    facts = {
        "folder" if folder else "file": str(target),
        "series": num_series,
        "status": opened.certificate.status,
        "remarks": remarks,
    }
    wrote = f"Wrote {num_series} synthetic series to {target}{'/' if folder else ''}."
    output.result(facts, wrote, *remarks, opened.certificate.sentence())


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What series are drawn of and for."""

    release: Path
    context: Path | None = None
    label: str | None = None
    start: str | None = None


def write_file(
    wanted: Wanted, release: "Release", target: Path, num_series: int, seed: "Seed", progress: Progress, first: int = 0
) -> list[str]:
    """Draws series into one file; returns what a reader should know about them.

    Args:
        first: Number of the first series, for a file of several.
    """
    import numpy as np

    from understudy.data import write_panel

    rng = np.random.default_rng(seed)
    given, ticks = _context(release, wanted.context, wanted.start, num_series, rng)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        made = sample_in_pieces(
            release, num_series, rng, context=given, ticks=ticks, label=wanted.label, start=wanted.start,
            progress=progress,
        )  # fmt: skip
        target.parent.mkdir(parents=True, exist_ok=True)
        write_panel(made, target, with_context=True, first_unit=first)
    return list(dict.fromkeys(str(warning.message) for warning in told if warning.category is UserWarning))


def write_folder(
    wanted: Wanted,
    target: Path,
    num_series: int,
    seed: int | None,
    series_per_file: int | None,
    workers: Workers,
    progress: Progress,
) -> list[str]:
    """Draws series into the files of a folder, which appears whole or not at all; returns remarks.

    Every file has its own stream of the seed: how many processes draw them changes nothing.
    """
    import joblib
    import numpy as np

    size = series_per_file or _series_per_file(wanted.release)
    begins = range(0, num_series, size)
    seeds = np.random.SeedSequence(seed).spawn(len(begins))
    remarks: list[str] = []
    with whole_folder(target) as draft:
        parts = [
            (wanted, draft / f"part-{place:05d}.parquet", min(size, num_series - begin), own, begin)
            for place, (begin, own) in enumerate(zip(begins, seeds, strict=True))
        ]
        with pool(workers) as processes:
            here = workers == 1  # no process has to be started
            made = starmap(_write_part, parts) if here else processes(starmap(joblib.delayed(_write_part), parts))
            for done, told in enumerate(made):
                remarks += told
                progress("sampling", (done + 1) / len(parts))
    return list(dict.fromkeys(remarks))


def _series_per_file(release: Path) -> int:
    from understudy.synthesizers import Release

    schema = Release.load(release).schema
    return max(1, _FILE_VALUES // (schema.num_steps * schema.num_channels))


def _write_part(wanted: Wanted, file: Path, num_series: int, seed: "Seed", first: int) -> list[str]:
    """Draws one file, with one thread: sums over several threads differ in their last bits."""
    import torch
    from threadpoolctl import threadpool_limits

    from understudy.synthesizers import Release

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with threadpool_limits(limits=1):
            release = Release.load(wanted.release)
            return write_file(wanted, release, file, num_series, seed, lambda stage, share: None, first)
    finally:
        torch.set_num_threads(threads)


def sample_in_pieces(
    release: "Release",
    num_series: int | None,
    rng: "np.random.Generator",
    *,
    context: "np.ndarray | None" = None,
    ticks: "np.ndarray | None" = None,
    label: str | None = None,
    start: str | None = None,
    progress: Progress | None = None,
) -> "Panel":
    """Returns synthetic series (as many as the population unless told), drawn piece by piece.

    Args:
        ticks: When the steps of each series are, as its own stretch of context has it.
    """
    from dataclasses import replace

    from understudy.data import concatenate

    schema = release.schema
    wanted = num_series or schema.population.size or 1
    size = max(1, _PIECE_VALUES // (schema.num_steps * schema.num_channels))
    pieces = []
    for begin in range(0, wanted, size):
        rows = slice(begin, min(begin + size, wanted))
        own = context[rows] if context is not None and context.ndim == 3 else context
        pieces.append(release.sample(rows.stop - begin, rng=rng, context=own, label=label, start=start))
        if progress is not None:
            progress("sampling", rows.stop / wanted)
    return replace(pieces[0] if len(pieces) == 1 else concatenate(pieces), ticks=ticks)


def _context(
    release: "Release", file: Path | None, start: str | None, num_series: int, rng: "np.random.Generator"
) -> "tuple[np.ndarray | None, np.ndarray | None]":
    """Reads public context for the steps that are going to be drawn: one for all, or any stretch for each, and when."""
    from dataclasses import replace

    from understudy.data import read_context
    from understudy.data.io import read_context_windows

    if file is None:
        return None, None
    schema = release.schema
    if start is None and release.synthesizer.needs_context(schema):
        return read_context_windows(existing(file, "--context"), schema, num_series, rng)
    if start is not None:
        schema = replace(schema, time=replace(schema.time, start=start))
    return read_context(existing(file, "--context"), schema), None
