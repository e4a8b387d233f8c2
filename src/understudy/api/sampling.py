"""Any number of synthetic series from a release, sampled piece by piece so that working copies stay small."""

from dataclasses import replace
from typing import Any

import numpy as np

from understudy.data import Panel, Schema, concatenate, read_context
from understudy.data.io.context import read_context_windows
from understudy.synthesizers import Progress, Release

_PIECE_VALUES = 2_000_000


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
