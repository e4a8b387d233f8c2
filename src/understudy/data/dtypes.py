"""Column types a schema may name, their Arrow counterparts, and time zones.

A schema says how each column is stored in the user's table, so that synthetic tables come back the same.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64

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
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=([A-Za-z0-9_+\-/:]+))?\]")


def arrow_type(dtype: str) -> pa.DataType:
    """Returns the Arrow type of a schema's dtype.

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
    """Returns whether a time column may be stored as `dtype` (whole numbers count steps)."""
    timestamp = _TIMESTAMP.fullmatch(dtype)
    return dtype in (*INTEGER_DTYPES, "date32", "string") or (timestamp is not None and is_zone(timestamp.group(2)))


def holds_ticks(dtype: str, *ticks: int) -> bool:
    """Returns whether a time dtype holds these microseconds since 1970 exactly.

    >>> holds_ticks("timestamp[s]", 20_000), holds_ticks("timestamp[ms]", 20_000)
    (False, True)
    """
    if dtype in (*INTEGER_DTYPES, "string"):
        return True
    moments = pa.array(ticks).cast(pa.timestamp("us"))
    return bool(moments.cast(arrow_type(dtype), safe=False).cast(moments.type, safe=False).equals(moments))


def has_zone(dtype: str) -> bool:
    """Returns whether a dtype stores instants, and not local times."""
    match = _TIMESTAMP.fullmatch(dtype)
    return match is not None and match.group(2) is not None


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


def is_zone(name: str | None) -> bool:
    """Returns whether Arrow can write the hours of a time zone; it accepts the name of any in a type."""
    try:
        pa.array([0], pa.timestamp("s", tz=name)).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def instants(local: pa.Array, zone: str) -> pa.Array:
    """Returns the instants at which a clock in `zone` shows these times.

    Raises:
        pa.ArrowInvalid: A time is shown twice or never, because the clocks change.
    """
    return pc.assume_timezone(local.cast(pa.timestamp("us")), zone, ambiguous="raise", nonexistent="raise")


def local_ticks(ticks: Int64[np.ndarray, " row"], zone: str) -> Int64[np.ndarray, " row"]:
    """Returns what a clock in `zone` shows at these instants, both in microseconds since 1970."""
    shown = pc.local_timestamp(pa.array(ticks).cast(pa.timestamp("us", tz=zone)))
    return np.asarray(shown.cast(pa.int64()).to_numpy(zero_copy_only=False))
