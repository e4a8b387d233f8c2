"""Tables that need not fit in memory: a list of partitions, each a whole number of units."""

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64, UInt64

from understudy.data.given import require_argument
from understudy.data.io.arrow import encode
from understudy.data.io.checks import (
    check_enough_units,
    check_lengths,
    check_observed,
    check_series_per_unit,
    settle_static,
    settle_values,
)
from understudy.data.io.chunks import REPARTITION, chunk_rows, grids, unit_column, whole_grid, whole_units
from understudy.data.io.context import (
    ContextRows,
    align_context,
    context_rows,
    is_array_file,
    merge_context,
    read_context,
)
from understudy.data.io.long import Grid
from understudy.data.io.read import panel_of, read_panel, require_context
from understudy.data.io.row_groups import row_ranges
from understudy.data.io.sources import RowRange, Source, open_file
from understudy.data.io.stores import (
    Fingerprint,
    Place,
    existing,
    fingerprint,
    is_folder,
    located,
    require_unchanged,
    table_files,
)
from understudy.data.io.unit_keys import repeated, unit_keys
from understudy.data.panel import Panel, concatenate, in_pieces
from understudy.data.schema import Schema
from understudy.errors import DataError

_CHUNKS_PER_PARTITION = 4
_LARGE_BYTES = 2**28  # from here on, the row groups of a Parquet file are partitions


@runtime_checkable
class Partition(Protocol):
    """A whole number of units of a table: a handle that can be sent to another process, not the rows."""

    def panels(self) -> Iterator[Panel]:
        """Yields private panels of whole units, a few million values each; reading again yields the same again."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Series of many units, in partitions that share no unit.

    Attributes:
        schema: The public contract the series obey.
        partitions: Where the series are; their number is private.
        shared_context: Public context of all series, as in `Panel`; None without context or where each has its own.

    Privacy: holding data costs nothing. `repr` shows the schema and neither values nor counts.
    """

    schema: Schema
    partitions: tuple[Partition, ...]
    shared_context: Float32[np.ndarray, "step context"] | None = None

    @classmethod
    def of(cls, panel: Panel) -> "Table":
        """Returns the table of a panel in memory: one partition, which yields the same panels every time."""
        require_argument(panel, Panel, "Table.of", "Read one first: read_panel(table, schema).")
        return cls(panel.schema, (_InMemory(panel),), panel.shared_context)

    def panels(self) -> Iterator[Panel]:
        """Yields the panels of all partitions, one after the other."""
        for partition in self.partitions:
            yield from partition.panels()

    def read(self) -> Panel:
        """Returns all series in memory, with the identifiers of their units if the table has them."""
        only = self.partitions[0] if len(self.partitions) == 1 else None
        return only.whole if isinstance(only, _InMemory) else _joined(list(self.panels()))

    @property
    def num_units(self) -> int:
        """Number of units; private."""
        return sum(panel.num_units for panel in self.panels())

    @property
    def in_memory(self) -> bool:
        """Whether the table is a panel in memory."""
        return all(isinstance(partition, _InMemory) for partition in self.partitions)

    def without(self, identifiers: frozenset[str]) -> "Table":
        """Returns the table without some units, named by their identifiers."""
        return replace(self, partitions=tuple(_Without(partition, identifiers) for partition in self.partitions))

    def sample_units(
        self,
        number: int,
        rng: np.random.Generator,
        *,
        among: Callable[[Panel], Int64[np.ndarray, " unit"]] | None = None,
    ) -> Panel:
        """Returns at most `number` units, drawn at random, and never holds many more in memory.

        Args:
            among: Which units of a panel may be drawn; default: all.
        """
        drawn = _Drawn()
        for panel in self.panels():
            units = np.arange(panel.num_units) if among is None else among(panel)
            drawn = drawn.lowest(panel.take_units(units), rng.random(len(units)), number)
        assert drawn.panel is not None
        return drawn.panel

    def __repr__(self) -> str:
        time = self.schema.time
        channels = ", ".join(f"{channel.name} ({channel.kind})" for channel in self.schema.channels)
        return f"Table(private; schema '{self.schema.name}', {time.steps} steps of {time.frequency}: {channels})"

    __str__ = __repr__


