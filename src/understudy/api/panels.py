"""The series that a release is judged by: synthetic ones, real ones, and real ones that its run has not seen."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.api.holdouts import list_beside, listed, read_list, some, with_names
from understudy.api.places import existing, existing_table
from understudy.api.sampling import sample_in_pieces
from understudy.data import Continuous, Integer, Panel, Schema, Table, read_panel
from understudy.data.io.stores import TABLE_SUFFIXES
from understudy.data.table import table_of
from understudy.errors import InputError, ReleaseError
from understudy.planning.choices import contract_of
from understudy.privacy.certificate import file_hashes
from understudy.synthesizers import Progress, Release
from understudy.synthesizers.release import DATA_FILE, usual_sample

ALL = sys.maxsize  # units


@dataclass(frozen=True, kw_only=True)
class RealTables:
    """Where the real series are that synthetic ones are compared with.

    Attributes:
        real: The real table: a frame, a file, a folder of tables or a URL.
        holdout: Real series that no run has seen: a table, or the list that a run with a holdout wrote.
        schema: Schema of the real table, or its file; None takes the release's.
        context: Table of public context by time.
    """

    real: Any
    holdout: Any = None
    schema: Any = None
    context: Any = None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Synthetic series, from a release of ours or from a table made elsewhere."""

    name: str
    panel: Panel
    release: Release | None


def read_candidate(target: Any, tables: RealTables, seed: int, progress: Progress, max_units: int = ALL) -> Candidate:
    """Returns the synthetic series of `target`: a release, its directory, or a table that obeys `tables.schema`."""
    if isinstance(target, Panel):
        return Candidate(name="table", panel=replace(target, private=False, unit_ids=None), release=None)
    if isinstance(target, str | Path):
        target = existing(Path(target), "release")
    if isinstance(target, Release) or (isinstance(target, Path) and target.is_dir() and not _is_table(target)):
        return read_release(target, seed, progress, tables.context)
    if tables.schema is None:
        raise InputError("schema: a table made elsewhere needs the schema that it and the real table obey.")
    panel = _read(_table(target, _lenient(contract_of(tables.schema)[0]), tables), max_units, seed)
    name = target.stem if isinstance(target, Path) else "table"
    return Candidate(name=name, panel=replace(panel, private=False, unit_ids=None), release=None)


def read_release(target: Release | Path, seed: int, progress: Progress, context: Any = None) -> Candidate:
    """Returns a release and its synthetic series; `context` is the public table that they follow, if any."""
    release = target if isinstance(target, Release) else Release.load(target)
    name = "release" if release.source is None else release.source.name
    return Candidate(name=name, panel=_released(release, seed, progress, context), release=release)


def read_real(
    tables: RealTables, candidate: Candidate, *, max_units: int = ALL, seed: int = 0
) -> tuple[Panel, Panel | None]:
    """Returns the real series and those kept out of the run, as the schema has them.

    Of a table in partitions at most `max_units` units of either are read, drawn at random.

    Privacy: holds private data; whatever is computed from it is internal.
    """
    if tables.schema is None and candidate.release is not None and candidate.release.synthesizer.window_steps:
        raise InputError("schema: this release was made of windows; name the schema of the real table.")
    schema = candidate.panel.schema if tables.schema is None else contract_of(tables.schema)[0]
    table = _table(existing_table(tables.real, "real"), schema, tables)
    if tables.holdout is None:
        return _read(table, max_units, seed), None
    known = existing_table(tables.holdout, "holdout")
    units = read_list(known, schema) if isinstance(known, Path) else None
    if units is None:
        return _read(table, max_units, seed), _read(_table(known, schema, tables), max_units, seed)
    require_unseen(units, [candidate], schema, strict=False)
    table, rng = with_names(table), np.random.default_rng(seed)
    others, held_out = (
        table.sample_units(
            ALL if table.in_memory else max_units,
            rng,
            among=lambda panel: np.flatnonzero(listed(panel, units) == wanted),  # noqa: B023
        )
        for wanted in (False, True)
    )
    return others, some(held_out, "holdout")


def _table(source: Any, schema: Schema, tables: RealTables) -> Table:
    if isinstance(source, Panel):
        return Table.of(source)
    if isinstance(source, Table):
        return source
    return table_of(source, schema, context=tables.context, allow_few_units=True)


def _read(table: Table, max_units: int, seed: int) -> Panel:
    sampled = max_units < ALL and not table.in_memory
    return table.sample_units(max_units, np.random.default_rng(seed)) if sampled else table.read()


def _is_table(folder: Path) -> bool:
    """Returns whether a folder holds tables and nothing else; a release holds its certificate, too."""
    names = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
    return bool(names) and all(path.suffix.lower() in TABLE_SUFFIXES for path in names)


def _released(release: Release, seed: int, progress: Progress, context: Any) -> Panel:
    """Returns the series that the release ships, or as many as its population where it ships none.

    Series that were drawn for stretches of a public table carry their times, by which the table gives their context.
    """
    table, folder, files = None, release.source, release.certificate.files
    if release.synthesizer.needs_context(release.schema):
        if context is None:
            raise InputError("context: the public table that these series follow is expected.")
        table = existing_table(context, "context")
    if folder is None:
        return usual_sample(release, seed)
    if DATA_FILE not in files:
        return sample_in_pieces(release, None, np.random.default_rng(seed), context=table, progress=progress)
    if file_hashes(folder).get(DATA_FILE) != files[DATA_FILE]:
        raise ReleaseError(
            f"'{folder}' is damaged: {DATA_FILE} is not the file its certificate names. Download the release again."
        )
    known = release.public_context if table is None else table
    panel = read_panel(folder / DATA_FILE, release.schema, context=known, allow_few_units=True)
    return replace(panel, private=False, unit_ids=None)


def _lenient(schema: Schema) -> Schema:
    """Returns the schema that takes values beyond a bound as being at it: here a defect to judge, not to refuse."""
    channels = tuple(
        replace(channel, out_of_bounds="clip") if isinstance(channel, Continuous | Integer) else channel
        for channel in schema.channels
    )
    return replace(schema, channels=channels)


def require_unseen(listed: set[str], candidates: Sequence[Candidate], schema: Schema, *, strict: bool) -> None:
    """Refuses units that one of the releases was trained on.

    Args:
        strict: Whether a release without its list in the same folder is refused, too.
    """
    for release in filter(None, (one.release.source for one in candidates if one.release is not None)):
        own = list_beside(release)
        known = read_list(own, schema) if own.exists() else None
        if known is None and strict:
            raise InputError(
                f"holdout: which units trained '{release.name}' is not known: its list '{own.name}' is expected "
                "in the same folder and is not there. Put it back under that name; a release made without a holdout "
                "has seen all units: make it again with `synth --holdout-list`."
            )
        if known is not None and not listed <= known:
            raise InputError(
                f"holdout: units that no run has seen are expected, and some of the listed ones trained "
                f"'{release.name}'. Make the releases with one list: `synth --holdout-list FILE` takes the list of an "
                "earlier release."
            )
