"""One category per unit, straight from the table, for a column whose list of categories is not known yet."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.data.dtypes import INTEGER_DTYPES
from understudy.data.io.arrow import encode
from understudy.data.io.checks import check_units
from understudy.data.io.context import is_array_file
from understudy.data.io.sources import Source, open_source
from understudy.data.schema import Schema
from understudy.errors import DataError


def read_first_categories(source: Any, schema: Schema, column: str) -> tuple[list[str], bool]:
    """Returns each unit's first category as text, and whether the column stores whole numbers.

    Units without any category are left out.

    Privacy:
        Reads private data and releases nothing. A unit's category comes from its own rows, in the table's order.
    """
    if is_array_file(source) or isinstance(source, np.ndarray):
        raise DataError(
            f"Column '{column}': an array holds codes and no names. Bring a table (.parquet, .csv, .arrow, .feather).",
            column=column,
        )
    opened = open_source(source, schema)
    unit, columns = schema.unit.column or schema.time.series_column, _table_columns(schema, column)
    _require(opened, [*columns, *([] if unit is None else [unit])])
    first: dict[Any, str | None] = {}
    whole = False
    for batch in opened.batches:
        if batch.num_rows:
            categories, whole = _texts(batch, columns, column)
            _keep_first(first, _units(batch, unit, schema, len(first)), categories)
    check_units(np.arange(len(first), dtype=np.int64), schema, allow_few_units=False)
    return [category for category in first.values() if category is not None], whole


def _table_columns(schema: Schema, column: str) -> list[str]:
    """Columns of the table that hold `column`: one, or one per step of a wide table's channel."""
    if schema.time.layout == "wide" and column in [channel.name for channel in schema.channels]:
        return [schema.time.wide_column(column, step) for step in range(schema.num_steps)]
    return [column]


def _require(source: Source, names: list[str]) -> None:
    for name in names:
        if source.columns.count(name) != 1:
            raise DataError(
                f"{source.name}: column '{name}' is expected once, as the schema declares. Add, rename or drop it.",
                column=name,
            )


def _texts(batch: pa.RecordBatch, columns: list[str], column: str) -> tuple[pa.Array, bool]:
    """First category of each row as text; a row of a wide table has one per step."""
    arrays = [batch.column(name) for name in columns]
    types = [array.type.value_type if pa.types.is_dictionary(array.type) else array.type for array in arrays]
    whole = all(pa.types.is_integer(kind) for kind in types)
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    if not whole and not all(any(test(kind) for test in text) for kind in types):
        raise DataError(f"Column '{column}': text or whole numbers are expected. Convert the column.", column=column)
    return pc.coalesce(*(_as_text(array) for array in arrays)), whole


def _as_text(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        return array.dictionary.cast(pa.large_string()).take(array.indices)
    return array.cast(pa.large_string())


def _units(batch: pa.RecordBatch, unit: str | None, schema: Schema, seen: int) -> list[Any]:
    if unit is None:  # every row is its own unit
        return list(range(seen, seen + batch.num_rows))
    dtype = schema.unit.dtype if schema.unit.dtype in INTEGER_DTYPES and schema.unit.column else "string"
    codes, names = encode(batch.column(unit), unit, dtype)
    found: list[Any] = names.take(pa.array(codes)).to_pylist()
    return found


def _keep_first(first: dict[Any, str | None], units: list[Any], categories: pa.Array) -> None:
    for unit, category in zip(units, categories.to_pylist(), strict=True):
        if first.get(unit) is None:
            first[unit] = category
