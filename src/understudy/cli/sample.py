"""`understudy sample`: more series from a release, free of charge."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Output, Progress
from understudy.cli.options import ContextFile
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
_PIECE_VALUES = 2_000_000  # series are sampled in pieces so that working copies stay small


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What series are sampled from and for."""

    release: Path
    context: Path | None = None
    label: str | None = None
    start: str | None = None


def sample(
    output: Output,
    release: Annotated[Path, typer.Argument(help="Release directory to sample from.")],
    out: Annotated[
        str, typer.Option(help="File to write (.parquet, .csv, .arrow, .feather, .npz, .npy), or FOLDER/ of Parquet.")
    ],
    n: Annotated[int | None, typer.Option("--n", min=1, help="Number of series. Default: the population.")] = None,
    context: ContextFile = None,
    label: Annotated[str | None, typer.Option(help="Category of the label column to sample.")] = None,
    start: Annotated[str | None, typer.Option(help="Timestamp of the first step. Default: the schema's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed to sample the same series again. Costs no privacy.")] = None,
    series_per_file: Annotated[int | None, typer.Option(min=1, help="Most series in a file of FOLDER/.")] = None,
    workers: Annotated[
        str, typer.Option(help="Processes, or a Dask scheduler, that write the files of FOLDER/.")
    ] = "1",
) -> None:
    """Sample synthetic series. The release's certificate covers whatever is made from it."""
    from understudy.data.dtypes import require_fit
    from understudy.synthesizers import Release

    folder = out.endswith("/")
    target = unused(outside(Path(out), existing(release, "RELEASE"), "--out"), "--out")
    if not folder and (series_per_file is not None or workers != "1"):
        raise InputError("--workers, --series-per-file: a folder to write is expected. End --out with '/'.")
    opened = Release.load(release)
    schema = opened.schema
    num_series = n or schema.population.size or 1
    require_fit(schema.unit.dtype, num_series - 1, "unit.dtype")
    require_room(target, 8 * num_series * schema.num_steps * schema.num_channels)
    # Whole paths: processes that are at work already may be in another folder.
    context = None if context is None else context.resolve()
    wanted = Wanted(release=release.resolve(), context=context, label=label, start=start)
    with output.progress() as progress:
        if folder:
            size = series_per_file or max(1, _FILE_VALUES // (schema.num_steps * schema.num_channels))
            remarks = write_folder(wanted, target, num_series, seed, size, workers_of(workers), progress)
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


def write_file(
    wanted: Wanted, release: "Release", target: Path, num_series: int, seed: "Seed", progress: Progress, first: int = 0
) -> list[str]:
    """Samples series into one file; returns what a reader should know about them.

    Args:
        first: Number of the first series, for a file of several.
    """
    import numpy as np

    from understudy.data import write_panel

    rng = np.random.default_rng(seed)
    given, ticks = _context(release, wanted, num_series, rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        made = sample_in_pieces(
            release, num_series, rng, context=given, ticks=ticks, label=wanted.label, start=wanted.start,
            progress=progress,
        )  # fmt: skip
        target.parent.mkdir(parents=True, exist_ok=True)
        write_panel(made, target, with_context=True, first_unit=first)
    return list(dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning))


def write_folder(
    wanted: Wanted, target: Path, num_series: int, seed: int | None, size: int, workers: Workers, progress: Progress
) -> list[str]:
    """Samples series into files of `size` series in a folder, which appears whole or not at all; returns remarks.

    Every file has its own stream of the seed: the number of processes changes nothing.
    """
    import joblib
    import numpy as np

    begins = range(0, num_series, size)
    seeds = np.random.SeedSequence(seed).spawn(len(begins))
    remarks: list[str] = []
    with whole_folder(target) as draft:
        parts = [
            (wanted, draft.resolve() / f"part-{place:05d}.parquet", min(size, num_series - begin), own, begin)
            for place, (begin, own) in enumerate(zip(begins, seeds, strict=True))
        ]
        with pool(workers) as processes:
            here = workers == 1  # no process has to be started
            made = starmap(_write_part, parts) if here else processes(starmap(joblib.delayed(_write_part), parts))
            for done, found in enumerate(made):
                remarks += found
                progress("sampling", (done + 1) / len(parts))
    return list(dict.fromkeys(remarks))


def _write_part(wanted: Wanted, file: Path, num_series: int, seed: "Seed", first: int) -> list[str]:
    """Samples one file, with one thread: sums over several threads differ in their last bits."""
    from threadpoolctl import threadpool_limits

    from understudy.synthesizers import Release

    with _one_thread_of_torch(), threadpool_limits(limits=1):
        release = Release.load(wanted.release)
        return write_file(wanted, release, file, num_series, seed, lambda stage, share: None, first)


@contextmanager
def _one_thread_of_torch() -> Iterator[None]:
    try:
        import torch
    except ImportError:  # then no method needs it
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
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
    """Returns synthetic series (by default as many as the population), sampled piece by piece.

    Args:
        ticks: When the steps of each series are, where each follows its own window of context.
    """
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
    release: "Release", wanted: Wanted, num_series: int, rng: "np.random.Generator"
) -> "tuple[np.ndarray | None, np.ndarray | None]":
    """Reads public context for the steps to sample: one for all, or any window for each, and when it is."""
    from understudy.data import read_context
    from understudy.data.io import read_context_windows

    if wanted.context is None:
        return None, None
    schema, file = release.schema, existing(wanted.context, "--context")
    if wanted.start is None and release.synthesizer.needs_context(schema):
        return read_context_windows(file, schema, num_series, rng)
    if wanted.start is not None:
        schema = replace(schema, time=replace(schema.time, start=wanted.start))
    return read_context(file, schema), None