def open_table(path: str | Path, schema: Schema, *, context: Any = None, allow_few_units: bool = False) -> Table:
    """Opens a table that need not fit in memory, checking everything its schema declares.

    Args:
        path: A folder of Parquet, Arrow or CSV files, each a partition; or one file, of which row groups of Parquet
            are partitions; or the URL of either, as fsspec knows it (`s3://…`, `memory://…`).
        schema: The public contract.
        context: Public context: a table with the time column and the context columns, or an array [step, context].
        allow_few_units: Lets fewer than 100 units pass; the caller records the override.

    Privacy:
        As `read_panel`: errors name columns, declared facts and the folder, never a value, an identifier, a file of
        the folder or a count. Hashes of identifiers are kept while the table is opened, under a key that is forgotten.

    Edge cases:
        A unit with rows in two partitions is refused. A file in which the rows of a unit are not side by side is read
        in one piece, and refused if it is large. Files must not change after they were opened: reading refuses that.
    """
    require_argument(schema, Schema, "schema", "Load it first: Schema.load(path).")
    require_argument(path, str | Path, "open_table: path", "Give a path or a URL as text, or a Path.")
    schema.require_declared()
    place = located(path)
    if not is_folder(place) and _in_one_piece(existing(place), schema):
        return Table.of(read_panel(path, schema, context=context, allow_few_units=allow_few_units))
    reading = _Reading(schema, place.name, _given_context(context, schema))
    return _opened(place, reading, allow_few_units=allow_few_units)


def table_of(source: Any, schema: Schema, *, context: Any = None, allow_few_units: bool = False) -> Table:
    """Opens folders, stores and large files in partitions, and reads everything else into memory."""
    if in_partitions(source):
        return open_table(source, schema, context=context, allow_few_units=allow_few_units)
    return Table.of(read_panel(source, schema, context=context, allow_few_units=allow_few_units))


def in_partitions(source: Any) -> bool:
    """Tells whether a table is in partitions and may be larger than memory."""
    if isinstance(source, str) and "://" in source:
        return True
    if not isinstance(source, str | Path):
        return False
    path = Path(source)
    large = path.suffix.lower() == ".parquet" and path.is_file() and path.stat().st_size >= _LARGE_BYTES
    return path.is_dir() or large


def _opened(place: Place, reading: "_Reading", *, allow_few_units: bool) -> Table:
    """Checks all files and returns the table of them."""
    files = table_files(place) if is_folder(place) else [place]
    checked = _checked(files, reading)
    found = _Finding.joined([finding for finding, _ in checked], reading)
    _check_together(found, reading, allow_few_units=allow_few_units)
    context = found.context if reading.context is None else reading.context
    partitions = tuple(
        replace(file, context=context, rows=rows)
        for _, file in checked
        for rows in (_ranges(file, reading) if file.file is place else (None,))
    )
    table = Table(reading.schema, partitions, _shared_context(context, reading.schema))
    if reading.schema.own_contexts and reading.context is None:
        for _ in table.panels():  # every series finds its own context, now that all of it is known
            pass
    return table


def _ranges(checked: "_File", reading: "_Reading") -> tuple[RowRange | None, ...]:
    """Returns the partitions of one large file."""
    file = checked.file
    if file.suffix.lower() != ".parquet" or not checked.grouped:
        return (None,)
    column = unit_column(reading.source(file).columns, reading.schema)
    return row_ranges(file, reading.name, column, _CHUNKS_PER_PARTITION * chunk_rows(reading.schema))


def _shared_context(context: "ContextRows | np.ndarray | None", schema: Schema) -> np.ndarray | None:
    """Returns the public context of all series, None where each has its own."""
    if context is None or schema.own_contexts:
        return None
    if isinstance(context, np.ndarray):
        return context
    return align_context(context, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), schema)


def _joined(panels: list[Panel]) -> Panel:
    """Returns one panel with the units of all and their identifiers."""
    if len(panels) == 1:
        return panels[0]
    named = [panel.unit_ids.astype(object) for panel in panels if panel.unit_ids is not None]
    return replace(concatenate(panels), unit_ids=np.concatenate(named) if len(named) == len(panels) else None)


@dataclass(frozen=True, eq=False, repr=False)
class _Drawn:
    """Units with the lowest of the random numbers that were drawn for all units so far."""

    panel: Panel | None = None
    numbers: Float64[np.ndarray, " unit"] = field(default_factory=lambda: np.empty(0))

    def lowest(self, panel: Panel, numbers: Float64[np.ndarray, " unit"], most: int) -> "_Drawn":
        """Returns the `most` units with the lowest numbers among these and those of the panel."""
        both = np.concatenate([self.numbers, numbers])
        kept = np.sort(np.argsort(both, kind="stable")[:most])
        new = panel.take_units(kept[kept >= len(self.numbers)] - len(self.numbers))
        if self.panel is None:
            return _Drawn(new, both[kept])
        old = self.panel.take_units(kept[kept < len(self.numbers)])
        return _Drawn(_joined([old, new]), both[kept])


