"""Damaged Parquet and Arrow files."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.fuzz.edits import COLUMN_NAMES, FEW, byte_edits, place_in
from tests.fuzz.place import COUNT, NAME, NUMBER, whole_table

_TYPES: tuple[pa.DataType, ...] = (
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int8(), pa.string())),
    *(pa.int8(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(38, 6), pa.bool_()),
    *(pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", tz="Asia/Tokyo"), pa.date32(), pa.date64()),
    *(pa.time64("us"), pa.duration("s"), pa.null(), pa.list_(pa.string()), pa.struct([("a", pa.string())])),
)


_STRANGE: dict[str, Callable[[int], pa.Array]] = {
    "names": lambda size: pa.array([NAME] * size),
    "names in a dictionary": lambda size: pa.array([NAME] * size).dictionary_encode(),
    "lists": lambda size: pa.array([[NUMBER]] * size),
    "structs": lambda size: pa.array([{"a": NAME}] * size),
    "numbers": lambda size: pa.array([float(NUMBER) * 1e30] * size),
    "counts": lambda size: pa.array([int(COUNT) * 10**9] * size, pa.uint64()),
    "beyond int64": lambda size: pa.array([2**64 - 1] * size, pa.uint64()),
    "infinite": lambda size: pa.array([float("inf")] * size),
    "not a number": lambda size: pa.array([float("nan")] * size),
    "far years": lambda size: pa.array(np.full(size, 2**62), pa.timestamp("s")),
    "far nanoseconds": lambda size: pa.array(np.full(size, 2**63 - 1), pa.timestamp("ns")),
    "days": lambda size: pa.array(np.full(size, 2**30, dtype=np.int32), pa.date32()),
    "missing": pa.nulls,
    "missing text": lambda size: pa.nulls(size, pa.string()),
    "broken text": lambda size: pa.array([NAME.encode() + b"\xff"] * size, pa.binary()).view(pa.string()),
    "runs": lambda size: pa.RunEndEncodedArray.from_arrays(pa.array([size], pa.int32()), pa.array([NAME])),
}


def _with(table: pa.Table, place: int, array: Any) -> pa.Table:
    return table.set_column(place, table.column_names[place], array)


def _cast_column(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    place, target = place_in(draw, table.column_names), draw(st.sampled_from(_TYPES))
    try:
        return _with(table, place, table.column(place).cast(target, safe=False))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _with(table, place, pa.nulls(len(table), target))


def _strange_column(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    kind = draw(st.sampled_from(sorted(_STRANGE)))
    return _with(table, place_in(draw, table.column_names), _STRANGE[kind](len(table)))


def _missing_cell(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    place, row = place_in(draw, table.column_names), place_in(draw, table)
    kept = pa.array([*range(row), None, *range(row + 1, len(table))], pa.int64())
    try:
        return _with(table, place, table.column(place).combine_chunks().take(kept))
    except pa.ArrowNotImplementedError:  # not every type can be picked from
        return table


def _renamed_column(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    names, place = table.column_names, place_in(draw, table.column_names)
    names[place] = draw(st.sampled_from(COLUMN_NAMES))
    return table.rename_columns(names)


def _other_rows(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    some = pa.array(draw(st.lists(st.integers(0, len(table) - 1), max_size=4)), pa.int64())
    return draw(st.sampled_from((table.slice(0, 0), table.slice(0, 3), table.slice(1), table.take(some))))


_COLUMN_EDITS: tuple[Callable[[st.DrawFn, pa.Table], pa.Table], ...] = (
    *(_cast_column, _cast_column, _strange_column, _strange_column, _missing_cell, _renamed_column),
    lambda draw, table: table.remove_column(place_in(draw, table.column_names)),
    lambda draw, table: table.append_column(draw(st.sampled_from(("shoe", "pulse"))), pa.array([NAME] * len(table))),
)


def columnar_file(draw: st.DrawFn, name: str, suffix: str) -> bytes:
    """A Parquet or Arrow file after a few damages to its columns, and perhaps to its bytes."""
    table = whole_table(name)
    if draw(st.integers(0, 5)) == 0:
        table = _other_rows(draw, table)
    for _ in range(draw(FEW)):
        if table.num_columns > 1 and len(table):
            table = draw(st.sampled_from(_COLUMN_EDITS))(draw, table)
    whole = _written(table, suffix)
    damage = draw(st.sampled_from(("none", "none", "none", "bytes", "bytes", "names")))
    if damage == "names":
        return whole.replace(b"pulse", b"pu\xffse")
    return byte_edits(draw, whole) if damage == "bytes" else whole


def _written(table: pa.Table, suffix: str) -> bytes:
    sink = io.BytesIO()
    try:
        if suffix == "parquet":
            pq.write_table(table, sink, compression="none")
        else:
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
    except pa.ArrowException:  # a type that the format does not have
        return _written(whole_table("table"), suffix)
    return sink.getvalue()
