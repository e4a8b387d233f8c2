"""The four kinds of column: continuous, integer, categorical and binary.

Bounds and categories are public facts that a person declares. Nothing here is ever filled in from the data.
"""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from understudy.data.dtypes import FLOAT_DTYPES, INTEGER_DTYPES, TEXT_DTYPES, require_dtype, require_fit
from understudy.data.type_checks import check_fields, wrong_key
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
        _check_column(self, FLOAT_DTYPES)
        _check_bounds(self)

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
        for end in ("low", "high"):
            bound: Any = getattr(self, end)
            if bound is not None:
                _require_holdable(bound, f"{self.name}.{end}")
                if int(bound) != bound:
                    raise wrong_key(f"{self.name}.{end}", "a whole number is expected for an integer column.")
                object.__setattr__(self, end, int(bound))
        _check_column(self, INTEGER_DTYPES + FLOAT_DTYPES)
        for end in ("low", "high"):
            if getattr(self, end) is not None:
                require_fit(self.dtype, getattr(self, end), f"{self.name}.{end}")
        _check_bounds(self)

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
        check_fields(self, str(self.name))
        whole = bool(self.categories) and all(isinstance(item, int) for item in self.categories)
        if whole and self.dtype == "string":
            object.__setattr__(self, "dtype", "int64")
        _check_column(self, INTEGER_DTYPES if whole else TEXT_DTYPES)
        _check_categories(self, whole=whole)

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest code."""
        if not self.categories:
            key = f"{self.name}.categories"
            raise SchemaError(f"Key '{key}' is not declared. Categories are public: list them in the schema.", key=key)
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
        _check_column(self, ("bool", *INTEGER_DTYPES, *FLOAT_DTYPES))

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
    """Returns whether steps without rows mean zero (visits, transactions) and not missing."""
    return channel.aggregate in EVENT_AGGREGATES


def undeclared(channel: Channel) -> str | None:
    """Returns the first public fact a draft has left open ("low", "high", "categories"), or None."""
    if isinstance(channel, Categorical):
        return None if channel.categories else "categories"
    if isinstance(channel, Binary):
        return None
    return "low" if channel.low is None else "high" if channel.high is None else None


def _check_column(channel: "Channel", dtypes: tuple[str, ...]) -> None:
    """Checks what all kinds have in common."""
    name, aggregate = channel.name, channel.aggregate
    check_fields(channel, str(name))
    if not name:
        raise wrong_key("name", "a column name is expected, got an empty one. Name the column.")
    if aggregate not in AGGREGATES:
        raise wrong_key(f"{name}.aggregate", f"one of {', '.join(AGGREGATES)} is expected, got '{aggregate}'.")
    if isinstance(channel, Categorical | Binary) and aggregate in ("mean", *EVENT_AGGREGATES):
        raise wrong_key(f"{name}.aggregate", "categories have no mean or sum. Use 'last', 'max' or 'min'.")
    require_dtype(channel.dtype, dtypes, f"{name}.dtype")


def _check_categories(channel: Categorical, *, whole: bool) -> None:
    key, items = f"{channel.name}.categories", channel.categories
    text = all(isinstance(item, str) for item in items)
    if not (whole or text) or any(isinstance(item, bool) for item in items):
        raise wrong_key(key, "all text or all whole numbers expected. Write one kind.")
    if len(set(items)) != len(items):
        raise wrong_key(key, "a category is listed twice. List each one once.")
    for item in items:
        if isinstance(item, int):
            require_fit(channel.dtype, item, key)


def _check_bounds(channel: Continuous | Integer) -> None:
    name, number = channel.name, float if isinstance(channel, Continuous) else int
    if channel.out_of_bounds not in ("refuse", "clip"):
        raise wrong_key(f"{name}.out_of_bounds", f"'refuse' or 'clip' is expected, got '{channel.out_of_bounds}'.")
    for end in ("low", "high"):
        bound = getattr(channel, end)
        if bound is not None:
            _require_holdable(bound, f"{name}.{end}")
            object.__setattr__(channel, end, number(bound))
    low, high = channel.low, channel.high
    if low is not None and high is not None and not np.float32(low) < np.float32(high):
        raise wrong_key(
            f"{name}.high", f"a bound above low is expected, got low = {low}, high = {high}. Swap or widen them."
        )


def _require_holdable(bound: Any, key: str) -> None:
    if isinstance(bound, bool) or not isinstance(bound, Real) or not -LARGEST <= float(bound) <= LARGEST:
        raise wrong_key(
            key, f"a number from {-LARGEST:g} to {LARGEST:g} is expected. Declare one from public knowledge."
        )


def _declared(name: str, low: float | None, high: float | None) -> tuple[float, float]:
    if low is None or high is None:
        key = f"{name}.{'low' if low is None else 'high'}"
        raise SchemaError(
            f"Key '{key}' is not declared. Bounds are public and are never read from the data: declare it from public "
            "knowledge, or buy it with a DP quantile.",
            key=key,
        )
    return float(low), float(high)
