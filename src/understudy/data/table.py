"""Tables that need not fit in memory: a list of partitions, each a whole number of units."""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32, Int64, UInt64

from understudy.data.io import stores
from understudy.data.io.arrow import encode, plain
from understudy.data.io.context import ContextRows, align_context, given_context, merge_context, require_context
from understudy.data.io.read import Grid, Tally, grid_of, panel_of, read_panel, unit_column
from understudy.data.io.sources import RowRange, Source, open_file, open_parquet, require_same_columns, unreadable
from understudy.data.panel import Panel, concatenate, in_pieces
from understudy.data.schema import Schema
from understudy.data.type_checks import require_argument
from understudy.errors import DataError
from understudy.workers import Workers, once_each

CHUNK_VALUES = 3_000_000  # and a batch more: below what a panel is cut at
_WHOLE_VALUES = 8 * CHUNK_VALUES  # of a file whose rows are not in the order of units, and which is read in one piece
_CHUNKS_PER_PARTITION = 4
ROWS_PER_PARTITION = 2_000_000
_MAX_PARTITIONS = 1000
_UNKNOWN_SIZE = 64  # partitions of a population that is not declared
_LARGE_BYTES = 2**28  # from here on, the row groups of a Parquet file are partitions
_REPARTITION = "`understudy data partition FILE --by-unit --out FOLDER` writes such a folder."


Chosen = Callable[[Panel], Int64[np.ndarray, " unit"]]  # names units of a panel


@runtime_checkable
class Partition(Protocol):
    """A whole number of units of a table: a handle that can be sent to another process, not the rows."""

    def panels(self) -> Iterator[Panel]:
        """Yields private panels of whole units, a few million values each; reading again yields the same again."""


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

    def sample_units(self, number: int, rng: np.random.Generator, *, among: Chosen | None = None) -> Panel:
        """Returns at most `number` units, drawn at random `among` the units of each panel that it names (default: all).

        Never holds many more in memory.
        """
        kept: Panel | None = None
        numbers = np.empty(0)
        for panel in self.panels():
            units = np.arange(panel.num_units) if among is None else among(panel)
            candidates = panel.take_units(units)
            numbers = np.concatenate([numbers, rng.random(len(units))])
            lowest = np.sort(np.argsort(numbers, kind="stable")[:number])
            kept = (candidates if kept is None else _joined([kept, candidates])).take_units(lowest)
            numbers = numbers[lowest]
        assert kept is not None
        return kept

    def __repr__(self) -> str:
        return f"Table(private; {self.schema})"


