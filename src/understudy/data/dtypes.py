"""Column types a schema may name, and their Arrow counterparts.

A schema says how each column is stored in the user's table, so that synthetic tables come back the same.
"""

import re

import numpy as np
import pyarrow as pa

from understudy.data.type_checks import wrong_key
from understudy.errors import SchemaError

FLOAT_DTYPES = ("float64", "float32")
INTEGER_DTYPES = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
TEXT_DTYPES = ("string", "large_string", "dictionary")

_PLAIN: dict[str, pa.DataType] = {
    **{name: pa.type_for_alias(name) for name in (*FLOAT_DTYPES, *INTEGER_DTYPES, "bool", "string", "large_string")},
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "date32": pa.date32(),
}
TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=([A-Za-z0-9_+\-/:]+))?\]")


def arrow_type(dtype: str) -> pa.DataType:
    """Returns the Arrow type of a schema's dtype.

    >>> arrow_type("timestamp[s]")
    TimestampType(timestamp[s])
    """
    match = TIMESTAMP.fullmatch(dtype)
    if match is not None:
        return pa.timestamp(match.group(1), tz=match.group(2))
    if dtype in _PLAIN:
        return _PLAIN[dtype]
    raise SchemaError(f"Unknown dtype '{dtype}'. Use one of {', '.join(_PLAIN)} or timestamp[s|ms|us|ns].")


def schema_dtype(arrow: pa.DataType) -> str:
    """Returns the dtype a schema would write for an Arrow type; text is the answer for anything unusual."""
    if pa.types.is_timestamp(arrow):
        return str(arrow)
    if pa.types.is_dictionary(arrow):
        return "dictionary"
    if pa.types.is_date(arrow):
        return "date32"
    return next((name for name, plain in _PLAIN.items() if plain == arrow), "string")


def require_fit(dtype: str, number: int, key: str) -> None:
    """Refuses a dtype that can't hold a whole number which is going to be written to the column."""
    limits = np.iinfo(dtype) if dtype in INTEGER_DTYPES else None
    # a panel's numbers are rounded before they are written
    if limits is not None and not limits.min <= int(float(number)) <= limits.max:
        told = f"{number} is expected to fit, and {dtype} holds {limits.min} to {limits.max}."
        raise wrong_key(key, f"{told} Declare a wider dtype or a smaller number.")


def require_dtype(dtype: str, allowed: tuple[str, ...], key: str) -> None:
    """Refuses a dtype that can't hold the column's kind."""
    if dtype not in allowed:
        raise wrong_key(key, f"a dtype of {', '.join(allowed)} is expected, got '{dtype}'. Choose one of them.")
