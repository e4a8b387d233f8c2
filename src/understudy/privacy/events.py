"""What happened to private data, as facts an accountant can price: frozen dataclasses that map to JSON.

All events speak of neighbours that differ by one added or removed unit. A noise multiplier is the noise's
standard deviation divided by the most one unit can move the released vector (in Euclidean norm).
"""

from dataclasses import dataclass, fields
from typing import Any, Literal

from understudy.errors import InputError, UnsupportedEvent


@dataclass(frozen=True)
class Gaussian:
    """`count` Gaussian releases, every unit in each of them."""

    noise_multiplier: float
    count: int = 1

    def __post_init__(self) -> None:
        _positive(self, "noise_multiplier", "count")


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
class Composed:
    """Several events as one, for a mechanism made of parts (a candidate's training and its score)."""

    parts: tuple["Event", ...]


@dataclass(frozen=True)
class RepeatAndSelect:
    """`base` run a random number of times, only the best result released (Papernot & Steinke 2022)."""

    base: "Event"
    expected_runs: float
    distribution: Literal["poisson", "geometric"] = "poisson"

    def __post_init__(self) -> None:
        if not 1 <= self.expected_runs <= 500:  # beyond that exp(−mean) leaves the doubles the draw is made with
            raise InputError(f"expected_runs must be from 1 to 500, got {self.expected_runs}.")
        if self.distribution not in ("poisson", "geometric"):
            raise InputError(f"distribution must be 'poisson' or 'geometric', got {self.distribution!r}.")
        if self.distribution == "geometric" and self.expected_runs <= 1:
            raise InputError("A geometric number of runs needs expected_runs above 1: it never is 0.")


@dataclass(frozen=True)
class NonPrivate:
    """Something that no accountant covers; epsilon is infinite and the certificate says why."""

    reason: str


Event = (
    Gaussian
    | DiscreteGaussian
    | SubsampledGaussian
    | MixtureOfGaussians
    | PureDP
    | ApproximateDP
    | Composed
    | RepeatAndSelect
    | NonPrivate
)

_TYPES: dict[str, type[Any]] = {
    "Gaussian": Gaussian,
    "DiscreteGaussian": DiscreteGaussian,
    "SubsampledGaussian": SubsampledGaussian,
    "MixtureOfGaussians": MixtureOfGaussians,
    "PureDP": PureDP,
    "ApproximateDP": ApproximateDP,
    "Composed": Composed,
    "RepeatAndSelect": RepeatAndSelect,
    "NonPrivate": NonPrivate,
}


def to_json(event: Event) -> dict[str, Any]:
    """A dict of plain JSON values with the event's name under "type"."""
    if type(event).__name__ not in _TYPES:
        raise UnsupportedEvent(f"No JSON form for an event of type {type(event).__name__}.")
    body: dict[str, Any] = {"type": type(event).__name__}
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, tuple):
            value = [to_json(part) for part in value]
        elif type(value).__name__ in _TYPES:
            value = to_json(value)
        body[field.name] = value
    return body


def from_json(body: Any) -> Event:
    """The event that `to_json` wrote; a type or field this version does not know is an error, never ignored."""
    name = body.get("type") if isinstance(body, dict) else None
    if not isinstance(name, str) or name not in _TYPES:
        raise UnsupportedEvent(
            f"Unknown event type {name!r}: expected one of {', '.join(_TYPES)}. "
            "It may come from a newer version; upgrade to read it."
        )
    known = {field.name for field in fields(_TYPES[name])}
    if set(body) - {"type"} != known:
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
    if key == "base":
        return from_json(value)
    if key == "parts":
        return tuple(from_json(part) for part in value)
    if key == "one_vote":
        return bool(value)
    if key in ("reason", "distribution"):
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