def open_table(
    path: str | Path, schema: Schema, *, context: Any = None, allow_few_units: bool = False, workers: Workers = 1
) -> Table:
    """Opens a table that need not fit in memory, checking everything its schema declares.

    Args:
        path: A folder of Parquet, Arrow or CSV files, each a partition; or one file, of which row groups of Parquet
            are partitions; or the URL of either (`s3://…`, `gs://…`, `abfs://…`, or as fsspec knows it); a pattern with
            `*`; or a table of a database (`duckdb:FILE?table=NAME`, `postgresql://HOST/DATABASE?table=NAME`, or
            `?query=`), read in partitions by a hash of the identifier.
        schema: The public contract.
        context, allow_few_units: As `read_panel` takes them.
        workers: Processes that check the files, or a `Cluster`.

    Privacy:
        As `read_panel`: errors name columns, declared facts and the folder, never a value, an identifier, a file of
        the folder or a count. Hashes of identifiers are kept while the table is opened, under a key that is forgotten.

    Edge cases:
        A unit with rows in two partitions is refused. A file in which the rows of a unit are not side by side is read
        in one piece, and refused if it is large. Files must not change after they were opened: reading refuses that.
    """
    require_argument(schema, Schema, "schema", "Load it first: Schema.load(path).")
    require_argument(path, str | Path, "open_table: path", "Give a path or a URL as text; read_panel takes frames.")
    schema.require_declared()
    name, files, single = stores.table_files(path)
    if single:
        columns = () if stores.is_array_file(path) else open_file(files[0], schema).columns
        unit = unit_column(columns, schema)
        # an array, or series that no column distinguishes
        if stores.is_array_file(path) or (schema.time.layout == "long" and unit not in columns):
            return Table.of(read_panel(path, schema, context=context, allow_few_units=allow_few_units))
        if isinstance(files[0], stores.DatabaseTable):
            files = tuple(files[0].partitions(unit, default_partitions(schema)))
    # a worker process may have been started in another working directory
    files = tuple(file.absolute() if isinstance(file, Path) else file for file in files)
    given, secret = given_context(context, schema), secrets.token_bytes(16)
    before = [stores.fingerprint(file) for file in files]
    # a hash of identifiers divides a database's table, and its rows come in order
    runs = [_ORDERED if isinstance(f, stores.DatabaseTable) else _runs_of(f, schema, name, secret) for f in files]
    keys = np.concatenate([each.keys for each in runs])
    if len(np.unique(keys)) < len(keys):
        told = "all rows of a unit are expected in one partition, and a unit has rows in two."
        raise DataError(f"{name}: {told} {_REPARTITION}", column=schema.unit.column)
    facts = zip(files, before, (each.grouped for each in runs), strict=True)
    checked = [_File(file, name, schema, when, grouped) for file, when, grouped in facts]
    found = _check_files(checked, given, allow_few_units=allow_few_units, workers=workers)
    partitions = [replace(file, context=found) for file in checked]
    if single and len(partitions) == 1:
        partitions = [replace(partitions[0], rows=rows) for rows in _row_ranges(partitions[0], runs[0].starts)]
    shared = None if schema.own_contexts else found
    if isinstance(shared, ContextRows):
        shared = align_context(shared, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), schema)
    table = Table(schema, tuple(partitions), shared)
    if schema.own_contexts and given is None:
        for _ in table.panels():  # every series finds its own context, now that all of it is known
            pass
    return table


def table_of(
    source: Any, schema: Schema, *, context: Any = None, allow_few_units: bool = False, workers: Workers = 1
) -> Table:
    """Opens folders, stores and large files in partitions, and reads everything else into memory."""
    if in_partitions(source):
        return open_table(source, schema, context=context, allow_few_units=allow_few_units, workers=workers)
    return Table.of(read_panel(source, schema, context=context, allow_few_units=allow_few_units))


def in_partitions(source: Any) -> bool:
    """Returns whether a table is in partitions and may be larger than memory."""
    if isinstance(source, str) and (stores.is_url(source) or "*" in source):
        return True
    if not isinstance(source, str | Path):
        return False
    path = Path(source)
    large = path.suffix.lower() == ".parquet" and path.is_file() and path.stat().st_size >= _LARGE_BYTES
    return path.is_dir() or large


def _joined(panels: list[Panel]) -> Panel:
    """Returns one panel with the units of all and their identifiers."""
    if len(panels) == 1:
        return panels[0]
    named = [panel.unit_ids.astype(object) for panel in panels if panel.unit_ids is not None]
    return replace(concatenate(panels), unit_ids=np.concatenate(named) if len(named) == len(panels) else None)


@dataclass(frozen=True, eq=False, repr=False)
class _InMemory:
    """Slices of a panel in memory, made once: callers may remember things about them."""

    whole: Panel

    @cached_property
    def pieces(self) -> tuple[Panel, ...]:
        """The slices."""
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


