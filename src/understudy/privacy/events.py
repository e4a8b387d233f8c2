"""What happened to private data, as facts an accountant can price: frozen dataclasses that map to JSON.

Neighbouring datasets differ by one added or removed unit, unless an event says otherwise. A noise multiplier is the
noise's standard deviation divided by the most one unit can move the released vector (in Euclidean norm).
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from understudy.errors import InputError, UnsupportedEvent

Relation = Literal["add-or-remove", "values"]


@dataclass(frozen=True)
class Gaussian:
    """`count` Gaussian releases, every unit in each of them.

    Attributes:
        relation: "values" where the shape of the release tells how many units there are, so that neighbouring datasets
            hold the same units and one unit's values are replaced by zeros.
    """

    noise_multiplier: float
    count: int = 1
    relation: Relation = "add-or-remove"

    def __post_init__(self) -> None:
        _positive(self, "noise_multiplier", "count")
        if self.relation not in get_args(Relation):
            raise InputError(f"Gaussian.relation: one of {', '.join(get_args(Relation))} is expected.")


@dataclass(frozen=True)
class DiscreteGaussian:
    """`count` releases of an integer vector with discrete Gaussian noise.

    With `one_vote`, a unit moves one coordinate by at most one, so that the exact one-dimensional privacy
    loss applies; without it the accountant knows only the concentrated-DP bound.
    """

    noise_multiplier: float
    count: int = 1
    one_vote: bool = False

    def __post_init__(self) -> None:
        _positive(self, "noise_multiplier", "count")


@dataclass(frozen=True)
class SubsampledGaussian:
    """DP-SGD: at each iteration every unit takes part with probability `sampling_rate`, on its own coin."""

    sampling_rate: float
    noise_multiplier: float
    iterations: int

    def __post_init__(self) -> None:
        _positive(self, "noise_multiplier", "iterations")
        _rate(self)


@dataclass(frozen=True)
class MixtureOfGaussians:
    """DP-SGD over windows: each window on its own coin, at most `max_windows` windows belong to one unit."""

    sampling_rate: float
    noise_multiplier: float
    max_windows: int
    iterations: int

    def __post_init__(self) -> None:
        _positive(self, "noise_multiplier", "max_windows", "iterations")
        _rate(self)


@dataclass(frozen=True)
class PureDP:
    """`count` mechanisms, each `epsilon`-DP with delta 0 (exponential mechanism, discrete Laplace)."""

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        _positive(self, "epsilon", "count")


@dataclass(frozen=True)
class ApproximateDP:
    """One mechanism known only to be (epsilon, delta)-DP."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _positive(self, "epsilon")
        if not 0 <= self.delta < 1:
            raise InputError(f"ApproximateDP.delta must lie in [0, 1), got {self.delta}.")


@dataclass(frozen=True)
class NonPrivate:
    """Something that no accountant covers; epsilon is infinite and the certificate says why."""

    reason: str


Event = Gaussian | DiscreteGaussian | SubsampledGaussian | MixtureOfGaussians | PureDP | ApproximateDP | NonPrivate
_TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(Event)}


def relation(events: Iterable[Event]) -> Relation:
    """Return the neighbouring relation for which all events together are accounted."""
    counted = any(isinstance(event, Gaussian) and event.relation == "values" for event in events)
    return "values" if counted else "add-or-remove"


def to_json(event: Event) -> dict[str, Any]:
    """Return plain JSON values, with the event's name under "type" and its relation where it is not the usual one."""
    if type(event).__name__ not in _TYPES:
        raise UnsupportedEvent(f"No JSON form for an event of type {type(event).__name__}.")
    body = {"type": type(event).__name__} | {field.name: getattr(event, field.name) for field in fields(event)}
    if body.get("relation") == "add-or-remove":
        del body["relation"]
    return body


def from_json(body: Any) -> Event:
    """Return the event that `to_json` wrote; a type or field this version does not know is an error, never ignored."""
    name = body.get("type") if isinstance(body, dict) else None
    if not isinstance(name, str) or name not in _TYPES:
        raise UnsupportedEvent(
            f"Unknown event type {name!r}: expected one of {', '.join(_TYPES)}. "
            "It may come from a newer version; upgrade to read it."
        )
    known = {field.name for field in fields(_TYPES[name])}
    if (set(body) - {"type"}) | (known & {"relation"}) != known:
        raise UnsupportedEvent(f"Event {name} must have exactly the fields {', '.join(sorted(known))}.")
    values = {key: _parsed(key, value) for key, value in body.items() if key != "type"}
    event: Event = _TYPES[name](**values)
    return event


def executions(event: Event) -> int:
    """How many times a label with this event may be executed under one charge."""
    if isinstance(event, Gaussian | DiscreteGaussian | PureDP):
        return event.count
    if isinstance(event, SubsampledGaussian | MixtureOfGaussians):
        return event.iterations
    return 1


def _parsed(key: str, value: Any) -> Any:
    if key == "one_vote":
        return bool(value)
    if key in ("reason", "relation"):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnsupportedEvent(f"Event field '{key}' must be a number.")
    return value


def _positive(event: Any, *names: str) -> None:
    for name in names:
        value = getattr(event, name)
        if not 0 < value < float("inf"):
            raise InputError(f"{type(event).__name__}.{name} must be positive and finite, got {value}.")
        if name in ("count", "iterations", "max_windows") and int(value) != value:
            raise InputError(f"{type(event).__name__}.{name} must be a whole number, got {value}.")


def _rate(event: Any) -> None:
    if not 0 < event.sampling_rate <= 1:
        raise InputError(
            f"{type(event).__name__}.sampling_rate must lie in (0, 1], got {event.sampling_rate}. "
            "It is a public constant: expected batch / declared population."
        )
