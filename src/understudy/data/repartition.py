"""A table of any size and order becomes a folder of files that share no unit, each sorted by unit and time."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Int64

from understudy.data.io.arrow import encode, plain, to_ticks
from understudy.data.io.read import unit_column
from understudy.data.io.sources import Source, open_source, require_once
from understudy.data.schema import Schema
from understudy.data.table import ROWS_PER_PARTITION, default_partitions, unit_keys
from understudy.errors import DataError
from understudy.files import whole_folder

Progress = Callable[[str, float], None]  # a stage and the share that is done
_MIXING = np.uint64(0x9E3779B97F4A7C15)  # spreads numbers that differ little


def partition_by_unit(
    source: Any, schema: Schema, folder: Path, *, num_partitions: int | None = None, progress: Progress | None = None
) -> Path:
    """Writes a table as a folder of Parquet files that `open_table` reads without sorting; returns the folder.

    Rows may be in any order; bounds and categories of the schema may still be open. The folder appears whole or not at
    all, for its owner only. Without `num_partitions` the declared population decides.

    Privacy:
        The files hold the private table. Their number is public; which file a unit is in, and the order of rows,
        follow from identifiers and times alone and say nothing about the order of the source.

    Edge cases:
        Memory holds one partition, the disk of `folder` a second copy of the table. Columns that the schema ignores
        are left out; times that are text become timestamps.
    """
    opened = open_source(source, schema)
    column = unit_column(opened.columns, schema)
    if column is None:
        raise DataError("A table is partitioned by unit.column. Declare it in the schema.")
    for name in filter(None, (column, schema.time.series_column, schema.time.column)):
        require_once(opened, name)
    number = num_partitions or default_partitions(schema)
    tell = progress or (lambda stage, share: None)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        whole_folder(folder, mode=0o700) as draft,
        tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as spill,
    ):
        tell("splitting", 0.0)
        parts = [Path(spill) / f"{place}.arrow" for place in range(number)]
        if not _split(opened, schema, column, parts):
            raise DataError("The table is empty. Expected rows.")
        for place, part in enumerate(parts):
            tell("sorting", 0.5 + 0.5 * place / number)
            rows = pa.ipc.open_file(pa.memory_map(str(part))).read_all().combine_chunks()
            part.unlink()
            target = draft / f"part-{place:05d}.parquet"
            target.touch(mode=0o600)
            # a dictionary of numbers would only slow reading down
            repeating = [field.name for field in rows.schema if not pa.types.is_floating(field.type)]
            ordered, size = _sorted(rows, schema, column), ROWS_PER_PARTITION // 2
            pq.write_table(ordered, target, use_dictionary=repeating, row_group_size=size)
    return folder


def _split(opened: Source, schema: Schema, column: str, targets: list[Path]) -> bool:
    """Writes every row to the file of its unit's partition, with the types of the first batch; says if there are any.

    Columns are written without dictionaries, which differ from batch to batch.
    """
    arrow: pa.Schema | None = None
    with ExitStack() as stack:
        writers: list[pa.ipc.RecordBatchFileWriter] = []
        for batch in opened.batches:
            kept = [name for name in batch.schema.names if name not in schema.ignore]
            rows = pa.RecordBatch.from_arrays([plain(batch.column(name)) for name in kept], names=kept)
            if arrow is None:
                arrow = rows.schema
                writers += [stack.enter_context(pa.ipc.new_file(str(target), arrow)) for target in targets]
            try:
                rows = rows.select(arrow.names).cast(arrow)
            except (pa.ArrowException, KeyError):
                raise DataError(f"{opened.name}: the same columns and types are expected in every file.") from None
            for place, part in _by_partition(rows, schema, column, len(targets)):
                writers[place].write_batch(part)
    return arrow is not None


def _by_partition(
    batch: pa.RecordBatch, schema: Schema, column: str, number: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields the rows of each partition, in the order they have."""
    units = encode(batch.column(column), column, schema.unit.dtype)
    keys = unit_keys(units.dictionary, b"")  # a public function of the identifier, the same on every machine
    place = (keys * _MIXING >> np.uint64(32)) % np.uint64(number)
    place = place.astype(np.int64)[units.indices.to_numpy()]
    order = np.argsort(place, kind="stable")
    rows, borders = batch.take(pa.array(order)), np.searchsorted(place[order], np.arange(number + 1))
    for partition in np.unique(place):
        begin, end = int(borders[partition]), int(borders[partition + 1])
        yield int(partition), rows.slice(begin, end - begin)


def _sorted(rows: pa.Table, schema: Schema, column: str) -> pa.Table:
    """Returns rows sorted by unit, series and time; rows of one time keep their order. Times are no text any more."""
    time = schema.time
    keys = [_rank(rows, column, schema.unit.dtype)]
    if time.series_column is not None and time.series_column != column:
        keys.insert(0, _rank(rows, time.series_column, "string"))
    if time.column is not None and rows.num_rows:
        moments = rows.column(time.column).combine_chunks()
        ticks = to_ticks(moments, time)
        keys.insert(0, ticks)
        if pa.types.is_string(moments.type) or pa.types.is_large_string(moments.type):
            stamps = pa.array(ticks).cast(pa.timestamp("us", tz=None if time.zone is None else "UTC"))
            rows = rows.set_column(rows.column_names.index(time.column), time.column, stamps)
    return rows.take(pa.array(np.lexsort(keys)))


def _rank(rows: pa.Table, column: str, dtype: str) -> Int64[np.ndarray, " row"]:
    keys = encode(rows.column(column).combine_chunks(), column, dtype)
    rank: Int64[np.ndarray, " row"] = np.asarray(pc.rank(keys.dictionary), dtype=np.int64)[keys.indices.to_numpy()]
    return rank
