"""The shape of a CSV file's text: a look at rows that a person has allowed, and that the draft records."""

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from understudy.data.csv_format import CsvFormat
from understudy.data.io.csv_files import parsing, readable, without_mark

PEEKED_ROWS = 1000
STATEMENT = (
    f"the text shape of up to {PEEKED_ROWS} rows of every column: whether all of it reads as whole numbers, numbers, "
    "true/false, timestamps, or none of these. No value, category, bound or count is taken over"
)
_SHAPES = (
    (pa.types.is_integer, pa.int64()),
    (pa.types.is_floating, pa.float64()),
    (pa.types.is_boolean, pa.bool_()),
    (pa.types.is_timestamp, pa.timestamp("s")),
    (pa.types.is_date, pa.timestamp("s")),
)


def peek_types(path: Path, columns: tuple[str, ...], written: CsvFormat) -> pa.Schema:
    """Returns a type per column of a CSV file: whole numbers, numbers, true/false, timestamps or text.

    Privacy:
        Looks at private rows without noise: the answer, a type per column, is not protected. Callers ask first and
        record that it happened.
    """
    options = pacsv.ConvertOptions(
        null_values=[*pacsv.ConvertOptions().null_values, *written.missing],
        strings_can_be_null=True,
        decimal_point=written.decimal,
    )
    with readable(path.name, written):
        with path.open(encoding=without_mark(written.encoding), newline="") as file:
            text = "".join(itertools.islice(file, PEEKED_ROWS + 1))
        rows = pacsv.read_csv(pa.BufferReader(text.encode()), parse_options=parsing(written), convert_options=options)
    return pa.schema([(name, _shape(rows.column(place))) for place, name in enumerate(columns)])


def _shape(column: pa.ChunkedArray) -> pa.DataType:
    """Returns one of five types, or null for a column without any text."""
    if column.null_count == len(column):
        return pa.null()
    for fits, shape in _SHAPES:
        if fits(column.type):
            return shape
    if pa.types.is_string(column.type) and _reads_as_moments(column):
        return pa.timestamp("s")
    return pa.string()


def _reads_as_moments(column: pa.ChunkedArray) -> bool:
    try:
        pc.cast(column, pa.timestamp("us", tz="UTC"))
    except pa.ArrowInvalid:
        return False
    return True
