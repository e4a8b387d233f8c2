"""The four kinds of column: continuous, integer, categorical and binary.

Bounds and categories are public facts that a person declares. Nothing here is ever filled in from the data.
"""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import ClassVar, Literal

import numpy as np

from understudy.data.dtypes import FLOAT_DTYPES, INTEGER_DTYPES, TEXT_DTYPES, require_dtype, require_fit
from understudy.data.given import require_given
from understudy.errors import SchemaError

OutOfBounds = Literal["refuse", "clip"]
Aggregate = Literal["mean", "sum", "count", "last", "max", "min"]
EVENT_AGGREGATES = ("sum", "count")
LARGEST = 1e37  # panels hold float32
AGGREGATES = ("mean", "last", "max", "min", *EVENT_AGGREGATES)


@dataclass(frozen=True)
class Continuous:
    """Real numbers between two public bounds.

    Attributes:
        low: Smallest value the column can take; None only in a draft.
        high: Largest value the column can take; None only in a draft.
        missing: Whether a value may be absent.
        out_of_bounds: What reading does with a value outside the bounds.
        aggregate: How several rows inside one step become one value. "sum" and "count" also turn a step
            without rows into 0; the others leave it missing.
        dtype: How the user's table stores the column.
        party: Who holds the column when several organisations take part.
    """

    kind: ClassVar[str] = "continuous"

    name: str
    low: float | None = None
    high: float | None = None
    _: KW_ONLY
    missing: bool = False
    out_of_bounds: OutOfBounds = "refuse"
    aggregate: Aggregate = "mean"
    dtype: str = "float64"
    party: str | None = None

    def __post_init__(self) -> None:
        _check_common(self)
        require_dtype(self.dtype, FLOAT_DTYPES, f"{self.name}.dtype")
        _check_out_of_bounds(self.name, self.out_of_bounds)
        object.__setattr__(self, "low", _as_float(self.low, f"{self.name}.low"))
        object.__setattr__(self, "high", _as_float(self.high, f"{self.name}.high"))
        _check_order(self.name, self.low, self.high)

    @property
    def bounds(self) -> tuple[float, float]:
        """The declared bounds; refuses a draft."""
        return _declared(self.name, self.low, self.high)


@dataclass(frozen=True)
class Integer:
    """Whole numbers between two public bounds; samples come back whole. Fields as in `Continuous`.

    Panels hold float32: beyond 16 777 216 neighbouring whole numbers may become one.
    """

    kind: ClassVar[str] = "integer"

    name: str
    low: int | None = None
    high: int | None = None
    _: KW_ONLY
    missing: bool = False
    out_of_bounds: OutOfBounds = "refuse"
    aggregate: Aggregate = "mean"
    dtype: str = "int64"
    party: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _as_whole(self.low, f"{self.name}.low"))
        object.__setattr__(self, "high", _as_whole(self.high, f"{self.name}.high"))
        _check_common(self)
        require_dtype(self.dtype, INTEGER_DTYPES + FLOAT_DTYPES, f"{self.name}.dtype")
        _check_out_of_bounds(self.name, self.out_of_bounds)
        for end, bound in (("low", self.low), ("high", self.high)):
            if bound is not None:
                require_fit(self.dtype, bound, f"{self.name}.{end}")
        _check_order(self.name, self.low, self.high)

    @property
    def bounds(self) -> tuple[float, float]:
        """The declared bounds; refuses a draft."""
        return _declared(self.name, self.low, self.high)


