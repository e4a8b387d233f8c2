"""Units that are kept out of a run: drawn or listed, checked before anything is charged, and unseen when judged."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from understudy.data import Panel, Schema, Table
from understudy.data.io.checks import MIN_UNITS
from understudy.data.panel import concatenate
from understudy.errors import DataError, InputError
from understudy.evaluate.panels import MIN_SERIES

ALL = sys.maxsize  # units


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


def apart(table: Table, listed: set[str], number: int, seed: int, option: str) -> tuple[Panel, Panel]:
    """Returns at most `number` units that are not listed, and at most as many that are, drawn at random."""
    table, rng = named_units(table, option), np.random.default_rng(seed)
    others, held_out = (
        table.sample_units(number, rng, among=lambda panel: np.flatnonzero(_listed(panel, listed) == wanted))  # noqa: B023
        for wanted in (False, True)
    )
    return others, _some(held_out, option)


def named_units(table: Table, option: str) -> Table:
    """Returns a table whose units have identifiers; units of a table in memory that has none are numbered."""
    if not table.in_memory:
        if table.schema.unit.column is None:
            raise InputError(f"{option}: units of a table in partitions need unit.column in the schema. Declare it.")
        return table
    panel = table.read()
    return table if panel.unit_ids is not None else Table.of(replace(panel, unit_ids=np.arange(panel.num_units)))


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
    named, units = named_units(table, "--holdout"), set[str]()
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


def require_unseen(listed: set[str], releases: Sequence[Path], schema: Schema, *, strict: bool) -> None:
    """Refuses units that one of the releases was trained on.

    Args:
        strict: Whether a release without its list in the same folder is refused, too.
    """
    for release in releases:
        own = list_beside(release)
        known = read_list(own, schema) if own.exists() else None
        if known is None and strict:
            raise InputError(
                f"--holdout: which units trained '{release.name}' is not known: its list '{own.name}' is expected "
                "beside it and is not there. Put it back under that name; a release made without a holdout has seen "
                "all units: make it again with `synth --holdout-list`."
            )
        if known is not None and not listed <= known:
            raise InputError(
                f"--holdout: units that no run has seen are expected, and some of the listed ones trained "
                f"'{release.name}'. Make the releases with one list: `synth --holdout-list FILE` takes the list of an "
                "earlier release."
            )