@dataclass(frozen=True, eq=False, repr=False)
class _File:
    """A file, or rows of one, that is checked when the table is opened."""

    file: stores.File
    name: str  # what errors call the table
    schema: Schema
    before: stores.Fingerprint  # when it was checked
    grouped: bool  # whether the rows of each unit are side by side, so that the file can be read in chunks
    context: ContextRows | np.ndarray | None = None  # by time, or [step, context]
    rows: RowRange | None = None

    def panels(self) -> Iterator[Panel]:
        """Yields the series in panels of whole units; refuses a file that was changed since it was checked."""
        tally = Tally(self.schema)
        for grid in self.grids(with_context=False):
            tally.add(grid)
            yield from in_pieces(panel_of(grid, self.schema, self.context))

    def grids(self, *, with_context: bool) -> Iterator[Grid]:
        """Yields the series, a chunk of whole units at a time; `with_context` takes public context from the file."""
        stores.require_unchanged(self.file, self.before)
        schema, source = self.schema, open_file(self.file, self.schema, name=self.name, rows=self.rows)
        if schema.time.layout == "long" and unit_column(source.columns, schema) is None:
            raise DataError(f"{source.name}: a table in partitions needs unit.column. Declare it in the schema.")
        chunks = whole_units(source, schema) if self.grouped else [_all_rows(source, schema)]
        for rows in filter(None, chunks):
            yield grid_of(replace(source, batches=iter(rows)), schema, with_context=with_context)
        stores.require_unchanged(self.file, self.before)


def _check_files(
    files: list[_File], given: ContextRows | np.ndarray | None, *, allow_few_units: bool, workers: Workers
) -> ContextRows | np.ndarray | None:
    """Checks all series of all files; returns the public context that was given, or that the files hold."""
    schema, tally = files[0].schema, Tally(files[0].schema)
    first = open_file(files[0].file, schema, name=files[0].name)
    for file in files:
        require_same_columns(first, open_file(file.file, schema, name=file.name), schema)
    context: list[ContextRows] = []
    for checked, found in once_each(partial(_checked, given=given), files, workers if len(files) > 1 else 1):
        tally.merge(checked)
        context = [merge_context([*context, *found], schema)] if found else context
    tally.finish(allow_few_units=allow_few_units)
    require_context(schema, given=given is not None or bool(context))
    return given if given is not None or not context else context[0]


def _checked(file: _File, given: ContextRows | np.ndarray | None) -> tuple[Tally, list[ContextRows]]:
    """Checks the series of one file; returns what only all files together can tell, and the context it holds."""
    schema, tally = file.schema, Tally(file.schema)
    context: list[ContextRows] = []
    for grid in file.grids(with_context=given is None):
        tally.add(grid)
        if grid.context is not None:
            context = [merge_context([*context, grid.context], schema)]
        if schema.own_contexts and given is not None:
            panel_of(grid, schema, given)  # every series finds its own
    return tally, context


class _Runs(NamedTuple):
    """Runs of rows of one unit in a file; private."""

    keys: UInt64[np.ndarray, " run"]  # 64 bits for the unit of each; none where every row is a unit
    starts: Int64[np.ndarray, " run"] | None  # row at which each run begins; None where every row is a unit
    grouped: bool  # whether every unit has one run


_ORDERED = _Runs(np.empty(0, dtype=np.uint64), None, grouped=True)


def _runs_of(file: stores.File, schema: Schema, name: str, secret: bytes) -> _Runs:
    """Finds the runs from the column of identifiers alone."""
    none = np.empty(0, dtype=np.uint64)
    columns = open_file(file, schema, name=name).columns
    column = unit_column(columns, schema)
    if column is None or columns.count(column) != 1:
        return _ORDERED
    keys, starts, row, last = [none], [np.empty(0, dtype=np.int64)], 0, none
    for batch in open_file(file, schema, name=name, only=column).batches:
        encoded = encode(batch.column(column), column, schema.unit.dtype)
        codes = encoded.indices.to_numpy()
        begins = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
        found = unit_keys(encoded.dictionary, secret)[codes[begins]]
        continued = int(np.array_equal(found[:1], last))
        keys.append(found[continued:])
        starts.append(row + begins[continued:])
        row, last = row + batch.num_rows, found[-1:]
    together = np.concatenate(keys)
    grouped = len(np.unique(together)) == len(together)
    return _Runs(together if grouped else np.unique(together), np.concatenate(starts), grouped=grouped)


