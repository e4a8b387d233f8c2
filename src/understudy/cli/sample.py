"""`understudy sample`: more series from a release, free of charge."""

import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from threadpoolctl import threadpool_limits

from understudy.api.places import existing, existing_table, outside, require_room, unused
from understudy.api.sampling import sample_in_pieces, usual_number
from understudy.cli.console import Output, Progress
from understudy.cli.options import ClusterAddress, ContextFile, Processes
from understudy.data import write_panel
from understudy.data.channels import require_fit
from understudy.errors import InputError
from understudy.files import whole_folder
from understudy.synthesizers import Release
from understudy.workers import Workers, once_each, workers_of

Seed = int | np.random.SeedSequence | None
_FILE_VALUES = 8_000_000  # of a file of a folder


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
    workers: Processes = 1,
    cluster: ClusterAddress = None,
) -> None:
    """Sample synthetic series. The release's certificate covers whatever is made from it."""
    folder = out.endswith("/")
    target = unused(outside(Path(out), existing(release, "RELEASE"), "--out"), "--out")
    if not folder and (series_per_file is not None or workers_of(workers, cluster) != 1):
        raise InputError("--workers, --cluster, --series-per-file: a folder to write is expected. End --out with '/'.")
    opened = Release.load(release)
    schema = opened.schema
    num_series = n or usual_number(schema)
    require_fit(schema.unit.dtype, num_series - 1, "unit.dtype")
    require_room(target, 8 * num_series * schema.num_steps * schema.num_channels)
    # Whole paths: processes that are at work already may be in another folder.
    table = None if context is None else existing_table(context, "--context")
    table = table.resolve() if isinstance(table, Path) else table
    wanted = {"context": table, "label": label, "start": start}
    with output.progress() as progress:
        if folder:
            size = series_per_file or max(1, _FILE_VALUES // (schema.num_steps * schema.num_channels))
            source = release.resolve()
            remarks = write_folder(
                source, wanted, target, num_series, seed, size, workers_of(workers, cluster), progress
            )
        else:
            remarks = write_file(opened, wanted, target, num_series, seed, progress)
    facts = {
        "folder" if folder else "file": str(target),
        "series": num_series,
        "status": opened.certificate.status,
        "remarks": remarks,
    }
    wrote = f"Wrote {num_series} synthetic series to {target}{'/' if folder else ''}."
    output.result(facts, wrote, *remarks, opened.certificate.sentence())


def write_file(
    release: Release,
    wanted: Mapping[str, Any],
    target: Path,
    num_series: int,
    seed: Seed,
    progress: Progress | None = None,
    first: int = 0,
) -> list[str]:
    """Samples series into one file; returns what a reader should know about them.

    Args:
        wanted: What `sample_in_pieces` samples them for.
        first: Number of the first series, for a file of several.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        made = sample_in_pieces(release, num_series, np.random.default_rng(seed), **wanted, progress=progress)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_panel(made, target, with_context=True, first_unit=first)
    return list(dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning))


def write_folder(
    source: Path,
    wanted: Mapping[str, Any],
    target: Path,
    num_series: int,
    seed: int | None,
    size: int,
    workers: Workers,
    progress: Progress,
) -> list[str]:
    """Samples series into files of `size` series in a folder, which appears whole or not at all; returns remarks.

    Every file has its own stream of the seed: the number of processes changes nothing.
    """
    begins = range(0, num_series, size)
    seeds = np.random.SeedSequence(seed).spawn(len(begins))
    remarks: list[str] = []
    with whole_folder(target) as draft:
        parts = [
            (draft.resolve() / f"part-{place:05d}.parquet", min(size, num_series - begin), own, begin)
            for place, (begin, own) in enumerate(zip(begins, seeds, strict=True))
        ]
        for done, found in enumerate(once_each(partial(_write_part, source, wanted), parts, workers)):
            remarks += found
            progress("sampling", (done + 1) / len(parts))
    return list(dict.fromkeys(remarks))


def _write_part(source: Path, wanted: Mapping[str, Any], part: tuple[Path, int, Seed, int]) -> list[str]:
    """Samples one file, with one thread: sums over several threads differ in their last bits."""
    file, num_series, seed, first = part
    with suppress(ImportError):  # loaded before the limit is set, which then holds for it, too
        import torch  # noqa: F401
    with threadpool_limits(limits=1):
        return write_file(Release.load(source), wanted, file, num_series, seed, first=first)
