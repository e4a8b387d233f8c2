"""The series that commands read: synthetic ones, real ones, and units that are kept out of a run.

Units are drawn or listed, checked before anything is charged, and unseen when a release is judged.
"""

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from understudy.cli.console import Progress
from understudy.cli.options import RealTables
from understudy.cli.places import existing, existing_table, named
from understudy.cli.sample import sample_in_pieces
from understudy.data import Continuous, Integer, Panel, Schema, Table, read_panel, windows
from understudy.data.io.checks import MIN_UNITS
from understudy.data.io.stores import TABLE_SUFFIXES
from understudy.data.panel import concatenate
from understudy.data.table import table_of
from understudy.errors import DataError, InputError, ReleaseError
from understudy.evaluation.panels import MIN_SERIES
from understudy.privacy.certificate import file_hashes
from understudy.synthesizers import Release
from understudy.synthesizers.release import DATA_FILE

ALL = sys.maxsize  # units


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Synthetic series, from a release of ours or from a table made elsewhere."""

    name: str
    panel: Panel
    release: Release | None

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
    require_unseen(listed, [candidate], schema, strict=False)
    table, rng = _with_names(table), np.random.default_rng(seed)
    others, held_out = (
        table.sample_units(
            ALL if table.in_memory else max_units,
            rng,
            among=lambda panel: np.flatnonzero(_listed(panel, listed) == wanted),  # noqa: B023
        )
        for wanted in (False, True)
    )
    return others, _some(held_out, "--holdout")


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


def list_beside(release: Path) -> Path:
    """Returns where the list of the units that a release's run did not see lies."""
    return release.with_name(f"{release.name}.holdout.csv")


def read_list(file: Path, schema: Schema) -> set[str] | None:
    """Returns the units of a list written by `synth`; None if the file is a table of series.

    Privacy: private. Identifiers are never printed.
    """
    if file.suffix != ".csv":
        return None
    with file.open(encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        header = next(rows, [])
        return {row[0] for row in rows if row} if header == [schema.unit.column or "series"] else None


def _with_names(table: Table) -> Table:
    """Returns a table whose units have identifiers; units of a table in memory that has none are numbered."""
    if table.in_memory:
        panel = table.read()
        return table if panel.unit_ids is not None else Table.of(replace(panel, unit_ids=np.arange(panel.num_units)))
    if table.schema.unit.column is None:
        raise InputError("--holdout: units of a table in partitions need unit.column in the schema. Declare it.")
    return table


def _listed(panel: Panel, listed: set[str]) -> np.ndarray:
    assert panel.unit_ids is not None
    return np.isin([str(identifier) for identifier in panel.unit_ids], list(listed))


def _some(held_out: Panel, option: str) -> Panel:
    if not held_out.num_units:
        raise InputError(f"{option}: none of the listed units is in the real table. Name the list of this table.")
    return held_out


def split_table(
    table: Table, share: float | None, listed: Path | None, rng: np.random.Generator
) -> tuple[Table, Panel | None]:
    """Returns the units to learn from, and those kept out: drawn, each on its own coin, or listed.

    Of a table in partitions only the units kept out are held in memory.

    Privacy: a list is fixed before the table is read, so neighbouring tables still differ by one unit.
    """
    if share is None and listed is None:
        return Table.of(replace(table.read(), unit_ids=None)) if table.in_memory else table, None
    named, units = _with_names(table), set[str]()
    if share is None and listed is not None:
        if named is not table:
            raise InputError(
                "--holdout-list: units with identifiers are expected, got a table that has none. Were its rows "
                "numbered, one unit more or less would move others into the list or out of it. Name unit.column in "
                "the schema, or draw units with --holdout."
            )
        found = read_list(listed, table.schema)
        if found is None:
            raise InputError(
                f"--holdout-list: a list with the single column '{table.schema.unit.column or 'series'}' is expected, "
                f"such as OUT.holdout.csv of an earlier run, and '{listed}' is none. Name such a list."
            )
        units = found
    kept_out = [
        panel.take_units(np.flatnonzero(_listed(panel, units))) if share is None else panel.split(share, rng)[1]
        for panel in named.panels()
    ]
    identifiers = [str(one) for panel in kept_out if panel.unit_ids is not None for one in panel.unit_ids.tolist()]
    held_out = _some(replace(concatenate(kept_out), unit_ids=np.array(identifiers)), "--holdout-list")
    train = named.without(frozenset(identifiers))
    return Table.of(train.read()) if table.in_memory else train, held_out


def check_share(share: float | None, schema: Schema, *, allow_few_units: bool) -> None:
    """Refuses a share that leaves too few units on either side, from the declared population alone."""
    population = schema.population.size
    if share is None or population is None or schema.unit.kind != "entity":
        return
    for part, least, what, otherwise in (
        (1 - share, 0 if allow_few_units else MIN_UNITS, "remain", "Keep fewer units out, or give --allow-few-units"),
        (share, MIN_SERIES, "be kept out, because `evaluate` refuses fewer", "Keep more units out, or omit --holdout"),
    ):
        if population * part < least:
            raise InputError(
                f"--holdout: at least {least} units are expected to {what}, and {share:g} of the declared population "
                f"of {population:,} gives fewer. Nothing was charged. {otherwise}."
            )


def check_split(train: Table, held_out: Panel | None, schema: Schema, *, allow_few_units: bool) -> None:
    """Refuses a split with too few units on either side, before the charge. Says which side, never how many.

    Privacy: as `check_units`: an error for the holder of the table, before anything is learned or released.
    """
    if held_out is None:
        return
    if train.num_units < MIN_UNITS and not allow_few_units:
        raise DataError(
            f"At least {MIN_UNITS} units are expected to learn from, and fewer remain after others were kept out. "
            "Nothing was charged. Keep fewer units out, or give --allow-few-units with a reason.",
            column=schema.unit.column,
        )
    # Units as `evaluate` counts them: every series its own where units are not entities.
    judged = held_out.num_units if held_out.schema.unit.kind == "entity" else held_out.num_series
    if judged < MIN_SERIES:
        raise DataError(
            f"At least {MIN_SERIES} kept-out units are expected, because `evaluate` refuses fewer, and fewer were kept "
            "out. Nothing was charged. Keep more units out, or none.",
            column=schema.unit.column,
        )


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
                f"--holdout: which units trained '{release.name}' is not known: its list '{own.name}' is expected "
                "in the same folder and is not there. Put it back under that name; a release made without a holdout "
                "has seen all units: make it again with `synth --holdout-list`."
            )
        if known is not None and not listed <= known:
            raise InputError(
                f"--holdout: units that no run has seen are expected, and some of the listed ones trained "
                f"'{release.name}'. Make the releases with one list: `synth --holdout-list FILE` takes the list of an "
                "earlier release."
            )
