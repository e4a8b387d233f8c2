"""The four kinds of column, continuous, integer, categorical and binary, and the types they are stored as.

Bounds and categories are public facts that a person declares. Nothing here is ever filled in from the data.
"""

import re
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pydantic

from understudy.data.type_checks import check_fields, require_key
from understudy.errors import SchemaError

FLOAT_DTYPES = ("float64", "float32")
INTEGER_DTYPES = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
TEXT_DTYPES = ("string", "large_string", "dictionary")
TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=([A-Za-z0-9_+\-/:]+))?\]")
_PLAIN: dict[str, pa.DataType] = {
    **{name: pa.type_for_alias(name) for name in (*FLOAT_DTYPES, *INTEGER_DTYPES, "bool", "string", "large_string")},
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "date32": pa.date32(),
}
LARGEST = 1e37  # panels hold float32


def _whole(given: Any) -> Any:
    """Returns a whole number for one that is written with a point."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


OutOfBounds = Literal["refuse", "clip"]
Aggregate = Literal["mean", "sum", "count", "last", "max", "min"]
CodeAggregate = Literal["last", "max", "min"]  # categories have no mean or sum
Bound = Annotated[float, pydantic.Field(ge=-LARGEST, le=LARGEST)]
Resolution = Annotated[float, pydantic.Field(ge=1e-12, le=LARGEST)]
WholeBound = Annotated[int, pydantic.Field(ge=-(10**37), le=10**37), pydantic.BeforeValidator(_whole)]


@dataclass(frozen=True)
class _Number:
    """What continuous and integer columns share."""

    kind: ClassVar[str]
    _dtypes: ClassVar[tuple[str, ...]] = FLOAT_DTYPES

    name: str
    low: Bound | None = None
    high: Bound | None = None
    _: KW_ONLY
    missing: bool = False
    out_of_bounds: OutOfBounds = "refuse"
    aggregate: Aggregate = "mean"
    dtype: str = "float64"
    party: str | None = None

    def __post_init__(self) -> None:
        _check_column(self, self._dtypes)
        low, high = self.low, self.high
        if low is not None and high is not None:
            problem = f"a bound above low is expected, got low = {low}, high = {high}. Swap or widen them."
            require_key(np.float32(low) < np.float32(high), f"{self.name}.high", problem)
        for end in ("low", "high"):
            require_fit(self.dtype, getattr(self, end) or 0, f"{self.name}.{end}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The declared bounds; refuses a draft."""
        if self.low is None or self.high is None:
            raise _open(self)
        return float(self.low), float(self.high)


@dataclass(frozen=True)
class Continuous(_Number):
    """Real numbers between two public bounds.

    Attributes:
        name: Name of the table's column.
        low: Smallest value the column can take; None only in a draft.
        high: Largest value the column can take; None only in a draft.
        missing: Whether a value may be absent.
        out_of_bounds: What reading does with a value outside the bounds: "refuse" the table, or "clip" the value.
        aggregate: How several rows inside one step become one value. "sum" and "count" also turn a step
            without rows into 0; the others leave it missing.
        dtype: How the user's table stores the column.
        resolution: Step between neighbouring values, to which samples are rounded; None keeps them as they are.
        party: Who holds the column when several organisations take part.
    """

    kind: ClassVar[str] = "continuous"

    _: KW_ONLY
    resolution: Resolution | None = None


@dataclass(frozen=True)
class Integer(_Number):
    """Whole numbers between two public bounds; samples come back whole. Other fields as in `Continuous`.

    Panels hold float32: beyond 16 777 216 neighbouring whole numbers may become one.
    """

    kind: ClassVar[str] = "integer"
    _dtypes: ClassVar[tuple[str, ...]] = INTEGER_DTYPES + FLOAT_DTYPES

    low: WholeBound | None = None
    high: WholeBound | None = None
    _: KW_ONLY
    dtype: str = "int64"


