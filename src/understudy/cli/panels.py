"""The series that `evaluate` and `compare` put side by side: synthetic, real, and real ones kept out of the run."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from understudy.cli.console import Progress
from understudy.cli.holdouts import ALL, apart, read_list, require_unseen
from understudy.cli.options import RealTables
from understudy.cli.places import existing, existing_table, named
from understudy.cli.sample import sample_in_pieces
from understudy.data import Continuous, Integer, Panel, Schema, Table, read_panel, windows
from understudy.data.io.stores import TABLE_SUFFIXES
from understudy.data.table import table_of
from understudy.errors import InputError, ReleaseError
from understudy.privacy.certificate import file_hashes
from understudy.synthesizers import Release
from understudy.synthesizers.release import DATA_FILE


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Synthetic series, from a release of ours or from a table made elsewhere."""

    name: str
    panel: Panel
    release: Release | None

    @property
    def folders(self) -> list[Path]:
        """Where the release lies; none for a table made elsewhere."""
        return [self.release.source] if self.release is not None and self.release.source is not None else []

    def cut(self, panel: Panel) -> Panel:
        """Returns real series in windows where the release was made of windows."""
        steps = None if self.release is None else self.release.synthesizer.window_steps
        return panel if steps is None or steps == panel.num_steps else windows.cut(panel, steps, steps)


def read_candidate(target: Path, tables: RealTables, seed: int, progress: Progress, max_units: int = ALL) -> Candidate:
    """Returns the synthetic series that `target` names: a release directory, or a table that obeys `--schema`."""
    if existing(target, "RELEASE").is_dir() and not _is_table(target):
        return read_release(target, seed, progress, tables.context)
    if tables.schema is None:
        raise InputError("--schema: a table made elsewhere needs the schema that it and the real table obey.")
    panel = _read(_table(target, _lenient(Schema.load(tables.schema)), tables), max_units, seed)
    return Candidate(name=target.stem, panel=replace(panel, private=False, unit_ids=None), release=None)


def read_release(folder: Path, seed: int, progress: Progress, context: Path | None = None) -> Candidate:
    """Returns a release and its synthetic series; `context` is the public table that they follow, if any."""
    release = Release.load(folder)
    panel = _released(folder, release, seed, progress, context)
    return Candidate(name=folder.name, panel=panel, release=release)


def read_real(
    tables: RealTables, candidate: Candidate, *, max_units: int = ALL, seed: int = 0
) -> tuple[Panel, Panel | None]:
    """Returns the real series and those kept out of the run, as the schema has them.

    Of a table in partitions at most `max_units` units of either are read, drawn at random.

    Privacy: holds private data; whatever is computed from it is internal.
    """
    if tables.schema is None and candidate.release is not None and candidate.release.synthesizer.window_steps:
        raise InputError("--schema: this release was made of windows; name the schema of the real table.")
    schema = candidate.panel.schema if tables.schema is None else Schema.load(tables.schema)
    table = _table(existing_table(named(tables.real), "--real"), schema, tables)
    if tables.holdout is None:
        return _read(table, max_units, seed), None
    listed = read_list(existing(tables.holdout, "--holdout"), schema)
    if listed is None:
        return _read(table, max_units, seed), _read(_table(tables.holdout, schema, tables), max_units, seed)
    require_unseen(listed, candidate.folders, schema, strict=False)
    return apart(table, listed, ALL if table.in_memory else max_units, seed, "--holdout")


def _table(place: Path | str, schema: Schema, tables: RealTables) -> Table:
    return table_of(place, schema, context=tables.context, allow_few_units=True)


def _read(table: Table, max_units: int, seed: int) -> Panel:
    sampled = max_units < ALL and not table.in_memory
    return table.sample_units(max_units, np.random.default_rng(seed)) if sampled else table.read()


def _is_table(folder: Path) -> bool:
    """Returns whether a folder holds tables and nothing else; a release holds its certificate, too."""
    names = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
    return bool(names) and all(path.suffix.lower() in TABLE_SUFFIXES for path in names)


def _released(folder: Path, release: Release, seed: int, progress: Progress, context: Path | None) -> Panel:
    """Returns the series that the release ships, or as many as its population where it ships none.

    Series that were drawn for stretches of a public table carry their times, by which the table gives their context.
    """
    table = None
    if release.synthesizer.needs_context(release.schema):
        if context is None:
            raise InputError("--context: the public table that these series follow is expected.")
        table = existing(context, "--context")
    if DATA_FILE not in release.certificate.files:
        return sample_in_pieces(release, None, np.random.default_rng(seed), context=table, progress=progress)
    if file_hashes(folder).get(DATA_FILE) != release.certificate.files[DATA_FILE]:
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
