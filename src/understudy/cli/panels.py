"""The series that `evaluate` and `compare` put side by side: synthetic, real, and real ones kept out of the run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.cli.console import Progress
from understudy.cli.holdouts import apart, read_list, require_unseen, sample_apart
from understudy.cli.places import existing, existing_table
from understudy.errors import InputError, ReleaseError

if TYPE_CHECKING:
    from understudy.data import Panel, Schema
    from understudy.synthesizers import Release


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Synthetic series, from a release of ours or from a table made elsewhere.

    Attributes:
        folder: Where the release lies; None for a table made elsewhere.
    """

    name: str
    panel: "Panel"
    release: "Release | None"
    folder: Path | None = None


@dataclass(frozen=True, kw_only=True)
class RealTables:
    """Where the real series are.

    Attributes:
        holdout: A table of series that the run never saw, or the list of kept-out units that `synth` wrote.
        schema: Schema of the real table; None takes the release's.
        max_units: Most units to read of a table in partitions, drawn at random; None reads all.
    """

    real: Path | str
    holdout: Path | None = None
    schema: Path | None = None
    context: Path | None = None
    max_units: int | None = None
    seed: int = 0

    def remark(self) -> str | None:
        """Says that a table in partitions was sampled; names the number that was asked for, not what is there."""
        from understudy.data.table import in_partitions

        if self.max_units is None or not in_partitions(self.real):
            return None
        return f"The real table is in partitions: at most {self.max_units:,} of its units, drawn at random, were read."


def read_candidate(target: Path, tables: RealTables, seed: int, progress: Progress) -> Candidate:
    """Returns the synthetic series that `target` names: a release directory, or a table that obeys `--schema`."""
    from understudy.data import Schema

    if existing(target, "RELEASE").is_dir() and not _is_table(target):
        return read_release(target, seed, progress, tables.context)
    if tables.schema is None:
        raise InputError("--schema: a table made elsewhere needs the schema that it and the real table obey.")
    schema = _lenient(Schema.load(tables.schema))
    panel = _read(target, schema, tables)
    return Candidate(name=target.stem, panel=replace(panel, private=False, unit_ids=None), release=None)


def read_release(folder: Path, seed: int, progress: Progress, context: Path | None = None) -> Candidate:
    """Returns a release and its synthetic series; `context` is the public table that they follow, if any."""
    from understudy.synthesizers import Release

    release = Release.load(folder)
    panel = _released(folder, release, seed, progress, context)
    return Candidate(name=folder.name, panel=panel, release=release, folder=folder)


def read_real(tables: RealTables, candidate: Candidate) -> "tuple[Panel, Panel | None]":
    """Returns the real series and those kept out of the run, cut into windows where the release was made of windows.

    Privacy: holds private data; whatever is computed from it is internal.
    """
    real, holdout = read_real_uncut(tables, candidate)
    return _cut(real, candidate), None if holdout is None else _cut(holdout, candidate)


def read_real_uncut(tables: RealTables, candidate: Candidate) -> "tuple[Panel, Panel | None]":
    """Returns the real series and those kept out of the run as the schema has them.

    Privacy: holds private data; whatever is computed from it is internal.
    """
    from understudy.data import Schema
    from understudy.data.table import in_partitions, table_of

    if tables.schema is None and candidate.release is not None and candidate.release.synthesizer.window_steps:
        raise InputError("--schema: this release was made of windows; name the schema of the real table.")
    schema = candidate.panel.schema if tables.schema is None else Schema.load(tables.schema)
    place = existing_table(tables.real, "--real")
    if tables.holdout is None:
        return _read(place, schema, tables), None
    listed = read_list(existing(tables.holdout, "--holdout"), schema)
    if listed is None:
        return _read(place, schema, tables), _read(tables.holdout, schema, tables)
    require_unseen(listed, [candidate.folder] if candidate.folder else [], schema, strict=False)
    if tables.max_units is None or not in_partitions(place):
        return apart(_read(place, schema, tables), listed, "--holdout")
    table = table_of(place, schema, context=tables.context, allow_few_units=True)
    return sample_apart(table, listed, tables.max_units, tables.seed, "--holdout")


def _read(place: Path | str, schema: "Schema", tables: RealTables) -> "Panel":
    """Returns the series of a table, of one in partitions at most as many units as are wanted."""
    import numpy as np

    from understudy.data.table import in_partitions, table_of

    table = table_of(place, schema, context=tables.context, allow_few_units=True)
    if tables.max_units is None or not in_partitions(place):
        return table.read()
    return table.sample_units(tables.max_units, np.random.default_rng(tables.seed))


def _is_table(folder: Path) -> bool:
    """Returns whether a folder holds tables and nothing else; a release holds its certificate, too."""
    from understudy.data.io.stores import TABLE_SUFFIXES

    names = [path for path in folder.iterdir() if not path.name.startswith((".", "_"))]
    return bool(names) and all(path.suffix.lower() in TABLE_SUFFIXES for path in names)


def _released(folder: Path, release: "Release", seed: int, progress: Progress, context: Path | None) -> "Panel":
    """Returns the series that the release ships, or as many as its population where it ships none.

    Series that were drawn for stretches of a public table carry their times, by which the table gives their context.
    """
    import numpy as np

    from understudy.cli.sample import sample_in_pieces
    from understudy.data import read_panel
    from understudy.data.io import read_context_windows
    from understudy.privacy.certificate import file_hashes
    from understudy.synthesizers.release import DATA_FILE

    rng, table = np.random.default_rng(seed), None
    if release.synthesizer.needs_context(release.schema):
        if context is None:
            raise InputError("--context: the public table that these series follow is expected.")
        table = existing(context, "--context")
    if DATA_FILE not in release.certificate.files:
        met = (
            (None, None)
            if table is None
            else read_context_windows(table, release.schema, release.schema.population.size or 1, rng)
        )
        return sample_in_pieces(release, None, rng, context=met[0], ticks=met[1], progress=progress)
    if file_hashes(folder).get(DATA_FILE) != release.certificate.files[DATA_FILE]:
        raise ReleaseError(
            f"'{folder}' is damaged: {DATA_FILE} is not the file its certificate names. Download the release again."
        )
    known = release.public_context if table is None else table
    panel = read_panel(folder / DATA_FILE, release.schema, context=known, allow_few_units=True)
    return replace(panel, private=False, unit_ids=None)


def _lenient(schema: "Schema") -> "Schema":
    """Returns the schema that takes values beyond a bound as being at it: here a defect to judge, not to refuse."""
    from understudy.data import Continuous, Integer

    channels = tuple(
        replace(channel, out_of_bounds="clip") if isinstance(channel, Continuous | Integer) else channel
        for channel in schema.channels
    )
    return replace(schema, channels=channels)


def _cut(panel: "Panel", candidate: Candidate) -> "Panel":
    from understudy.data import windows

    steps = None if candidate.release is None else candidate.release.synthesizer.window_steps
    if steps is None or steps == panel.num_steps:
        return panel
    return windows.cut(panel, steps, steps)
