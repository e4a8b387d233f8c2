"""The column types a schema may name, and their Arrow counterparts.

A schema says how each column is stored in the user's table, so that synthetic tables come back the same.
"""

import re

import numpy as np
import pyarrow as pa

from understudy.data.zones import is_zone
from understudy.errors import SchemaError

FLOAT_DTYPES = ("float64", "float32")
INTEGER_DTYPES = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
TEXT_DTYPES = ("string", "large_string", "dictionary")

_PLAIN: dict[str, pa.DataType] = {
    "float64": pa.float64(),
    "float32": pa.float32(),
    "int64": pa.int64(),
    "int32": pa.int32(),
    "int16": pa.int16(),
    "int8": pa.int8(),
    "uint64": pa.uint64(),
    "uint32": pa.uint32(),
    "uint16": pa.uint16(),
    "uint8": pa.uint8(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "date32": pa.date32(),
}
_DAY = 24 * 3600 * 10**6  # in microseconds, as all ticks
_COARSENESS = {"s": 10**6, "ms": 10**3, "us": 1}
_LAST_NANOSECOND = 2**63 - 1
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=([A-Za-z0-9_+\-/:]+))?\]")


def arrow_type(dtype: str) -> pa.DataType:
    """Returns the Arrow type a schema's dtype stands for.

    >>> arrow_type("timestamp[s]")
    TimestampType(timestamp[s])
    """
    match = _TIMESTAMP.fullmatch(dtype)
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


def is_time_dtype(dtype: str) -> bool:
    """Tells whether a time column may be stored as `dtype` (whole numbers count steps)."""
    timestamp = _TIMESTAMP.fullmatch(dtype)
    return dtype in (*INTEGER_DTYPES, "date32", "string") or (timestamp is not None and is_zone(timestamp.group(2)))


def holds_ticks(dtype: str, *ticks: int) -> bool:
    """Tells whether a time dtype holds these microseconds since 1970 exactly.

    >>> holds_ticks("timestamp[s]", 20_000), holds_ticks("timestamp[ms]", 20_000)
    (False, True)
    """
    if dtype in (*INTEGER_DTYPES, "string"):
        return True
    arrow = arrow_type(dtype)
    if pa.types.is_date(arrow):
        return all(tick % _DAY == 0 for tick in ticks)
    if arrow.unit == "ns":
        return all(abs(tick) < _LAST_NANOSECOND // 1000 for tick in ticks)
    return all(tick % _COARSENESS[arrow.unit] == 0 for tick in ticks)


def has_zone(dtype: str) -> bool:
    """Tells whether a dtype stores moments, and not what a clock shows."""
    match = _TIMESTAMP.fullmatch(dtype)
    return match is not None and match.group(2) is not None


def require_fit(dtype: str, number: int, key: str) -> None:
    """Refuses a dtype that can't hold a whole number which is going to be written to the column."""
    if dtype in INTEGER_DTYPES:
        limits = np.iinfo(dtype)
        if not limits.min <= int(float(number)) <= limits.max:  # a panel's numbers are rounded before they are written
            raise SchemaError(
                f"Key '{key}': {number} is expected to fit, and {dtype} holds {limits.min} to {limits.max}. "
                "Declare a wider dtype or a smaller number.",
                key=key,
            )


def require_dtype(dtype: str, allowed: tuple[str, ...], key: str) -> None:
    """Refuses a dtype that can't hold the column's kind."""
    if dtype not in allowed:
        raise SchemaError(
            f"Key '{key}': a dtype of {', '.join(allowed)} is expected, got '{dtype}'. Choose one of them.",
            key=key,
        )