@dataclass(frozen=True)
class Categorical:
    """One of a public list of categories, held inside as a code 0..K-1 in the list's order.

    Attributes:
        categories: All text or all whole numbers; empty only in a draft.
        aggregate: How several rows inside one step become one value.
    """

    kind: ClassVar[str] = "categorical"

    name: str
    categories: tuple[str | int, ...] = ()
    _: KW_ONLY
    missing: bool = False
    aggregate: CodeAggregate = "last"
    dtype: str = "string"
    party: str | None = None

    def __post_init__(self) -> None:
        whole = bool(self.categories) and all(type(item) is not str for item in self.categories)
        if whole and self.dtype == "string":
            object.__setattr__(self, "dtype", "int64")
        _check_column(self, INTEGER_DTYPES if whole else TEXT_DTYPES)
        key, items = f"{self.name}.categories", self.categories
        one_kind = whole or not any(isinstance(item, int) for item in items)
        require_key(one_kind, key, "all text or all whole numbers expected. Write one kind.")
        require_key(len(set(items)) == len(items), key, "a category is listed twice. List each one once.")
        for item in items if whole else ():
            require_fit(self.dtype, int(item), key)

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest code."""
        if not self.categories:
            raise _open(self)
        return 0.0, float(len(self.categories) - 1)


@dataclass(frozen=True)
class Binary:
    """Yes or no, held inside as 1 or 0.

    Attributes:
        aggregate: How several rows inside one step become one value.
    """

    kind: ClassVar[str] = "binary"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    name: str
    _: KW_ONLY
    missing: bool = False
    aggregate: CodeAggregate = "last"
    dtype: str = "bool"
    party: str | None = None

    def __post_init__(self) -> None:
        _check_column(self, ("bool", *INTEGER_DTYPES, *FLOAT_DTYPES))


Channel = Continuous | Integer | Categorical | Binary
_Column = _Number | Categorical | Binary


def num_codes(channel: Channel) -> int | None:
    """Returns how many codes a categorical or binary column has, None for numbers."""
    if isinstance(channel, Categorical):
        return len(channel.categories)
    return 2 if isinstance(channel, Binary) else None


def is_event_like(channel: Channel) -> bool:
    """Returns whether steps without rows mean zero (visits, transactions) and not missing."""
    return channel.aggregate in ("sum", "count")


def undeclared(channel: _Column) -> str | None:
    """Returns the first public fact a draft has left open ("low", "high", "categories"), or None."""
    if isinstance(channel, Categorical):
        return None if channel.categories else "categories"
    return next((end for end in ("low", "high") if getattr(channel, end, 0) is None), None)


def arrow_type(dtype: str) -> pa.DataType:
    """Returns the Arrow type of a schema's dtype.

    >>> arrow_type("timestamp[s]")
    TimestampType(timestamp[s])
    """
    match = TIMESTAMP.fullmatch(dtype)
    return _PLAIN[dtype] if match is None else pa.timestamp(match.group(1), tz=match.group(2))


def schema_dtype(arrow: pa.DataType) -> str:
    """Returns the dtype a schema would write for an Arrow type; text is the answer for anything unusual."""
    if pa.types.is_timestamp(arrow):
        return str(arrow)
    if pa.types.is_dictionary(arrow):
        return "dictionary"
    if pa.types.is_date(arrow):
        return "date32"
    return next((name for name, plain in _PLAIN.items() if plain == arrow), "string")


def drafted(field: pa.Field) -> Channel:
    """Drafts a column of its type; one of no type, whose kind is open, is a number meanwhile."""
    types, dtype = pa.types, schema_dtype(field.type)
    kind: Any = Categorical
    if types.is_boolean(field.type):
        kind = Binary
    elif types.is_integer(field.type):
        kind = Integer
    elif types.is_floating(field.type) or types.is_decimal(field.type) or types.is_null(field.type):
        kind = Continuous
    stored = TEXT_DTYPES if kind is Categorical else FLOAT_DTYPES if kind is Continuous else INTEGER_DTYPES
    made: Channel = kind(field.name, missing=True, **({"dtype": dtype} if dtype in stored else {}))
    return made


def require_fit(dtype: str, number: int, key: str) -> None:
    """Refuses a dtype that can't hold a whole number which is going to be written to the column."""
    if dtype in INTEGER_DTYPES:
        limits = np.iinfo(dtype)
        told = f"{number} is expected to fit, and {dtype} holds {limits.min} to {limits.max}."
        fits = limits.min <= int(float(number)) <= limits.max  # a panel's numbers are rounded before they are written
        require_key(fits, key, f"{told} Declare a wider dtype or a smaller number.")


def require_dtype(dtype: str, allowed: tuple[str, ...], key: str) -> None:
    """Refuses a dtype that can't hold the column's kind."""
    told = f"a dtype of {', '.join(allowed)} is expected, got '{dtype}'. Choose one of them."
    require_key(dtype in allowed, key, told)


def _check_column(channel: _Column, dtypes: tuple[str, ...]) -> None:
    """Checks what all kinds have in common."""
    check_fields(channel, str(channel.name))
    require_key(channel.name, "name", "a column name is expected, got an empty one. Name the column.")
    require_dtype(channel.dtype, dtypes, f"{channel.name}.dtype")


def _open(channel: _Column) -> SchemaError:
    fact = undeclared(channel)
    told = "is not declared. Bounds and categories are public and are never read from the data"
    key = f"{channel.name}.{fact}"
    return SchemaError(f"Key '{key}' {told}: write {fact} from public knowledge, or buy it with a DP query.", key=key)
