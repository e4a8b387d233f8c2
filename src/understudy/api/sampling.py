"""Any number of synthetic series from a release, sampled piece by piece so that working copies stay small."""

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from understudy.data import Panel, Schema, concatenate, read_context, write_panel
from understudy.data.io.context import read_context_windows
from understudy.files import whole_folder
from understudy.synthesizers import Progress, Release
from understudy.workers import Workers, once_each

Seed = int | np.random.SeedSequence | None
_PIECE_VALUES, _FILE_VALUES = 2_000_000, 8_000_000  # of a piece in memory; of a file of a folder


def usual_number(schema: Schema) -> int:
    """Returns how many series are sampled unless a number is given: the population, as declared or bought."""
    return schema.population.size or 1


def sample_in_pieces(
    release: Release,
    num_series: int | None,
    rng: np.random.Generator,
    *,
    context: Any = None,
    label: str | None = None,
    start: str | None = None,
    progress: Progress | None = None,
) -> Panel:
    """Returns synthetic series (by default as many as the population), sampled piece by piece.

    Args:
        context: Table of public context. All series get that of the steps to sample; where the method needs one for
            each and no start is given, each gets any window of it, and says when that is.
    """
    schema, given, ticks = release.schema, None, None
    wanted = num_series or usual_number(schema)
    if context is not None and start is None and release.synthesizer.needs_context(schema):
        given, ticks = read_context_windows(context, schema, wanted, rng)
    elif context is not None:
        time = schema.time if start is None else replace(schema.time, start=start)
        given = read_context(context, replace(schema, time=time))
    size = max(1, _PIECE_VALUES // (schema.num_steps * schema.num_channels))
    pieces = []
    for begin in range(0, wanted, size):
        rows = slice(begin, min(begin + size, wanted))
        own = given[rows] if given is not None and given.ndim == 3 else given
        pieces.append(release.sample(rows.stop - begin, rng=rng, context=own, label=label, start=start))
        if progress is not None:
            progress("sampling", rows.stop / wanted)
    return replace(pieces[0] if len(pieces) == 1 else concatenate(pieces), ticks=ticks)


def write_file(
    release: Release,
    wanted: Mapping[str, Any],
    target: Path,
    num_series: int,
    seed: Seed,
    progress: Progress | None = None,
    first: int = 0,
) -> list[str]:
    """Samples series into one file, the first of them numbered `first`; returns what a reader should know of them.

    Args:
        wanted: What `sample_in_pieces` samples them for.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        made = sample_in_pieces(release, num_series, np.random.default_rng(seed), **wanted, progress=progress)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_panel(made, target, with_context=True, first_unit=first)
    return list(dict.fromkeys(str(warning.message) for warning in caught if warning.category is UserWarning))


def write_folder(
    release: Release,
    wanted: Mapping[str, Any],
    target: Path,
    num_series: int,
    seed: int | None,
    progress: Progress,
    *,
    series_per_file: int | None,
    workers: Workers,
) -> list[str]:
    """Samples series into files in a folder, which appears whole or not at all; returns what a reader should know.

    Every file has its own stream of the seed: the number of processes changes nothing.
    """
    assert release.source is not None
    size = series_per_file or max(1, _FILE_VALUES // (release.schema.num_steps * release.schema.num_channels))
    begins = range(0, num_series, size)
    seeds = np.random.SeedSequence(seed).spawn(len(begins))
    source, remarks = release.source.resolve(), []  # whole paths: other processes may be in another folder
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
