"""`understudy sample`: more series from a release, free of charge."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Json, Output, Progress, Quiet
from understudy.cli.places import existing, outside, require_room, unused

if TYPE_CHECKING:
    import numpy as np

    from understudy.data import Panel
    from understudy.synthesizers import Release

_PIECE_VALUES = 2_000_000  # series are drawn in pieces so that working copies stay small


def sample(
    release: Annotated[Path, typer.Argument(help="A release directory.")],
    out: Annotated[Path, typer.Option(help="File to write: .parquet, .csv, .arrow, .feather, .npz or .npy.")],
    n: Annotated[int | None, typer.Option("--n", min=1, help="How many series. Default: the population.")] = None,
    context: Annotated[Path | None, typer.Option(help="Table of public context to respond to.")] = None,
    label: Annotated[str | None, typer.Option(help="Draw one category of the label column only.")] = None,
    start: Annotated[str | None, typer.Option(help="Timestamp of the first step, if not the schema's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Draw the same series again. Costs no privacy.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw synthetic series. Whatever is made from a release is covered by its certificate."""
    import numpy as np

    from understudy.data import write_panel
    from understudy.data.dtypes import require_fit
    from understudy.synthesizers import Release

    output = Output(json=json, quiet=quiet)
    target = unused(outside(out, existing(release, "RELEASE"), "--out"), "--out")
    opened = Release.load(release)
    schema = opened.schema
    num_series = n or schema.population.size or 1
    rng = np.random.default_rng(seed)
    given, ticks = _context(opened, context, start, num_series, rng)
    require_fit(schema.unit.dtype, num_series - 1, "unit.dtype")
    require_room(target, 8 * num_series * schema.num_steps * schema.num_channels)
    with output.progress() as progress, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        drawn = draw(opened, n, rng, context=given, ticks=ticks, label=label, start=start, progress=progress)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_panel(drawn, target, with_context=True)
    remarks = list(dict.fromkeys(str(warning.message) for warning in told if warning.category is UserWarning))
    facts = {
        "file": str(target),
        "series": drawn.num_series,
        "status": opened.certificate.status,
        "remarks": remarks,
    }
    wrote = f"Wrote {drawn.num_series} synthetic series to {target}."
    output.result(facts, wrote, *remarks, opened.certificate.sentence())


def draw(
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