@dataclass(frozen=True, eq=False, repr=False)
class _InMemory:
    """Slices of a panel in memory."""

    whole: Panel

    @cached_property
    def pieces(self) -> tuple[Panel, ...]:
        """The slices, made once: callers may remember things about them."""
        return in_pieces(self.whole)

    def __reduce__(self) -> tuple[type["_InMemory"], tuple[Panel]]:
        return type(self), (self.whole,)  # not the slices, too

    def panels(self) -> Iterator[Panel]:
        """Yields the slices."""
        yield from self.pieces


@dataclass(frozen=True, eq=False, repr=False)
class _Without:
    """A partition without some units."""

    partition: Partition
    identifiers: frozenset[str]

    def panels(self) -> Iterator[Panel]:
        """Yields the panels of the partition, without these units."""
        for panel in self.partition.panels():
            assert panel.unit_ids is not None
            stays = [str(identifier) not in self.identifiers for identifier in panel.unit_ids.tolist()]
            yield replace(panel.take_units(np.flatnonzero(stays)), unit_ids=None)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _File:
    """A file, or rows of one, that was checked when the table was opened.

    Attributes:
        name: What errors call the table.
        context: Public context by time, or [step, context].
        before: Size and time of change when it was checked.
        grouped: Whether the rows of each unit are side by side, so that the file can be read in chunks.
    """

    file: Place
    name: str
    schema: Schema
    before: Fingerprint
    grouped: bool
    context: ContextRows | np.ndarray | None = None
    rows: RowRange | None = None

    def panels(self) -> Iterator[Panel]:
        """Yields the series in panels of whole units; refuses a file that was changed since it was checked."""
        require_unchanged(self.file, self.before)
        source = open_file(self.file, self.schema, name=self.name, rows=self.rows)
        read = grids if self.grouped else _all_at_once
        for grid in read(source, self.schema, with_context=False):
            settle_values(grid.values, grid.lengths, self.schema)
            settle_static(grid.static, self.schema)
            yield from in_pieces(panel_of(grid, self.schema, self.context))
        require_unchanged(self.file, self.before)


def _all_at_once(source: Source, schema: Schema, *, with_context: bool) -> Iterator[Grid]:
    yield whole_grid(source, schema, with_context=with_context)


@dataclass(frozen=True, eq=False, repr=False)
class _Reading:
    """What all files of a table are read with; context is None where the table holds it."""

    schema: Schema
    name: str
    context: ContextRows | np.ndarray | None
    secret: bytes = field(default_factory=partial(secrets.token_bytes, 16))

    def source(self, file: Place, **options: Any) -> Source:
        """Opens one of the files."""
        return open_file(file, self.schema, name=self.name, **options)


@dataclass(eq=False, repr=False, kw_only=True)
class _Finding:
    """What was found in one file, or in all; private."""

    columns: tuple[str, ...]
    channels: Bool[np.ndarray, " channel"]  # which of them hold any value
    static: Bool[np.ndarray, " static"]
    num_units: int = 0
    num_series: int = 0
    keys: list[UInt64[np.ndarray, "_ 2"]] = field(default_factory=list)
    context: ContextRows | None = None

    @classmethod
    def of(cls, source: Source, series: Iterable[Grid], reading: _Reading) -> "_Finding":
        """Checks the series of one file, a chunk at a time."""
        schema = reading.schema
        found = cls(
            columns=tuple(sorted(set(source.columns) - set(schema.ignore))),
            channels=np.zeros(schema.num_channels, dtype=bool),
            static=np.zeros(len(schema.static), dtype=bool),
        )
        for grid in series:
            found.add(grid, reading)
        return found

    def add(self, grid: Grid, reading: _Reading) -> None:
        """Checks a chunk of whole units and takes note of what only all chunks together can tell."""
        schema = reading.schema
        self.num_units += check_series_per_unit(grid.unit, schema)
        self.num_series += len(grid.unit)
        check_lengths(grid.lengths, schema)
        self.channels |= settle_values(grid.values, grid.lengths, schema)
        self.static |= settle_static(grid.static, schema)
        if grid.ids is not None:
            self.keys.append(unit_keys(grid.ids, schema.unit.dtype, reading.secret))
        self.context = _merged([self.context, grid.context], schema)
        if schema.own_contexts and reading.context is not None:
            panel_of(grid, schema, reading.context)  # every series finds its own

    @classmethod
    def joined(cls, found: "list[_Finding]", reading: _Reading) -> "_Finding":
        """Returns what was found in several files."""
        if any(each.columns != found[0].columns for each in found):
            raise DataError(f"{reading.name}: the same columns are expected in every file of the folder.", column=None)
        return cls(
            columns=found[0].columns,
            channels=np.any([each.channels for each in found], axis=0),
            static=np.any([each.static for each in found], axis=0),
            num_units=sum(each.num_units for each in found),
            num_series=sum(each.num_series for each in found),
            keys=[keys for each in found for keys in each.keys],
            context=_merged([each.context for each in found], reading.schema),
        )


