"""What happened to private data, as facts an accountant can price: frozen dataclasses that map to JSON.

Neighbouring datasets differ by one added or removed unit, unless an event says otherwise. A noise multiplier is the
noise's standard deviation divided by the most one unit can move the released vector (in Euclidean norm).
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from understudy.errors import InputError, UnsupportedEvent
from understudy.privacy import canonical

Relation = Literal["add-or-remove", "values"]
_WHOLE = ("count", "iterations", "max_windows")


@dataclass(frozen=True)
class Event:
    """A charge for `executions` of one mechanism with public parameters; `accounting` has the price of each kind."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            where = f"{type(self).__name__}.{name}"
            if name in ("noise_multiplier", "epsilon", *_WHOLE) and not 1e-100 < value < 1e100:  # squares are finite
                raise InputError(f"{where} must lie between 1e-100 and 1e100, got {value}.")
            if name in _WHOLE and int(value) != value:
                raise InputError(f"{where} must be a whole number, got {value}.")
            if name == "delta" and not 0 <= value < 1:
                raise InputError(f"{where} must lie in [0, 1), got {value}.")
            if name == "sampling_rate" and not 0 < value <= 1:
                raise InputError(
                    f"{where} must lie in (0, 1], got {value}. "
                    "It is a public constant: expected batch / declared population."
                )
            if name == "relation" and value not in get_args(Relation):
                raise InputError(f"{where}: one of {', '.join(get_args(Relation))} is expected.")

    @property
    def counted(self) -> str | None:
        """Name of the field that says how often; None where it is once."""
        return next((name for name in ("count", "iterations") if hasattr(self, name)), None)

    @property
    def executions(self) -> int:
        """How often a label with this event may be executed under one charge."""
        number: int = 1 if self.counted is None else getattr(self, self.counted)
        return number


@dataclass(frozen=True)
class Gaussian(Event):
    """`count` Gaussian releases, every unit in each of them.

    Attributes:
        relation: "values" where the shape of the release tells how many units there are, so that neighbouring datasets
            hold the same units and one unit's values are replaced by zeros.
    """

    noise_multiplier: float
    count: int = 1
    relation: Relation = "add-or-remove"


@dataclass(frozen=True)
class DiscreteGaussian(Event):
    """`count` releases of an integer vector with discrete Gaussian noise.

    With `one_vote`, a unit moves one coordinate by at most one, so that the exact one-dimensional privacy
    loss applies; without it the accountant knows only the concentrated-DP bound.
    """

    noise_multiplier: float
    count: int = 1
    one_vote: bool = False


@dataclass(frozen=True)
class SubsampledGaussian(Event):
    """DP-SGD: at each iteration every unit takes part with probability `sampling_rate`, on its own coin."""

    sampling_rate: float
    noise_multiplier: float
    iterations: int


@dataclass(frozen=True)
class MixtureOfGaussians(Event):
    """DP-SGD over windows: each window on its own coin, at most `max_windows` windows belong to one unit."""

    sampling_rate: float
    noise_multiplier: float
    max_windows: int
    iterations: int


@dataclass(frozen=True)
class PureDP(Event):
    """`count` mechanisms, each `epsilon`-DP with delta 0 (exponential mechanism, discrete Laplace)."""

    epsilon: float
    count: int = 1


@dataclass(frozen=True)
class ApproximateDP(Event):
    """One mechanism known only to be (epsilon, delta)-DP."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class NonPrivate(Event):
    """Something that no accountant covers; epsilon is infinite and the certificate says why."""

    reason: str


EXACT = (Gaussian, DiscreteGaussian, ApproximateDP)  # released as whole numbers with discrete noise
_TYPES = {kind.__name__: kind for kind in Event.__subclasses__()}


def relation(events: Iterable[Event]) -> Relation:
    """Return the neighbouring relation for which all events together are accounted."""
    counted = any(isinstance(event, Gaussian) and event.relation == "values" for event in events)
    return "values" if counted else "add-or-remove"


def to_json(event: Event) -> dict[str, Any]:
    """Return plain JSON values, with the event's name under "type" and its relation where it is not the usual one."""
    if type(event) not in _TYPES.values():
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
    stated = {key: value for key, value in body.items() if key != "type"}
    known = {field.name for field in fields(_TYPES[name])}
    try:
        if set(stated) | (known & {"relation"}) != known:
            raise ValueError
        return canonical.typed(_TYPES[name], stated)
    except ValueError as problem:
        raise UnsupportedEvent(
            f"Event {name} must have exactly the fields {', '.join(sorted(known))}, with numbers of a mechanism."
        ) from problem
