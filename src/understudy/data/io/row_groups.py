"""One large Parquet file as partitions: runs of row groups, moved so that none of them begins within a unit."""

from itertools import pairwise

import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.data.io.arrow import plain
from understudy.data.io.sources import RowRange, open_parquet, unreadable
from understudy.data.io.stores import Place


def row_ranges(file: Place, name: str, unit: str | None, rows: int) -> tuple[RowRange, ...]:
    """Cuts a file whose units have their rows side by side into ranges of about `rows` rows, each of whole units.

    Args:
        name: What errors call the table.
        unit: The column that tells units apart; None where every row is a unit.
    """
    with unreadable(name):
        opened = open_parquet(file)
        sizes = [opened.metadata.row_group(group).num_rows for group in range(opened.num_row_groups)]
        begins = [sum(sizes[:group]) for group in range(len(sizes) + 1)]
        borders = [0]
        for group, begin in enumerate(begins[:-1]):
            if begin - borders[-1] >= rows and sizes[group - 1]:
                moved = begin if unit is None else begin + _rows_of_unit_before(opened, group, unit)
                borders += [moved] if borders[-1] < moved < begins[-1] else []
    borders.append(begins[-1])
    return tuple(_range(begins, start, stop) for start, stop in pairwise(borders))


def _rows_of_unit_before(opened: pq.ParquetFile, group: int, unit: str) -> int:
    """Returns how many rows from a row group's first on belong to the unit that the row before is of."""
    last = None
    for batch in opened.iter_batches(1 << 16, [group - 1], columns=[unit]):
        last = plain(batch.column(0))[-1]
    rows = 0
    for batch in opened.iter_batches(1 << 16, list(range(group, opened.num_row_groups)), columns=[unit]):
        other = pc.index(pc.equal(plain(batch.column(0)), last), False).as_py()
        if other >= 0:
            return rows + int(other)
        rows += batch.num_rows
    return rows


def _range(begins: list[int], start: int, stop: int) -> RowRange:
    """Returns the rows from `start` to `stop` of a file whose row groups begin at `begins`."""
    groups = tuple(g for g in range(len(begins) - 1) if begins[g] < stop and begins[g + 1] > start)
    return RowRange(groups, start - begins[groups[0]], stop - start)