def _merged(parts: list[ContextRows | None], schema: Schema) -> ContextRows | None:
    found = [part for part in parts if part is not None]
    return merge_context(found, schema) if found else None


def _in_one_piece(file: Place, schema: Schema) -> bool:
    """Tells whether a table is read as a whole: an array, or series that no column tells apart."""
    if is_array_file(file if isinstance(file, Path) else file.url):
        return True
    source = open_file(file, schema)
    return schema.time.layout == "long" and unit_column(source.columns, schema) not in source.columns


def _given_context(context: Any, schema: Schema) -> ContextRows | np.ndarray | None:
    """Reads the public context once; None where the table itself has to hold it."""
    if context is None and (schema.time.column is not None or not schema.context):
        return None
    require_context(schema, given=context is not None)
    if not isinstance(context, np.ndarray) and schema.time.column is not None:
        return context_rows(context, schema)
    array = read_context(context, schema)
    if array.ndim != 2:
        raise DataError(
            "Context: one [step, context] for all series of a table in partitions is expected.", column=None
        )
    return array


def _checked(files: list[Place], reading: _Reading) -> "list[tuple[_Finding, _File]]":
    """Checks every file; what a unit lacks in one file may be in another, and then that is what is wrong."""
    try:
        return [_inspect(file, reading) for file in files]
    except DataError:
        if len(files) > 1 and repeated([_units_of(file, reading) for file in files]):
            raise _in_two_partitions(reading) from None
        raise


def _units_of(file: Place, reading: _Reading) -> UInt64[np.ndarray, "_ 2"]:
    """Returns the key of every unit of a file, once."""
    runs = _keys_of_runs(file, reading)
    return np.unique(np.concatenate([np.empty((0, 2), dtype=np.uint64), *runs]), axis=0)


def _in_two_partitions(reading: _Reading) -> DataError:
    return DataError(
        f"{reading.name}: all rows of a unit are expected in one partition, and a unit has rows in two. {REPARTITION}",
        column=reading.schema.unit.column,
    )


def _inspect(file: Place, reading: _Reading) -> tuple[_Finding, _File]:
    """Checks one file; returns what was found, and how to read the file."""
    checked = _File(file=file, name=reading.name, schema=reading.schema, before=fingerprint(file), grouped=True)
    found = _inspect_in_chunks(file, reading)
    if found is None:
        checked, source = replace(checked, grouped=False), reading.source(file)
        series = _all_at_once(source, reading.schema, with_context=reading.context is None)
        found = _Finding.of(source, series, reading)
    require_unchanged(file, checked.before)
    return found, checked


def _inspect_in_chunks(file: Place, reading: _Reading) -> _Finding | None:
    """Returns what was found in a file, None if the rows of a unit are not side by side.

    Chunks of such a file are no whole units: what they seem to lack says nothing.
    """
    source = reading.source(file)
    try:
        found = _Finding.of(source, grids(source, reading.schema, with_context=reading.context is None), reading)
    except DataError:
        if _side_by_side(file, reading):
            raise
        return None
    return None if repeated(found.keys) else found


def _side_by_side(file: Place, reading: _Reading) -> bool:
    """Tells whether the rows of each unit are side by side, from their identifiers alone."""
    return not repeated(_keys_of_runs(file, reading))


def _keys_of_runs(file: Place, reading: _Reading) -> list[UInt64[np.ndarray, "_ 2"]]:
    """Returns the key of every run of rows of one unit; none where no column tells units apart."""
    schema, source = reading.schema, reading.source(file)
    column = unit_column(source.columns, schema)
    if column is None or source.columns.count(column) != 1:
        return []
    keys = []
    for rows in whole_units(reading.source(file, only=column), schema):
        codes, names = encode(rows.column(column).combine_chunks(), column, schema.unit.dtype)
        begins = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
        identifiers = np.array(names.to_pylist(), dtype=object)[codes[begins]]
        keys.append(unit_keys(identifiers, schema.unit.dtype, reading.secret))
    return keys


def _check_together(found: _Finding, reading: _Reading, *, allow_few_units: bool) -> None:
    """Checks what only all files together can tell."""
    schema = reading.schema
    if repeated(found.keys):
        raise _in_two_partitions(reading)
    check_enough_units(found.num_units, found.num_series, schema, allow_few_units=allow_few_units)
    check_observed(found.channels, schema.channels)
    check_observed(found.static, schema.static)
    require_context(schema, given=reading.context is not None or found.context is not None)
