"""Arrow columns become numbers: float32 values and codes, integer ticks, integer keys."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float32, Int64

from understudy.data.channels import INTEGER_DTYPES, Binary, Categorical, Channel, Continuous, Integer
from understudy.data.timegrid import Time, instants
from understudy.data.type_checks import require_column, wrong_column
from understudy.errors import DataError

_NO_NUMBERS = (
    "numbers are expected, and it holds text or something else. Convert the column: pandas.to_numeric(column), or a "
    'cast; in text with decimal commas, column.str.replace(",", ".") comes first.'
)
_NO_BINARY = (
    "true and false, or 1 and 0, are expected, and it holds text or something else. Recode it, such as by "
    'column.map({"yes": True, "no": False}), or declare it categorical.'
)
_LARGEST = float(np.finfo(np.float32).max)


def to_values(array: pa.Array, channel: Channel) -> Float32[np.ndarray, " row"]:
    """Returns a column as numbers or category codes, NaN where null.

    Checks what can be checked on one cell: numbers, finite, whole, a declared category. Bounds and missing
    values are checked on the grid, after rows of one step have become one. The result may be a read-only view.
    """
    array = plain(array)
    if isinstance(channel, Categorical):
        return _codes(array, channel)
    if isinstance(channel, Binary) and pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    told = _NO_BINARY if isinstance(channel, Binary) else _NO_NUMBERS
    require_column(_is_number(array.type), channel.name, told)
    short = pa.types.is_float32(array.type) and array.null_count == 0
    numbers = np.asarray(array) if short else _floats(array, channel.name)
    _check_numbers(numbers, channel)
    return numbers if short else np.clip(numbers, -_LARGEST, _LARGEST, out=numbers).astype(np.float32)


def array_values(array: np.ndarray, name: str, channels: tuple[Channel, ...]) -> Float32[np.ndarray, "..."]:
    """Returns an array whose last axis holds these columns, checked as `to_values` does; categories are codes."""
    if array.dtype.kind not in "fiub":
        raise DataError(f"Array `{name}`: numbers are expected. Convert it.", column=name)
    for index, channel in enumerate(channels if array.shape[-1:] == (len(channels),) else ()):
        _check_numbers(array[..., index], channel)
    return (np.clip(array, -_LARGEST, _LARGEST) if array.dtype.kind == "f" else array).astype(np.float32)


def _check_numbers(numbers: np.ndarray, channel: Channel) -> None:
    name, known = channel.name, np.isnan(numbers)
    require_column(not np.isinf(numbers).any(), name, "it holds an infinite value. Remove it or make it missing.")
    binary = not isinstance(channel, Binary) or (known | (numbers == 0) | (numbers == 1)).all()
    require_column(binary, name, "0 and 1 are expected, as declared. Recode it or declare it categorical.")
    whole = isinstance(channel, Continuous) or np.array_equal(np.rint(numbers), numbers, equal_nan=True)
    told = f"whole numbers are expected, as declared ({channel.kind}). Round it or declare another kind."
    require_column(whole, name, told)


def settle_column(column: np.ndarray, channel: Channel, inside: np.ndarray | np.bool_) -> bool:
    """Checks one column in place; returns whether anything was observed."""
    missing = np.isnan(column)
    told = "it has a missing value and is declared without. Set missing = true in the schema, or fill the gap from"
    gaps = not channel.missing and (missing & inside).any()
    require_column(not gaps, channel.name, f"{told} public knowledge.")
    low, high = (np.float32(bound) for bound in channel.bounds)
    outside = ((column < low) | (column > high)).any()
    if outside and isinstance(channel, Continuous | Integer) and channel.out_of_bounds == "clip":
        np.clip(column, low, high, out=column)
    elif outside:
        told = (
            f"it leaves its declared bounds [{channel.bounds[0]:g}, {channel.bounds[1]:g}]. Bounds are public and are"
        )
        remedy = 'not read from the data: widen them in the schema, or set out_of_bounds = "clip".'
        raise wrong_column(channel.name, f"{told} {remedy}")
    return not bool(missing.all())


def to_ticks(array: pa.Array, time: Time) -> Int64[np.ndarray, " row"]:
    """Returns a time column as microseconds since 1970, or as step numbers if that is declared."""
    name = str(time.column)
    array = plain(array)
    require_column(not array.null_count, name, "it misses a timestamp. Fill it in or drop the row.")
    if time.counts_steps:
        told = 'whole step numbers are expected, as declared. Convert the column: column.astype("int64").'
        require_column(pa.types.is_integer(array.type), name, told)
        with _uncastable(name, "whole step numbers"):
            return np.asarray(array.cast(pa.int64()), dtype=np.int64)
    moments = _moments(array, name)
    if time.zone is not None and moments.type.tz is None:
        try:
            moments = instants(moments, time.zone)
        except pa.ArrowInvalid:
            told = (
                f"it holds a time that occurs twice or never in time.zone = '{time.zone}', where clocks change. Write"
            )
            remedy = "the times in UTC or with their offset (2024-01-31T12:00:00+01:00)."
            raise wrong_column(name, f"{told} {remedy}") from None
    return np.asarray(moments.cast(pa.int64()), dtype=np.int64)


def encode(array: pa.Array, column: str, dtype: str) -> pa.DictionaryArray:
    """Returns a column of keys as codes and the keys they stand for, in the order of their first appearance."""
    require_column(not array.null_count, column, "it misses an identifier. Fill it in or drop the row.")
    if pa.types.is_dictionary(array.type):  # each key is looked at once, and not in every row
        used = array.indices.dictionary_encode()
        keys = encode(array.dictionary.take(used.dictionary), column, dtype)
        return pa.DictionaryArray.from_arrays(keys.indices.take(used.indices), keys.dictionary)
    target = pa.int64() if dtype in INTEGER_DTYPES else pa.large_string()
    with _uncastable(column, f"identifiers of type {dtype}"):
        return plain(array).cast(target).dictionary_encode()


def _codes(array: pa.Array, channel: Categorical) -> Float32[np.ndarray, " row"]:
    whole = isinstance(channel.categories[0], int)
    target = pa.int64() if whole else pa.large_string()
    worded = whole or not _is_number(array.type)
    require_column(worded, channel.name, "text categories are expected, as declared. Convert the column.")
    with _uncastable(channel.name, "the declared categories"):
        array = array.cast(target)
    codes = pc.index_in(array, value_set=pa.array(list(channel.categories), type=target))
    told = "it holds a category that is not declared. Categories are public: add it to the schema's list, or recode."
    require_column(codes.null_count == array.null_count, channel.name, told)
    return _floats(codes, channel.name).astype(np.float32)


def _moments(array: pa.Array, name: str) -> pa.Array:
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        with _uncastable(name, "timestamps no finer than a microsecond"):
            zone = pa.types.is_timestamp(array.type) and array.type.tz is not None
            return array.cast(pa.timestamp("us", tz="UTC" if zone else None))
    text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    for measure, zone in (("us", None), ("us", "UTC"), ("ns", None), ("ns", "UTC")) if text else ():
        with suppress(pa.ArrowInvalid):
            return array.cast(pa.timestamp(measure, tz=zone)).cast(pa.timestamp("us", tz=zone))
    raise wrong_column(
        name,
        "it holds something that is not a timestamp. Write ISO 8601 (2024-01-31T12:00:00), all with or all without an "
        'offset, or store a timestamp type: pandas.to_datetime(column, unit="s") converts seconds since 1970, '
        "column.dt.to_timestamp() periods.",
    )


def plain(array: pa.Array) -> pa.Array:
    """Spells out dictionaries and string views, which not every Arrow function takes."""
    if pa.types.is_dictionary(array.type):
        return plain(array.dictionary).take(array.indices)
    return array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array


def _floats(array: pa.Array, name: str) -> np.ndarray:
    with _uncastable(name, "numbers"):
        numbers: np.ndarray = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers if numbers.flags.writeable else numbers.copy()


def _is_number(arrow: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null)
    return any(kind(arrow) for kind in kinds)


@contextmanager
def _uncastable(column: str, expected: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise wrong_column(column, f"{expected} are expected. Convert the column.") from None
