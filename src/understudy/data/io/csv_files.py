"""CSV files in their declared format: the header, the rows, and errors that say which declaration may be wrong.

Arrow's own error texts quote cells, so every one of them is replaced by a message that names declared facts only.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from understudy.data.channels import Binary, Categorical, Channel
from understudy.data.dtypes import INTEGER_DTYPES
from understudy.data.io.stores import Place
from understudy.data.schema import CsvFormat, Schema, column_names
from understudy.data.type_checks import wrong_column
from understudy.errors import DataError

_BLOCK_BYTES = 1 << 23
_OTHER_DELIMITERS = (";", "\t", "|", ",")
_ENCODINGS = "'latin-1', 'cp1252' or 'utf-16'"


def csv_header(path: Place, written: CsvFormat, name: str | None = None) -> tuple[str, ...]:
    """Returns the names in the first line of a CSV file, which errors call `name`; reads no more than one block."""
    name = name or path.name
    with readable(name, written):
        with path.open(encoding=without_mark(written.encoding), newline="") as file:
            head = str(file.readline())
        if not head.strip():
            raise DataError(f"{name}: the table is empty. Expected a line of column names.")
        parsed = pacsv.read_csv(pa.BufferReader(head.encode()), parse_options=parsing(written))
        names = tuple(parsed.column_names)
    seen = next((sign for sign in _OTHER_DELIMITERS if len(names) == 1 and sign in names[0]), None)
    if seen is not None:
        raise DataError(
            f"{name}: columns separated by {spelled(written.delimiter)} are expected, and the first line has one with "
            f"{spelled(seen)} in it. Write delimiter = {spelled(seen)} under [csv] of the schema, or give --delimiter."
        )
    return names


def open_csv(
    path: Place, schema: Schema, columns: tuple[str, ...], only: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Yields the rows; types come from the schema, so that they never depend on what the first rows happen to hold."""
    types, written = _csv_types(schema), schema.csv
    texts = {str(c) for group in (schema.channels, schema.static) for k in group for c in getattr(k, "categories", ())}
    nulls = [*pacsv.ConvertOptions().null_values, *written.missing]
    options = pacsv.ConvertOptions(
        column_types={name: types.get(name, pa.string()) for name in columns},
        strings_can_be_null=True,
        null_values=[text for text in nulls if text not in texts],
        include_columns=[name for name in columns if name not in schema.ignore and only in (None, name)],
        decimal_point=written.decimal,
    )
    reading = pacsv.ReadOptions(block_size=_BLOCK_BYTES, encoding=without_mark(written.encoding))
    file = path if isinstance(path, Path) else path.open("rb")
    yield from pacsv.open_csv(file, read_options=reading, convert_options=options, parse_options=parsing(written))


def declared_kinds(schema: Schema, columns: tuple[str, ...]) -> tuple[tuple[str, str] | None, ...]:
    """Returns name and expected text of every declared column, None for others, whose names may be values."""
    types = _csv_types(schema)
    words = {
        pa.float64(): f"numbers with the decimal sign '{schema.csv.decimal}'",
        pa.int64(): "whole numbers",
        pa.bool_(): "true or false, or 0 or 1,",
    }
    return tuple((name, words.get(types[name], "text")) if name in types else None for name in columns)


@contextmanager
def readable(name: str, written: CsvFormat, kinds: tuple[tuple[str, str] | None, ...] = ()) -> Iterator[None]:
    """Turns what Arrow says about a CSV file that it can't read into a message that quotes nothing of it."""
    try:
        yield
    except UnicodeError:
        raise _wrong_encoding(name, written) from None
    except (pa.ArrowException, OSError) as error:
        raise _explained(str(error), name, written, kinds) from None


def _explained(told: str, name: str, written: CsvFormat, kinds: tuple[tuple[str, str] | None, ...]) -> DataError:
    if "invalid UTF8" in told:
        return _wrong_encoding(name, written)
    form = f"{name}: columns separated by {spelled(written.delimiter)}, in {written.encoding}, are expected"
    if re.search(r"Expected \d+ columns, got \d+", told):
        return DataError(
            f"{form}, and a row has more or fewer than the first line. If numbers have decimal commas, or text holds "
            "the delimiter, save the file with another delimiter or with quotes, and declare both signs under [csv]."
        )
    match = re.search(r"CSV column #(\d+)", told)
    kind = kinds[int(match[1])] if match and int(match[1]) < len(kinds) else None
    if kind is None:
        return DataError(f"{form}, and it can't be read so. Save it again, or declare its format under [csv].")
    column, expected = kind
    other = "," if written.decimal == "." else "."
    sign = (
        f"If its decimal sign is '{other}', write decimal = \"{other}\" under [csv]. " if "decimal" in expected else ""
    )
    return wrong_column(
        column,
        f"{expected} are expected in {name}, as declared, and it holds other text. {sign}If a word stands for missing "
        'values, list it as missing = ["?"] under [csv]; else convert the column or declare another kind.',
    )


def _wrong_encoding(name: str, written: CsvFormat) -> DataError:
    usual = "UTF-8" if without_mark(written.encoding) == "utf-8-sig" else written.encoding
    return DataError(
        f"{name}: text in {usual} is expected, and the file holds other bytes. Save it as UTF-8, or declare its "
        f"encoding: --encoding of `understudy init`, encoding = {_ENCODINGS} under [csv] in the schema."
    )


def spelled(sign: str) -> str:
    """Writes a delimiter so that a person can see it."""
    return '"\\t"' if sign == "\t" else f'"{sign}"'


def parsing(written: CsvFormat) -> pacsv.ParseOptions:
    """Returns how rows are split."""
    return pacsv.ParseOptions(delimiter=written.delimiter)


def without_mark(encoding: str) -> str:
    """Returns the encoding in which a byte order mark before UTF-8 text is no part of the first name."""
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig") else encoding


def _csv_types(schema: Schema) -> dict[str, pa.DataType]:
    unit, time = schema.unit, schema.time
    keys = {unit.column: unit.dtype in INTEGER_DTYPES, time.column: time.counts_steps, time.series_column: False}
    types = {name: pa.int64() if whole else pa.string() for name, whole in keys.items() if name is not None}
    types |= {channel.name: _csv_type(channel) for channel in (*schema.static, *schema.context)}
    for channel in schema.channels:
        types |= dict.fromkeys(column_names(schema, channel.name), _csv_type(channel))
    return types


def _csv_type(channel: Channel) -> pa.DataType:
    if isinstance(channel, Categorical):
        return pa.int64() if channel.dtype in INTEGER_DTYPES else pa.string()
    return pa.bool_() if isinstance(channel, Binary) else pa.float64()