@dataclass(frozen=True)
class Categorical:
    """One of a public list of categories, held inside as a code 0..K-1 in the list's order."""

    kind: ClassVar[str] = "categorical"

    name: str
    categories: tuple[str | int, ...] = ()
    _: KW_ONLY
    missing: bool = False
    aggregate: Aggregate = "last"
    dtype: str = "string"
    party: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.categories, list):
            object.__setattr__(self, "categories", tuple(self.categories))
        _check_common(self)
        _check_code_aggregate(self.name, self.aggregate)
        whole = _check_categories(self.name, self.categories)
        if whole and self.dtype == "string":
            object.__setattr__(self, "dtype", "int64")
        require_dtype(self.dtype, INTEGER_DTYPES if whole else TEXT_DTYPES, f"{self.name}.dtype")
        for item in self.categories:
            if isinstance(item, int):
                require_fit(self.dtype, item, f"{self.name}.categories")

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest code."""
        if not self.categories:
            raise SchemaError(
                f"Key '{self.name}.categories' is not declared. Categories are public: list them in the schema.",
                key=f"{self.name}.categories",
            )
        return 0.0, float(len(self.categories) - 1)


@dataclass(frozen=True)
class Binary:
    """Yes or no, held inside as 1 or 0."""

    kind: ClassVar[str] = "binary"

    name: str
    _: KW_ONLY
    missing: bool = False
    aggregate: Aggregate = "last"
    dtype: str = "bool"
    party: str | None = None

    def __post_init__(self) -> None:
        _check_common(self)
        _check_code_aggregate(self.name, self.aggregate)
        require_dtype(self.dtype, ("bool", *INTEGER_DTYPES, *FLOAT_DTYPES), f"{self.name}.dtype")

    @property
    def bounds(self) -> tuple[float, float]:
        """Always 0 and 1."""
        return 0.0, 1.0


Channel = Continuous | Integer | Categorical | Binary


def num_codes(channel: Channel) -> int | None:
    """Returns how many codes a categorical or binary column has, None for numbers."""
    if isinstance(channel, Categorical):
        return len(channel.categories)
    return 2 if isinstance(channel, Binary) else None


def is_event_like(channel: Channel) -> bool:
    """Tells whether steps without rows mean zero (visits, transactions) and not missing."""
    return channel.aggregate in EVENT_AGGREGATES


def undeclared(channel: Channel) -> str | None:
    """Returns the first public fact a draft has left open ("low", "high", "categories"), or None."""
    if isinstance(channel, Categorical):
        return None if channel.categories else "categories"
    if isinstance(channel, Binary):
        return None
    return "low" if channel.low is None else "high" if channel.high is None else None


def _check_common(channel: "Channel") -> None:
    name, aggregate = channel.name, channel.aggregate
    require_given(channel, str(name))
    if not name:
        raise SchemaError("Key 'name': a column name is expected, got an empty one. Name the column.", key="name")
    if aggregate not in AGGREGATES:
        raise SchemaError(
            f"Key '{name}.aggregate': one of {', '.join(AGGREGATES)} is expected, got '{aggregate}'.",
            key=f"{name}.aggregate",
        )


def _check_out_of_bounds(name: str, out_of_bounds: str) -> None:
    if out_of_bounds not in ("refuse", "clip"):
        raise SchemaError(
            f"Key '{name}.out_of_bounds': 'refuse' or 'clip' is expected, got '{out_of_bounds}'.",
            key=f"{name}.out_of_bounds",
        )


def _check_code_aggregate(name: str, aggregate: str) -> None:
    if aggregate in ("mean", *EVENT_AGGREGATES):
        raise SchemaError(
            f"Key '{name}.aggregate': categories have no mean or sum. Use 'last', 'max' or 'min'.",
            key=f"{name}.aggregate",
        )


def _check_categories(name: str, categories: tuple[str | int, ...]) -> bool:
    """Checks a list of categories and returns whether they are whole numbers."""
    key = f"{name}.categories"
    whole = bool(categories) and all(isinstance(item, int) for item in categories)
    text = all(isinstance(item, str) for item in categories)
    if not (whole or text) or any(isinstance(item, bool) for item in categories):
        raise SchemaError(f"Key '{key}': all text or all whole numbers expected. Write one kind.", key=key)
    if len(set(categories)) != len(categories):
        raise SchemaError(f"Key '{key}': a category is listed twice. List each one once.", key=key)
    return whole


def _as_float(bound: float | None, key: str) -> float | None:
    if bound is None:
        return None
    if isinstance(bound, bool) or not isinstance(bound, Real) or not -LARGEST <= bound <= LARGEST:
        raise SchemaError(
            f"Key '{key}': a number from {-LARGEST:g} to {LARGEST:g} is expected. Declare one from public knowledge.",
            key=key,
        )
    return float(bound)


def _as_whole(bound: float | None, key: str) -> int | None:
    number = _as_float(bound, key)
    if number is None or bound is None:
        return None
    if int(bound) != bound:
        raise SchemaError(f"Key '{key}': a whole number is expected for an integer column.", key=key)
    return int(bound)


def _check_order(name: str, low: float | None, high: float | None) -> None:
    if low is not None and high is not None and not np.float32(low) < np.float32(high):
        raise SchemaError(
            f"Key '{name}.high': a bound above low is expected, got low = {low}, high = {high}. Swap or widen them.",
            key=f"{name}.high",
        )


def _declared(name: str, low: float | None, high: float | None) -> tuple[float, float]:
    if low is None or high is None:
        end = "low" if low is None else "high"
        raise SchemaError(
            f"Key '{name}.{end}' is not declared. Bounds are public and are never read from the data: "
            "declare it from public knowledge, or buy it with a DP quantile.",
            key=f"{name}.{end}",
        )
    return float(low), float(high)
