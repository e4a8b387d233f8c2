"""Units that are kept out of a run: drawn or listed, checked before anything is charged, their list kept private."""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.api.arguments import existing, unused, write
from understudy.data import Panel, Schema, Table
from understudy.data.io.read import MIN_UNITS
from understudy.data.panel import concatenate
from understudy.errors import DataError, InputError
from understudy.evaluation.panels import MIN_SERIES


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


@dataclass(frozen=True, kw_only=True)
class Holdout:
    """Which units a run does not see: a share, drawn at random, or those listed; and where their list is written.

    Privacy: identifiers are private and are never printed.
    """

    share: float | None = None
    units: set[str] | None = field(default=None, repr=False)
    file: Path | None = None

    @classmethod
    def of(cls, given: Any, listed: Any, schema: Schema, release: Path | None) -> "Holdout":
        """Returns what `holdout` and `holdout_list` ask for; the list is written next to the release by default."""
        if given is None and listed is None:
            return cls()
        beside = None if release is None else list_beside(release)
        drawn = isinstance(given, int | float) and not isinstance(given, bool)
        file = Path(listed) if drawn and listed is not None else beside
        if file is not None:
            unused(file, "holdout_list", release=release)
        if not drawn:
            return cls(units=_units_of(listed if given is None else given, schema), file=file)
        if file is None:
            raise InputError(
                "holdout: a place for the list of the units kept out is expected, because they are drawn at random. "
                "Give save_to='release', next to which it is written, or holdout_list='kept-out.csv'."
            )
        return cls(share=given, file=file)


def _units_of(given: Any, schema: Schema) -> set[str]:
    """Returns the identifiers in a list or its file."""
    if not isinstance(given, str | Path):
        return {str(identifier) for identifier in given}
    found = read_list(existing(Path(given), "holdout_list"), schema)
    if found is None:
        raise InputError(
            f"holdout_list: a list with the single column '{schema.unit.column or 'series'}' is expected, such as "
            f"OUT.holdout.csv of an earlier run, and '{given}' is none. Name such a list."
        )
    return found


@contextmanager
def list_written(held_out: Panel | None, target: Path | None) -> Iterator[None]:
    """Writes the list of held-out units, for its owner only; removes it again if the block fails.

    Privacy: the list holds identifiers. It is private, lies outside the release and is never printed.
    """
    if held_out is None or target is None:
        yield
        return
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([held_out.schema.unit.column or "series"])
    rows.writerows([identifier] for identifier in held_out.unit_ids)  # type: ignore[union-attr]
    write(target, text.getvalue(), private=True)
    try:
        yield
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def split_table(table: Table, wanted: Holdout, rng: np.random.Generator) -> tuple[Table, Panel | None]:
    """Returns the units to learn from, and those kept out: drawn, each on its own coin, or listed.

    Of a table in partitions only the units kept out are held in memory.

    Privacy: a list is fixed before the table is read, so neighbouring tables still differ by one unit.
    """
    share, units = wanted.share, wanted.units
    if share is None and units is None:
        return Table.of(replace(table.read(), unit_ids=None)) if table.in_memory else table, None
    named = with_names(table)
    if share is None and named is not table:
        raise InputError(
            "holdout_list: units with identifiers are expected, got a table that has none. Were its rows "
            "numbered, one unit more or less would move others into the list or out of it. Name unit.column in "
            "the schema, or draw units with `holdout`."
        )
    kept_out = [
        panel.split(share, rng)[1]
        if share is not None
        else panel.take_units(np.flatnonzero(listed(panel, units or set())))
        for panel in named.panels()
    ]
    identifiers = [str(one) for panel in kept_out if panel.unit_ids is not None for one in panel.unit_ids.tolist()]
    held_out = some(replace(concatenate(kept_out), unit_ids=np.array(identifiers)), "holdout_list")
    train = named.without(frozenset(identifiers))
    return Table.of(train.read()) if table.in_memory else train, held_out


def with_names(table: Table) -> Table:
    """Returns a table whose units have identifiers; units of a table in memory that has none are numbered."""
    if table.in_memory:
        panel = table.read()
        return table if panel.unit_ids is not None else Table.of(replace(panel, unit_ids=np.arange(panel.num_units)))
    if table.schema.unit.column is None:
        raise InputError("holdout: units of a table in partitions need unit.column in the schema. Declare it.")
    return table


def listed(panel: Panel, units: set[str]) -> np.ndarray:
    """Returns which units of a panel are among those listed."""
    assert panel.unit_ids is not None
    return np.isin([str(identifier) for identifier in panel.unit_ids], list(units))


def some(held_out: Panel, argument: str) -> Panel:
    """Returns the units kept out; refuses a list of another table."""
    if not held_out.num_units:
        raise InputError(f"{argument}: none of the listed units is in the real table. Name the list of this table.")
    return held_out


def check_share(share: float | None, schema: Schema, *, allow_few_units: bool) -> None:
    """Refuses a share that leaves too few units on either side, from the declared population alone."""
    if share is not None and not 0 < share < 1:
        raise InputError(f"holdout: a share between 0 and 1 is expected, got {share:g}. Write holdout=0.2.")
    population = schema.population.size
    if share is None or population is None or schema.unit.kind != "entity":
        return
    sides = (
        (1 - share, 0 if allow_few_units else MIN_UNITS, "remain", "Keep fewer units out, or give `allow_few_units`"),
        (share, MIN_SERIES, "be kept out, because `evaluate` refuses fewer", "Keep more units out, or omit `holdout`"),
    )
    for part, least, what, otherwise in sides:
        if population * part < least:
            raise InputError(
                f"holdout: at least {least} units are expected to {what}, and {share:g} of the declared population "
                f"of {population:,} gives fewer. Nothing was charged. {otherwise}."
            )


def check_split(train: Table, held_out: Panel | None, *, allow_few_units: bool) -> None:
    """Refuses a split with too few units on either side, before the charge. Says which side, never how many.

    Privacy: as `check_units`: an error for the holder of the table, before anything is learned or released.
    """
    if held_out is None:
        return
    unit = held_out.schema.unit
    if train.num_units < MIN_UNITS and not allow_few_units:
        raise DataError(
            f"At least {MIN_UNITS} units are expected to learn from, and fewer remain after others were kept out. "
            "Nothing was charged. Keep fewer units out, or give `allow_few_units` with a reason.",
            column=unit.column,
        )
    # Units as `evaluate` counts them: every series its own where units are not entities.
    judged = held_out.num_units if unit.kind == "entity" else held_out.num_series
    if judged < MIN_SERIES:
        raise DataError(
            f"At least {MIN_SERIES} kept-out units are expected, because `evaluate` refuses fewer, and fewer were kept "
            "out. Nothing was charged. Keep more units out, or none.",
            column=unit.column,
        )