def unit_keys(identifiers: pa.Array, secret: bytes) -> UInt64[np.ndarray, " unit"]:
    """Returns 64 bits for each identifier: a whole number as it is, text as a hash, keyed unless `secret` is empty.

    Two of 10⁷ texts share a key with a probability below 10⁻⁵. Then a table is read in one piece or refused although
    its partitions share no unit; opened again, under another key, it is not.
    """
    if pa.types.is_integer(identifiers.type):
        return np.asarray(identifiers, dtype=np.int64).view(np.uint64)
    blake = hashlib.blake2b
    digests = b"".join(blake(text.encode(), digest_size=8, key=secret).digest() for text in identifiers.to_pylist())
    return np.frombuffer(digests, dtype=np.uint64)


def _row_ranges(file: _File, starts: Int64[np.ndarray, " run"] | None) -> list[RowRange | None]:
    """Cuts one Parquet file into runs of row groups, moved so that none of them begins within a unit."""
    if file.file.suffix.lower() != ".parquet" or not file.grouped:
        return [None]
    with unreadable(file.name):
        metadata = open_parquet(file.file).metadata
    groups = range(metadata.num_row_groups)
    begins = np.cumsum([0, *(metadata.row_group(group).num_rows for group in groups)])
    borders, wanted, total = [0], _CHUNKS_PER_PARTITION * chunk_rows(file.schema), int(begins[-1])
    for begin in begins[1:-1].tolist():
        if begin - borders[-1] >= wanted:
            later = [begin] if starts is None else starts[np.searchsorted(starts, begin) :][:1].tolist()
            borders += [border for border in later if borders[-1] < border < total]
    ranges: list[RowRange | None] = []
    for start, stop in pairwise([*borders, total]):
        inside = np.flatnonzero((begins[:-1] < stop) & (begins[1:] > start)).tolist()
        ranges.append(RowRange(tuple(inside), start - int(begins[inside[0]]), stop - start))
    return ranges


def default_partitions(schema: Schema) -> int:
    """Returns into how many files a table is cut, from public facts alone."""
    size = schema.population.size
    if size is None:
        return _UNKNOWN_SIZE
    rows = size * schema.unit.max_series * (schema.num_steps if schema.time.layout == "long" else 1)
    return int(np.clip(-(-rows // ROWS_PER_PARTITION), 1, _MAX_PARTITIONS))


def chunk_rows(schema: Schema) -> int:
    """Returns the number of rows that hold a chunk of values."""
    per_row = schema.num_channels * (1 if schema.time.layout == "long" else schema.num_steps)
    return max(1, CHUNK_VALUES // per_row)


def whole_units(source: Source, schema: Schema) -> Iterator[list[pa.RecordBatch]]:
    """Yields the rows of a table in chunks that end where a unit's rows end."""
    column, wanted = unit_column(source.columns, schema), chunk_rows(schema)
    held: list[pa.RecordBatch] = []
    for batch in source.batches:
        held.append(batch)
        if sum(piece.num_rows for piece in held) >= wanted:
            rows = pa.Table.from_batches(held)
            end = rows.num_rows if column is None else _start_of_last(rows.column(column))
            held = rows.slice(end).to_batches()
            yield rows.slice(0, end).to_batches()
    yield held


def _start_of_last(units: pa.ChunkedArray) -> int:
    """Returns the row at which the last unit begins."""
    for size in (2**16, len(units)):  # most units are short
        tail = plain(units.slice(max(0, len(units) - size)).combine_chunks())
        others = np.flatnonzero(pc.fill_null(pc.not_equal(tail, tail[-1]), True))
        if len(others):
            return len(units) - len(tail) + int(others[-1]) + 1
    return 0


def _all_rows(source: Source, schema: Schema) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a table in any order; refuses one too large to be read in one piece."""
    left = chunk_rows(schema) * (_WHOLE_VALUES // CHUNK_VALUES)
    for batch in source.batches:
        left -= batch.num_rows
        if left < 0:
            told = "in a file of this size, the rows of a unit are expected side by side, and they are not."
            raise DataError(f"{source.name}: {told} {_REPARTITION}", column=schema.unit.column)
        yield batch
